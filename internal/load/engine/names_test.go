package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// here and elsewhere are where a name may lead.
const here, elsewhere = "127.0.0.1", "127.0.0.2"

// answering looks names up: each answer is given once, but for the last. An empty one is an error.
func answering(answers ...[]string) func(context.Context, string, string) ([]netip.Addr, error) {
	return func(context.Context, string, string) (all []netip.Addr, err error) {
		for _, a := range answers[0] {
			all = append(all, netip.MustParseAddr(a))
		}
		if answers = answers[min(1, len(answers)-1):]; len(all) == 0 {
			return nil, errors.New("no such host")
		}
		return all, nil
	}
}

// twoHosts is a network where the port of one host is another port of the other one.
type twoHosts struct{ *virtualNet }

func (n twoHosts) Connect(to *sockets.Endpoint, token int32) (int, error) {
	end := *to
	end.Addr = n.place(to.Addr)
	return n.virtualNet.Connect(&end, token)
}

func (n twoHosts) place(addr netip.AddrPort) netip.AddrPort {
	if addr.Addr().String() == elsewhere {
		return netip.AddrPortFrom(addr.Addr(), firstPort+1)
	}
	return addr
}

func (n twoHosts) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	at := netip.MustParseAddrPort(addr)
	conn, err := n.virtualNet.dial(ctx, network, n.place(at).String())
	return placed{conn, at}, err
}

// A server goes away 20 ms after a load of it has begun, and comes back 300 ms later. If its name leads elsewhere by then, and no longer to it, the rest
// of the load goes there.
func TestANameThatLeadsElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		answers [][]string // once the phase has begun
		moves   bool
		logged  string
	}{
		"elsewhere":          {[][]string{{elsewhere}}, true, "name leads elsewhere"},
		"not found at first": {[][]string{nil, nil, {elsewhere}}, true, "name leads nowhere yet"},
		"not found":          {[][]string{nil}, false, "name leads nowhere yet"},
		"here, too":          {[][]string{{elsewhere, here}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				p := parsePlan(t, fmt.Sprintf(`
					target "t" {
						driver    = "redis"
						endpoints = ["cache.test:%d"]
					}
					dataset "d" {
						keys { count = 100 }
						values { size = 100 }
					}
					phase "load" {
						target  = target.t
						dataset = dataset.d
						ops     = { get = 1 }
						closed {
							sessions   = 2
							iterations = 100
						}
					}`, firstPort))
				var log bytes.Buffer
				e, n := virtually(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, acquainted{}, 2, p)
				e.newPoller = func() (sockets.Poller, error) { return twoHosts{n}, nil }
				e.dial = twoHosts{n}.dial
				e.resolve = answering(append([][]string{{here}}, c.answers...)...)
				loaded(t, e)
				first, second := n.servers[firstPort], n.servers[firstPort+1]
				n.at(20*time.Millisecond, func() {
					first.down = true
					first.sever()
				})
				n.at(320*time.Millisecond, func() { first.down = false })
				for at := 25 * time.Millisecond; at < 320*time.Millisecond; at += 5 * time.Millisecond {
					n.at(at, func() { // the clock of what is looked up goes on, too
						e.group.loops[0].hold.release()
						time.Sleep(5 * time.Millisecond)
					})
				}
				final := ran(t, e)
				require.EqualValues(t, 196, final.Totals.Ops[driver.Get].Outcomes[driver.Miss], "each session had one op lost and one refused")
				require.Equal(t, 198, *first.got["GET"]+*second.got["GET"])
				if c.moves {
					require.Less(t, *first.got["GET"], 50)
				} else {
					require.Zero(t, *second.got["GET"])
				}
				if c.logged == "" {
					require.Empty(t, log.String())
				}
				require.Equal(t, min(1, len(c.logged)), bytes.Count(log.Bytes(), []byte(c.logged+`"`)), log.String())
			})
		})
	}
}

// Clients that block follow a name, too. The server there hangs up after each answer.
func TestClientsFollowAName(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		servers := map[string]*lineServer{here: {hangUp: 1}, elsewhere: {}}
		d := liner{new(atomic.Int64)}
		p := parsePlanFor(t, []driver.Driver{d}, linePlan("lines.test:1", "", "max_bad = 1\nclosed {\n iterations = 20\n think = \"10ms\"\n}"))
		e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{d}, Sleep: time.Sleep}, p)
		e.dial = func(_ context.Context, _, addr string) (net.Conn, error) {
			at := netip.MustParseAddrPort(addr)
			near, far := net.Pipe()
			go servers[at.Addr().String()].serve(far)
			return placed{near, at}, nil
		}
		e.resolve = answering([]string{here}, []string{elsewhere})
		loaded(t, e)
		ran(t, e)
		require.Positive(t, servers[here].lines.Load())
		require.Greater(t, servers[elsewhere].lines.Load(), int64(15))
	})
}
