package engine

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/postgres"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestNoAllocationPerOp runs the real loop over a scripted network and counts allocations per cycle, once everything
// that grows has grown.
func TestNoAllocationPerOp(t *testing.T) {
	values := map[string]string{"large values": "size = \"16KiB\""}
	const (
		mixed  = "ops = { get = 1, put = 1 }\n"
		puts   = "ops = { put = 1 }\n"
		closed = "closed {\n sessions = 4\n duration = \"1h\"\n pipeline = 4\n}"
	)
	open := func(rate int) string {
		return fmt.Sprintf("open {\n rate = %d\n duration = \"1h\"\n arrivals = \"poisson\"\n sessions = 4\n pipeline = 16\n}", rate)
	}
	cases := []struct{ name, target, phase string }{
		{"plain closed", "", mixed + closed},
		{"plain closed with think time", "", mixed + "closed {\n sessions = 4\n duration = \"1h\"\n think = \"1ms\"\n}"},
		{"own ops closed", wordedOps, "ops = { look = 1, keep = 1, count = 1, delete = 1 }\n" + closed},
		{"own ops alike", wordedOps, "ops = { keep = 1 }\n" + closed},
		{"puts alike", "", puts + closed},
		{"large values", "", puts + closed},
		{"plain open", "", mixed + open(5000)},
		{"batch closed", "", "batch = 4\n" + mixed + closed},
		{"batch open", "", "batch = 4\n" + mixed + open(2000)},
		{"cluster closed", "cluster = true", mixed + closed},
		{"cluster open", "cluster = true", mixed + open(5000)},
		{"nwr closed", nwr321, "ops = { get = 1, put = 1, delete = 1 }\nclosed {\n sessions = 4\n duration = \"1h\"\n}"},
		{"nwr open", nwr321, mixed + open(2000)},
	}
	warm := 20_000
	if !servertest.Whole() {
		warm = 5_000
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, redisPlanOf(t, 3, cmp.Or(values[c.name], "size = 100"), c.target, c.phase), "load", time.Millisecond)
			b.net.clock.tick = int64(time.Microsecond)
			b.equip(worker.Load)
			b.l.enter()
			for range warm {
				require.True(t, b.l.cycle())
			}
			before := b.served()
			allocs := testing.AllocsPerRun(2000, func() { b.l.cycle() })
			require.Greater(t, b.served()-before, 500)
			require.Zero(t, allocs)
		})
	}
}

// TestPostgresAllocatesNothing is the same for requests and replies of PostgreSQL, once connections have been begun and statements prepared.
func TestPostgresAllocatesNothing(t *testing.T) {
	value := driver.Value{Size: 100, Checked: true, Writer: 1, Version: 1}
	const bound, done, ready = "2\x00\x00\x00\x04", "C\x00\x00\x00\x0dSELECT 1\x00", "Z\x00\x00\x00\x05I"
	enough := 20_000
	if !servertest.Whole() {
		enough = 5_000
	}
	row := append([]byte("D\x00\x00\x00\x6e\x00\x01\x00\x00\x00\x64"), value.AppendTo(nil)...)
	for verb, reply := range map[driver.Verb]string{driver.Get: bound + string(row) + done + ready, driver.Put: bound + done + ready} {
		for _, pipeline := range []int{1, 16} {
			t.Run(fmt.Sprintf("%v, pipeline %d", verb, pipeline), func(t *testing.T) {
				p := redisPlan(t, 1, "", fmt.Sprintf("ops = { %v = 1 }\n%s", verb, closedOf(pipeline)))
				p.Targets[0].Driver, p.Targets[0].Config = "postgres", (postgres.Driver{}).NewConfig()
				b := &bench{t: t, net: newVirtualNet(10), drives: func(d driver.Wire) driver.Wire { return struct{ driver.Wire }{d} }} // without its handshake
				require.NoError(t, b.connect(p, "load", 0, b.net.clock))
				w := b.l.tr.(*wire)
				net := newCannedReplies(b.net, w.codec.codec, verb, &value, []byte(reply))
				w.poll = net
				b.equip(worker.Load)
				b.l.enter()
				for net.answered < enough {
					b.l.cycle()
				}
				require.Zero(t, b.l.rec.Foreign)
				require.Positive(t, b.l.rec.Ops[verb].Outcomes[driver.OK])
				before := net.answered
				allocs := testing.AllocsPerRun(100, func() { b.l.cycle() }) // each of hundreds of ops
				require.Greater(t, net.answered-before, 1000)
				require.Zero(t, allocs)
			})
		}
	}
}

// served is how many requests the servers got.
func (b *bench) served() (n int) {
	for _, s := range b.net.servers {
		for _, got := range s.got {
			n += *got
		}
	}
	return n
}

// TestNullTargetAllocatesNothing is the same for the transport without sockets.
func TestNullTargetAllocatesNothing(t *testing.T) {
	b := newBench(t, nullPlan(t, 3, `latency = "1ms"`, `
		ops = { get = 1, put = 1 }
		closed {
			sessions = 4
			duration = "1h"
			pipeline = 4
		}`), "load", 0)
	b.equip(worker.Load)
	b.l.enter()
	warm := 20_000
	if !servertest.Whole() {
		warm = 5_000
	}
	for range warm {
		require.True(t, b.l.cycle())
	}
	before := b.l.timers.seq
	require.Zero(t, testing.AllocsPerRun(2000, func() { b.l.cycle() }))
	require.Greater(t, b.l.timers.seq-before, uint64(1000), "replies were computed")
}

// TestBlameAllocatesNothing: a server that is away refuses each connection once a second, and the collector rests meanwhile.
func TestBlameAllocatesNothing(t *testing.T) {
	p := redisPlan(t, 1, "", `
		ops = { get = 1 }
		closed {
			sessions = 1
			duration = "1s"
		}`)
	la := &newBench(t, p, "load", time.Millisecond).l.lane
	why := fmt.Errorf("connect: %w", unix.ECONNREFUSED)
	text := make([]byte, 0, 128)
	require.Zero(t, testing.AllocsPerRun(100, func() { text = la.blame(text[:0], la.side.endpoint(0), why) }))
	require.Equal(t, "n0 (127.0.0.1:7001): connect: connection refused", string(text))
}
