package engine

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// joinedPort is that of a server that is in no list of nodes.
const joinedPort = firstPort + 9

// clusterLoad is a thousand gets on three scripted servers, of which the first two have the slots.
func clusterLoad(t *testing.T, words map[int]string, changes ...func(*bench)) (*bench, measure.Totals) {
	b := &bench{t: t, net: newVirtualNet(10), slotless: 1}
	p := redisPlan(t, 3, "cluster = true", `
		ops = { get = 1 }
		closed {
			sessions   = 4
			pipeline   = 2
			iterations = 250
		}`)
	require.NoError(t, b.connect(p, "load", time.Millisecond, b.net.clock))
	b.net.server(joinedPort, time.Millisecond)
	for i, w := range words {
		b.server(i).words = []byte(w)
	}
	for _, change := range changes {
		change(b)
	}
	totals := b.run(worker.Load)
	require.Zero(t, totals.Ops[driver.Get].InFlight)
	require.EqualValues(t, 1000, totals.Ops[driver.Get].Due)
	return b, totals
}

// TestClusterRoutes has scripted servers redirect requests, and checks where they went and how they were counted.
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
		const getting, asking = len("*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n"), len("*1\r\n$6\r\nASKING\r\n")
		require.Equal(t, getting*(1000+int(asked.Sent))+asking*int(asked.Sent), int(get.Out))
		require.Zero(t, *b.server(1).got["ASKING"])
		require.Equal(t, 4, *b.server(2).got["PING"], "one connection for each session, made when it was needed")
		require.GreaterOrEqual(t, get.Service[measure.ClassMiss].Max(), int64(2*time.Millisecond), "an op's time has its redirects in it")
		require.Zero(t, totals.Reconnects)
		require.Empty(t, b.g.cluster.doubt, "only single requests are asked for elsewhere")
	})
	t.Run("asked, and answered late and in pieces", func(t *testing.T) {
		_, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-ASK 7 127.0.0.1:%d\r\n", firstPort+2)}, func(b *bench) {
			late := 0
			b.server(2).piece = 2
			b.server(2).latency = func(int) time.Duration {
				if late++; late%50 == 0 {
					return 1200 * time.Millisecond
				}
				return time.Millisecond
			}
		})
		get := totals.Ops[driver.Get]
		require.Positive(t, get.Outcomes[driver.Timeout])
		require.EqualValues(t, 1000, get.Outcomes[driver.Miss]+get.Outcomes[driver.Timeout])
		require.Positive(t, totals.LateReplies)
		require.LessOrEqual(t, totals.LateReplies, get.Outcomes[driver.Timeout])
		require.Zero(t, totals.Reconnects)
	})
	t.Run("asked, and lost when nobody asks any more", func(t *testing.T) {
		b, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-ASK 7 127.0.0.1:%d\r\n", firstPort+2)}, func(b *bench) {
			start := time.Duration(b.net.clock.t)
			b.net.at(start+20*time.Millisecond, func() { b.server(0).words = nil })
			b.net.at(start+40*time.Millisecond, func() { b.server(2).sever() })
		})
		get := totals.Ops[driver.Get]
		require.EqualValues(t, 1000, get.Outcomes[driver.Miss])
		require.Equal(t, 4, *b.server(2).got["PING"], "a node without slots is not connected to again")
		require.Zero(t, totals.Reconnects)
	})
	t.Run("down", func(t *testing.T) {
		b, totals := clusterLoad(t, nil, func(b *bench) {
			b.server(0).down = true
			b.server(0).sever()
		})
		require.Positive(t, totals.Request(0, driver.Get).Refused)
		require.Len(t, b.g.cluster.doubt, 1, "its slots may have gone to another")
	})
	t.Run("moved, in words that break the driver", func(t *testing.T) {
		b, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-MOVED 7 127.0.0.1:%d\r\n", firstPort+2)}, func(b *bench) { b.breakCodec("redirect", 8) })
		n, _ := panicsOf(&totals)
		require.Positive(t, n)
		require.Equal(t, [2]int{4 + int(n), 4}, [2]int{*b.server(0).got["PING"], *b.server(1).got["PING"]}, "each is an error of the connection on which they came")
	})
	t.Run("moved", func(t *testing.T) {
		b, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf("-MOVED 7 127.0.0.1:%d\r\n", firstPort+2)})
		require.Len(t, b.g.cluster.doubt, 1, "others may have moved")
		require.EqualValues(t, 1000, totals.Ops[driver.Get].Outcomes[driver.Miss])
		moved := totals.Request(0, driver.Get)
		require.Equal(t, measure.Requests{Sent: moved.Sent, Moved: moved.Sent}, *moved)
		require.Less(t, moved.Sent, uint64(200), "a slot that has moved is looked for there from then on: 100 keys, each a few times at once")
		require.Greater(t, totals.Request(2, driver.Get).Answered, uint64(300))
	})
	for name, words := range map[string][2]string{
		"moved to a node that has joined":               {"-MOVED 7 127.0.0.1:%d\r\n", "-MOVED 7 127.0.0.1:%d\r\n"},
		"moved to one at another port of the same host": {"-MOVED 7 :%d\r\n", "-MOVED 7 :%d\r\n"},
		"moved to an IPv6 address in two forms":         {"-MOVED 7 [::1]:%d\r\n", "-MOVED 7 ::1:%d\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b, totals := clusterLoad(t, map[int]string{0: fmt.Sprintf(words[0], joinedPort), 1: fmt.Sprintf(words[1], joinedPort)})
			require.EqualValues(t, 1000, totals.Ops[driver.Get].Outcomes[driver.Miss])
			joined := totals.Request(3, driver.Get)
			require.Equal(t, measure.Requests{Sent: 1000, Answered: 1000}, *joined)
			require.Equal(t, 4, *b.net.servers[joinedPort].got["PING"], "one connection for each session")
			require.Less(t, totals.Request(0, driver.Get).Moved, uint64(200))
		})
	}
	t.Run("moved to more nodes than may join", func(t *testing.T) {
		b, totals := clusterLoad(t, nil, func(b *bench) {
			for i := range mostNew + 1 {
				b.net.server(uint16(joinedPort+i), time.Millisecond)
			}
			s, moved := b.server(0), 0
			s.took = func() {
				s.words = fmt.Appendf(nil, "-MOVED 7 127.0.0.1:%d\r\n", joinedPort+moved%(mostNew+1))
				moved++
			}
		})
		require.Len(t, b.g.cluster.known.Load().joined, mostNew)
		require.Equal(t, totals.Ops[driver.Get].Outcomes[driver.Error], maps.Collect(totals.Errors.All())[string(strangeNode)])
		require.Positive(t, totals.Errors.Total())
		for i := range mostNew {
			require.Positive(t, *b.net.servers[uint16(joinedPort+i)].got["GET"])
		}
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
		"to a name that is not known": {map[int]string{0: "-MOVED 7 cache.example.org:7001\r\n"}, string(strangeNode), 1},
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

// Loops look up nodes, and let them join, without waiting for each other: a loop that parks while it is held ends the process.
func TestLoopsShareTheNodesOfACluster(t *testing.T) {
	c := newCluster(&side{endpoints: []sockets.Endpoint{sockets.NewEndpoint("n0", "10.0.0.1:1")}}, nil)
	c.name(0, "10.0.0.1:1")
	var loops errgroup.Group
	for range 4 {
		loops.Go(func() error {
			for i := range 100 {
				port := 1 + i%(mostNew+2)
				at := c.place(fmt.Sprintf("10.0.0.1:%d", port))
				if known, ok := c.knows(fmt.Sprintf("10.0.0.1:%d", port)); at >= 0 && (!ok || known != at) {
					return fmt.Errorf("port %d is endpoint %d, and then %d", port, at, known)
				}
			}
			return nil
		})
	}
	require.NoError(t, loops.Wait())
	require.Len(t, c.known.Load().joined, mostNew)
	for at := range mostNew {
		require.Equal(t, fmt.Sprintf("n%d", 1+at), c.newcomer(1+at).Name)
	}
}
