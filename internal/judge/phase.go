package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/search"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Measured is what a phase left behind, merged over all workers.
type Measured struct {
	Endpoints  []string        // of the target, in the order of Totals.Requests
	Load       *measure.Totals // of the measured step; for populate and clear, of that step; nil where Levels say it
	Shape      pace.Shape      // of the measured step, when its ops were due by a schedule; that of an open phase is the plan's
	Setup      *measure.Totals // nil when the phase has none
	Series     []run.Row       // of a Series
	Generators []run.Generator // of the measured step, one for each worker
	Logs       []*run.Log      // of workers that loaded log files
	Unread     []string        // workers that were lost before they had said what became of theirs
	Aborted    bool            // the step was asked to end early
	Braked     string          // the words of the plan that ended it early; "": none did
	WarmUp     run.WarmUp      // made by FindWarmUp; the zero value: there is none
	Settled    *measure.Totals // of the measured step after WarmUp; nil when that is all of it
	Losses     []run.Loss      // of workers, in this phase or before it, for which a part of its load is missing
	Levels     []*Level        // of stages and of a search, in their order
	Ended      search.End      // why a search tried no more rates
	Origin     float64         // when the load began, in seconds on the run clock
	Apart      time.Duration   // by how much the clocks of two workers that loaded may differ

	Observed map[string]*Observation // by name; those of the plan that are not here were not made

	// Unfinished is what the last snapshots of lost workers say was in flight: neither side of a ledger will hear how it ended.
	Unfinished measure.Counters
}

// cut says whether the step may have ended early, on some worker at least.
func (m *Measured) cut() bool {
	failed := func(l *run.Log) bool { return l != nil && l.Failure != "" }
	return m.Aborted || len(m.Losses) > 0 || slices.ContainsFunc(m.Logs, failed)
}

// NewPhase makes the result of phase ph of p and judges it. p is valid: ph is one of its phases, and what ph names is there.
func NewPhase(p *plan.Plan, ph *plan.Phase, m Measured) *run.Phase {
	r := newLoad(p, ph, m)
	r.observe(p, m.Observed, m.Origin)
	return r.Phase
}

// newLoad makes the result of a phase without what was observed.
func newLoad(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	switch {
	case len(m.Levels) == 0:
		if ph.Open != nil {
			m.Shape = workload.Shape(ph.Open)
		}
		return newStep(p, ph, m)
	case ph.Search != nil:
		return newSearch(p, ph, m)
	}
	return newStages(p, ph, m)
}

// phase is a result in the making: beside the figures, what it takes to judge them.
type phase struct {
	*run.Phase

	lags   hist.Hist // of all ops, ns, and
	waited hist.Hist // of those among them that had no room when they were due

	even    float64 // seconds of the plateau; 0: there is none
	plateau float64 // seconds of it that the achieved rate may be of
	chance  float64 // ops/s by which offered and achieved may differ though nothing fell short: a standard deviation
}

// newStep makes the result of a phase that has one measured step, or of one step of a phase.
func newStep(p *plan.Plan, ph *plan.Phase, m Measured) *phase {
	r := &phase{Phase: &run.Phase{
		Target:    newTarget(p, ph, m.Endpoints),
		Dataset:   newDataset(p, ph),
		Generator: mergeGenerators(m.Generators),
		Levels:    []run.Level{},
		Nulls:     map[string]string{},
	}}
	r.Kind, r.Model, r.Load = shape(ph, m.Shape)
	if r.Target.Replication == nil {
		r.Nulls["target.replication"] = "each key lives on one endpoint"
	}
	if r.Dataset.File == nil {
		r.Nulls["dataset.file"] = "keys are made by a format"
	}
	if r.Dataset.ValuesFile == nil {
		r.Nulls["dataset.values_file"] = "values are made"
	}
	if t := ph.Trace(); t != nil {
		r.Trace = newReplayed(t)
	} else {
		r.Nulls["trace"] = "the phase replays none"
	}
	r.Nulls["search"] = "the phase is no search"
	if ph.Search != nil {
		r.Nulls["search"] = "no rate was tried"
	}

	b := builder{phase: r, totals: m.Load, settled: m.Load}
	b.window, b.noWindow = plateau(ph, m.Shape, m.Load, m.cut())
	b.warmUp(m)
	r.even = seconds(b.window.to - b.window.from)
	r.Seconds = seconds(m.Load.Span.Last - m.Load.Span.First)
	b.openRates(ph, m.Shape)
	b.rater(ph, m)
	r.Op = b.ops("op.", verbsOf(ph.Ops))
	r.Scenario = b.scenarios(ph)
	r.count(ph, m)
	b.generator()
	b.log(ph, m)
	b.queue()
	b.steady(m.Series)
	for _, o := range m.Load.Ops {
		if o != nil {
			r.lags.Merge(&o.Lag)
		}
	}
	r.waited.Merge(&m.Load.Waited)
	r.judge(p, ph, m)
	return r
}

// count takes over what is counted of a phase as a whole.
func (p *phase) count(ph *plan.Phase, m Measured) {
	t := m.Load
	p.Requests = requests(t, m.Endpoints, verbsOf(ph.Ops))
	p.Digest = fmt.Sprintf("%016x", t.Digest)
	p.Errors = errorTexts(&t.Errors)
	p.Reconnects, p.LateReplies, p.Foreign = t.Reconnects, t.LateReplies, t.Foreign
	p.Stalls, p.MaxStallSeconds = t.Stalls, seconds(t.MaxStall)
	p.Series = append([]run.Row{}, m.Series...)
	if slices.ContainsFunc(p.Series, func(row run.Row) bool { return row.Response.P99 == nil }) {
		p.Nulls["series"] = "no op ended ok or miss in that second, or fewer than 10 beyond that quantile; or ops failed, which are slower than any that did not"
	}
	if m.Setup == nil {
		p.Nulls["setup"] = "the phase has no setup"
		return
	}
	delete(p.Nulls, "setup")
	s := builder{phase: p, totals: m.Setup, settled: m.Setup, through: throughput{why: "setup is untimed"}}
	p.Setup = &run.Ledgers{
		Op:       s.ops("setup.op.", verbsOf(ph.Setup)),
		Requests: requests(m.Setup, m.Endpoints, verbsOf(ph.Setup)),
	}
}

// builder turns the totals of a step into figures, and keeps the reason for each that cannot be had.
type builder struct {
	phase    *phase
	totals   *measure.Totals
	settled  *measure.Totals // what latencies are made of
	window   window          // of rates
	noWindow string          // why there is none, or ""
	through  throughput      // makes rates of counts
}

// ops makes an Op for each verb; at is the path they will stand under, with a dot at its end.
func (b *builder) ops(at string, verbs []driver.Verb) map[string]*run.Op {
	ops := map[string]*run.Op{}
	for v, t := range b.totals.Ops {
		verb := driver.Verb(v)
		planned := slices.Contains(verbs, verb)
		if t == nil && !planned {
			continue
		}
		if t == nil {
			t = &measure.Op{}
		}
		late := b.settled.Ops[v]
		if late == nil {
			late = &measure.Op{}
		}
		ops[verb.String()] = b.op(at+verb.String(), verb, t, late)
	}
	return ops
}

// scenarios makes a scenario for each of the phase.
func (b *builder) scenarios(ph *plan.Phase) map[string]*run.Scenario {
	all := map[string]*run.Scenario{}
	of := func(t *measure.Totals, i int) *measure.Op {
		if i < len(t.Scenarios) {
			return t.Scenarios[i]
		}
		return &measure.Op{}
	}
	for i, s := range ph.Scenarios {
		at, t := "scenario."+s.Name, of(b.totals, i)
		one := &run.Scenario{Figures: b.figures(at, t, of(b.settled, i)), Steps: []string{}}
		for _, step := range s.Steps {
			one.Steps = append(one.Steps, step.Op)
		}
		all[s.Name] = one
	}
	return all
}

// sent says whether requests with a verb have left this program, over connections or by a driver's client.
func (b *builder) sent(verb driver.Verb) bool {
	if strings.Contains(b.phase.Generator.Executor, plan.Thread) {
		return false // they have not: entries that are written count, and nothing else
	}
	for i := int(verb); i < len(b.totals.Requests); i += driver.NumVerbs {
		if b.totals.Requests[i].Sent > 0 {
			return true
		}
	}
	return false
}

// op takes the ledger from t, and latencies from what of it was settled.
func (b *builder) op(at string, verb driver.Verb, t, settled *measure.Op) *run.Op {
	r := &run.Op{Figures: b.figures(at, t, settled), BytesIn: t.In, Acks: []run.Latency{}}
	if t.Out == 0 && b.sent(verb) { // whatever a request is, it is more than no byte
		b.null(at+".bytes_out", "its driver's client does not say how many bytes it sends")
	} else {
		r.BytesOut = &t.Out
	}
	b.keys(at+".keys", r, t)
	b.hitRatio(at, verb, r)
	for k := 1; k <= len(settled.Acks); k++ {
		good := quantity.Count(uint64(k), "good answer")
		all := settled.AckAll(k)
		r.Acks = append(r.Acks, b.times(fmt.Sprintf("%s.acks.%d", at, k-1), &all, "no op got "+good, "never got "+good))
	}
	return r
}

// figures takes the ledger from t, and latencies from what of it was settled.
func (b *builder) figures(at string, t, settled *measure.Op) run.Figures {
	f := run.Figures{Ledger: newLedger(t.Ledger()), Sent: t.Due - t.Outcomes[driver.Shed], Causes: newCauses(t)}
	b.rates(at, &f, t)
	b.latencies(at, &f, settled)
	return f
}

func newLedger(l measure.Ledger) run.Ledger {
	n := l.Outcomes
	return run.Ledger{
		Due: l.Due, OK: n[driver.OK], Miss: n[driver.Miss], Conflict: n[driver.Conflict], QuorumFailed: n[driver.QuorumFailed],
		Timeout: n[driver.Timeout], Error: n[driver.Error], Shed: n[driver.Shed], InFlight: l.InFlight,
	}
}

func newCauses(t *measure.Op) run.Causes {
	n := t.Causes
	return run.Causes{Reply: n[op.Replied], Timeout: n[op.RequestTimeout], Lost: n[op.Lost], Refused: n[op.Refused], OpTimeout: n[op.OpTimeout]}
}

func (b *builder) rates(at string, r *run.Figures, t *measure.Op) {
	if wall := b.totals.Span.Last - b.totals.Span.First; wall > 0 {
		r.RateWall = number(float64(r.OK) / seconds(wall))
	} else {
		b.null(at+".rate_wall", unbounded(b.totals))
	}
	if r.Rate, r.Answered = b.perSecond(&t.Bins, &t.Turns); r.Rate != nil {
		r.RatePerMinute = number(60 * *r.Rate)
		return
	}
	for _, name := range []string{".rate", ".answered", ".rate_per_minute"} {
		b.null(at+name, b.through.why)
	}
}

// keys takes over the ledger of keys; that of the ops where each has one.
func (b *builder) keys(at string, r *run.Op, t *measure.Op) {
	l, bins, turns := t.Ledger(), &t.Bins, &t.Turns
	if t.Keys.Due > 0 {
		l, bins, turns = t.Keys.Ledger, &t.Keys.Bins, &t.Keys.Turns
	}
	r.Keys = run.KeyLedger{Ledger: newLedger(l)}
	if wall := b.totals.Span.Last - b.totals.Span.First; wall > 0 {
		r.Keys.RateWall = number(float64(r.Keys.OK) / seconds(wall))
	} else {
		b.null(at+".rate_wall", unbounded(b.totals))
	}
	if r.Keys.Rate, r.Keys.Answered = b.perSecond(bins, turns); r.Keys.Rate == nil {
		b.null(at+".rate", b.through.why)
		b.null(at+".answered", b.through.why)
	}
}

func (b *builder) hitRatio(at string, verb driver.Verb, r *run.Op) {
	switch answered := r.Keys.OK + r.Keys.Miss; {
	case verb != driver.Get && verb != driver.Read:
		b.null(at+".hit_ratio", "only a get or a read hits or misses")
	case answered == 0:
		b.null(at+".hit_ratio", "no "+verb.String()+" was answered")
	default:
		r.HitRatio = number(float64(r.Keys.OK) / float64(answered))
	}
}

func (b *builder) null(path, why string) { b.phase.Nulls[path] = why }

// endpointName names the i-th endpoint that requests are counted for. Behind all others are the nodes that joined a cluster in mid-phase.
func endpointName(endpoints []string, i int) string {
	if i < len(endpoints) {
		return endpoints[i]
	}
	return "joined later"
}

// requests lists the request ledgers of the verbs, and of any other that was sent, by endpoint.
func requests(t *measure.Totals, endpoints []string, verbs []driver.Verb) []run.Requests {
	rows := []run.Requests{}
	for i, r := range t.Requests {
		e, verb := i/driver.NumVerbs, driver.Verb(i%driver.NumVerbs)
		if r == (measure.Requests{}) && (!slices.Contains(verbs, verb) || e >= len(endpoints)) {
			continue
		}
		rows = append(rows, run.Requests{
			Endpoint: endpointName(endpoints, e),
			Verb:     verb.String(),
			Sent:     r.Sent,
			Answered: r.Answered,
			Moved:    r.Moved,
			Ask:      r.Ask,
			Timeout:  r.Timeout,
			Error:    r.Error,
			Refused:  r.Refused,
			InFlight: r.InFlight,
		})
	}
	return rows
}

func number(f float64) *float64 { return &f }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
