package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
)

// liner is a driver with a client of its own, which asks for a key on a line and is answered on one.
type liner struct{ prepared *atomic.Int64 }

func (liner) Name() string                          { return "liner" }
func (liner) NewConfig() any                        { return new(struct{}) }
func (liner) Outcomes(driver.Verb) []driver.Outcome { return []driver.Outcome{driver.OK} }

func (liner) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	conn, err := link.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &lineClient{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (liner) Identify(_ context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	if _, err := fmt.Fprintf(conn, "who\n"); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return map[string]string{"server": strings.TrimSpace(line), "asked at": link.Endpoint}, err
}

func (d liner) Prepare(ctx context.Context, _ net.Conn, link driver.Link) error {
	d.prepared.Add(1)
	conn, err := link.Dial(ctx) // as a client does that opens its own
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "prepare %s\n", link.Run)
	return err
}

type lineClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func (c *lineClient) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.conn.Write(append(append([]byte(nil), req.Key...), '\n')); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	reply.Value = line
	return err
}

func (c *lineClient) Close() error { return c.conn.Close() }

// lineServer answers lines with "yes", and counts.
type lineServer struct {
	addr   string
	lines  atomic.Int64 // but for those of identity and preparation
	in     atomic.Int64 // their bytes
	at     atomic.Int64 // connections that have asked for keys
	hangUp int64        // after so many lines of a connection; 0: never
}

// serveLines starts a server; secure is nil for no TLS.
func serveLines(t *testing.T, network, addr string, secure *tls.Config, hangUp int64) *lineServer {
	t.Helper()
	listener, err := net.Listen(network, addr)
	require.NoError(t, err)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	s := &lineServer{hangUp: hangUp}
	s.addr = servertest.Serve(t, listener, s.serve)
	return s
}

func (s *lineServer) serve(conn net.Conn) {
	in, n := bufio.NewReader(conn), int64(0)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if strings.HasPrefix(line, "key:") {
			s.lines.Add(1)
			s.in.Add(int64(len(line)))
			if n++; n == 1 {
				s.at.Add(1)
			}
		}
		if _, err := conn.Write([]byte("yes\n")); err != nil || n == s.hangUp && n > 0 {
			return
		}
	}
}

// driveLines carries a plan's phase out.
func driveLines(t *testing.T, cfg Config, text string) (worker.Ready, worker.Final, error) {
	t.Helper()
	return driveSeen(t, cfg, text, func(*measure.Snapshot) {})
}

// samplesOf returns what a plan's phase keeps of its ops.
func samplesOf(t *testing.T, text string) []measure.DrawnOp {
	t.Helper()
	var all measure.Samples
	_, _, err := driveSeen(t, Config{Loops: 2, Drivers: drivers.All()}, text, func(s *measure.Snapshot) { all.Merge(&s.Samples) })
	require.NoError(t, err)
	return all.Ops()
}

// driveSeen is driveLines with a look at each snapshot.
func driveSeen(t *testing.T, cfg Config, text string, look func(*measure.Snapshot)) (worker.Ready, worker.Final, error) {
	t.Helper()
	p := parsePlanFor(t, cfg.Drivers, text)
	e := assigned(t, cfg, p)
	defer e.Close()
	ready, err := e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load))
	if err != nil {
		return ready, worker.Final{}, err
	}
	final, err := e.Run(t.Context(), e.now(), func(s *measure.Snapshot) (func() error, error) {
		look(s)
		return s.CheckValid, nil
	})
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
	return ready, final, nil
}

func linePlan(endpoint, target, load string) string {
	return fmt.Sprintf(`
		target "t" {
			driver    = "liner"
			endpoints = [%q]
			%s
		}
		dataset "d" {
			keys { count = 100 }
			values { size = 10 }
		}
		phase "load" {
			target       = target.t
			dataset      = dataset.d
			ops          = { get = 1 }
			expect_hits  = 0
			%s
		}`, endpoint, target, load)
}

const lineLoad = "closed {\n sessions = 3\n pipeline = 4\n iterations = 100\n}"

// TestDialersConnectionsAreTheExecutors has clients that block over plain TCP, TLS and a Unix socket: each session has one for each of its ops in
// flight, the server's counts equal the ledger's, and bytes are counted, as are the kernel's counters if there are any.
func TestDialersConnectionsAreTheExecutors(t *testing.T) {
	a := servertest.NewAuthority(t)
	shown := a.Issue("127.0.0.1", time.Hour)
	pair, err := tls.LoadX509KeyPair(shown.Cert, shown.Key)
	require.NoError(t, err)
	socket := filepath.Join(t.TempDir(), "s")
	for _, c := range []struct {
		name, network, addr, target, prefix string
		tls                                 *tls.Config
	}{
		{name: "plain", network: "tcp", addr: "127.0.0.1:0"},
		{name: "TLS", network: "tcp", addr: "127.0.0.1:0", target: fmt.Sprintf("tls {\n ca = %q\n}", a.CA), tls: &tls.Config{Certificates: []tls.Certificate{pair}}},
		{name: "Unix socket", network: "unix", addr: socket, prefix: "unix://"},
	} {
		for _, loops := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d loops", c.name, loops), func(t *testing.T) {
				s := serveLines(t, c.network, c.addr, c.tls, 0)
				d := liner{new(atomic.Int64)}
				endpoint := c.prefix + s.addr
				var samples measure.Samples
				cfg, text := Config{Loops: loops, Drivers: []driver.Driver{d}, Open: openAny}, linePlan(endpoint, c.target, "samples = 300\n"+lineLoad)
				ready, final, err := driveSeen(t, cfg, text, func(s *measure.Snapshot) { samples.Merge(&s.Samples) })
				require.NoError(t, err)
				require.Equal(t, 12, ready.Connections)
				require.Equal(t, "yes", ready.Servers["t"][endpoint]["server"])
				require.Equal(t, endpoint, ready.Servers["t"][endpoint]["asked at"])
				require.Equal(t, c.tls != nil, ready.Servers["t"][endpoint]["tls"] != "")
				require.EqualValues(t, 1, d.prepared.Load())
				get := final.Totals.Ops[driver.Get]
				require.EqualValues(t, 300, get.Outcomes[driver.OK])
				require.EqualValues(t, 300, s.lines.Load())
				require.EqualValues(t, 12, s.at.Load())
				require.EqualValues(t, s.in.Load(), get.Out)
				require.EqualValues(t, 300*len("yes\n"), get.In)
				sampled := uint64(0)
				for _, op := range samples.Ops() {
					require.EqualValues(t, len("yes\n"), op.In)
					sampled += uint64(op.Out)
				}
				require.Equal(t, get.Out, sampled, "each op knows what it sent")
				require.Zero(t, final.Totals.Reconnects)
				if c.network == "unix" {
					require.Nil(t, final.Generator.TCP)
				} else {
					require.GreaterOrEqual(t, final.Generator.TCP.BytesSent, get.Out)
				}
				if c.name == "plain" {
					require.Equal(t, get.Out, final.Generator.TCP.BytesSent-final.Generator.TCP.BytesRetransmitted, "and nothing of before")
				}
			})
		}
	}
}

func openAny(path string) (File, error) { return os.Open(path) }

// TestDialersStayWithinThePolicy has a policy that admits the server, one that does not, and one that bounds connections.
func TestDialersStayWithinThePolicy(t *testing.T) {
	s := serveLines(t, "tcp", "127.0.0.1:0", nil, 0)
	for text, want := range map[string]string{
		fmt.Sprintf("targets = [%q]", s.addr):                     "",
		`targets = ["127.0.0.1:1"]`:                               "this worker's policy",
		fmt.Sprintf("targets = [%q]\nconnections = 11\n", s.addr): "connections",
	} {
		p, diags := policy.Parse([]byte(text), "policy.hcl")
		require.False(t, diags.HasErrors(), "%v", diags)
		before := s.lines.Load()
		_, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{liner{new(atomic.Int64)}}, Policy: p}, linePlan(s.addr, "", lineLoad))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Equal(t, before, s.lines.Load())
	}
}

// TestDialersReconnect has a server that hangs up after ten answers. The client is made again, which counts as a reconnect.
func TestDialersReconnect(t *testing.T) {
	s := serveLines(t, "tcp", "127.0.0.1:0", nil, 10)
	_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{liner{new(atomic.Int64)}}},
		linePlan(s.addr, "", "max_bad = 1\nclosed {\n sessions = 2\n iterations = 200\n think = \"1ms\"\n}"))
	require.NoError(t, err)
	get := final.Totals.Ops[driver.Get]
	require.EqualValues(t, s.lines.Load(), get.Outcomes[driver.OK])
	require.Positive(t, final.Totals.Reconnects)
	require.InDelta(t, s.at.Load(), final.Totals.Reconnects+2, 2, "one for each session is its first, one may have come as the load ended")
}

// TestDialersTakeLittleMemory checks that a load of clients that block takes no more memory with time: after ten times the ops, the heap is as large
// as before.
func TestDialersTakeLittleMemory(t *testing.T) {
	heap := func(iterations int) float64 {
		nothing := doing(func(_ context.Context, _ *driver.Request, reply *driver.Reply) error { return nil })
		var most uint64
		look := doing(func(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
			if req.N%5000 == 4999 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse+m.StackInuse)
			}
			return nothing(ctx, req, reply)
		})
		_, err := driveClients(t, 1, 1, always(look), "", fmt.Sprintf("closed {\n sessions = 1\n iterations = %d\n}", iterations))
		require.NoError(t, err)
		return float64(most) / (1 << 20)
	}
	most := 100_000
	if !servertest.Whole() {
		most = 30_000
	}
	short, long := heap(10_000), heap(most)
	require.Less(t, long, short+4, "MiB")
	require.Less(t, long, 100.0, "MiB")
}
