package command_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// soakVariable names the environment variable that says how long a soak lasts, such as 30m.
const soakVariable = "LOADGEN_TEST_SOAK"

// soakCopies has three copies of each key, and every op asks for two of them.
const soakCopies = `
plan "soak-copies" {}
variable "endpoints" { type = list(string) }
variable "duration" { type = string }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "300ms"
	replication {
		n = 3
		w = 2
		r = 2
	}
}
dataset "d" {
	keys { count = 10000 }
	values { size = 500 }
}
phase "load" {
	target      = target.t
	dataset     = dataset.d
	ops         = { get = 6, put = 3, delete = 1 }
	expect_hits = 0
	max_bad     = 1
	closed {
		sessions = 16
		pipeline = 2
		think    = "50ms"
		duration = var.duration
	}
}
`

// soakBatches asks for eight keys at a time, each on one node.
const soakBatches = `
plan "soak-batches" {}
variable "endpoints" { type = list(string) }
variable "duration" { type = string }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "300ms"
}
dataset "d" {
	keys { count = 10000 }
	values {
		size    = "uniform(100B, 4KiB)"
		checked = true
	}
}
phase "load" {
	target      = target.t
	dataset     = dataset.d
	ops         = { get = 2, put = 1 }
	batch       = 8
	expect_hits = 0
	max_bad     = 1
	open {
		rate     = "150/s"
		arrivals = "poisson"
		sessions = 16
		duration = var.duration
		on_full  = "shed"
	}
}
`

// lives is a node that is stopped and restarted at the same address, with the counts of all its lives.
type lives struct {
	*server
	carried map[string]uint64 // by what the node calls its commands
	ended   int
}

func live(t *testing.T) *lives { return &lives{server: beginTarget(t), carried: map[string]uint64{}} }

// end stops the node, which breaks its busy connections. Its data are lost, and its counts are added up.
func (n *lives) end() {
	for what, count := range n.summary() {
		n.carried[what] += count
	}
	n.ended++
}

// begin starts it again.
func (n *lives) begin() {
	n.t.Helper()
	for {
		p := start(n.t, command(n.t, "target", "serve", "--listen", n.addr))
		p.until(func() bool { return strings.Contains(p.stdout.String()+p.stderr.String(), "\n") })
		if !strings.Contains(p.stderr.String(), "address already in use") { // by a connection that the kernel has given this port
			n.server = serving(p)
			return
		}
		<-p.done
	}
}

// memory is how many bytes of its own a process has in memory, without pages of its program, which the kernel may drop.
func memory(t testing.TB, pid int) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); words[0] == "RssAnon:" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	t.Fatalf("no RssAnon of process %d:\n%s", pid, status)
	return 0
}

// soaked is a load of a soak, and the nodes that are its own.
type soaked struct {
	*load
	name      string
	nodes     []*lives
	predicted int64   // bytes
	resident  []int64 // bytes, each time that one of its nodes was ended
}

func soak(t *testing.T, name, plan string, lasts time.Duration) *soaked {
	t.Helper()
	s := &soaked{name: name}
	var addrs []string
	for range 4 {
		s.nodes = append(s.nodes, live(t))
		addrs = append(addrs, s.nodes[len(s.nodes)-1].addr)
	}
	args := []string{"-var", nodes(addrs...), "-var", "duration=" + lasts.String()}
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(plan), 0o600))
	s.predicted = predicted(t, path, args...) << 20
	s.load = beginFile(t, path, append(args, "--loops", "4")...)
	return s
}

// strike takes one node away for a while.
func (s *soaked) strike(turn int, away time.Duration) {
	victim := s.nodes[turn%len(s.nodes)]
	victim.end()
	time.Sleep(away)
	victim.begin()
	s.resident = append(s.resident, memory(s.t, s.cmd.Process.Pid))
}

// requireCounted checks that nodes have carried out at least what was answered and at most what was sent.
func (s *soaked) requireCounted(r *run.Run) {
	s.t.Helper()
	sent := sums(r)
	names := map[string]string{"get": "get", "put": "set", "delete": "del"}
	for _, n := range s.nodes {
		n.end()
		for _, verb := range slices.Sorted(maps.Keys(sent[n.addr])) {
			row, carried := sent[n.addr][verb], n.carried[names[verb]]
			s.t.Logf("%s: %-6s at %s: sent %d, answered %d, timeout %d, error %d, refused %d; the node carried out %d in %d lives",
				s.name, verb, n.addr, row.Sent, row.Answered, row.Timeout, row.Error, row.Refused, carried, n.ended)
			if s.name == "batches" && verb == "get" {
				carried-- // before the load, the node was asked for keys that it does not have
			}
			require.LessOrEqual(s.t, row.Answered, carried)
			require.LessOrEqual(s.t, carried, row.Sent)
			require.Zero(s.t, row.InFlight)
			require.Positive(s.t, row.Answered)
		}
	}
}

// requireSteady compares memory with plan check's prediction and, if there is enough data, the last third of the run with the third before it.
func (s *soaked) requireSteady() {
	s.t.Helper()
	var mib []string
	for _, bytes := range s.resident {
		mib = append(mib, fmt.Sprintf("%.1f", float64(bytes)/(1<<20)))
	}
	s.t.Logf("%s: MiB at each strike: %s; predicted %d", s.name, strings.Join(mib, " "), s.predicted>>20)
	require.LessOrEqual(s.t, slices.Max(s.resident), s.predicted)
	if third := len(s.resident) / 3; third >= 3 {
		before, after := slices.Max(s.resident[third:2*third]), slices.Max(s.resident[2*third:])
		require.LessOrEqual(s.t, float64(after), 1.1*float64(before), "memory grows")
	}
}

// TestSoak runs two loads side by side, on four loops each: gets, puts and deletes of checked values on three copies, and batches of them on one.
// Each minute a node of each is stopped, and comes back empty. However long this lasts, both runs are complete, nodes' counts lie between answered
// and sent, no value is foreign, and memory does not grow.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasts, every := 12*time.Second, 3*time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, soakVariable)
		every = min(time.Minute, lasts/5)
	}
	loads := []*soaked{soak(t, "copies", soakCopies, lasts), soak(t, "batches", soakBatches, lasts)}
	began := time.Now()
	for turn := 0; ; turn++ {
		next := began.Add(time.Duration(turn+1) * every)
		if next.Sub(began) > lasts-2*every { // the load goes on for a while after the last one, however late that comes
			break
		}
		time.Sleep(time.Until(next))
		for _, s := range loads {
			s.strike(turn, every/10)
		}
	}
	for _, s := range loads {
		r := s.result(lasts + 3*time.Minute)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		p := r.Phase["load"]
		require.Zero(t, p.Foreign)
		s.requireCounted(r)
		s.requireSteady()
	}
}
