package engine

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestRenewalsAddUp whatever a server does with a connection that is due: ten of them last for 50 ms each, and every one is in the ledger once.
func TestRenewalsAddUp(t *testing.T) {
	for name, test := range map[string]struct {
		stays       bool          // the server does not close after a goodbye
		sever, down time.Duration // when it closes all connections, and for how long it then refuses new ones
		counts      [6]uint64     // attempted, opened, refused; renewed, lost, open
		resets      int
		failed      uint64 // ops
	}{
		"closed":              {counts: [6]uint64{10, 10, 0, 10, 0, 0}},
		"never closed":        {stays: true, counts: [6]uint64{10, 10, 0, 10, 0, 0}, resets: 9}, // the load ends before the tenth
		"closed late":         {stays: true, sever: 500 * time.Millisecond, counts: [6]uint64{10, 10, 0, 10, 0, 0}, resets: 8},
		"lost while draining": {sever: 245 * time.Millisecond, counts: [6]uint64{10, 10, 0, 8, 1, 1}, failed: 4}, // with the two that waited
		"then refused":        {sever: 245 * time.Millisecond, down: time.Second, counts: [6]uint64{30, 10, 20, 8, 1, 1}, failed: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n pipeline = 2\n iterations = 100\n reconnect { ops = 10 }\n}")
			b := newBench(t, p, "load", 10*time.Millisecond)
			s, start := b.server(0), time.Duration(b.net.clock.t)
			s.stays = test.stays
			if test.sever > 0 {
				b.net.at(start+test.sever, func() {
					s.down = test.down > 0
					s.sever()
				})
				b.net.at(start+test.sever+test.down, func() { s.down = false })
			}
			got := b.run(worker.Load)
			c, get := got.Links, got.Ops[driver.Get]
			require.Equal(t, test.counts, [6]uint64{c.Attempted, c.Opened, c.Refused, c.Renewed, c.Lost, uint64(c.Open)})
			require.Equal(t, test.resets, b.net.resets)
			require.Equal(t, [2]uint64{100 - test.failed, test.failed}, [2]uint64{get.Outcomes[driver.Miss], get.Outcomes[driver.Error]})
		})
	}
}

// TestWaitsForAServersCloseAreItsOwn even if an op had no room before, as here, where each op waits for a second of its own.
func TestWaitsForAServersCloseAreItsOwn(t *testing.T) {
	p := redisPlan(t, 1, "", "ops = { get = 1 }\nopen {\n sessions = 1\n rate = 5\n duration = \"4s\"\n reconnect { ops = 1 }\n}")
	b := newBench(t, p, "load", 10*time.Millisecond)
	b.server(0).stays = true
	got := b.run(worker.Load)
	lags, waited := maps.Collect(got.Ops[driver.Get].Lag.Buckets()), maps.Collect(got.Waited.Buckets())
	for upper := range lags {
		require.True(t, upper < int64(time.Millisecond) || lags[upper] == waited[upper], "%v: %d of %d ops", time.Duration(upper), waited[upper], lags[upper])
	}
	require.Greater(t, got.Waited.Max(), 5*int64(time.Second))
	require.Equal(t, map[string]uint64{"n0 (127.0.0.1:7001): " + errStays.Error(): uint64(b.net.resets)}, maps.Collect(got.Errors.All()))
}
