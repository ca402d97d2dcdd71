package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// NewPhase makes and judges the result of phase ph of p. p must be valid: ph is one of its phases, and everything that ph names exists.
func NewPhase(p *plan.Plan, ph *plan.Phase, m Measured) *run.Phase {
	r := newLoad(p, ph, m)
	r.observe(p, ph, m.Observed, m.Origin)
	load := m.Load
	if len(m.Levels) > 0 {
		load = total(m.Levels)
	}
	r.recount(p, ph, &m, load)
	d := doubts(r.Reasons)
	r.judgeWitnesses(&d, true)
	r.judged(d)
	r.cause(p, ph, m)
	r.simulate(p, ph, &m)
	r.stages(ph, &m)
	r.Steps = append([]int{}, m.Steps...)
	return r.Phase
}

// newLoad makes the result of a phase, except for its observations.
func newLoad(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	switch {
	case len(m.Levels) == 0:
		if ph.Open != nil {
			m.Shape = pace.Shape(ph.Open.Shape())
		}
		return newStep(p, ph, m)
	case ph.Search != nil:
		return newSearch(p, ph, m)
	}
	return newStages(p, ph, m)
}

// newStep makes the result of a phase with one measured step, or of one step of a phase.
func newStep(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	r := figuresOf(p, ph, m)
	r.judged(newDoubts(r))
	return r
}

// figuresOf makes the result of newStep, but without a verdict.
func figuresOf(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	c := newCounts(p, ph, m)
	return newFigures(c, newRates(c))
}

// judged gives a result its verdict: that of the worst doubt.
func (p *phase) judged(d doubts) {
	p.Validity, p.Reasons = run.Valid, d
	for _, why := range d {
		p.Validity = p.Validity.And(why.Validity)
	}
}

// AddLevel adds the result of one step of phase ph of p, which has several. start is when it began, relative to the first. The totals in step must
// not change any more.
func (m *Measured) AddLevel(p *plan.Plan, ph *plan.Phase, step Measured, start time.Duration) {
	r := newStep(p, ph.As(plan.Shape(step.Shape)), step)
	if r.Closed() {
		r.achieved()
	}
	l := &Level{
		Level: run.Level{
			Rate: step.Shape.Rate, RateFrom: step.Shape.From, RampSeconds: step.Shape.Ramp.Seconds(), DurationSeconds: step.Shape.Duration.Seconds(),
			StartSeconds: start.Seconds(),
			OfferedRate:  r.OfferedRate, AchievedRate: r.AchievedRate, Validity: r.Validity, Reasons: r.Reasons,
			Busy: r.Generator.Busy, Op: r.Op, Scenario: r.Scenario,
		},
		phase: r, totals: step.Load, power: powerOf(r.AchievedRate, step.Load), aim: m.Aim,
	}
	switch {
	case r.Closed():
		l.outcome, l.Outcome = Closed, Closed.String()
	case ph.Search != nil:
		l.try(ph)
	}
	m.Levels = append(m.Levels, l)
}

// total merges the counts of all levels. It leaves out bins, which count from the start of a level.
func total(levels []*Level) *measure.Totals {
	t := &measure.Totals{}
	for _, l := range levels {
		t.Merge(l.totals.WithoutBins())
	}
	return t
}

// newStages makes the result of a phase of several stages: ledgers and latencies of all of them together, and no rates.
func newStages(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	m.Load = total(m.Levels)
	for _, l := range m.Levels {
		m.Generators = append(m.Generators, l.phase.Generator)
	}
	r := figuresOf(p, ph, m)
	r.Generator.Loops = m.Generators[0].Loops // loops of one stage, not of all
	d := doubts{}
	for i, l := range m.Levels {
		for _, why := range l.Reasons {
			at := fmt.Sprintf("levels.%d.", i)
			d.add(why.Code, why.Validity, append(below(at, &why), r.all()...), "stage %d, %s: %s", i+1, r.arriving(l.Rate), why.Text)
		}
		r.Load.DurationSeconds += l.DurationSeconds
		r.Load.RampSeconds += l.RampSeconds
	}
	r.levels(m.Levels)
	r.judged(d)
	return r
}

// stages adds the figures of each stage of sessions that the load has reached, over the time that it has spent there.
func (p *phase) stages(ph *plan.Phase, m *Measured) {
	if ph.Closed == nil {
		return
	}
	from, reached := int64(0), int64(0)
	for _, row := range m.Series {
		reached = int64(row.T * 1e9)
	}
	if !m.GoesOn && !m.cut() {
		reached = math.MaxInt64 // sessions may end in think time
	}
	for i, end := range ph.Closed.Ends() {
		to := min(end, reached)
		if from >= to {
			return
		}
		s, at := ph.Closed.Stages[i], fmt.Sprintf("levels.%d.", i)
		l := run.Level{
			Sessions: s.Sessions, RampSeconds: s.Ramp.Seconds(), DurationSeconds: s.Duration.Seconds(), StartSeconds: seconds(from),
			Validity: p.Validity, Reasons: p.Reasons, Op: map[string]*run.Op{}, Scenario: map[string]*run.Scenario{},
		}
		p.explain(at, p.rates.noOffered, "offered_rate")
		p.explain(at, p.rates.noAchieved, "achieved_rate")
		t := measure.NewTotals(m.Load.Origin, 0)
		t.Span.Session(t.Origin+from, t.Origin+to)
		b := builder{phase: p, totals: t, through: throughput{window: window{0, math.MaxInt64}, scale: 1 / seconds(to-from)}}
		for _, verb := range p.verbsOf(ph.Counted()) {
			name := p.words.Name(verb)
			at := at + "op." + name
			if p.Op[name] == nil {
				l.Op[name] = nil
				p.null(at, severalTargets, p.Nulls["op."+name])
				continue
			}
			o := &measure.Op{}
			if all := m.Load.Ops[verb]; all != nil {
				o = nth(all.Steps, i)
			}
			l.Op[name] = &run.Op{Figures: b.figures(at, o, o), Acks: []run.Latency{}}
			p.null(at, reason.NotCounted, "not counted by stage", ".bytes_out", ".bytes_in_rate", ".bytes_out_rate", ".keys", ".hit_ratio")
		}
		p.Levels = append(p.Levels, l)
		from = end
	}
}

// newSearch makes the result of a search: the figures are those of the highest rate that held, the counts those of all levels.
func newSearch(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	sum := boundsOf(ph).Sum(m.Tries(ph))
	var r *phase
	var d doubts
	if sum.Held >= 0 {
		held := m.Levels[sum.Held].phase
		best := *held.Phase
		best.Nulls, best.NullCodes = maps.Clone(best.Nulls), maps.Clone(best.NullCodes)
		r, d = &phase{words: held.words, Phase: &best}, slices.Clone(held.Reasons)
	} else {
		r, d = nothingConfirmed(p, ph, m)
	}
	m.Load = total(m.Levels)
	r.Seconds = seconds(m.Load.Span.Last - m.Load.Span.First)
	r.count(ph, &m)
	_, _, r.Load = shape(ph, pace.Shape{})
	r.levels(m.Levels)
	r.search(ph.Search, &m, sum)
	r.judgeSearch(&d, &m)
	r.judged(d)
	return r
}

// nothingConfirmed makes the result of a search without an answer. The generator's figures are those of the first level.
func nothingConfirmed(p *plan.Plan, ph *plan.Phase, m Measured) (r *phase, d doubts) {
	r = figuresOf(p, ph, Measured{Endpoints: m.Endpoints, Others: m.Others, Load: &measure.Totals{}})
	lowest := m.Levels[0]
	for _, l := range m.Levels {
		if lowest.outcome == Closed || l.outcome != Closed && l.Rate <= lowest.Rate {
			lowest = l
		}
	}
	r.Generator = lowest.phase.Generator
	for path := range r.Nulls {
		r.null(path, reason.NoRateHeld, "no rate was confirmed")
	}
	for path, why := range lowest.phase.Nulls { // keep those that do not depend on how ops ended
		if group, _, _ := strings.Cut(path, "."); slices.Contains([]string{"target", "dataset", "trace", "generator"}, group) {
			r.null(path, lowest.phase.NullCodes[path], why)
		}
	}
	if m.Ended == BelowFrom {
		d.add(reason.NoRateHeld, run.Invalid, []string{"search", "op"}, "no rate held: at %s, %s", r.arriving(lowest.Rate), lowest.Why)
	}
	return r, d
}
