package command_test

import (
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

var hydra = filepath.Join("..", "..", "plans", "hydra.hcl")

// patientHydra is a copy of the plan with 1,000 ops of each session, whose requests do not time out, and whose assertion holds, even if a busy
// machine keeps a server waiting. A phase does not wait for what has timed out, and a server may never carry it out: its count is exact only if
// nothing has.
func patientHydra(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(hydra)
	require.NoError(t, err)
	patient := strings.NewReplacer(`timeout    = "1s"`, `timeout    = "30s"`, "  driver    = var.driver\n", "  driver    = var.driver\n  timeout   = \"30s\"\n",
		`duration("20ms")`, `duration("29s")`, "default = 5000", "default = 1000").Replace(string(text))
	require.Equal(t, 2, strings.Count(patient, `= "30s"`), "of an op, and of a request")
	require.Equal(t, 1, strings.Count(patient, `"29s"`))
	path := filepath.Join(t.TempDir(), "hydra.hcl")
	require.NoError(t, os.WriteFile(path, []byte(patient), 0o600))
	return path
}

// shortHydra is patientHydra with 300 ops of each session instead of 1,000.
func shortHydra(t *testing.T) string {
	t.Helper()
	path := patientHydra(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "default = 1000"))
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "default = 1000", "default = 300")), 0o600))
	return path
}

// TestHydraAwaitsASlowServer stops one of the servers for longer than the plan's own timeout while puts are in flight: it carries out everything that
// it was sent, although two others make the quorum.
func TestHydraAwaitsASlowServer(t *testing.T) {
	t.Parallel()
	addrs := addresses(cluster(t, 4))
	before := countAll(t, addrs)
	slow := stat(t, addrs[0], "process_id")
	l := beginFile(t, patientHydra(t), "-var", nodes(addrs...))
	l.until(func() bool { return countCalls(t, addrs[1])["put"] > before[1]["put"] })
	require.NoError(t, syscall.Kill(slow, syscall.SIGSTOP))
	time.Sleep(1500 * time.Millisecond)
	require.NoError(t, syscall.Kill(slow, syscall.SIGCONT))
	r := l.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	requireSent(t, r, addrs, before)
	for _, verbs := range sums(r) {
		require.Equal(t, verbs["put"].Sent, verbs["put"].Answered)
	}
}

// sums adds the requests of a run up: by endpoint and verb.
func sums(r *run.Run) map[string]map[string]run.Requests {
	all := map[string]map[string]run.Requests{}
	add := func(rows []run.Requests) {
		for _, row := range rows {
			if all[row.Endpoint] == nil {
				all[row.Endpoint] = map[string]run.Requests{}
			}
			sum := all[row.Endpoint][row.Verb]
			sum.Sent += row.Sent
			sum.Answered += row.Answered
			sum.Timeout += row.Timeout
			sum.Error += row.Error
			sum.Refused += row.Refused
			sum.InFlight += row.InFlight
			all[row.Endpoint][row.Verb] = sum
		}
	}
	for _, p := range r.Phase {
		add(p.Requests)
		if p.Setup != nil {
			add(p.Setup.Requests)
		}
	}
	return all
}

// requireSent compares what loadgen says it sent with what the servers have carried out since before.
func requireSent(t *testing.T, r *run.Run, addrs []string, before []calls) {
	t.Helper()
	requireBetween(t, r, addrs, before, countAll(t, addrs))
}

// requireBetween is requireSent with the servers' counts afterwards given.
func requireBetween(t *testing.T, r *run.Run, addrs []string, before, after []calls) {
	t.Helper()
	sent := sums(r)
	require.Len(t, sent, len(addrs))
	for i, addr := range addrs {
		for _, verb := range []string{"get", "put", "delete"} {
			require.Equal(t, sent[addr][verb].Sent, after[i][verb]-before[i][verb], "%s at %s", verb, addr)
		}
	}
}

func countAll(t *testing.T, addrs []string) []calls {
	t.Helper()
	var all []calls
	for _, addr := range addrs {
		all = append(all, countCalls(t, addr))
	}
	return all
}

// TestServersCountWhatHydraSent runs the README's plan on four Redis servers: both ledgers balance, and every server has carried out as many SET and
// GET as the result says were sent to it, setup included.
func TestServersCountWhatHydraSent(t *testing.T) {
	t.Parallel()
	requireHydra(t, addresses(cluster(t, 4)))
}

// TestTargetsCountWhatHydraSent does the same with built-in nodes that were started by hand.
func TestTargetsCountWhatHydraSent(t *testing.T) {
	t.Parallel()
	var addrs []string
	for range 4 {
		addrs = append(addrs, beginTarget(t).addr)
	}
	requireHydra(t, addrs)
}

func requireHydra(t *testing.T, addrs []string) {
	t.Helper()
	ask(t, addrs[0], "SET", "older", "1") // deltas, not totals
	before := countAll(t, addrs)
	r := beginFile(t, patientHydra(t), "-var", nodes(addrs...)).whole()

	require.Equal(t, []string{"put", "get"}, r.PhaseOrder)
	put, get := r.Phase["put"].Op["put"], r.Phase["get"].Op["get"]
	require.EqualValues(t, 10_000, put.OK)
	require.EqualValues(t, 10_000, put.Due)
	require.EqualValues(t, 10_000, get.OK)
	require.InDelta(t, 1, *get.HitRatio, 0)
	require.EqualValues(t, 10, r.Phase["get"].Setup.Op["put"].OK)
	require.Len(t, put.Acks, 3)
	for _, ack := range put.Acks[:2] {
		require.EqualValues(t, 10_000, ack.Count)
	}
	for _, p := range r.Phase {
		require.Zero(t, p.Reconnects)
		require.Equal(t, "event loop", p.Generator.Executor)
	}
	requireSent(t, r, addrs, before)
	var puts, gets, refused uint64
	for _, verbs := range sums(r) {
		puts += verbs["put"].Sent
		gets += verbs["get"].Sent
		refused += verbs["put"].Refused // W = 2 waits for no third ack, so a slow server's backlog can fill
	}
	require.EqualValues(t, 3*(10_000+10), puts+refused)
	require.EqualValues(t, 10_000, put.Acks[2].Count+refused)
	require.EqualValues(t, 10_000, gets, "a get asks one node")
}

// replicated is a load on N = 3 copies that goes on when servers do not.
const replicated = `
plan "replicated" {}
variable "endpoints" { type = list(string) }
variable "w" { default = 2 }
variable "r" { default = 1 }
variable "fanout" { default = "r" }
variable "duration" { default = "10s" }
variable "timeout" { default = "300ms" }
variable "patience" { default = "2s" }
variable "seed_keys" { default = true }

target "space" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = var.timeout
	replication {
		coordinate  = "client"
		n           = 3
		w           = var.w
		r           = var.r
		read_fanout = var.fanout
		timeout     = var.patience
	}
}
dataset "items" {
	keys { count = 1000 }
	values { size = 100 }
}
phase "fill" {
	target  = target.space
	dataset = dataset.items
	when    = var.seed_keys
	populate {}
}
phase "mixed" {
	target      = target.space
	dataset     = dataset.items
	ops         = { put = 1, get = 1 }
	expect_hits = 0
	max_bad     = 1
	closed {
		sessions = 8
		pipeline = 2
		duration = var.duration
		think    = "50ms"
	}
}
`

// TestServersCountWhatAMixSent does the same for puts and gets one to one, with every get asking all three nodes.
func TestServersCountWhatAMixSent(t *testing.T) {
	t.Parallel()
	addrs := addresses(cluster(t, 4))
	before := countAll(t, addrs)
	r := begin(t, replicated, "-var", nodes(addrs...), "-var", "duration=2s", "-var", "r=2", "-var", "fanout=n", "-var", "timeout=30s", "-var", "patience=30s").whole()
	op := r.Phase["mixed"].Op
	require.Positive(t, op["put"].OK)
	all := float64(op["put"].OK + op["get"].OK)
	require.InDelta(t, all/2, op["get"].OK, 5*math.Sqrt(all)/2, "five standard deviations of a binomial count")
	require.Zero(t, op["get"].Miss)
	requireSent(t, r, addrs, before)
}

// fault is something that happens to a server in mid-run.
type fault struct {
	name   string
	w      string
	strike func(t *testing.T, victim *servertest.Server) // 2 s after the load began
	fails  bool                                          // quorums
	counts bool                                          // the victim has all its counters in the end
	back   bool                                          // the victim has been started again
}

func stopped(t *testing.T, victim *servertest.Server) {
	t.Helper()
	require.NoError(t, syscall.Kill(victim.Pid(), syscall.SIGSTOP))
	time.Sleep(2 * time.Second)
	require.NoError(t, syscall.Kill(victim.Pid(), syscall.SIGCONT))
}

func killed(t *testing.T, victim *servertest.Server) {
	t.Helper()
	victim.Kill()
}

func restarted(t *testing.T, victim *servertest.Server) {
	t.Helper()
	victim.Kill()
	time.Sleep(time.Second)
	restart(t, victim)
}

func restart(t *testing.T, victim *servertest.Server) {
	t.Helper()
	_, port, err := net.SplitHostPort(victim.Addr)
	require.NoError(t, err)
	servertest.StartRedis(t, "--port", port)
}

// TestQuorumsOutliveAServerAsWSays takes one of four servers away in mid-run: with W = 2 of N = 3 every op still succeeds, with W = 3 those on the
// lost server fail. In every case ledgers balance, a server's count lies between answered and sent, and the run ends on time.
func TestQuorumsOutliveAServerAsWSays(t *testing.T) {
	for _, f := range []fault{
		{name: "stopped for 2 s, W=2", w: "2", strike: stopped, counts: true},
		{name: "stopped for 2 s, W=3", w: "3", strike: stopped, fails: true, counts: true},
		{name: "killed, W=2", w: "2", strike: killed},
		{name: "killed, W=3", w: "3", strike: killed, fails: true},
		{name: "killed and restarted, W=2", w: "2", strike: restarted, back: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.run(t)
		})
	}
}

func (f fault) run(t *testing.T) {
	servers := cluster(t, 4)
	before := countAll(t, addresses(servers))
	l := begin(t, replicated, "-var", nodes(addresses(servers)...), "-var", "w="+f.w)
	l.underWay()
	time.Sleep(time.Second)
	f.strike(t, servers[1])
	r := l.whole()

	mixed := r.Phase["mixed"]
	require.Greater(t, mixed.Seconds, 5.0, "it is not ended early")
	sent := sums(r)
	late := uint64(0) // what others of the servers did not answer in time, for want of a processor
	for i, s := range servers {
		if i != 1 {
			late += sent[s.Addr]["put"].Timeout + sent[s.Addr]["get"].Timeout
		}
	}
	if f.fails {
		require.Positive(t, mixed.Op["put"].QuorumFailed)
	} else if late == 0 {
		require.Zero(t, mixed.Op["put"].QuorumFailed, "%+v", mixed.Op["put"].Causes)
	}
	if late == 0 {
		require.Zero(t, mixed.Op["get"].QuorumFailed, "R = 1 of three can always be had")
	}
	require.Zero(t, mixed.Op["put"].InFlight)
	if f.back || f.counts {
		require.GreaterOrEqual(t, mixed.Reconnects, uint64(8), "one for each session")
	}
	for i, s := range servers {
		if i == 1 && !f.counts && !f.back {
			continue // it is gone
		}
		after := countCalls(t, s.Addr)
		for _, verb := range []string{"get", "put"} {
			row, delta := sent[s.Addr][verb], after[verb]-before[i][verb]
			require.LessOrEqual(t, delta, row.Sent, "%s at %s", verb, s.Addr)
			if i != 1 || f.counts {
				require.LessOrEqual(t, row.Answered, delta, "%s at %s", verb, s.Addr)
			}
			require.Positive(t, delta, "%s at %s", verb, s.Addr)
		}
	}
	victim := sent[servers[1].Addr]["put"]
	t.Logf("put %+v; requests at the victim %+v; %d reconnects, %d late replies",
		mixed.Op["put"].Causes, victim, mixed.Reconnects, mixed.LateReplies)
	require.Positive(t, victim.Timeout+victim.Error+victim.Refused, "the fault was felt")
}
