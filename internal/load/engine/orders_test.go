package engine

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Orders out of turn, or for sessions that the phase lacks, are refused.
func TestOrdersOutOfTurn(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 4\n iterations = 1\n}")
	ph := p.Phase("load")
	for name, tt := range map[string]struct {
		stage  stage
		before *worker.Step // of the group that is open
		step   worker.Step
		says   string // "" where it is taken
	}{
		"unassigned":           {stage: unassigned, step: worker.Step{Phase: "load", To: 4}, says: "no plan has been assigned"},
		"spent":                {stage: isSpent, step: worker.Step{Phase: "load", To: 4}, says: "could not be prepared"},
		"idle":                 {stage: isIdle, step: worker.Step{Phase: "load", To: 4}},
		"prepared again":       {stage: isReady, step: worker.Step{Phase: "load", To: 4}},
		"no such phase":        {stage: isIdle, step: worker.Step{Phase: "unload", To: 4}, says: `the plan has no phase "unload"`},
		"no sessions":          {stage: isIdle, step: worker.Step{Phase: "load", From: 2, To: 2}},
		"less than none":       {stage: isIdle, step: worker.Step{Phase: "load", From: 3, To: 2}, says: "for 3 to 2"},
		"from below":           {stage: isIdle, step: worker.Step{Phase: "load", From: -1, To: 2}, says: "for -1 to 2"},
		"beyond all":           {stage: isIdle, step: worker.Step{Phase: "load", From: 1, To: 5}, says: "has 4 sessions, and a step of it is for 1 to 5"},
		"the same again":       {stage: isIdle, before: &worker.Step{From: 1, To: 3}, step: worker.Step{Phase: "load", From: 1, To: 3}},
		"others at the front":  {stage: isIdle, before: &worker.Step{From: 0, To: 3}, step: worker.Step{Phase: "load", From: 1, To: 3}, says: "1 to 3 after 0 to 3"},
		"others at the end":    {stage: isIdle, before: &worker.Step{From: 1, To: 4}, step: worker.Step{Phase: "load", From: 1, To: 3}, says: "1 to 3 after 1 to 4"},
		"an impossible period": {stage: isIdle, step: worker.Step{Phase: "load", To: 4, Level: -1}, says: "an impossible schedule"},
	} {
		e := &Engine{plan: p, stage: tt.stage}
		if tt.before != nil {
			e.group = &group{plan: p, phase: ph, step: *tt.before}
		}
		err := e.checkOrder(tt.step)
		if tt.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tt.says, name)
	}
	other := &Engine{plan: p, stage: isIdle, group: &group{plan: p, phase: new(plan.Phase), step: worker.Step{From: 0, To: 9}}}
	require.NoError(t, other.checkOrder(worker.Step{Phase: "load", To: 4}), "after another phase")
}

// A schedule must be of possible numbers, and the schedule of a phase that has one must send something.
func TestSchedulesThatCannotBe(t *testing.T) {
	closed := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }").Phase("load")
	open := nullPlan(t, 1, "", "ops = { get = 1 }\nopen {\n rate = 10\n duration = \"1s\"\n sessions = 1\n}").Phase("load")
	good := pace.Shape{From: 5, Rate: 10, Ramp: time.Second, Duration: 2 * time.Second}
	for name, tt := range map[string]struct {
		change func(s *worker.Step)
		both   bool // whether it is refused of a closed phase, too
		is     bool
	}{
		"as it is":            {func(*worker.Step) {}, false, true},
		"no rate":             {func(s *worker.Step) { s.Shape.Rate, s.Shape.From = 0, 0 }, false, false},
		"a rate of 0":         {func(s *worker.Step) { s.Shape.Rate = 0 }, false, true},
		"from 0":              {func(s *worker.Step) { s.Shape.From = 0 }, false, true},
		"from the rate":       {func(s *worker.Step) { s.Shape.From = s.Shape.Rate }, false, true},
		"one a second":        {func(s *worker.Step) { s.Shape.From, s.Shape.Rate = 0, 1 }, false, true},
		"a nanosecond":        {func(s *worker.Step) { s.Shape.Ramp, s.Shape.Duration = 0, 1 }, false, true},
		"no duration":         {func(s *worker.Step) { s.Shape.Ramp, s.Shape.Duration = 0, 0 }, false, false},
		"nothing":             {func(s *worker.Step) { s.Shape = pace.Shape{} }, false, false},
		"nothing, to clear":   {func(s *worker.Step) { s.Shape, s.Kind = pace.Shape{}, worker.Clear }, false, true},
		"no ramp":             {func(s *worker.Step) { s.Shape.Ramp = 0 }, false, true},
		"all of it a ramp":    {func(s *worker.Step) { s.Shape.Ramp = s.Shape.Duration }, false, true},
		"a longer ramp":       {func(s *worker.Step) { s.Shape.Ramp = s.Shape.Duration + 1 }, true, false},
		"a ramp backwards":    {func(s *worker.Step) { s.Shape.Ramp = -1 }, true, false},
		"a rate below 0":      {func(s *worker.Step) { s.Shape.Rate = -1 }, true, false},
		"from below 0":        {func(s *worker.Step) { s.Shape.From = -1 }, true, false},
		"no number":           {func(s *worker.Step) { s.Shape.Rate = math.NaN() }, true, false},
		"from no number":      {func(s *worker.Step) { s.Shape.From = math.NaN() }, true, false},
		"without end":         {func(s *worker.Step) { s.Shape.Rate = math.Inf(1) }, true, false},
		"from without end":    {func(s *worker.Step) { s.Shape.From = math.Inf(1) }, true, false},
		"ten years":           {func(s *worker.Step) { s.Shape.Duration = 3650 * 24 * time.Hour }, false, true},
		"more than ten years": {func(s *worker.Step) { s.Shape.Duration = 3650*24*time.Hour + 1 }, true, false},
		"a level":             {func(s *worker.Step) { s.Level = 1 }, false, true},
		"a level below 0":     {func(s *worker.Step) { s.Level = -1 }, true, false},
	} {
		step := worker.Step{Kind: worker.Load, Shape: good}
		tt.change(&step)
		require.Equal(t, tt.is, checkShape(open, step) == nil, "%s: %v", name, checkShape(open, step))
		require.Equal(t, tt.is || !tt.both, checkShape(closed, step) == nil, "%s, closed: %v", name, checkShape(closed, step))
	}
	open.Open.Trace = new(plan.Trace)
	require.NoError(t, checkShape(open, worker.Step{Kind: worker.Load}), "a trace says itself when its ops are due")
}

// Loops are pinned to the CPUs in turn, or may all use any of those that they keep to, and are no more than these.
func TestWhereLoopsRun(t *testing.T) {
	e := New(Config{Keep: []int{2}})
	require.Equal(t, 1, e.cfg.Loops)
	for loop := range 3 {
		cpus, pinned := e.cpus(loop)
		require.Equal(t, []int{2}, cpus)
		require.False(t, pinned)
	}
	e.cfg.Pin = []int{4, 7, 9}
	for loop, want := range []int{4, 7, 9, 4, 7} {
		cpus, pinned := e.cpus(loop)
		require.Equal(t, []int{want}, cpus)
		require.True(t, pinned)
	}
}

// A loop watches the clock for longer before an op if it has a CPU to itself, and for as long as it is told if it is told.
func TestHowLongLoopsLook(t *testing.T) {
	for _, tt := range []struct {
		pin        []int
		spin, want time.Duration
	}{
		{nil, 0, DefaultSpin}, {[]int{0}, 0, PinnedSpin}, {[]int{0, 1}, 0, PinnedSpin}, {nil, 7, 7}, {[]int{0}, 7, 7}, {[]int{0}, -1, -1},
	} {
		require.Equal(t, tt.want, New(Config{Pin: tt.pin, Spin: tt.spin}).cfg.Spin, "%+v", tt)
	}
	require.Equal(t, [2]time.Duration{50 * time.Microsecond, 200 * time.Microsecond}, [2]time.Duration{DefaultSpin, PinnedSpin}, "as Config says")
	require.Equal(t, DefaultLoops(), New(Config{}).cfg.Loops)
	require.Equal(t, DefaultLoops(), New(Config{Loops: -1}).cfg.Loops)
	require.Equal(t, 1, New(Config{Loops: 1}).cfg.Loops)
	for processors, loops := range map[int]int{1: 1, 2: 1, 3: 2, 64: 63} {
		require.Equal(t, loops, loopsOf(processors))
	}
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"), "load", 0)
	for spin, want := range map[time.Duration]int64{-1: 0, 7: 7} {
		b.e.cfg.Spin = spin
		l, err := b.g.newLoop(b.e, 0)
		require.NoError(t, err)
		require.Equal(t, want, l.spin)
	}
}

// Servers are prepared once in a run, and again if that failed.
func TestServersArePreparedOnce(t *testing.T) {
	refused := errors.New("nobody is there")
	dials := 0
	x := &side{target: &plan.Target{Name: "t"}, driver: liner{prepared: new(atomic.Int64)}}
	require.NoError(t, x.locate([]string{"127.0.0.1:7001"}))
	var err error
	x.connect, err = sockets.NewConnector(func(context.Context, string, string) (net.Conn, error) { dials++; return nil, refused }, nil, nil)
	require.NoError(t, err)
	ready := map[string]bool{}
	for n := range 2 {
		require.ErrorIs(t, x.prepare(t.Context(), ready), refused)
		require.Equal(t, n+1, dials)
		require.False(t, ready["t"])
	}
	require.NoError(t, x.prepare(t.Context(), map[string]bool{"t": true}))
	require.Equal(t, 2, dials, "they are ready")
	x.driver = null.Driver{}
	require.NoError(t, x.prepare(t.Context(), ready))
	require.Equal(t, 2, dials, "there is nothing to make ready")
}

// A connection's far end is checked before anything is said on it: with the policy, and for each secret that is to go there.
func TestWhatMayGoWhere(t *testing.T) {
	config := struct{ User, Password driver.Secret }{driver.Secret{Name: "user"}, driver.Secret{Name: "password"}}
	refused := errors.New("not there")
	to := netip.MustParseAddrPort("127.0.0.1:7001")
	e := New(Config{})
	require.Nil(t, e.allowance(&plan.Target{Config: config}), "nothing bounds secrets")
	var asked []string
	e.cfg.Allow = func(secret string, at netip.AddrPort, _ string) error {
		require.Equal(t, to, at)
		if asked = append(asked, secret); secret == "password" {
			return refused
		}
		return nil
	}
	require.Nil(t, e.allowance(&plan.Target{Config: struct{ Depth int }{}}), "there is no secret")
	err := e.allowance(&plan.Target{Config: config})(to, "")
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, `secret "password": `)
	require.Equal(t, []string{"user", "password"}, asked)
	require.NoError(t, e.allowance(&plan.Target{Config: struct{ User driver.Secret }{config.User}})(to, ""))
	e.cfg.Allow = nil
	e.cfg.Policy = new(policy.Policy)
	require.ErrorContains(t, e.allowance(&plan.Target{Config: config})(to, ""), "127.0.0.1:7001", "the policy is asked of what has no secret, too")
	asked = nil
	e.cfg.Allow = func(string, netip.AddrPort, string) error { return refused }
	require.ErrorContains(t, e.allowance(&plan.Target{Config: config})(to, ""), "127.0.0.1:7001")
	require.Empty(t, asked, "the policy comes before secrets")
}

// Secrets are found wherever a driver's config has them.
func TestSecretsOfAConfig(t *testing.T) {
	secret := func(name string) driver.Secret { return driver.Secret{Name: name} }
	type inner struct{ Token driver.Secret }
	pointed := secret("pointed")
	require.Equal(t, []string{"plain", "in a list", "also", "in an array", "pointed", "in a struct", "in an interface"}, secretsOf(reflect.ValueOf(&struct {
		Name    string
		Plain   driver.Secret
		List    []driver.Secret
		Array   [1]inner
		Pointer *driver.Secret
		None    *driver.Secret
		Struct  inner
		Any     any
		hidden  driver.Secret
	}{
		"name", secret("plain"),
		[]driver.Secret{secret("in a list"), secret("also")},
		[1]inner{{secret("in an array")}},
		&pointed, nil,
		inner{secret("in a struct")},
		inner{secret("in an interface")},
		secret("hidden"),
	})))
}

// An engine takes one plan, whose bytes are those that the coordinator meant, and runs nothing that it has not prepared.
func TestAssignmentsOutOfTurn(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n iterations = 1\n}")
	canonical, err := p.Canonical()
	require.NoError(t, err)
	of := func(text []byte) worker.Assignment {
		return worker.Assignment{RunID: "r1", Plan: text, Digest: plan.Digest(canonical), Workers: 1}
	}
	run := func(e *Engine) error {
		_, err := e.Run(t.Context(), 0, func(*measure.Snapshot) (func() error, error) { return nil, errors.New("it runs") })
		return err
	}
	e := New(Config{Drivers: []driver.Driver{null.Driver{}}, Loops: 1, Logger: slog.New(slog.DiscardHandler), Spin: -1})
	defer e.Close()
	require.ErrorIs(t, run(e), errUnprepared)
	other := of(canonical[1:])
	other.Digest = plan.Digest(canonical[1:])
	err = e.Assign(t.Context(), other)
	require.ErrorContains(t, err, "plan of run r1: ")
	require.NotContains(t, err.Error(), "digest")
	other.Plan = canonical
	require.ErrorContains(t, e.Assign(t.Context(), other), "plan of run r1: digest is ")
	_, err = e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load))
	require.ErrorIs(t, err, errUnassigned)

	e.cfg.Pin = []int{1023}
	require.ErrorContains(t, e.Assign(t.Context(), of(canonical)), "run a thread on CPU 1023")
	e.cfg.Pin = nil
	require.NoError(t, e.Assign(t.Context(), of(canonical)))
	require.ErrorIs(t, e.Assign(t.Context(), of(canonical)), errAssigned)
	require.ErrorIs(t, run(e), errUnprepared)
	step := stepOf(p.Phase("load"), worker.Load)
	step.Phase = "unload"
	_, err = e.Prepare(t.Context(), step)
	require.ErrorContains(t, err, `the plan has no phase "unload"`)
	e.cfg.Drivers = nil
	_, err = e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load))
	require.ErrorContains(t, err, "is not in this build")
	_, err = e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load))
	require.ErrorIs(t, err, errSpent)
	require.ErrorIs(t, run(e), errUnprepared)
}
