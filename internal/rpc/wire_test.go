package rpc

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	pb "github.com/loadgen/loadgen/internal/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/run"
)

// Each of these tests breaks one clause of a message at a time, by as little as can be, and takes what just holds.

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

// An assignment holds no more than a coordinator of ours would send, and nothing that a terminal or a log would stumble over.
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
		"setup":               {func(m *pb.Step) { m.Kind = string(run.Setup) }, ""},
		"populate":            {func(m *pb.Step) { m.Kind = string(run.Populate) }, ""},
		"clear":               {func(m *pb.Step) { m.Kind = string(run.Clear) }, ""},
		"no sessions":         {func(m *pb.Step) { m.From, m.To = 7, 7 }, ""},
		"most sessions":       {func(m *pb.Step) { m.To = maxSessions }, ""},
		"highest rates":       {func(m *pb.Step) { m.Rate, m.RateFrom = maxRate, maxRate }, ""},
		"a ramp all the time": {func(m *pb.Step) { m.RampNs = m.DurationNs }, ""},
		"the longest":         {func(m *pb.Step) { m.DurationNs = int64(maxRunTime) }, ""},
		"the last level":      {func(m *pb.Step) { m.Level = maxLevels }, ""},
		"another kind":        {func(m *pb.Step) { m.Kind = "walk" }, `unknown kind "walk"`},
		"sessions backwards":  {func(m *pb.Step) { m.From, m.To = 8, 7 }, "is for sessions 8 to 7"},
		"too many sessions":   {func(m *pb.Step) { m.To = maxSessions + 1 }, "is for sessions 0 to"},
		"a negative rate":     {func(m *pb.Step) { m.Rate = -1 }, "cannot be"},
		"too high a rate":     {func(m *pb.Step) { m.Rate = maxRate + 1 }, "cannot be"},
		"no number":           {func(m *pb.Step) { m.Rate = math.NaN() }, "cannot be"},
		"from a negative one": {func(m *pb.Step) { m.RateFrom = -1 }, "cannot be"},
		"from no number":      {func(m *pb.Step) { m.RateFrom = math.NaN() }, "cannot be"},
		"from too high a one": {func(m *pb.Step) { m.RateFrom = maxRate + 1 }, "cannot be"},
		"a negative ramp":     {func(m *pb.Step) { m.RampNs = -1 }, "cannot be"},
		"too long a ramp":     {func(m *pb.Step) { m.RampNs = m.DurationNs + 1 }, "cannot be"},
		"a negative duration": {func(m *pb.Step) { m.DurationNs = -1 }, "cannot be"},
		"too long":            {func(m *pb.Step) { m.DurationNs = int64(maxRunTime) + 1 }, "cannot be"},
		"too high a level":    {func(m *pb.Step) { m.Level = maxLevels + 1 }, "cannot be"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &pb.Step{Kind: string(run.Load), To: 10, Rate: 100, RateFrom: 10, DurationNs: int64(time.Second)}
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

func TestGeneratorIsChecked(t *testing.T) {
	const most = float64(maxRunTime/time.Second) * 1024
	half, above := 0.5, math.Nextafter(1, 2)
	for name, c := range map[string]struct {
		m  *pb.Generator
		ok bool
	}{
		"none":                      {nil, true},
		"nothing":                   {&pb.Generator{}, true},
		"as much as can be":         {&pb.Generator{CpuSeconds: most, ProductiveSeconds: most, GcPauseMaxSeconds: most, SchedLatencyP99Seconds: most, Busy: 1, RunQueueWait: &half}, true},
		"processor time":            {&pb.Generator{CpuSeconds: -1}, false},
		"productive time":           {&pb.Generator{ProductiveSeconds: math.NaN()}, false},
		"pause":                     {&pb.Generator{GcPauseMaxSeconds: most * 2}, false},
		"scheduling latency":        {&pb.Generator{SchedLatencyP99Seconds: math.Inf(1)}, false},
		"busier than all the time":  {&pb.Generator{Busy: above}, false},
		"negative memory":           {&pb.Generator{MaxRssBytes: -1}, false},
		"waiting more than always":  {&pb.Generator{RunQueueWait: &above}, false},
		"throttled":                 {&pb.Generator{Throttled: &pb.Throttled{Seconds: -1}}, false},
		"interrupted":               {&pb.Generator{Interrupted: &pb.Interrupted{Seconds: -1}}, false},
		"interrupted at most":       {&pb.Generator{Interrupted: &pb.Interrupted{MaxSeconds: -1}}, false},
		"others":                    {&pb.Generator{Interrupted: &pb.Interrupted{OthersSeconds: -1}}, false},
		"a machine":                 {&pb.Generator{Machine: &pb.Machine{OthersShare: 0.5, IdleShare: 0.5, Seconds: most}}, true},
		"fewer than no others":      {&pb.Generator{Machine: &pb.Machine{OthersShare: -1}}, false},
		"less than never idle":      {&pb.Generator{Machine: &pb.Machine{IdleShare: -1}}, false},
		"others more than always":   {&pb.Generator{Machine: &pb.Machine{OthersShare: above}}, false},
		"idle more than always":     {&pb.Generator{Machine: &pb.Machine{IdleShare: above}}, false},
		"more than all the time":    {&pb.Generator{Machine: &pb.Machine{OthersShare: 0.5, IdleShare: 0.6}}, false},
		"negative processor time":   {&pb.Generator{Machine: &pb.Machine{Seconds: -1}}, false},
		"bad before its machine":    {&pb.Generator{Busy: 2, Machine: &pb.Machine{}}, false},
		"bad first, then good":      {&pb.Generator{Busy: 2, RunQueueWait: &half, Throttled: &pb.Throttled{}, Interrupted: &pb.Interrupted{}}, false},
		"throttled and interrupted": {&pb.Generator{Throttled: &pb.Throttled{Seconds: 1}, Interrupted: &pb.Interrupted{Seconds: 1}}, true},
	} {
		_, ok := decodeGenerator(c.m)
		require.Equal(t, c.ok, ok, name)
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

// TestBytesBehindAreRefused of a snapshot, of totals and of a log, and what contradicts itself in them.
func TestBytesBehindAreRefused(t *testing.T) {
	totals, err := new(measure.Totals).AppendBinary(nil)
	require.NoError(t, err)
	snapshot, err := (&measure.Snapshot{SeqFirst: 1, SeqLast: 1}).AppendBinary(nil)
	require.NoError(t, err)
	into := new(measure.Snapshot)
	require.NoError(t, decodeSnapshot(into, snapshot))
	require.ErrorContains(t, decodeSnapshot(into, append(snapshot, 0)), "1 bytes behind it")
	require.Error(t, decodeSnapshot(into, snapshot[:1]))

	_, err = decodeFinal(&pb.Final{Totals: totals})
	require.NoError(t, err)
	_, err = decodeFinal(&pb.Final{Totals: append(totals, 0)})
	require.ErrorContains(t, err, "1 bytes behind its totals")
	_, err = decodeFinal(&pb.Final{Totals: totals[:1]})
	require.Error(t, err)
	_, err = decodeFinal(&pb.Final{Totals: totals, Generator: &pb.Generator{Busy: 2}})
	require.ErrorContains(t, err, "figures that cannot be")
	_, err = decodeFinal(&pb.Final{Totals: totals, Log: []byte("{")})
	require.ErrorContains(t, err, "log files")
}
