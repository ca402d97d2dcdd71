package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// ticketServer is a server that replies out of order and that a test can make misbehave.
type ticketServer struct {
	ticket.Server
	addr string
	took atomic.Int64 // connections
}

func serveTickets(t *testing.T, answer func(n int, reply []byte) []byte) *ticketServer {
	t.Helper()
	s := &ticketServer{Server: ticket.Server{Answer: answer}}
	s.addr = servertest.Serve(t, nil, func(conn net.Conn) {
		s.took.Add(1)
		_ = s.Serve(conn) // the load ends connections
	})
	return s
}

func ticketPlan(endpoint, target, load string) string {
	return fmt.Sprintf(`
		target "t" {
			driver    = "ticket"
			endpoints = [%q]
			%s
		}
		dataset "d" {
			keys { count = 100 }
			values { size = 30 }
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			ops = {
				get    = 2
				put    = 2
				delete = 1
			}
			max_bad     = 1
			expect_hits = 0
			%s
		}`, endpoint, target, load)
}

const ticketLoad = "closed {\n sessions = 3\n pipeline = 16\n iterations = 500\n}"

// lastingLoad is ticketLoad for long enough that a lost connection is made again before it is over.
const lastingLoad = "closed {\n sessions = 3\n pipeline = 16\n iterations = 500\n think = \"10ms\"\n}"

// unhurried is a timeout that no machine exceeds.
const unhurried = 30 * time.Second

// onBothExecutors runs a test on the event loop and on the blocking executor.
func onBothExecutors(t *testing.T, timeout time.Duration, test func(t *testing.T, target string)) {
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		t.Run(executor, func(t *testing.T) { test(t, fmt.Sprintf("executor = %q\n timeout = %q\n", executor, timeout)) })
	}
}

// driveTickets carries a load out and returns its counts by outcome.
func driveTickets(t *testing.T, d driver.Driver, s *ticketServer, target, load string) (outcomes [driver.NumOutcomes]uint64, also *besides) {
	t.Helper()
	_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{d}}, ticketPlan(s.addr, target, load))
	require.NoError(t, err)
	also = &besides{final.Totals.Reconnects, final.Totals.LateReplies}
	for v := range driver.Verb(driver.NumVerbs) {
		if o := final.Totals.Ops[v]; o != nil {
			for i, n := range o.Outcomes {
				outcomes[i] += n
			}
			if also.reconnects == 0 {
				require.EqualValues(t, final.Totals.Request(0, v).Sent, s.Got(v.String()), "%v", v)
			}
		}
	}
	return outcomes, also
}

// besides is what a load has counted besides outcomes.
type besides struct{ reconnects, late uint64 }

// TestRepliesOutOfOrder checks that the server's counts and those of the load agree.
func TestRepliesOutOfOrder(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		s := serveTickets(t, nil)
		outcomes, also := driveTickets(t, ticket.Driver{}, s, target, ticketLoad)
		require.EqualValues(t, 1500, outcomes[driver.OK]+outcomes[driver.Miss])
		require.Positive(t, outcomes[driver.Miss])
		require.Zero(t, *also)
		require.EqualValues(t, 4, s.took.Load(), "one to identify it")
	})
}

// TestIgniteOutOfOrder has a node of Ignite answer many requests in any order, of one key and of several: its counts and those of the load agree.
func TestIgniteOutOfOrder(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		for batch, ops := range map[int]string{1: "get = 2\nput = 2\ndelete = 1", 8: "get = 1\nput = 1"} {
			s := servertest.StartIgnite(t)
			s.Shuffle = true
			load := fmt.Sprintf("batch = %d\nclosed {\n sessions = 3\n pipeline = 16\n iterations = 500\n}", batch)
			text := strings.NewReplacer(`"ticket"`, `"ignite"`, "get    = 2", ops, "put    = 2", "", "delete = 1", "").Replace(ticketPlan(s.Addr, target+"cache_name = \"items\"", load))
			_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All()}, text)
			require.NoError(t, err)
			require.Zero(t, final.Totals.Reconnects+final.Totals.Misplaced)
			get, put := final.Totals.Ops[driver.Get], final.Totals.Ops[driver.Put]
			count := func(o *measure.Op, of driver.Outcome) int {
				if batch > 1 {
					return int(o.Keys.Outcomes[of])
				}
				return int(o.Outcomes[of])
			}
			require.Positive(t, count(get, driver.OK))
			if batch == 1 { // a node answers repeated keys of a batch once
				require.Equal(t, s.Count("hits"), count(get, driver.OK))
				require.Equal(t, s.Count("gets"), count(get, driver.OK)+count(get, driver.Miss))
			}
			require.GreaterOrEqual(t, count(get, driver.OK), s.Count("hits"))
			require.Equal(t, s.Count("puts"), count(put, driver.OK))
			require.Equal(t, get.Due+put.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss]+put.Outcomes[driver.OK])
		}
	})
}

// TestRepliesThatNeverCome time out, and the requests behind them are answered: the connection lives as long as others' replies come.
func TestRepliesThatNeverCome(t *testing.T) {
	t.Parallel()
	onBothExecutors(t, 3*time.Second, func(t *testing.T, target string) {
		var dropped atomic.Uint64
		s := serveTickets(t, func(n int, reply []byte) []byte {
			if n%300 == 150 {
				dropped.Add(1)
				return nil
			}
			return reply
		})
		outcomes, also := driveTickets(t, ticket.Driver{}, s, target, ticketLoad)
		require.Equal(t, dropped.Load(), outcomes[driver.Timeout])
		require.EqualValues(t, 1500-dropped.Load(), outcomes[driver.OK]+outcomes[driver.Miss])
		require.Zero(t, also.reconnects)
	})
}

// TestConnectionOfAReplyThatNeverComes is lost in the end, although replies to others come: or the ids that a server forgets would add up.
func TestConnectionOfAReplyThatNeverComes(t *testing.T) {
	t.Parallel()
	onBothExecutors(t, 50*time.Millisecond, func(t *testing.T, target string) {
		s := serveTickets(t, func(n int, reply []byte) []byte {
			if n%400 == 100 {
				return nil
			}
			return reply
		})
		_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{ticket.Driver{}}},
			ticketPlan(s.addr, target, "open {\n rate = 1000\n duration = \"2s\"\n sessions = 1\n pipeline = 16\n}"))
		require.NoError(t, err)
		require.Positive(t, final.Totals.Reconnects)
		texts := maps.Collect(final.Totals.Errors.All())
		require.Contains(t, texts, "n0 ("+s.addr+"): no reply to a request for 500ms, while others were answered")
	})
}

// TestCodecsThatCannotBeUsed end the preparation with the reason.
func TestCodecsThatCannotBeUsed(t *testing.T) {
	s := serveTickets(t, nil)
	for want, codec := range map[string]func() (driver.Codec, error){
		"no memory for it":   func() (driver.Codec, error) { return nil, errors.New("no memory for it") },
		"driver panicked at": func() (driver.Codec, error) { panic("a bug") },
	} {
		onBothExecutors(t, unhurried, func(t *testing.T, target string) {
			_, _, err := driveLines(t, Config{Loops: 2, Drivers: []driver.Driver{coded{make: codec}}}, ticketPlan(s.addr, target, ticketLoad))
			require.ErrorContains(t, err, want)
		})
	}
}

// untaggable is a codec that panics once when it is to tell the id of a reply.
type untaggable struct {
	driver.Tagged
	once *atomic.Bool
}

func (c untaggable) Tag(b []byte) (id uint32, ok bool) {
	if id, ok = c.Tagged.Tag(b); id > 3 && c.once.CompareAndSwap(false, true) {
		panic("a bug")
	}
	return id, ok
}

// TestPanicOfTag loses the connection, whose replies nobody can tell apart any more.
func TestPanicOfTag(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		var once atomic.Bool
		codec := func() (driver.Codec, error) {
			plain, err := ticket.Driver{}.NewCodec(driver.Link{})
			return untaggable{plain.(driver.Tagged), &once}, err
		}
		_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{coded{make: codec}}}, ticketPlan(serveTickets(t, nil).addr, target, lastingLoad))
		require.NoError(t, err)
		require.EqualValues(t, 1, final.Totals.Reconnects)
		n, _ := panicsOf(final.Totals)
		require.EqualValues(t, 1, n)
	})
}

// TestConnectionsThatGetNoCodec are none: the phase does not begin without one, and a lost one is made again until it has one.
func TestConnectionsThatGetNoCodec(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		for _, fails := range []int64{1, 4} { // of a session's first connection, or of one that is made again
			plain, err := ticket.Driver{}.NewCodec(driver.Link{})
			require.NoError(t, err)
			var asked atomic.Int64
			codec := func() (driver.Codec, error) {
				return sparing{plain.(driver.Tagged), func() error {
					if asked.Add(1) == fails {
						return errors.New("no codec left")
					}
					return nil
				}}, nil
			}
			var once atomic.Bool
			s := serveTickets(t, func(n int, reply []byte) []byte {
				if n >= 500 && once.CompareAndSwap(false, true) {
					return []byte("4000000000 ok\n")
				}
				return reply
			})
			_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{coded{make: codec}}}, ticketPlan(s.addr, target, lastingLoad))
			if fails == 1 {
				require.ErrorContains(t, err, "no codec left")
				continue
			}
			require.NoError(t, err)
			require.EqualValues(t, 1, final.Totals.Reconnects)
			require.EqualValues(t, 5, asked.Load())
			require.Contains(t, maps.Collect(final.Totals.Errors.All()), "n0 ("+s.addr+"): no codec left")
		}
	})
}

// sparing is a codec that may have none for a connection.
type sparing struct {
	driver.Tagged
	asked func() error
}

func (s sparing) Connection(string, int) (driver.Codec, error) { return s.Tagged, s.asked() }

// nameless is the ticket driver whose servers do not say who they are.
type nameless struct{ ticket.Driver }

func (nameless) Identify(context.Context, net.Conn, driver.Link) (map[string]string, error) {
	return nil, nil
}

// TestServersThatSayNothingOfThemselves have an address all the same.
func TestServersThatSayNothingOfThemselves(t *testing.T) {
	for _, d := range []driver.Driver{ticket.Driver{}, nameless{}} {
		s := serveTickets(t, nil)
		ready, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{d}}, ticketPlan(s.addr, "", ticketLoad))
		require.NoError(t, err)
		want := map[string]map[string]string{s.addr: {"address": s.addr}}
		if _, silent := d.(nameless); !silent {
			want[s.addr] = map[string]string{"server": "ticket", "version": "1", "address": s.addr}
		}
		require.Equal(t, want, ready.Servers["t"])
	}
}

// TestWhatCodecsCannotDo is refused when a phase asks for it.
func TestWhatCodecsCannotDo(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	tagged, err := ticket.Driver{}.NewCodec(driver.Link{})
	require.NoError(t, err)
	one, clustered := &side{target: &plan.Target{Driver: "a"}}, &side{target: &plan.Target{Driver: "a"}, cluster: newCluster(nil, redis.Driver{})}
	for _, c := range []struct {
		side  *side
		codec driver.Codec
		want  string
	}{
		{one, plain, ""},
		{one, tagged, ""},
		{one, perConnection{plain}, ""},
		{clustered, plain, ""},
		{clustered, tagged, `driver "a" redirects no requests whose connections have a state or whose replies have ids`},
		{clustered, perConnection{plain}, `driver "a" redirects no requests whose connections have a state or whose replies have ids`},
	} {
		err := c.side.checkCodec(c.codec)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
	clustered.cluster.side = clustered
	_, err = newRoutes(clustered.cluster, plain)
	require.NoError(t, err)
	_, err = newRoutes(clustered.cluster, tagged)
	require.EqualError(t, err, `driver "redis" does not read redirects`)
}

// perConnection is a codec whose connections have codecs of their own.
type perConnection struct{ driver.Codec }

func (c perConnection) Connection(string, int) (driver.Codec, error) { return c.Codec, nil }

// coded is the ticket driver with a test's codec.
type coded struct {
	ticket.Driver
	make func() (driver.Codec, error)
}

func (c coded) NewCodec(driver.Link) (driver.Codec, error) { return c.make() }

// TestLateRepliesFreeTheirIDs has replies come after their requests have timed out, between others: their ids tell them apart.
func TestLateRepliesFreeTheirIDs(t *testing.T) {
	onBothExecutors(t, 100*time.Millisecond, func(t *testing.T, target string) {
		type kept struct {
			reply []byte
			since time.Time
		}
		var back []kept             // the server's mutex guards it
		var held, sent atomic.Int64 // replies
		s := serveTickets(t, func(n int, reply []byte) []byte {
			if n%200 == 100 {
				back = append(back, kept{reply, time.Now()})
				held.Add(1)
				return nil
			}
			sent.Add(1)
			for len(back) > 0 && time.Since(back[0].since) > 150*time.Millisecond {
				reply = append(reply, back[0].reply...)
				back = back[1:]
				held.Add(-1)
				sent.Add(1)
			}
			return reply
		})
		outcomes, also := driveTickets(t, ticket.Driver{}, s, target, "open {\n rate = 2000\n duration = \"1s\"\n sessions = 1\n pipeline = 16\n}")
		require.Positive(t, also.late)
		const identified = 1 // of the replies
		late := sent.Load() - identified - int64(outcomes[driver.OK]+outcomes[driver.Miss])
		require.LessOrEqual(t, int64(also.late), late, "those of the last requests may come when nobody reads any more")
		require.EqualValues(t, outcomes[driver.Timeout], late+held.Load(), "the last ones are held for good")
		require.Zero(t, also.reconnects)
		require.Zero(t, outcomes[driver.Error])
	})
}

// TestRepliesThatAreNone has a server send replies to nothing: the connection is lost and made again, and no op is counted twice.
func TestRepliesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string]func(reply []byte) []byte{
		"unknown id":     func([]byte) []byte { return []byte("4000000000 ok\n") },
		"duplicate id":   func(reply []byte) []byte { return append(reply, reply...) },
		"no id":          func([]byte) []byte { return []byte("ok\n") },
		"id too large":   func([]byte) []byte { return []byte("99999999999 ok\n") },
		"line too long":  func(reply []byte) []byte { return append(reply[:2], make([]byte, 1000)...) },
		"value too long": func(reply []byte) []byte { return append(reply[:2], " value 4294967295\n"...) },
	} {
		t.Run(name, func(t *testing.T) {
			onBothExecutors(t, unhurried, func(t *testing.T, target string) {
				var once atomic.Bool
				s := serveTickets(t, func(n int, reply []byte) []byte {
					if n >= 500 && once.CompareAndSwap(false, true) {
						return makes(reply)
					}
					return reply
				})
				outcomes, also := driveTickets(t, ticket.Driver{}, s, target, lastingLoad)
				require.Positive(t, also.reconnects)
				if name != "duplicate id" { // which may be the last answer that the connection waits for
					require.Positive(t, outcomes[driver.Error])
				}
				require.Less(t, outcomes[driver.Error], uint64(500))
				var all uint64
				for _, n := range outcomes {
					all += n
				}
				require.EqualValues(t, 1500, all)
			})
		})
	}
}

// numbering is the ticket driver with a codec for each connection, which numbers its requests from 1 on: another connection's numbers would not
// match.
type numbering struct {
	ticket.Driver
	made *atomic.Int64
	at   string
}

type ownCodec struct {
	driver.Tagged
	of   numbering
	last uint32
}

func (s numbering) NewCodec(link driver.Link) (driver.Codec, error) {
	c, err := s.Driver.NewCodec(link)
	return &ownCodec{c.(driver.Tagged), s, 0}, err
}

func (c *ownCodec) Connection(endpoint string, _ int) (driver.Codec, error) {
	if endpoint != c.of.at {
		return nil, fmt.Errorf("endpoint is %q", endpoint)
	}
	c.of.made.Add(1)
	return &ownCodec{c.Tagged, c.of, 0}, nil
}

func (c *ownCodec) AppendRequest(dst []byte, req *driver.Request) []byte {
	if c.last != 0 && req.ID != c.last+1 {
		panic("a request of another connection")
	}
	c.last = req.ID
	return c.Tagged.AppendRequest(dst, req)
}

// TestStatefulCodecs checks that each connection has its own codec: the first ones, and those made after a loss.
func TestStatefulCodecs(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		var once atomic.Bool
		s := serveTickets(t, func(n int, reply []byte) []byte {
			if n >= 500 && once.CompareAndSwap(false, true) {
				return []byte("4000000000 ok\n")
			}
			return reply
		})
		d := numbering{made: new(atomic.Int64), at: s.addr}
		outcomes, also := driveTickets(t, d, s, target, lastingLoad)
		require.EqualValues(t, 1, also.reconnects)
		require.EqualValues(t, 4, d.made.Load())
		require.Greater(t, outcomes[driver.OK], uint64(500))
	})
}

// shaking is the ticket driver with an exchange before anything else.
type shaking struct {
	ticket.Driver
	shake func(ctx context.Context, conn net.Conn, link driver.Link) (net.Conn, error)
}

func (s shaking) Handshake(ctx context.Context, conn net.Conn, link driver.Link) (net.Conn, error) {
	return s.shake(ctx, conn, link)
}

// TestHandshakes has connections begin with an exchange of the driver's own, also after a reconnect.
func TestHandshakes(t *testing.T) {
	onBothExecutors(t, unhurried, func(t *testing.T, target string) {
		var once atomic.Bool
		s := serveTickets(t, func(n int, reply []byte) []byte {
			if n >= 500 && once.CompareAndSwap(false, true) {
				return []byte("4000000000 ok\n")
			}
			return reply
		})
		var shook, now, most atomic.Int64
		d := shaking{shake: func(ctx context.Context, conn net.Conn, link driver.Link) (net.Conn, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			shook.Add(1)
			_, err := ticket.Driver{}.Identify(ctx, conn, link)
			return conn, err
		}}
		outcomes, also := driveTickets(t, d, s, target, lastingLoad)
		require.EqualValues(t, 1, also.reconnects)
		require.EqualValues(t, 4, shook.Load())
		require.Greater(t, outcomes[driver.OK], uint64(500))
		require.Zero(t, now.Load())
	})
}

// TestHandshakesThatFail end the phase's preparation with what was wrong, and leave nothing behind.
func TestHandshakesThatFail(t *testing.T) {
	wrapped := func(_ context.Context, conn net.Conn, _ driver.Link) (net.Conn, error) {
		return struct{ net.Conn }{conn}, nil
	}
	refused := func(context.Context, net.Conn, driver.Link) (net.Conn, error) { return nil, errors.New("no such user") }
	panics := func(context.Context, net.Conn, driver.Link) (net.Conn, error) { panic("a bug") }
	for _, c := range []struct {
		name  string
		shake func(context.Context, net.Conn, driver.Link) (net.Conn, error)
		want  string
		fits  string // where it does no harm
	}{
		{"refused", refused, "no such user", ""},
		{"a panic", panics, "driver panicked at", ""},
		{"another connection", wrapped, "which the event loop cannot take over", plan.Blocking},
	} {
		for _, executor := range []string{plan.EventLoop, plan.Blocking} {
			t.Run(c.name+", "+executor, func(t *testing.T) {
				s := serveTickets(t, nil)
				_, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{shaking{shake: c.shake}}},
					ticketPlan(s.addr, fmt.Sprintf("executor = %q\n", executor), ticketLoad))
				if executor == c.fits {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, c.want)
			})
		}
	}
}

// TestHandshakeThatHangs is given up when the loop has waited for long enough, and its goroutine ends.
func TestHandshakeThatHangs(t *testing.T) {
	ended := make(chan struct{}, 8)
	d := shaking{shake: func(_ context.Context, conn net.Conn, _ driver.Link) (net.Conn, error) {
		defer func() { ended <- struct{}{} }()
		_, err := conn.Read(make([]byte, 1))
		return conn, err
	}}
	onBothExecutors(t, 100*time.Millisecond, func(t *testing.T, target string) {
		t.Parallel() // each waits for 10 s
		s := serveTickets(t, nil)
		_, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{d}}, ticketPlan(s.addr, target, "closed {\n sessions = 1\n iterations = 1\n}"))
		require.ErrorContains(t, err, "no answer")
		<-ended
	})
}

// TestShake has the driver begin a connection by the time that there is for it, and closes one that cannot be used.
func TestShake(t *testing.T) {
	x := &side{target: &plan.Target{Name: "t"}}
	for name, c := range map[string]struct {
		shake func(ctx context.Context, conn net.Conn) (net.Conn, error)
		want  string
	}{
		"another": {func(_ context.Context, conn net.Conn) (net.Conn, error) { return struct{ net.Conn }{conn}, nil }, ""},
		"refused": {func(context.Context, net.Conn) (net.Conn, error) { return nil, errors.New("no such user") }, "no such user"},
		"no answer": {func(_ context.Context, conn net.Conn) (net.Conn, error) {
			_, err := conn.Read(make([]byte, 1))
			return conn, err
		}, "no answer to the handshake in time: "},
		"its own clock": {func(ctx context.Context, conn net.Conn) (net.Conn, error) {
			<-ctx.Done()
			return conn, ctx.Err()
		}, "no answer to the handshake in time: "},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			made, err := shake(ctx, shaking{shake: func(ctx context.Context, conn net.Conn, _ driver.Link) (net.Conn, error) { return c.shake(ctx, conn) }}, near, x.link("n0"))
			if c.want == "" {
				require.NoError(t, err, name)
				time.Sleep(time.Minute) // the deadline of the handshake is not that of the connection
				go func() { _, _ = far.Write([]byte{1}) }()
				_, err = made.Read(make([]byte, 1))
				require.NoError(t, err, name)
				require.NoError(t, made.Close())
				return
			}
			require.ErrorContains(t, err, c.want, name)
			require.Nil(t, made)
			_, err = far.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed")
		})
	}
}
