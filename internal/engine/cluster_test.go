package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// clusterLoad is a thousand gets on three scripted servers, of which the first two have the slots.
func clusterLoad(t *testing.T, words map[int]string) (*bench, measure.Totals) {
	b := &bench{t: t, net: newVirtualNet(10), slotless: 1}
	p := redisPlan(t, 3, "cluster = true", `
		ops = { get = 1 }
		closed {
			sessions   = 4
			pipeline   = 2
			iterations = 250
		}`)
	require.NoError(t, b.connect(p, "load", time.Millisecond, b.net.clock))
	for i, w := range words {
		b.server(i).words = []byte(w)
	}
	totals := b.run(run.Load)
	require.Zero(t, totals.Ops[driver.Get].InFlight)
	require.EqualValues(t, 1000, totals.Ops[driver.Get].Due)
	return b, totals
}

// TestClusterRoutes has scripted servers send requests about, and looks at where they were sent and how they were counted.
func TestClusterRoutes(t *testing.T) {
	t.Run("to whom a slot is", func(t *testing.T) {
		b, totals := clusterLoad(t, nil)
		require.EqualValues(t, 1000, totals.Ops[driver.Get].Outcomes[driver.Miss])
		require.Zero(t, *b.server(2).got["PING"], "no connection to a node without slots")
		for i := range 2 {
			r := totals.Request(i, driver.Get)
			require.Equal(t, measure.Requests{Sent: r.Sent, Answered: r.Sent}, *r)
			require.InDelta(t, 500, r.Sent, 100)
		}
	})
	t.Run("asked", func(t *testing.T) {
		b, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-ASK 7 127.0.0.1:%d\r\n", firstPort+2)})
		get := totals.Ops[driver.Get]
		require.EqualValues(t, 1000, get.Outcomes[driver.Miss])
		asked := totals.Request(0, driver.Get)
		require.Equal(t, measure.Requests{Sent: asked.Sent, Ask: asked.Sent}, *asked)
		require.Equal(t, measure.Requests{Sent: asked.Sent, Answered: asked.Sent}, *totals.Request(2, driver.Get))
		require.EqualValues(t, asked.Sent, *b.server(2).got["ASKING"], "each is announced")
		require.Zero(t, *b.server(1).got["ASKING"])
		require.Equal(t, 4, *b.server(2).got["PING"], "one connection for each session, made when it was needed")
		require.GreaterOrEqual(t, get.Service[measure.ClassMiss].Max(), int64(2*time.Millisecond), "an op's time has its redirects in it")
		require.Zero(t, totals.Reconnects)
	})
	t.Run("moved", func(t *testing.T) {
		_, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-MOVED 7 127.0.0.1:%d\r\n", firstPort+2)})
		require.EqualValues(t, 1000, totals.Ops[driver.Get].Outcomes[driver.Miss])
		moved := totals.Request(0, driver.Get)
		require.Equal(t, measure.Requests{Sent: moved.Sent, Moved: moved.Sent}, *moved)
		require.Less(t, moved.Sent, uint64(200), "a slot that has moved is looked for there from then on: 100 keys, each a few times at once")
		require.Greater(t, totals.Request(2, driver.Get).Answered, uint64(300))
	})
	t.Run("on another port of the same host", func(t *testing.T) {
		_, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-MOVED 7 :%d\r\n", firstPort+1)})
		require.EqualValues(t, 1000, totals.Ops[driver.Get].Outcomes[driver.Miss])
	})
	for name, c := range map[string]struct {
		words map[int]string
		want  string
		sent  uint64 // requests of an op that fails
	}{
		"to a node that came later": {map[int]string{0: "-MOVED 7 127.0.0.1:9\r\n"}, string(strangeNode), 1},
		"round in circles": {map[int]string{
			0: fmt.Sprintf("-ASK 7 127.0.0.1:%d\r\n", firstPort), 1: "$-1\r\n",
		}, string(noEnd), op.MaxRedirects + 1},
		"nobody serves the slot": {map[int]string{0: "-CLUSTERDOWN Hash slot not served\r\n"}, "CLUSTERDOWN Hash slot not served", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, totals := clusterLoad(t, c.words)
			get := totals.Ops[driver.Get]
			failed := get.Outcomes[driver.Error]
			require.InDelta(t, 500, failed, 100)
			require.EqualValues(t, 1000-failed, get.Outcomes[driver.Miss])
			require.Equal(t, failed, get.Causes[op.Replied])
			require.Equal(t, c.sent*failed, totals.Request(0, driver.Get).Sent)
			require.Equal(t, failed, totals.Errors.Total())
			for text := range totals.Errors.All() {
				require.Equal(t, c.want, text)
			}
			require.Len(t, b.g.cluster.doubt, 1, "the map is to be read again")
		})
	}
}
