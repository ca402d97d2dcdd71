package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/judge"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// reader is a run of two workers that is read back from the given records. It also returns how many records are left.
func reader(t *testing.T, records ...*keptRecord) (k *past, left *int) {
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
	n := len(records)
	k = &past{c: s.c, done: make([]bool, 2), pull: func() (*keptRecord, error, bool) {
		if n == 0 {
			return nil, nil, false
		}
		n--
		return records[len(records)-n-1], nil, true
	}}
	s.c.past = k
	return k, &n
}

// Records between two steps are read up to the next step, whatever they are; the first impossible one ends the reading.
func TestWhatIsKeptBetweenSteps(t *testing.T) {
	is := func(e entry) *keptRecord { return &keptRecord{entry: e} }
	next := is(entry{Step: &begun{Step: worker.Step{Phase: "p"}}})
	loss := func(i int) *keptRecord { return is(entry{Loss: &lossEntry{Worker: i, Is: worker.Loss{Worker: "b"}}}) }
	comes := func(i int) *keptRecord {
		return is(entry{Member: &arrival{Index: i, Phase: "p", Is: run.Worker{Name: "c"}}})
	}
	for name, c := range map[string]struct {
		records []*keptRecord
		left    int
		ahead   bool
		want    string
	}{
		"nothing":             {nil, 0, false, ""},
		"a step":              {[]*keptRecord{next, next}, 1, true, ""},
		"a flush":             {[]*keptRecord{is(entry{Flush: &flushed{Phase: "p"}}), next}, 1, true, ""},
		"nodes":               {[]*keptRecord{is(entry{Nodes: map[string][]string{"t": {"n"}}}), next, next}, 1, true, ""},
		"what is watched":     {[]*keptRecord{is(entry{Watched: map[string]string{"o": "a file"}}), next, next}, 1, true, ""},
		"a loss":              {[]*keptRecord{loss(1), next, next}, 1, true, ""},
		"a loss of nobody":    {[]*keptRecord{loss(2), next, next}, 2, false, "worker 2 of 2 is lost"},
		"one comes":           {[]*keptRecord{loss(1), comes(1), next, next}, 1, true, ""},
		"one comes for none":  {[]*keptRecord{comes(1), next, next}, 2, false, `worker "c" takes the place 1 of 2`},
		"an end":              {[]*keptRecord{is(entry{Stop: &stopped{Code: reason.User.Code}}), next, next}, 1, true, ""},
		"nothing more behind": {[]*keptRecord{loss(1), comes(1)}, 0, false, ""},
		"a snapshot":          {[]*keptRecord{{worker: "a"}, next}, 1, false, `a snapshot of worker "a" is of no step`},
		"an entry of nothing": {[]*keptRecord{is(entry{}), next}, 1, false, "an entry without its place"},
		"a last word":         {[]*keptRecord{is(entry{Final: &finalEntry{}}), next}, 1, false, "an entry without its place"},
	} {
		k, left := reader(t, c.records...)
		for range 2 { // the second time says the same
			err := k.settle()
			require.Equal(t, c.left, *left, name)
			require.Equal(t, c.ahead, k.ahead != nil, name)
			if c.want == "" {
				require.NoError(t, err, name)
				require.True(t, k.goesOn("p") || k.ahead.entry.Flush != nil, name)
			} else {
				require.EqualError(t, err, "what was kept is not what a coordinator keeps: "+c.want, name)
				require.False(t, k.goesOn("p"), name)
			}
		}
		require.Equal(t, c.ahead && name != "a flush" || c.want == "" && !c.ahead, k.goesOn("p"), name)
		require.Equal(t, c.want == "" && !c.ahead, k.goesOn("q"), "%s: another phase", name)
	}
	k, _ := reader(t, is(entry{Nodes: map[string][]string{"t": {"n"}}}), is(entry{Watched: map[string]string{"o": "a file"}}), loss(1), comes(1),
		is(entry{Stop: &stopped{Code: reason.StoppedByPlan, Text: "enough"}}))
	require.NoError(t, k.settle())
	require.Equal(t, map[string][]string{"t": {"n"}}, k.c.nodes)
	require.Equal(t, map[string]string{"o": "a file"}, k.watched)
	require.Equal(t, "c", k.c.Workers[1].Name)
	require.Equal(t, []bool{false, false}, k.c.lost)
	require.Equal(t, reason.Why{Code: reason.StoppedByPlan, Text: "enough"}, k.stopped)
	require.Equal(t, "enough", *k.c.stopped.Load())

	why := errors.New("why")
	k, _ = reader(t)
	k.pull = func() (*keptRecord, error, bool) { return nil, why, true }
	require.Equal(t, why, k.settle())
	require.Equal(t, why, k.err)
	k.pull = nil
	require.Equal(t, why, k.settle(), "the first is the one to tell")
}

// Requests are counted for every known endpoint, whether it comes from the plan, from started nodes or from workers; and, for each target that is a
// cluster, for nodes that join it later.
func TestRowsOfEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, found map[string][]string
		own          []string
		other        []string
		rows         int
	}{
		"of the plan":    {nil, nil, []string{"a"}, []string{"b", "c"}, 3},
		"started":        {map[string][]string{"t": {"x", "y"}}, nil, []string{"x", "y"}, []string{"b", "c"}, 4},
		"another's":      {map[string][]string{"u": {"x"}}, nil, []string{"a"}, []string{"x"}, 2},
		"found":          {nil, map[string][]string{"t": {"x", "y", "z"}}, []string{"x", "y", "z"}, []string{"b", "c"}, 6},
		"another found":  {nil, map[string][]string{"u": {"x", "y", "z"}}, []string{"a"}, []string{"x", "y", "z"}, 5},
		"both found":     {map[string][]string{"t": {"n"}}, map[string][]string{"t": {"x", "y"}, "u": {"z"}}, []string{"x", "y"}, []string{"z"}, 5},
		"found in place": {map[string][]string{"t": {"n"}}, map[string][]string{"t": {"x"}}, []string{"x"}, []string{"b", "c"}, 4},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
		s.c.Plan.Targets = append(s.c.Plan.Targets, &plan.Target{Name: "u", Endpoints: []string{"b", "c"}})
		s.ph.Scenarios = []plan.Scenario{{Steps: []plan.ScenarioStep{{Op: "put", Target: "u"}}}}
		require.Equal(t, []string{"t", "u"}, s.ph.Targets())
		s.c.nodes, s.found = c.nodes, c.found
		own, others := s.endpoints()
		require.Equal(t, c.own, own, name)
		require.Equal(t, map[string][]string{"u": c.other}, others, name)
		require.Equal(t, c.rows, s.rows(), name)
		s.begin(s.at)
		snap := func(endpoints int) *measure.Snapshot {
			delta := measure.NewTotals(int64(s.at), endpoints)
			return &measure.Snapshot{SeqFirst: 1, SeqLast: 1, From: int64(s.at), To: int64(s.at) + 1, Delta: *delta, Running: delta.Counters()}
		}
		require.ErrorContains(t, s.follows(0, snap(c.rows+1)), "snapshot 1 counts requests to more than", name)
		require.NoError(t, s.follows(0, snap(c.rows)), name)
	}
}

// Only a load has a warm-up, and of loads those with one level: levels have their own.
func TestWhichStepsHaveAWarmUp(t *testing.T) {
	for _, c := range []struct {
		kind  worker.StepKind
		load  string
		found bool
	}{
		{worker.Setup, "closed {\n sessions = 4\n iterations = 1\n}", false},
		{worker.Populate, "closed {\n sessions = 4\n iterations = 1\n}", false},
		{worker.Load, "closed {\n sessions = 4\n iterations = 1\n}", true},
		{worker.Load, "open {\n sessions = 4\n rate = 100\n duration = \"30s\"\n}", true},
		{worker.Load, "stages {\n sessions = 4\n stage {\n rate = 100\n duration = \"2s\"\n }\n}", false},
		{worker.Load, "search {\n sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }\n}", false},
	} {
		s := stepOf(t, c.load, 1)
		s.steps[0].Kind = c.kind
		p := activePhase{c: s.c, ph: s.ph}
		require.NoError(t, p.settle(s))
		require.Equal(t, c.found, p.m.WarmUp != run.WarmUp{}, "%s %s", c.kind, c.load)
	}
}

// A load that ended before its warm-up did has nothing after it, and says so.
func TestLoadsThatEndInTheirWarmUp(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 10\n duration = \"30s\"\n warmup = \"5s\"\n}", 1)
	s.history.after = int64(s.at)
	for i := range int64(20) { // of which nothing begins behind the warm-up
		joint := measure.Interval{From: int64(s.at) + i*1e9, To: int64(s.at) + (i+1)*1e9, Delta: measureOf(time.Millisecond, 1)}
		s.totals.Merge(joint.Delta)
		s.series.Add(time.Duration(joint.To-int64(s.at)).Seconds(), joint.Delta)
		if i == 0 {
			s.history.add(&joint)
		}
	}
	p := activePhase{c: s.c, ph: s.ph}
	require.NoError(t, p.settle(s))
	require.Nil(t, p.m.Settled)
	require.Equal(t, run.WarmUp{By: "none", Code: reason.CutShort, Reason: "the load ended before its warm-up did"}, p.m.WarmUp)

	s.history.err = errors.New("why")
	require.EqualError(t, p.settle(s), "leave the warm-up out: why")
}

// What a step has counted is the setup's, the load's, or that of one level, each with what belongs to it.
func TestWhereCountsAreEntered(t *testing.T) {
	why := "enough"
	enter := func(load string, kind worker.StepKind, change func(s *step)) judge.Measured {
		s := stepOf(t, load, 2)
		s.steps[0].Kind, s.steps[0].Seq = kind, 7
		s.unsure = []time.Duration{3, 4}
		s.unread = []string{"b"}
		s.unfinished.Requests = []measure.Requests{{Sent: 5}}
		if change != nil {
			change(s)
		}
		p := activePhase{c: s.c, ph: s.ph}
		p.take(s)
		return p.m
	}
	const closed = "closed {\n sessions = 4\n iterations = 1\n}"
	m := enter(closed, worker.Setup, nil)
	require.NotNil(t, m.Setup)
	require.Nil(t, m.Load)
	require.Empty(t, m.Steps)
	require.Zero(t, m.Apart)
	m = enter(closed, worker.Load, nil)
	require.Nil(t, m.Setup)
	require.NotNil(t, m.Load)
	require.Equal(t, []any{[]int{7}, 1.0, []string{"b"}, time.Duration(7), uint64(5), 0}, []any{m.Steps, m.Origin, m.Unread, m.Apart, m.Unfinished.Requests[0].Sent, len(m.Levels)})
	require.Len(t, m.Generators, 2)
	require.Len(t, m.Logs, 2)
	require.Empty(t, m.StoppedOn)
	for _, load := range []string{
		"stages {\n sessions = 4\n stage {\n rate = 100\n duration = \"2s\"\n }\n}",
		"search {\n sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }\n}",
	} {
		m = enter(load, worker.Load, nil)
		require.Len(t, m.Levels, 1)
		require.Equal(t, []any{[]int{7}, 1.0}, []any{m.Steps, m.Origin})
	}
	m = enter(closed, worker.Load, func(s *step) {
		s.c.stopped.Store(&why)
		s.ph.Stop = &plan.Stop{Errors: 3}
	})
	require.NotEmpty(t, m.StoppedOn)
}

// What becomes of workers and of their places is logged, with who and why.
func TestLossesAreLogged(t *testing.T) {
	var logs bytes.Buffer
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
	s.c.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	said := func(want ...string) {
		t.Helper()
		require.Equal(t, strings.Join(append(want, ""), "\n"), logs.String())
		logs.Reset()
	}
	require.NoError(t, s.c.lose(1, worker.Loss{Worker: "b", Why: "it is gone"}))
	require.NoError(t, s.c.lose(2, worker.Loss{Worker: "c", Why: "it is gone, too"}))
	said(`level=WARN msg="worker lost" worker=b why="it is gone"`, `level=WARN msg="worker lost" worker=c why="it is gone, too"`)
	s.c.ReplaceWithin = time.Second
	come := []worker.Member{{Name: "d", Worker: assigning{}}}
	s.c.Replace = func(context.Context) (worker.Member, error) {
		if len(come) == 0 {
			return worker.Member{}, errors.New("nobody is there")
		}
		m := come[0]
		come = nil
		return m, nil
	}
	require.NoError(t, s.c.replace(t.Context(), s.ph))
	said(`level=INFO msg="worker replaced" worker=b by=d phase=p`, `level=WARN msg="worker not replaced" worker=c phase=p why="nobody is there"`)
	require.Equal(t, []bool{false, false, true}, s.c.lost)
	s.c.journal = newJournal(&kept{})
	require.Nil(t, s.c.note(entryOf(0, &worker.Final{Generator: measure.Generator{Busy: math.NaN()}}, false)))
	said(`level=WARN msg="keep what the coordinator has done" err="json: unsupported value: NaN"`)
}

// assigning is a worker that takes any plan.
type assigning struct{ worker.Worker }

func (assigning) Assign(context.Context, worker.Assignment) error { return nil }

// A reader that stops early gets no more of the log, and the log's own error comes last.
func TestReadingALog(t *testing.T) {
	why := errors.New("why")
	from := Kept{Records: func(f func(worker, record []byte) error) error {
		for _, r := range []string{"1", "2"} {
			if err := f([]byte("w"), []byte(r)); err != nil {
				return fmt.Errorf("read: %w", err)
			}
		}
		if err := f(nil, []byte(`{"flush":{"phase":"p"}}`)); err != nil {
			return err
		}
		return why
	}}
	var read []string
	for r, err := range from.records {
		require.NoError(t, err)
		read = append(read, string(r.snapshot))
		break
	}
	require.Equal(t, []string{"1"}, read)
	read = nil
	for r, err := range from.records {
		if err != nil {
			require.Equal(t, why, err)
			require.Nil(t, r)
			read = append(read, "the end")
			continue
		}
		if r.worker == "" {
			require.Equal(t, "p", r.entry.Flush.Phase)
		} else {
			require.Equal(t, "w", r.worker)
			require.Equal(t, entry{}, r.entry)
		}
		read = append(read, string(r.snapshot))
	}
	require.Equal(t, []string{"1", "2", `{"flush":{"phase":"p"}}`, "the end"}, read)
}

// A step begins after the order to start; if that is the last record, it begins with it.
func TestWhenAKeptStepBegan(t *testing.T) {
	began := func(at time.Duration) *keptRecord { return &keptRecord{entry: entry{Began: &at}} }
	for name, c := range map[string]struct {
		records []*keptRecord
		want    time.Duration
		err     string
	}{
		"later":          {[]*keptRecord{began(6 * time.Second)}, 6 * time.Second, ""},
		"at once":        {[]*keptRecord{began(5 * time.Second)}, 5 * time.Second, ""},
		"before":         {[]*keptRecord{began(5*time.Second - 1)}, 0, "step 7 has no beginning"},
		"something else": {[]*keptRecord{{entry: entry{Flush: &flushed{}}}}, 0, "step 7 has no beginning"},
		"a snapshot":     {[]*keptRecord{{worker: "a"}}, 0, "step 7 has no beginning"},
		"nothing":        {nil, 5 * time.Second, ""},
	} {
		k, _ := reader(t, c.records...)
		at, err := k.began(&step{steps: []worker.Step{{Seq: 7}}}, 5*time.Second)
		require.Equal(t, c.want, at, name)
		if c.err == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.err, name)
		}
	}
	why := errors.New("why")
	k, _ := reader(t)
	k.pull = func() (*keptRecord, error, bool) { return nil, why, true }
	at, err := k.began(nil, 5*time.Second)
	require.Zero(t, at)
	require.Equal(t, why, err)
}

// That no worker is left is an error, unless a replacement has come or the run is to end anyway.
func TestNobodyIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		lost  []bool
		drain bool
		err   string
	}{
		"nobody":             {[]bool{true, true}, false, "no worker is left, and none has come to take a place within 1s"},
		"nobody, at the end": {[]bool{true, true}, true, ""},
		"one":                {[]bool{false, true}, false, ""},
		"all":                {[]bool{false, false}, false, ""},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
		s.c.lost, s.c.ReplaceWithin = c.lost, time.Second
		s.c.Replace = func(context.Context) (worker.Member, error) { return worker.Member{}, errors.New("nobody is there") }
		if c.drain {
			drain := make(chan struct{})
			close(drain)
			s.c.Drain = drain
		}
		err := s.c.replace(t.Context(), s.ph)
		if c.err == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, c.err, name)
			require.ErrorIs(t, err, errNobody)
		}
	}
}

// What workers have said about servers is kept for the phase's targets, by endpoint.
func TestWhatIsKeptOfAnswers(t *testing.T) {
	s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 2)
	s.found = map[string][]string{"t": {"x"}}
	require.Equal(t, facts{Found: s.found, Parts: make([]partFacts, 2)}, s.answers())
	s.ready = []worker.Ready{
		{Ops: 3, Servers: map[string]map[string]map[string]string{"t": {"a": {"version": "1"}, "b": {"version": "1"}}, "u": {"c": {}}}},
		{Ops: 4, Remote: true, Offset: 5, Uncertainty: 6, Servers: map[string]map[string]map[string]string{"t": {"b": {"version": "2"}}}},
	}
	require.Equal(t, facts{
		Found: s.found, Parts: []partFacts{{Ops: 3}, {Ops: 4, Remote: true, Offset: 5, Uncertainty: 6}},
		Servers: map[string]map[string]map[string]string{"t": {"a": {"version": "1"}, "b": {"version": "1"}}}, // as the first worker was told
	}, s.answers())
}

// Workers agree on the nodes of a cluster if all that have sessions found the same ones in the same order.
func TestNodesThatAllHaveFound(t *testing.T) {
	for name, c := range map[string]struct {
		found [][]string
		want  map[string][]string
		err   string
	}{
		"all":           {[][]string{{"x", "y"}, {"x", "y"}, {"x", "y"}}, map[string][]string{"t": {"x", "y"}}, ""},
		"one":           {[][]string{nil, {"x"}, nil}, map[string][]string{"t": {"x"}}, ""},
		"none":          {[][]string{nil, nil, nil}, nil, ""},
		"another order": {[][]string{{"x", "y"}, {"x", "y"}, {"y", "x"}}, nil, "workers a and c found different nodes in the cluster, x, y and y, x: run again when no node joins or leaves"},
		"one more":      {[][]string{nil, {"x"}, {"x", "y"}}, nil, "workers b and c found different nodes in the cluster, x and x, y: run again when no node joins or leaves"},
	} {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 3)
		for i, nodes := range c.found {
			s.ready[i].Nodes = map[string][]string{"t": nodes, "u": {"another's"}}
		}
		require.NoError(t, s.agreeOnNodes(), "%s: it is no cluster", name)
		require.Nil(t, s.found, name)
		s.c.Plan.Targets[0].Placement = plan.Slots
		err := s.agreeOnNodes()
		require.Equal(t, c.want, s.found, name)
		if c.err == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, c.err, name)
		}
	}
}

// A search whose records end was stopped, wherever it was.
func TestASearchThatWasCutShort(t *testing.T) {
	s := stepOf(t, "search {\n sessions = 4\n step_duration = \"1s\"\n slo { response_p99 = \"5ms\" }\n}", 2)
	s.c.past = &past{c: s.c, pull: func() (*keptRecord, error, bool) { return nil, nil, false }}
	p := activePhase{c: s.c, ph: s.ph, route: newRoute(s.ph), watch: &watch{}}
	began, err := p.all(t.Context())
	require.False(t, began)
	require.ErrorIs(t, err, errEnded)
	require.Equal(t, judge.Stopped, p.m.Ended)
}
