package plan_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestPredict(t *testing.T) {
	const unknown = -1
	cases := []struct {
		name, phase   string
		ops, requests int64
		setup         [2]int64
		duration      time.Duration
		connections   int64
	}{
		{"iterations", phase("x", "plain", "shared", "  ops = { get = 1 }\n  closed {\n sessions = 3\n iterations = 7\n }"), 21, 21, [2]int64{}, unknown, 6},
		{"duration", phase("x", "plain", "shared", "  ops = { get = 1 }\n  closed { duration = \"3s\" }"), unknown, unknown, [2]int64{}, 3 * time.Second, 2},
		{"quorum", phase("x", "quorum", "other", "  ops = { get = 1, put = 1 }\n  closed { iterations = 10 }"), 10, 30, [2]int64{}, unknown, 3},
		{"batch", phase("x", "nodes", "shared", "  ops = { get = 1 }\n  batch = 4\n  closed { iterations = 10 }"), 10, 10, [2]int64{}, unknown, 1},
		{"batch on several endpoints", phase("x", "plain", "shared", "  ops = { get = 1 }\n  batch = 4\n  closed { iterations = 10 }"), 10, unknown, [2]int64{}, unknown, 2},
		{"sequence", phase("x", "plain", "once", "  ops = { put = 1 }\n  closed { sessions = 4 }"), 50, 50, [2]int64{}, unknown, 8},
		{"setup", phase("x", "quorum", "pool", "  ops = { get = 1 }\n  setup { ops = { put = 1 } }\n  closed {\n sessions = 2\n iterations = 1\n }"), 2, 6, [2]int64{100, 300}, unknown, 6},
		{"open", phase("x", "plain", "shared", "  ops = { get = 1 }\n  open {\n rate = 100\n duration = \"10s\"\n ramp = \"2s\"\n }"), 900, 900, [2]int64{}, 10 * time.Second, 32},
		{"stages", phase("x", "plain", "shared", "  ops = { get = 1 }\n  stages {\n stage {\n rate = 100\n duration = \"10s\"\n ramp = \"2s\"\n }\n stage {\n rate = 200\n duration = \"5s\"\n ramp = \"4s\"\n }\n }"), 900 + 800, 1700, [2]int64{}, 15 * time.Second, 32},
		{"search", phase("x", "plain", "shared", "  ops = { get = 1 }\n  search {\n budget = \"40s\"\n slo { response_p99 = \"5ms\" }\n }"), unknown, unknown, [2]int64{}, 40 * time.Second, 32},
		{"populate", phase("x", "quorum", "other", "  populate {}"), 10, 30, [2]int64{}, unknown, 48},
		{"clear", phase("x", "plain", "shared", "  clear { sessions = 1 }"), 1000, 1000, [2]int64{}, unknown, 2},
		{"flush", phase("x", "nodes", "shared", "  clear { sessions = 1 }"), 0, 0, [2]int64{}, unknown, 1},
		{"clear pools", phase("a", "plain", "pool", "  ops = { put = 1 }\n  closed {\n sessions = 5\n iterations = 1\n }") + phase("x", "plain", "pool", "  clear { sessions = 1 }"), 250, 250, [2]int64{}, unknown, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			phases, _ := good(t, caches+c.phase, plan.Vars{}).Predict()
			l := phases[len(phases)-1]
			require.Equal(t, c.ops, orUnknown(l.Ops))
			require.Equal(t, c.requests, orUnknown(l.Requests))
			require.Equal(t, c.setup, [2]int64{l.SetupOps, l.SetupRequests})
			require.Equal(t, c.duration, orUnknown(l.Duration))
			require.Equal(t, c.connections, l.Connections)
		})
	}
}

func orUnknown[T int64 | time.Duration](v *T) T {
	if v == nil {
		return -1
	}
	return *v
}

// The largest load of all that a plan can ask for does not overflow.
func TestPredictTheLargest(t *testing.T) {
	p := good(t, caches+phase("x", "quorum", "other", "  ops = { get = 1 }\n  closed {\n sessions = 1000000\n pipeline = 4096\n iterations = 1000000000000\n }"), plan.Vars{})
	p.Phases = append(p.Phases, p.Phases[0], p.Phases[0], p.Phases[0], p.Phases[0])
	requireSane(t, p)
	phases, _ := p.Predict()
	require.Equal(t, int64(1e18), *phases[0].Ops)
}

// What is said to fit, fits, and one more does not.
func TestFilesThatWouldDo(t *testing.T) {
	var ph plan.Phase
	require.Empty(t, ph.FilesShort(234, 4, 1000))
	require.Equal(t, "940 connections need about 1004 open files, and the limit is 1000: raise it (ulimit -n 1004), or use at most 234 sessions on a worker",
		ph.FilesShort(235, 4, 1000))
	require.Equal(t, "40 connections need about 104 open files, and the limit is 67: raise it (ulimit -n 104)", ph.FilesShort(10, 4, 67))
	require.NotEmpty(t, ph.FilesShort(1<<40, 1<<40, math.MaxInt64-1), "the largest number of them does not overflow")
}

// What is said to fit, fits, and one more does not.
func TestMemoryThatWouldDo(t *testing.T) {
	p := good(t, caches+phase("x", "plain", "shared", "  ops = { put = 1 }\n  open {\n rate = 10\n duration = \"1s\"\n sessions = 100\n pipeline = 4000\n }"), plan.Vars{})
	ph := p.Phases[0]
	need := p.Memory(ph, 100, p.EndpointsOf(ph))
	require.Empty(t, p.MemoryShort(ph, 100, p.EndpointsOf(ph), need))
	require.Empty(t, p.MemoryShort(ph, 100, p.EndpointsOf(ph), 0), "nothing says how much there is")
	short := p.MemoryShort(ph, 100, p.EndpointsOf(ph), need/2)
	words := regexp.MustCompile(`^100 sessions with 400000 ops in flight can need (\d+) MiB of memory, and (\d+) MiB are available: on one worker (\d+) of the sessions or (\d+) ops in flight would do$`).FindStringSubmatch(short)
	require.NotNil(t, words, short)
	fits, err := strconv.Atoi(words[3])
	require.NoError(t, err)
	require.Empty(t, p.MemoryShort(ph, fits, p.EndpointsOf(ph), need/2))
	require.NotEmpty(t, p.MemoryShort(ph, fits+1, p.EndpointsOf(ph), need/2))
	require.Contains(t, p.MemoryShort(ph, 100, p.EndpointsOf(ph), 1), ": on one worker no number of sessions would do")
	ph.Open.InFlight, err = strconv.Atoi(words[4])
	require.NoError(t, err)
	require.Empty(t, p.MemoryShort(ph, 100, p.EndpointsOf(ph), need/2))
	ph.Open.InFlight++
	require.NotEmpty(t, p.MemoryShort(ph, 100, p.EndpointsOf(ph), need/2))
}

// Large values are held once a connection unless their requests are copied, and no more of them than there are keys; deletes hold none.
func TestMemoryOfLargeValues(t *testing.T) {
	const target = "target \"one\" {\n driver = \"redis\"\n endpoints = [\"a:1\"]\n executor = %q\n}\n"
	const values = "dataset \"large\" {\n keys { count = 12 }\n values { size = \"32MiB\" }\n}\n"
	const closed = "  closed {\n sessions = 4\n pipeline = 8\n duration = \"1s\"\n }"
	for _, c := range []struct {
		executor, load string
		values         int64
	}{
		{plan.EventLoop, "  populate {}", 12},
		{plan.Blocking, "  populate {}", 12},
		{plan.EventLoop, "  clear {}", 0},
		{plan.Blocking, "  clear {}", 0},
		{plan.EventLoop, "  ops = { get = 1, put = 1 }\n" + closed, 4},
		{plan.Blocking, "  ops = { get = 1 }\n" + closed, 4},
		{plan.Blocking, "  ops = { put = 1 }\n" + closed, 4 * 8},
	} {
		p := good(t, caches+fmt.Sprintf(target, c.executor)+values+phase("x", "one", "large", c.load), plan.Vars{})
		ph := p.Phases[0]
		require.Equal(t, 3*c.values, (p.Memory(ph, ph.Sessions(), p.EndpointsOf(ph))-32<<20)>>25, "%s, %s", c.executor, c.load)
	}
}

// Memory kept per second is counted, up to its bound. An hour at 20,000 ops a second took 1,494 bytes a second for rows, and 4,332 for each of
// 128 intervals of counts.
func TestPredictWhatIsKept(t *testing.T) {
	memory := func(rate, duration string) int64 {
		load := "  ops = { put = 1 }\n  open {\n rate = \"" + rate + "\"\n duration = \"" + duration + "\"\n sessions = 1\n pipeline = 16\n }"
		p := good(t, caches+phase("x", "plain", "shared", load), plan.Vars{})
		return p.Memory(p.Phases[0], 1, p.EndpointsOf(p.Phases[0]))
	}
	begin := memory("20000/s", "1s")
	require.Greater(t, memory("20000/s", "10m")-begin, int64(599*1494+127*4332))
	require.Less(t, memory("20000/s", "10m")-begin, int64(2*(600*1494+128*4332)), "an estimate on the high side, and no more")
	require.Equal(t, memory("20000/s", "4096s"), memory("20000/s", "24h"))
	require.Less(t, memory("1/s", "10m"), memory("20000/s", "10m"), "a row has no more latencies than ops")
	require.Less(t, memory("1/s", "10m")-memory("1/s", "128s"), int64(600*300))
}

// Garbage per second is predicted, but does not reject a plan where it would be collected sooner: half an hour on four loops grew by 27 MiB.
func TestPredictWhatIsLeftBehind(t *testing.T) {
	load := "  ops = { put = 1 }\n  closed {\n duration = \"30m\"\n }"
	p := good(t, caches+phase("x", "plain", "shared", load), plan.Vars{})
	need := p.Memory(p.Phases[0], 1, p.EndpointsOf(p.Phases[0]))
	_, all := p.Predict()
	require.EqualValues(t, 1800*8<<10, all.Memory-need)
	require.Empty(t, p.MemoryShort(p.Phases[0], 1, p.EndpointsOf(p.Phases[0]), need))
}

// A built-in node of 64 MiB has no room for 10,000 values of 1 MiB. Once, nothing said so before gets missed.
func TestKeysThatBuiltinNodesEvict(t *testing.T) {
	for _, tt := range []struct {
		name, target, keys, values string
		evicts                     bool
	}{
		{"small values", "builtin {}", "count = 10000", `size = "200B"`, false},
		{"large values", "builtin {}", "count = 10000", `size = "1MiB"`, true},
		{"few of them", "builtin {}", "count = 63", `size = "1MiB"`, false},
		{"one too many", "builtin {}", "count = 64", `size = "1MiB"`, true},
		{"more memory", "builtin { memory = \"65MiB\" }", "count = 64", `size = "1MiB"`, false},
		{"more nodes", "builtin { nodes = 2 }", "count = 64", `size = "1MiB"`, false},
		{"copies", "builtin { nodes = 3 }\n replication {\n n = 3\n w = 1\n r = 1\n}", "count = 64", `size = "1MiB"`, true},
		{"of each session", "builtin {}", "count = 10\n scope = \"session\"", `size = "1MiB"`, true},
		{"a server of one's own", "endpoints = [\"127.0.0.1:6379\"]\n builtin {}", "count = 10000", `size = "1MiB"`, false},
		{"sizes that differ", "builtin {}", "count = 10000", `size = "uniform(1B, 1MiB)"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			load := "populate {}"
			if tt.name == "of each session" {
				load = "ops = { get = 1 }\n setup {\n ops = { put = 1 }\n}\n closed {\n sessions = 7\n iterations = 1\n}"
			}
			text := fmt.Sprintf("plan \"p\" {}\ntarget \"t\" {\n driver = \"redis\"\n %s\n}\ndataset \"d\" {\n keys {\n %s\n}\n values {\n %s\n}\n}\nphase \"f\" {\n target = target.t\n dataset = dataset.d\n %s\n}\n",
				tt.target, tt.keys, tt.values, load)
			file, diags := plan.Parse([]byte(text), "p.hcl", drivers())
			require.Empty(t, diags)
			p, diags := file.Resolve(plan.Vars{})
			require.Empty(t, diags)
			require.Equal(t, tt.evicts, p.Evicts(p.Phases[0]) != "", p.Evicts(p.Phases[0]))
			if tt.name == "large values" {
				require.Equal(t, "10000 keys with values of 1048576 bytes take 10001 MiB on built-in nodes, which have 64 MiB: they evict the others, and gets of these miss. "+
					"Give builtin more memory, or the dataset at most 63 keys", p.Evicts(p.Phases[0]))
			}
		})
	}
}
