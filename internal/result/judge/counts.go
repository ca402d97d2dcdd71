package judge

import (
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// serverFacts holds facts by target and endpoint: see [worker.Ready].
type serverFacts = map[string]map[string]map[string]string

// Measured is everything that was counted and observed in a phase, merged over all workers.
type Measured struct {
	Endpoints  []string            // of the phase's own target
	Others     map[string][]string // of the other targets that its scenarios name, by name; Totals.Requests has the order of both
	Servers    serverFacts         // facts that each endpoint reported about itself
	Load       *measure.Totals     // counts of the measured step, or of the populate or clear; nil if there are Levels
	Shape      pace.Shape          // the measured step's schedule, if it had one; for an open phase, the plan's
	Setup      *measure.Totals     // nil if the phase has no setup
	Series     []run.Row           // rows of a Series
	Generators []measure.Generator // one for each worker, for the measured step
	Logs       []*worker.Log       // one for each worker that loaded log files
	Unread     []string            // workers that were lost before they reported on their log files
	Aborted    bool                // the step was told to end early
	GoesOn     bool                // the step goes on: it is judged before its end
	StoppedOn  string              // the plan's words that ended the step early, or ""
	Failed     string              // the failure of a worker that ended the step early, or ""
	WarmUp     run.WarmUp          // from FindWarmUp; the zero value if there is none
	Settled    *measure.Totals     // counts of the measured step after WarmUp; nil if that is the whole step
	Losses     []worker.Loss       // of workers lost in this phase or before it, which leave part of its load missing
	Levels     []*Level            // the levels of stages or of a search, in order
	Ended      End                 // why a search tried no more rates
	Aim        Aim                 // of the level of a search that comes next
	Origin     float64             // when the load began, in seconds on the run clock
	Apart      time.Duration       // by how much the clocks of two loading workers may differ

	Earlier []Earlier // phases that ran before, in order

	Over     *Series            // the data behind Series, if the phase has events
	Happened map[int]*Happening // events that the coordinator carried out, by number in the phase

	DrawsAs int // the repetition whose random draws the load made, from 1

	Steps []int // run-wide numbers of the steps that loaded: the measured one, or one per level

	Observed map[string]*Observation // by name; an observation of the plan that is missing here was not made

	// Unfinished counts the ops and requests that were in flight in the last snapshots of lost workers. How they ended is unknown.
	Unfinished measure.Counters
}

// Earlier is a phase that ran before.
type Earlier struct {
	Name   string
	Origin float64 // when its load began, in seconds on the run clock
	Away   float64 // for how long its connections were away, in seconds
	Events map[string]*run.Event

	Unanswered uint64 // requests that servers may still carry out
}

// cut says whether the step may have ended early on at least one worker.
func (m *Measured) cut() bool {
	return m.Aborted || len(m.Losses) > 0 || slices.ContainsFunc(m.Logs, hasFailed)
}

func hasFailed(l *worker.Log) bool { return l != nil && l.Failure != "" }

// counts holds a step's counts, and the part of the step that rates and latencies are computed from. It is the first of the package's stages.
type counts struct {
	Measured
	plan     *plan.Plan
	phase    *plan.Phase
	settled  *measure.Totals // what latencies are computed from
	window   window          // the plateau, after the warm-up
	noWindow string          // why there is no plateau, or ""
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

// even returns how many seconds the plateau lasted; 0 or less if there is none.
func (c *counts) even() float64 { return seconds(c.window.to - c.window.from) }

// withInFlight returns the totals of a load's last part, with the whole load's number of ops in flight at the end. The part itself counts only the
// change.
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
			late.Steps[j] = of(step, nth(whole.Scenarios[i].Steps, j))
		}
		t.Scenarios[i] = late
	}
	return &t
}

// slots returns the counts of what occupied slots: ops by verb, or scenarios if the phase has any.
func slots(ph *plan.Phase, t *measure.Totals) []*measure.Op {
	if len(ph.Scenarios) > 0 {
		return present(t.Scenarios)
	}
	return present(t.Ops[:])
}

// present returns the counts that there are.
func present(ops []*measure.Op) []*measure.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o *measure.Op) bool { return o == nil })
}

// turns counts the turns that began in a window, which must cover only whole bins: see aligned.
func turns(ops []*measure.Op, w window) (n uint64) {
	for _, o := range ops {
		for _, bins := range o.Turns {
			some, _ := bins.Between(w.from, w.to)
			n += some
		}
	}
	return n
}

// binShift returns the width, as a power of two, of the widest bins of turns and of their time, and where the last non-empty bin begins.
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

// nth returns the counts of the i-th scenario, or of a scenario's i-th step.
func nth(all []*measure.Op, i int) *measure.Op {
	if i < len(all) {
		return all[i]
	}
	return &measure.Op{}
}
