package judge

import (
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// servers is facts by target and endpoint: see [worker.Ready].
type servers = map[string]map[string]map[string]string

// Measured is what a phase left behind, merged over all workers.
type Measured struct {
	Endpoints  []string            // of the phase's own target
	Others     map[string][]string // of the other targets that its scenarios name, by name; Totals.Requests has the order of both
	Servers    servers             // what each endpoint of each target said of itself, by target and endpoint
	Load       *measure.Totals     // of the measured step; for populate and clear, of that step; nil if there are Levels
	Shape      pace.Shape          // of the measured step, if its ops were due by a schedule; for an open phase, the plan's
	Setup      *measure.Totals     // nil if the phase has no setup
	Series     []run.Row           // of a Series
	Generators []measure.Generator // of the measured step, one for each worker
	Logs       []*worker.Log       // of workers that loaded log files
	Unread     []string            // workers that were lost before they reported on their log files
	Aborted    bool                // the step was told to end early
	GoesOn     bool                // or it is judged before its end
	StoppedOn  string              // the plan's words that ended it early; "": none did
	Failed     string              // the worker's failure that ended it early; "": none did
	WarmUp     run.WarmUp          // from FindWarmUp; the zero value: none
	Settled    *measure.Totals     // of the measured step after WarmUp; nil if that is the whole step
	Losses     []worker.Loss       // of workers lost in this phase or before it, which leave part of its load missing
	Levels     []*Level            // of stages or of a search, in order
	Ended      End                 // why a search tried no more rates
	Origin     float64             // when the load began, in seconds on the run clock
	Apart      time.Duration       // by how much the clocks of two loading workers may differ

	Earlier []Earlier // phases that ran before, in order

	Over     *Series            // what Series is of, if the phase has events
	Happened map[int]*Happening // events that the coordinator carried out, by number in the phase

	DrawsAs int // the repetition whose random draws the load made, from 1

	Steps []int // run-wide numbers of the steps that loaded: the measured one, or one per level

	Observed map[string]*Observation // by name; the plan's observations that are missing here were not made

	// Unfinished is what lost workers' last snapshots had in flight: neither side of a ledger will learn how it ended.
	Unfinished measure.Counters
}

// Earlier is a phase that ran before.
type Earlier struct {
	Name   string
	Origin float64 // when its load began, in seconds on the run clock
	Events map[string]*run.Event
}

// cut says whether the step may have ended early on at least one worker.
func (m *Measured) cut() bool {
	failed := func(l *worker.Log) bool { return l != nil && l.Failure != "" }
	return m.Aborted || len(m.Losses) > 0 || slices.ContainsFunc(m.Logs, failed)
}

// counts is what a step left behind, and the part of it that rates and latencies are of. It is the first of the package's stages.
type counts struct {
	Measured
	plan     *plan.Plan
	phase    *plan.Phase
	settled  *measure.Totals // what latencies are computed from
	window   window          // the plateau, after the warm-up
	noWindow string          // why there is none, or ""
}

func newCounts(p *plan.Plan, ph *plan.Phase, m Measured) *counts {
	c := &counts{Measured: m, plan: p, phase: ph, settled: m.Load}
	c.window, c.noWindow = plateau(ph, m.Shape, m.Load, m.cut())
	if m.Settled == nil {
		return c
	}
	c.settled = withInFlight(m.Settled, m.Load)
	if c.window.from = max(c.window.from, int64(m.WarmUp.Seconds*1e9)); c.noWindow == "" && c.window.to <= c.window.from {
		c.noWindow = "no plateau: the warm-up did not end before it"
	}
	return c
}

// even returns how many seconds the plateau lasted; not above 0 if there is none.
func (c *counts) even() float64 { return seconds(c.window.to - c.window.from) }

// withInFlight returns the totals of a load's last part with those of its ops in flight at the end that the whole load had: the part counts the change.
func withInFlight(part, whole *measure.Totals) *measure.Totals {
	t := *part
	of := func(o, all *measure.Op) *measure.Op {
		late := *o
		late.InFlight = all.InFlight
		return &late
	}
	for v, o := range t.Ops {
		if all := whole.Ops[v]; o != nil && all != nil {
			t.Ops[v] = of(o, all)
		}
	}
	t.Scenarios = slices.Clone(t.Scenarios)
	for i, o := range t.Scenarios {
		late := of(o, whole.Scenarios[i])
		late.Steps = slices.Clone(late.Steps)
		for j, step := range late.Steps {
			late.Steps[j] = of(step, stepOf(whole.Scenarios[i], j))
		}
		t.Scenarios[i] = late
	}
	return &t
}

// slots returns the ops that each occupied a slot: those of the verbs, or scenarios if the phase has any.
func slots(ph *plan.Phase, t *measure.Totals) []*measure.Op {
	if len(ph.Scenarios) > 0 {
		return t.Scenarios
	}
	return t.Ops[:]
}

// turns counts the turns that began in a window, which must cover only whole bins: see aligned.
func turns(ops []*measure.Op, w window) (n uint64) {
	for _, o := range ops {
		if o == nil {
			continue
		}
		for _, bins := range o.Turns {
			some, _ := bins.Between(w.from, w.to)
			n += some
		}
	}
	return n
}

// binShift returns the width of the widest bins of turns and of their time, as a power of two, and where the last bin that is not empty begins.
func binShift(ops []*measure.Op, t *measure.Totals) (shift uint8, last int64) {
	of := func(b *measure.Bins) {
		if b.Total() == 0 {
			return
		}
		shift = max(shift, b.Shift())
		for i := range b.N {
			if b.N[i] > 0 {
				last = max(last, int64(i)<<b.Shift())
			}
		}
	}
	of(t.Time)
	for _, o := range ops {
		if o == nil {
			continue
		}
		for _, bins := range o.Turns {
			of(bins)
		}
	}
	return shift, last >> shift << shift
}

// aligned returns the part of the window that whole bins of a width cover.
func (w window) aligned(shift uint8) window {
	width := int64(1) << shift
	return window{(max(w.from, 0) + width - 1) &^ (width - 1), w.to &^ (width - 1)}
}

// stepOf returns what was counted of a scenario's i-th step.
func stepOf(t *measure.Op, i int) *measure.Op {
	if i < len(t.Steps) {
		return t.Steps[i]
	}
	return &measure.Op{}
}
