package engine

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// resolved prepares the load of a plan where every name has the given addresses.
func resolved(t *testing.T, p *plan.Plan, addrs ...string) (*Engine, worker.Ready) {
	t.Helper()
	e := assigned(t, Config{Loops: 1}, p)
	e.resolve = func(context.Context, string, string) (all []netip.Addr, err error) {
		for _, a := range addrs {
			all = append(all, netip.MustParseAddr(a))
		}
		return all, nil
	}
	ready := prepared(t, e, stepOf(p.Phase("load"), worker.Load))
	return e, ready
}

// TestANameWithSeveralAddresses: clients of web divide those that answer among themselves; other drivers load the first that answers, and say which
// are other servers.
func TestANameWithSeveralAddresses(t *testing.T) {
	var asked [2]atomic.Int64
	port := ""
	for i, ip := range []string{"127.0.0.1", "127.0.0.2"} {
		lis, err := net.Listen("tcp", net.JoinHostPort(ip, cmp.Or(port, "0")))
		require.NoError(t, err)
		_, port, _ = net.SplitHostPort(lis.Addr().String())
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodHead {
				asked[i].Add(1)
			}
		}))
		require.NoError(t, s.Listener.Close())
		s.Listener = lis
		s.Start()
		t.Cleanup(s.Close)
	}
	p := parsePlan(t, webPlan("web.test:"+port, "", "10B", "closed {\n sessions = 4\n iterations = 10\n}"))
	e, ready := resolved(t, p, "127.0.0.3", "127.0.0.1", "127.0.0.2")
	facts := ready.Servers["t"]["web.test:"+port]
	require.Equal(t, "127.0.0.1:"+port+", 127.0.0.2:"+port, facts[worker.Address])
	require.Equal(t, "127.0.0.3:"+port, facts[worker.SilentAddresses])
	ran(t, e)
	require.Equal(t, [2]int64{20, 20}, [2]int64{asked[0].Load(), asked[1].Load()})

	one := servertest.Redis(t)
	_, port, _ = net.SplitHostPort(one)
	forward(t, "127.0.0.2:"+port, one)
	other := servertest.Redis(t)
	forward(t, "127.0.0.3:"+port, other)
	text := "target \"t\" {\n driver = \"redis\"\n endpoints = [\"cache.test:" + port + "\"]\n}\ndataset \"d\" {\n keys { count = 1 }\n values { size = 1 }\n}\n" +
		"phase \"load\" {\n target = target.t\n dataset = dataset.d\n ops = { put = 1 }\n closed { iterations = 1 }\n}"
	_, ready = resolved(t, parsePlan(t, text), "127.0.0.4", "127.0.0.1", "127.0.0.2", "127.0.0.3")
	facts = ready.Servers["t"]["cache.test:"+port]
	require.Equal(t, "127.0.0.1:"+port, facts[worker.Address])
	require.Equal(t, "127.0.0.3:"+port, facts[worker.OtherAddresses], "at 127.0.0.2 is the same server")
	require.Equal(t, "127.0.0.4:"+port, facts[worker.SilentAddresses])
}

// forward passes what comes to an address on to another, until the test ends.
func forward(t *testing.T, from, to string) {
	t.Helper()
	proxy, err := net.Listen("tcp", from)
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", to)
			if err != nil {
				_ = conn.Close()
				return
			}
			go pass(back, conn)
			go pass(conn, back)
		}
	}()
}

// pass copies until one side ends.
func pass(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if _, failed := to.Write(b[:n]); failed != nil || err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}
