package rpc

import (
	"encoding/json"
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
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Each of these tests breaks one rule for a message at a time, by as little as possible, and accepts what is just valid.

// envelope has facts in it.
func envelope(t testing.TB, kind string, facts any) *pb.Envelope {
	t.Helper()
	e, err := sealed(kind, facts, nil)
	require.NoError(t, err)
	return e
}

func TestAssignmentIsChecked(t *testing.T) {
	for _, c := range []struct {
		index, workers int
		ok             bool
	}{{0, 1, true}, {maxWorkers - 1, maxWorkers, true}, {0, 0, false}, {1, 1, false}, {2, 1, false}, {-1, 1, false}, {0, maxWorkers + 1, false}} {
		a, _, err := decodeAssignment(envelope(t, kindAssign, worker.Assignment{Index: c.index, Workers: c.workers}))
		if c.ok {
			require.NoError(t, err)
			require.Equal(t, c.index, a.Index)
			continue
		}
		require.ErrorContains(t, err, "assignment to worker")
	}
}

// An assignment holds nothing that our coordinator would not send, and nothing that would upset a terminal or a log.
func TestAssignmentIsBounded(t *testing.T) {
	good := func() *worker.Assignment {
		return &worker.Assignment{RunID: "r", Digest: "d", Workers: 1, Nodes: map[string][]string{"t": {"127.0.0.1:1"}}}
	}
	_, _, err := decodeAssignment(envelope(t, kindAssign, good()))
	require.NoError(t, err)
	for name, change := range map[string]func(m *worker.Assignment){
		"a run of two lines":     func(m *worker.Assignment) { m.RunID = "a\nb" },
		"a long run":             func(m *worker.Assignment) { m.RunID = strings.Repeat("r", 1<<20) },
		"a digest that turns":    func(m *worker.Assignment) { m.Digest = "\u202e" },
		"a target of two lines":  func(m *worker.Assignment) { m.Nodes["a\nb"] = nil },
		"an endpoint that turns": func(m *worker.Assignment) { m.Nodes["t"][0] = "\u202e1:1" },
		"no repetition":          func(m *worker.Assignment) { m.DrawsAs = -1 },
		"many endpoints":         func(m *worker.Assignment) { m.Nodes["t"] = make([]string, maxServers+1) },
		"many targets": func(m *worker.Assignment) {
			for i := range maxServers + 1 {
				m.Nodes[fmt.Sprint(i)] = nil
			}
		},
	} {
		m := good()
		change(m)
		_, _, err := decodeAssignment(envelope(t, kindAssign, m))
		require.ErrorContains(t, err, "assignment", name)
		require.Equal(t, line(err.Error()), err.Error(), name)
	}
}

func TestStepIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *worker.Step)
		want   string
	}{
		"as it should be":     {func(*worker.Step) {}, ""},
		"setup":               {func(m *worker.Step) { m.Kind = worker.Setup }, ""},
		"populate":            {func(m *worker.Step) { m.Kind = worker.Populate }, ""},
		"clear":               {func(m *worker.Step) { m.Kind = worker.Clear }, ""},
		"no sessions":         {func(m *worker.Step) { m.From, m.To = 7, 7 }, ""},
		"most sessions":       {func(m *worker.Step) { m.To = maxSessions }, ""},
		"highest rates":       {func(m *worker.Step) { m.Shape.Rate, m.Shape.From = maxRate, maxRate }, ""},
		"a ramp all the time": {func(m *worker.Step) { m.Shape.Ramp = m.Shape.Duration }, ""},
		"the longest":         {func(m *worker.Step) { m.Shape.Duration = maxRunTime }, ""},
		"the last level":      {func(m *worker.Step) { m.Level = maxLevels }, ""},
		"another kind":        {func(m *worker.Step) { m.Kind = "walk" }, `unknown kind "walk"`},
		"sessions backwards":  {func(m *worker.Step) { m.From, m.To = 8, 7 }, "is for sessions 8 to 7"},
		"before the first":    {func(m *worker.Step) { m.From = -1 }, "is for sessions -1 to"},
		"no step":             {func(m *worker.Step) { m.Seq = -1 }, "step -1 is for"},
		"no level":            {func(m *worker.Step) { m.Level = -1 }, "impossible"},
		"too many sessions":   {func(m *worker.Step) { m.To = maxSessions + 1 }, "is for sessions 0 to"},
		"a negative rate":     {func(m *worker.Step) { m.Shape.Rate = -1 }, "impossible"},
		"too high a rate":     {func(m *worker.Step) { m.Shape.Rate = maxRate + 1 }, "impossible"},
		"from a negative one": {func(m *worker.Step) { m.Shape.From = -1 }, "impossible"},
		"from too high a one": {func(m *worker.Step) { m.Shape.From = maxRate + 1 }, "impossible"},
		"a negative ramp":     {func(m *worker.Step) { m.Shape.Ramp = -1 }, "impossible"},
		"too long a ramp":     {func(m *worker.Step) { m.Shape.Ramp = m.Shape.Duration + 1 }, "impossible"},
		"a negative duration": {func(m *worker.Step) { m.Shape.Duration = -1 }, "impossible"},
		"too long":            {func(m *worker.Step) { m.Shape.Duration = maxRunTime + 1 }, "impossible"},
		"too high a level":    {func(m *worker.Step) { m.Level = maxLevels + 1 }, "impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &worker.Step{Kind: worker.Load, To: 10, Shape: pace.Shape{Rate: 100, From: 10, Duration: time.Second}}
			c.change(m)
			_, err := decodeStep(envelope(t, kindPrepare, m))
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
		m  worker.Ready
		ok bool
	}{
		"nothing":              {worker.Ready{}, true},
		"as much as can be":    {worker.Ready{Uncertainty: time.Minute, RTT: time.Minute, Sessions: maxSessions}, true},
		"negative uncertainty": {worker.Ready{Uncertainty: -1}, false},
		"too uncertain":        {worker.Ready{Uncertainty: time.Minute + 1}, false},
		"negative round trip":  {worker.Ready{RTT: -1}, false},
		"too long a one":       {worker.Ready{RTT: time.Minute + 1}, false},
		"too many sessions":    {worker.Ready{Sessions: maxSessions + 1}, false},
		"negative sessions":    {worker.Ready{Sessions: -1}, false},
		"negative connections": {worker.Ready{Connections: -1}, false},
		"negative loops":       {worker.Ready{Loops: -1}, false},
	} {
		_, err := decodeReady(envelope(t, kindReady, c.m))
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
	facts := func(n int) map[string]string {
		f := map[string]string{}
		for i := range n {
			f[fmt.Sprint(i)] = "x"
		}
		return f
	}
	type endpoints = map[string]map[string]string
	servers := func(n int) endpoints {
		all := endpoints{}
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
	for name, of := range map[string]func(more int) worker.Ready{
		"facts": func(more int) worker.Ready {
			return worker.Ready{Servers: map[string]map[string]map[string]string{"t": {"a": facts(maxFacts + more)}}}
		},
		"servers": func(more int) worker.Ready {
			return worker.Ready{Servers: map[string]map[string]map[string]string{"t": servers(maxServers / 2), "u": servers(maxServers/2 + more)}}
		},
		"nodes": func(more int) worker.Ready {
			return worker.Ready{Nodes: map[string][]string{"t": nodes(maxServers / 2), "u": nodes(maxServers/2 + more)}}
		},
		"targets": func(more int) worker.Ready {
			all := map[string][]string{}
			for i := range maxServers + more {
				all[fmt.Sprint(i)] = nil
			}
			return worker.Ready{Nodes: all}
		},
	} {
		_, err := decodeReady(envelope(t, kindReady, of(0)))
		require.NoError(t, err, name)
		_, err = decodeReady(envelope(t, kindReady, of(1)))
		require.ErrorContains(t, err, "are the most", name)
	}

	assignment := &worker.Assignment{Workers: 1, RunID: strings.Repeat("r", maxLine), Nodes: map[string][]string{"0": nodes(maxServers)}}
	for i := range maxServers - 1 {
		assignment.Nodes[fmt.Sprint(i+1)] = nil
	}
	_, _, err := decodeAssignment(envelope(t, kindAssign, assignment))
	require.NoError(t, err)
	assignment.RunID += "r"
	_, _, err = decodeAssignment(envelope(t, kindAssign, assignment))
	require.ErrorContains(t, err, "not a line of up to")
}

// TestGeneratorIsChecked sets one figure after another to what is impossible, among others that are good, and to what is just possible.
func TestGeneratorIsChecked(t *testing.T) {
	decoded := func(text string) (measure.Generator, error) {
		var whole measure.WholeGenerator
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			return measure.Generator{}, err
		}
		return decodeGenerator(&whole)
	}
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
			_, err := decoded(text)
			require.Equal(t, good, err == nil, text)
		}
	}
	for text, ok := range map[string]bool{
		"{}": true, `{"generator": {"cpu_seconds": NaN}}`: false, `{"generator": {"mallocs": -1}}`: false,
		`{"generator": {"max_rss_bytes": -1}}`: false, `{"generator": {"loops": -1}}`: false,
		`{"generator": {"machine": {"others_share": 0.5, "idle_share": 0.5}}}`: true,
		`{"generator": {"machine": {"others_share": 0.5, "idle_share": 0.6}}}`: false,
	} {
		_, err := decoded(text)
		require.Equal(t, ok, err == nil, text)
	}
}

// TestLogsCross with a worker's final report, if possible: NaN is an error when encoding, and an impossible figure is an error when decoding.
func TestLogsCross(t *testing.T) {
	speed, none := 7.5, math.NaN()
	log := &worker.Log{Log: localfile.Log{SyncUsed: "msync", Files: 2}, BytesPerSecond: &speed}
	e, err := encodeFinal(&worker.Final{Step: 1, Log: log})
	require.NoError(t, err)
	f, err := decodeFinal(e, new(measure.Totals))
	require.NoError(t, err)
	require.Equal(t, log, f.Log)

	_, err = encodeFinal(&worker.Final{Log: &worker.Log{BytesPerSecond: &none}})
	require.Error(t, err)
	e, err = encodeFinal(&worker.Final{Step: 3, Log: &worker.Log{Log: localfile.Log{Files: -1}}})
	require.NoError(t, err)
	_, err = decodeFinal(e, new(measure.Totals))
	require.ErrorContains(t, err, "step 3: log files: -1 of")

	counted := measure.NewTotals(0, 1)
	counted.Ack(driver.Put, measure.MaxAcks+1, 1)
	_, err = encodeFinal(&worker.Final{Totals: counted})
	require.ErrorContains(t, err, "256 acks")
	_, err = encodeSnapshot(&measure.Snapshot{Delta: *counted})
	require.ErrorContains(t, err, "256 acks")
}

// TestErrorsCross: a failure is an error at the other end, whatever its text, and a success is none.
func TestErrorsCross(t *testing.T) {
	require.NoError(t, errorOf(""))
	require.EqualError(t, errorOf(textOf(errors.New("why"))), "why")
	require.EqualError(t, errorOf(textOf(errors.New(""))), "unknown error")
}
