package command_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// memcachedStats asks a server for its figures.
func memcachedStats(t testing.TB, addr string) map[string]string {
	t.Helper()
	l := dial(t, addr)
	defer l.conn.Close()
	return l.stats()
}

// stats asks a memcached for its figures.
func (l *link) stats() map[string]string {
	t := l.t
	t.Helper()
	_, err := io.WriteString(l.conn, "stats\r\n")
	require.NoError(t, err)
	stats := map[string]string{}
	for line := l.line(); line != "END"; line = l.line() {
		words := strings.Fields(line)
		require.Len(t, words, 3, line)
		stats[words[1]] = words[2]
	}
	return stats
}

// memcachedCalls reads a server's own counters of gets and puts.
func memcachedCalls(t testing.TB, addr string) calls {
	t.Helper()
	return callsOf(t, memcachedStats(t, addr))
}

func callsOf(t testing.TB, stats map[string]string) calls {
	t.Helper()
	c := calls{}
	for verb, name := range map[string]string{"get": "cmd_get", "put": "cmd_set"} {
		n, err := strconv.ParseUint(stats[name], 10, 64)
		require.NoError(t, err, name)
		c[verb] = n
	}
	return c
}

// TestMemcachedCountsWhatHydraSent runs the README's plan on four memcached, and on four built-in nodes started by hand. Every one has carried out as
// many sets and gets as the result says were sent to it, setup included.
func TestMemcachedCountsWhatHydraSent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		start  func(t testing.TB) string
		server string
	}{
		{"servers", func(t testing.TB) string { return servertest.Memcached(t) }, "memcached"},
		{"targets", func(t testing.TB) string { return beginTarget(t, "--protocol", "memcached").addr }, "loadgen"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var addrs []string
			before := map[string]calls{}
			for range 4 {
				addr := test.start(t)
				l := dial(t, addr)
				_, err := io.WriteString(l.conn, "ms older 1\r\n1\r\nmg older v\r\n") // deltas, not totals
				require.NoError(t, err)
				require.Equal(t, []string{"HD", "VA 1", "1"}, []string{l.line(), l.line(), l.line()})
				addrs = append(addrs, addr)
				before[addr] = memcachedCalls(t, addr)
			}
			r := beginFile(t, shortHydra(t), "-var", "driver=memcached", "-var", nodes(addrs...)).whole()
			requireHydraOnMemcached(t, r, test.server)

			sent := sums(r)
			require.Len(t, sent, len(addrs))
			var puts, gets uint64
			for _, addr := range addrs {
				after := memcachedCalls(t, addr)
				for _, verb := range []string{"get", "put"} {
					require.Equal(t, sent[addr][verb].Sent, after[verb]-before[addr][verb], "%s at %s", verb, addr)
				}
				puts += sent[addr]["put"].Sent + sent[addr]["put"].Refused // by a backlog that was full: W = 2 waits for no third ack
				gets += sent[addr]["get"].Sent
			}
			require.EqualValues(t, 3*(3000+10), puts)
			require.EqualValues(t, 3000, gets, "a get asks one node")
		})
	}
}

// TestHydraOnBuiltinMemcachedNodes starts no server: the nodes are the coordinator's own, and speak the driver's protocol.
func TestHydraOnBuiltinMemcachedNodes(t *testing.T) {
	t.Parallel()
	r := beginFile(t, shortHydra(t), "-var", "driver=memcached").clean(60 * time.Second)
	requireHydraOnMemcached(t, r, "loadgen")
}

// requireHydraOnMemcached checks that the plan went through as it does on Redis, and that the result says what it ran on.
func requireHydraOnMemcached(t *testing.T, r *run.Run, server string) {
	t.Helper()
	put, get := r.Phase["put"].Op["put"], r.Phase["get"].Op["get"]
	require.EqualValues(t, 3000, put.OK)
	require.EqualValues(t, 3000, get.OK)
	require.EqualValues(t, 10, r.Phase["get"].Setup.Op["put"].OK)
	require.InDelta(t, 1, *get.HitRatio, 0)
	for _, p := range r.Phase {
		require.Zero(t, p.Reconnects)
	}
	servers := r.Environment.Servers["space"]
	require.Len(t, servers, 4)
	for _, facts := range servers {
		require.Equal(t, server, facts["server"])
		require.Equal(t, strconv.Itoa(64<<20), facts["limit_maxbytes"])
		require.Equal(t, "on", facts["evictions"])
	}
}

const classic = `
plan "classic" {}
variable "endpoints" { type = list(string) }
variable "cas" { default = false }
target "t" {
  driver    = "memcached"
  protocol  = "text"
  cas       = var.cas
  endpoints = var.endpoints
}
dataset "d" {
  keys { count = 3000 }
  values {
    size    = 100
    checked = true
  }
}` + fillD + `
phase "mixed" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 7, put = 2, delete = 1 }
  closed {
    sessions   = 4
    iterations = 1000
    pipeline   = 8
  }
}
phase "many" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  batch   = 16
  closed {
    sessions   = 4
    iterations = 500
    pipeline   = 2
  }
}
`

// TestClassicMemcachedCounts loads memcached with its classic commands: one server, several servers, and behind a twemproxy. It has carried out what
// the result says was sent to it; it counts each key of a get.
func TestClassicMemcachedCounts(t *testing.T) {
	t.Parallel()
	direct := func(_ testing.TB, servers ...string) []string { return servers }
	for _, test := range []struct {
		name    string
		servers int
		before  func(t testing.TB, servers ...string) []string
		cas     bool
		note    string
	}{
		{"one server", 1, direct, false, ""},
		{"four servers, with gets", 4, direct, true, ""},
		{"a proxy", 1, func(t testing.TB, servers ...string) []string {
			return []string{servertest.Nutcracker(t, servers[0], false)}
		}, false, "the server says nothing of itself: stats: server closed the connection"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var servers []string
			for range test.servers {
				servers = append(servers, servertest.Memcached(t))
			}
			ends := test.before(t, servers...)
			before := calls{}
			for _, addr := range servers {
				for verb, n := range memcachedCalls(t, addr) {
					before[verb] += n
				}
			}
			r := begin(t, classic, "-var", nodes(ends...), "-var", fmt.Sprintf("cas=%t", test.cas)).whole()
			mixed, many := r.Phase["mixed"].Op, r.Phase["many"].Op["get"]
			require.EqualValues(t, 4000, mixed["get"].Sent+mixed["put"].Sent+mixed["delete"].Sent)
			require.EqualValues(t, 2000, many.Sent)
			require.EqualValues(t, 3000, r.Phase["fill"].Op["put"].OK)
			after := calls{}
			for _, addr := range servers {
				for verb, n := range memcachedCalls(t, addr) {
					after[verb] += n
				}
			}
			require.Equal(t, 3000+mixed["put"].Sent, after["put"]-before["put"])
			require.Equal(t, mixed["get"].Sent+16*many.Sent, after["get"]-before["get"])
			require.Equal(t, test.note, r.Environment.Servers["t"][ends[0]]["note"])
		})
	}
}

// TestMemcachedIsTooOld pins what a user reads if the server knows no meta commands.
func TestMemcachedIsTooOld(t *testing.T) {
	addr := oldMemcached(t)
	l := beginFile(t, hydra, "-var", "driver=memcached", "-var", nodes(addr), "-var", "n=1", "-var", "w=1")
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, fmt.Sprint(r.Verdict.Reasons), "ask memcached what it is: mn: the server does not know the meta commands: "+
		"it must be memcached 1.6.10 or newer")
}

// oldMemcached serves what memcached 1.4 answers: a version, and ERROR to everything else.
func oldMemcached(t *testing.T) (addr string) {
	t.Helper()
	return servertest.Serve(t, nil, func(conn net.Conn) {
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			reply := "ERROR\r\n"
			if lines.Text() == "version" {
				reply = "VERSION 1.4.39\r\n"
			}
			_, _ = io.WriteString(conn, reply) // the client may have gone
		}
	})
}
