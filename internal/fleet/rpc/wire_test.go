package rpc

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Each of these tests breaks one rule for a message at a time, by as little as possible, and accepts what is just valid.

func TestAssignmentIsChecked(t *testing.T) {
	for _, c := range []struct {
		index, workers uint32
		ok             bool
	}{{0, 1, true}, {maxWorkers - 1, maxWorkers, true}, {0, 0, false}, {1, 1, false}, {2, 1, false}, {0, maxWorkers + 1, false}} {
		a, err := decodeAssignment(&pb.Assignment{Index: c.index, Workers: c.workers})
		if c.ok {
			require.NoError(t, err)
			require.Equal(t, int(c.index), a.Index)
			continue
		}
		require.ErrorContains(t, err, "assignment to worker")
	}
}

// An assignment holds nothing that our coordinator would not send, and nothing that would upset a terminal or a log.
func TestAssignmentIsBounded(t *testing.T) {
	good := func() *pb.Assignment {
		return &pb.Assignment{Run: "r", Digest: "d", Workers: 1, Nodes: map[string]*pb.Endpoints{"t": {Endpoint: []string{"127.0.0.1:1"}}}}
	}
	_, err := decodeAssignment(good())
	require.NoError(t, err)
	for name, change := range map[string]func(m *pb.Assignment){
		"a run of two lines":     func(m *pb.Assignment) { m.Run = "a\nb" },
		"a long run":             func(m *pb.Assignment) { m.Run = strings.Repeat("r", 1<<20) },
		"a digest that turns":    func(m *pb.Assignment) { m.Digest = "\u202e" },
		"a target of two lines":  func(m *pb.Assignment) { m.Nodes["a\nb"] = &pb.Endpoints{} },
		"an endpoint that turns": func(m *pb.Assignment) { m.Nodes["t"].Endpoint[0] = "\u202e1:1" },
		"many endpoints":         func(m *pb.Assignment) { m.Nodes["t"].Endpoint = make([]string, maxServers+1) },
		"many targets": func(m *pb.Assignment) {
			for i := range maxServers + 1 {
				m.Nodes[fmt.Sprint(i)] = &pb.Endpoints{}
			}
		},
	} {
		m := good()
		change(m)
		_, err := decodeAssignment(m)
		require.ErrorContains(t, err, "assignment", name)
		require.Equal(t, line(err.Error()), err.Error(), name)
	}
}

func TestStepIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *pb.Step)
		want   string
	}{
		"as it should be":     {func(*pb.Step) {}, ""},
		"setup":               {func(m *pb.Step) { m.Kind = string(worker.Setup) }, ""},
		"populate":            {func(m *pb.Step) { m.Kind = string(worker.Populate) }, ""},
		"clear":               {func(m *pb.Step) { m.Kind = string(worker.Clear) }, ""},
		"no sessions":         {func(m *pb.Step) { m.From, m.To = 7, 7 }, ""},
		"most sessions":       {func(m *pb.Step) { m.To = maxSessions }, ""},
		"highest rates":       {func(m *pb.Step) { m.Rate, m.RateFrom = maxRate, maxRate }, ""},
		"a ramp all the time": {func(m *pb.Step) { m.RampNs = m.DurationNs }, ""},
		"the longest":         {func(m *pb.Step) { m.DurationNs = int64(maxRunTime) }, ""},
		"the last level":      {func(m *pb.Step) { m.Level = maxLevels }, ""},
		"another kind":        {func(m *pb.Step) { m.Kind = "walk" }, `unknown kind "walk"`},
		"sessions backwards":  {func(m *pb.Step) { m.From, m.To = 8, 7 }, "is for sessions 8 to 7"},
		"too many sessions":   {func(m *pb.Step) { m.To = maxSessions + 1 }, "is for sessions 0 to"},
		"a negative rate":     {func(m *pb.Step) { m.Rate = -1 }, "impossible"},
		"too high a rate":     {func(m *pb.Step) { m.Rate = maxRate + 1 }, "impossible"},
		"no number":           {func(m *pb.Step) { m.Rate = math.NaN() }, "impossible"},
		"from a negative one": {func(m *pb.Step) { m.RateFrom = -1 }, "impossible"},
		"from no number":      {func(m *pb.Step) { m.RateFrom = math.NaN() }, "impossible"},
		"from too high a one": {func(m *pb.Step) { m.RateFrom = maxRate + 1 }, "impossible"},
		"a negative ramp":     {func(m *pb.Step) { m.RampNs = -1 }, "impossible"},
		"too long a ramp":     {func(m *pb.Step) { m.RampNs = m.DurationNs + 1 }, "impossible"},
		"a negative duration": {func(m *pb.Step) { m.DurationNs = -1 }, "impossible"},
		"too long":            {func(m *pb.Step) { m.DurationNs = int64(maxRunTime) + 1 }, "impossible"},
		"too high a level":    {func(m *pb.Step) { m.Level = maxLevels + 1 }, "impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &pb.Step{Kind: string(worker.Load), To: 10, Rate: 100, RateFrom: 10, DurationNs: int64(time.Second)}
			c.change(m)
			_, err := decodeStep(m)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestReadyIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		m  *pb.Ready
		ok bool
	}{
		"nothing":              {&pb.Ready{}, true},
		"as much as can be":    {&pb.Ready{UncertaintyNs: int64(time.Minute), RttNs: int64(time.Minute), Sessions: maxSessions}, true},
		"negative uncertainty": {&pb.Ready{UncertaintyNs: -1}, false},
		"too uncertain":        {&pb.Ready{UncertaintyNs: int64(time.Minute) + 1}, false},
		"negative round trip":  {&pb.Ready{RttNs: -1}, false},
		"too long a one":       {&pb.Ready{RttNs: int64(time.Minute) + 1}, false},
		"too many sessions":    {&pb.Ready{Sessions: maxSessions + 1}, false},
	} {
		_, err := decodeReady(c.m)
		require.Equal(t, c.ok, err == nil, name)
	}
}

func TestTimeIsChecked(t *testing.T) {
	for ns, ok := range map[int64]bool{
		0: true, -1: true, int64(maxRunTime) - 1: true, 1 - int64(maxRunTime): true,
		int64(maxRunTime): false, -int64(maxRunTime): false, math.MaxInt64: false, math.MinInt64: false,
	} {
		d, err := decodeTime(ns)
		require.Equal(t, ok, err == nil, "%d", ns)
		if ok {
			require.EqualValues(t, ns, d)
		}
	}
}

// TestHeartbeatIsChecked clause by clause.
func TestHeartbeatIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		m  *pb.Heartbeat
		ok bool
	}{
		"nothing":              {&pb.Heartbeat{}, true},
		"as much as can be":    {&pb.Heartbeat{UncertaintyNs: int64(maxRunTime), OffsetNs: int64(maxRunTime), CpuNs: math.MaxInt64, Progress: math.MaxInt64}, true},
		"as far behind":        {&pb.Heartbeat{OffsetNs: -int64(maxRunTime)}, true},
		"too uncertain":        {&pb.Heartbeat{UncertaintyNs: int64(maxRunTime) + 1}, false},
		"negative uncertainty": {&pb.Heartbeat{UncertaintyNs: -1}, false},
		"too far ahead":        {&pb.Heartbeat{OffsetNs: int64(maxRunTime) + 1}, false},
		"too far behind":       {&pb.Heartbeat{OffsetNs: -int64(maxRunTime) - 1}, false},
		"negative time":        {&pb.Heartbeat{CpuNs: -1}, false},
		"negative progress":    {&pb.Heartbeat{Progress: -1}, false},
	} {
		h, err := decodeHealth(c.m)
		if !c.ok {
			require.ErrorContains(t, err, "a heartbeat with an uncertainty of", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, health{time.Duration(c.m.OffsetNs), time.Duration(c.m.UncertaintyNs), time.Duration(c.m.CpuNs), c.m.Progress}, h, name)
	}
}

// TestMostThatMayBeSaid: the maximum of servers, nodes, targets and facts is accepted, and one more is not.
func TestMostThatMayBeSaid(t *testing.T) {
	facts := func(n int) *pb.Facts {
		f := &pb.Facts{Fact: map[string]string{}}
		for i := range n {
			f.Fact[fmt.Sprint(i)] = "x"
		}
		return f
	}
	servers := func(n int) map[string]*pb.Facts {
		all := map[string]*pb.Facts{}
		for i := range n {
			all[fmt.Sprint(i)] = nil
		}
		return all
	}
	nodes := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = "h:1"
		}
		return all
	}
	for name, of := range map[string]func(more int) map[string]*pb.Reached{
		"facts": func(more int) map[string]*pb.Reached {
			return map[string]*pb.Reached{"t": {Servers: map[string]*pb.Facts{"a": facts(maxFacts + more)}}}
		},
		"servers": func(more int) map[string]*pb.Reached {
			return map[string]*pb.Reached{"t": {Servers: servers(maxServers / 2)}, "u": {Servers: servers(maxServers/2 + more)}}
		},
		"nodes": func(more int) map[string]*pb.Reached {
			return map[string]*pb.Reached{"t": {Node: nodes(maxServers / 2)}, "u": {Node: nodes(maxServers/2 + more)}}
		},
		"targets": func(more int) map[string]*pb.Reached {
			all := map[string]*pb.Reached{}
			for i := range maxServers + more {
				all[fmt.Sprint(i)] = &pb.Reached{}
			}
			return all
		},
	} {
		_, err := decodeReady(&pb.Ready{Targets: of(0)})
		require.NoError(t, err, name)
		_, err = decodeReady(&pb.Ready{Targets: of(1)})
		require.ErrorContains(t, err, "are the most", name)
	}

	assignment := &pb.Assignment{Workers: 1, Run: strings.Repeat("r", maxLine), Nodes: map[string]*pb.Endpoints{"0": {Endpoint: nodes(maxServers)}}}
	for i := range maxServers - 1 {
		assignment.Nodes[fmt.Sprint(i+1)] = &pb.Endpoints{}
	}
	_, err := decodeAssignment(assignment)
	require.NoError(t, err)
	assignment.Run += "r"
	_, err = decodeAssignment(assignment)
	require.ErrorContains(t, err, "not a line of up to")
}

// TestGeneratorIsChecked sets one figure after another to what is impossible, among others that are good, and to what is just possible.
func TestGeneratorIsChecked(t *testing.T) {
	const long = float64(maxRunTime/time.Second) * 1024
	for path, most := range map[string]float64{
		"cpu_seconds": long, "cpu_user_seconds": long, "cpu_system_seconds": long, "elapsed_seconds": long, "productive_seconds": long,
		"gc_pause_max_seconds": long, "sched_latency_p99_seconds": long, "throttled.seconds": long, "interrupted.seconds": long,
		"interrupted.max_seconds": long, "interrupted.others_seconds": long, "machine.seconds": long, "busy": 1, "policy_rate_wait": 1, "policy_bytes_wait": 1,
		"run_queue_wait": 1, "machine.others_share": 1, "machine.idle_share": 1,
	} {
		for f, good := range map[float64]bool{0: true, most: true, -1e-300: false, math.Nextafter(most, math.Inf(1)): false} {
			text := fmt.Sprintf(`"%s": %g}`, path, f)
			if in, name, inner := strings.Cut(path, "."); inner {
				text = fmt.Sprintf(`"%s": {"%s": %g}}`, in, name, f)
			}
			if text = `{"generator": {` + text + `}`; path == "machine.seconds" {
				text = fmt.Sprintf(`{"generator": {"machine": {}}, "machine_seconds": %g}`, f)
			}
			_, err := decodeGenerator([]byte(text))
			require.Equal(t, good, err == nil, text)
		}
	}
	for text, ok := range map[string]bool{
		"": true, "{": false, `{"generator": {"cpu_seconds": NaN}}`: false, `{"generator": {"mallocs": -1}}`: false,
		`{"generator": {"max_rss_bytes": -1}}`: false, `{"generator": {"loops": -1}}`: false,
		`{"generator": {"machine": {"others_share": 0.5, "idle_share": 0.5}}}`: true,
		`{"generator": {"machine": {"others_share": 0.5, "idle_share": 0.6}}}`: false,
	} {
		_, err := decodeGenerator([]byte(text))
		require.Equal(t, ok, err == nil, text)
	}
}

// TestLogsCross with a worker's final report, if possible: NaN is an error when encoding, and an impossible figure is an error when decoding.
func TestLogsCross(t *testing.T) {
	speed, none := 7.5, math.NaN()
	log := &worker.Log{Log: localfile.Log{SyncUsed: "msync", Files: 2}, BytesPerSecond: &speed}
	e, err := encodeFinal(&worker.Final{Step: 1, Log: log}, nil)
	require.NoError(t, err)
	f, err := decodeFinal(e.GetFinal(), new(measure.Totals))
	require.NoError(t, err)
	require.Equal(t, log, f.Log)

	_, err = encodeFinal(&worker.Final{Log: &worker.Log{BytesPerSecond: &none}}, nil)
	require.Error(t, err)
	e, err = encodeFinal(&worker.Final{Step: 3, Log: &worker.Log{Log: localfile.Log{Files: -1}}}, nil)
	require.NoError(t, err)
	_, err = decodeFinal(e.GetFinal(), new(measure.Totals))
	require.ErrorContains(t, err, "step 3: log files: -1 of")

	counted := measure.NewTotals(0, 1)
	counted.Ack(driver.Put, measure.MaxAcks+1, 1)
	_, err = encodeFinal(&worker.Final{Totals: counted}, nil)
	require.ErrorContains(t, err, "256 acks")
	_, err = encodeSnapshot(&measure.Snapshot{Delta: *counted})
	require.ErrorContains(t, err, "256 acks")
}

// TestErrorsCross: a failure is an error at the other end, whatever its text, and a success is none.
func TestErrorsCross(t *testing.T) {
	require.NoError(t, errorOf(textOf(nil)))
	require.EqualError(t, errorOf(textOf(errors.New("why"))), "why")
	require.EqualError(t, errorOf(textOf(errors.New(""))), "unknown error")
}
