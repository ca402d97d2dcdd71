package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// phase is a result being made: the figures of a phase with one measured step, or of one step of a phase.
type phase struct {
	*run.Phase
	counts *counts
	rates  rates

	words     driver.Words // the plan's
	quantiles []string     // the ones that the plan names

	lags   hist.Hist // of all ops, ns
	waited hist.Hist // lag of those that found no free slot when they were due

	recounts []*recount // by target whose servers were asked what they counted
}

// newFigures makes the figures of counts and rates, with a reason for each that is missing.
func newFigures(c *counts, rates rates) *phase {
	p, ph, m := c.plan, c.phase, &c.Measured
	r := &phase{counts: c, rates: rates, words: p.Words(), quantiles: p.QuantileNames(), Phase: &run.Phase{
		Target:    newTarget(p.Target(ph.Target), m.Endpoints),
		Others:    []run.Target{},
		Dataset:   newDataset(p, ph),
		Generator: mergeGenerators(m.Generators),
		Levels:    []run.Level{},
		Nulls:     map[string]string{},
		NullCodes: map[string]reason.Code{},
	}}
	for _, name := range ph.Targets()[1:] {
		r.Others = append(r.Others, newTarget(p.Target(name), m.Others[name]))
	}
	for _, name := range ph.Targets() {
		if t := p.Target(name); t.TLS != nil && t.TLS.Insecure {
			r.Notes = append(r.Notes, "target "+name+": certificates were not verified: another server may have answered")
		}
	}
	for _, name := range ph.Datasets() {
		if of, _ := p.Texts(ph, name); of > 0 && of < driver.LongText {
			r.Notes = append(r.Notes, fmt.Sprintf("values of dataset %s repeat %s of text: what compresses or deduplicates more at once looks too good; a compressibility avoids it", name, quantity.Blocks(int(of))))
		}
	}
	if c := ph.Closed; c != nil && len(c.Stages) > 0 {
		r.Notes = append(r.Notes, "sessions came and went, "+quantity.Count(len(c.Stages), "stage")+": rates are of the time in which all were there")
	}
	if c := ph.Chain(); c != nil && ph.Open != nil && !ph.Trace().Even && !c.Spread && c.Together > 1 {
		r.Notes = append(r.Notes, fmt.Sprintf("up to %d chains of the trace have the same time, and were due at once: spread = true makes them due one after another", c.Together))
	}
	r.Kind, r.Model, r.Load = shape(ph, m.Shape)
	if r.Target.Replication == nil {
		r.null("target.replication", reason.NotApplicable, "each key lives on one endpoint")
	}
	if r.Dataset.File == nil {
		r.null("dataset.file", reason.NotApplicable, "keys are made by a format")
	}
	if r.Dataset.ValuesFile == nil {
		r.null("dataset.values_file", reason.NotApplicable, "values are made")
	}
	if t := ph.Trace(); t != nil {
		r.Trace = newReplayed(t)
	} else {
		r.null("trace", reason.NotApplicable, "the phase replays no trace")
	}
	r.null("search", reason.NotApplicable, "the phase is not a search")
	if ph.Search != nil {
		r.null("search", reason.SearchEnded, "no rate was tried")
	}

	r.Ended = m.ended(ph, planned(p, ph))
	r.WarmUp = m.WarmUp
	if m.WarmUp.By == "" {
		r.WarmUp = run.WarmUp{By: "none", Code: reason.NotLookedFor, Reason: "not looked for"}
	}
	r.Seconds = seconds(m.Load.Span.Last - m.Load.Span.First)
	if r.OfferedRate, r.AchievedRate = rates.offered, rates.achieved; r.OfferedRate == nil {
		r.explain("offered_rate", rates.noOffered)
	}
	if r.AchievedRate == nil {
		r.explain("achieved_rate", rates.noAchieved)
	}
	b := builder{phase: r, totals: m.Load, settled: c.settled, through: rates.through, growth: ph.Growth, kinds: len(ph.Ops), apart: apart(ph)}
	if n := len(ph.Scenarios); n > 0 {
		b.kinds, b.scenic = n, true
	}
	r.Op = b.ops("op.", r.verbsOf(ph.Counted()))
	r.Scenario = b.scenarios(ph)
	r.Total = b.total()
	b.connections(m)
	r.count(ph, m)
	r.generator()
	r.log(ph, m)
	r.queue()
	r.steady()
	r.events(ph, m)
	for _, o := range present(m.Load.Ops[:]) {
		r.lags.Merge(&o.Lag)
	}
	r.waited.Merge(&m.Load.Waited)
	return r
}

// count copies the counts of the phase as a whole.
func (p *phase) count(ph *plan.Phase, m *Measured) {
	t := m.Load
	p.Requests = p.requests(t, p.asked(ph))
	p.away(t)
	p.cache(ph, &t.Cache)
	p.verify(ph, m)
	p.staleness(ph, m)
	p.Digest = fmt.Sprintf("%016x", t.Digest)
	p.Errors = errorTexts(&t.Errors)
	p.Reconnects, p.LateReplies, p.Foreign = t.Reconnects, t.LateReplies, t.Foreign
	p.Misplaced, p.AnotherRun = t.Misplaced, t.AnotherRun
	p.Stalls, p.MaxStallSeconds = t.Stalls, seconds(t.MaxStall)
	p.Series = append([]run.Row{}, m.Series...)
	if p.Finer = nil; len(m.Levels) == 0 { // a search has the finer rows of its best level
		p.finer(t, len(m.Series))
	}
	if slices.ContainsFunc(p.Series, func(row run.Row) bool { return row.Response.P99 == nil }) {
		p.null("series", reason.TooFew, "no op ended ok or miss in that second, or fewer than 10 lie beyond that quantile; or ops failed, which count as slower than any that did not")
	}
	if m.Setup == nil {
		p.null("setup", reason.NotApplicable, "the phase has no setup")
		return
	}
	p.known("setup")
	s := builder{phase: p, totals: m.Setup, settled: m.Setup, through: throughput{why: reason.Why{Code: reason.NotApplicable, Text: "setup is untimed"}}}
	setup := p.verbsOf(ph.Setup)
	p.Setup = &run.Ledgers{
		Op:       s.ops("setup.op.", setup),
		Requests: p.requests(m.Setup, map[string][]driver.Verb{ph.Target: setup}),
	}
}

// builder turns the totals of a step into figures, and records a reason for each that is missing.
type builder struct {
	*phase
	totals  *measure.Totals
	settled *measure.Totals // what latencies are computed from
	through throughput      // turns counts into rates
	growth  *plan.Growth    // nil if latency is not counted by ordinal
	kinds   int             // number of kinds of turns in the phase
	scenic  bool            // turns are scenarios, not ops
	apart   []string        // ops that go to several targets
}

// ops makes an Op for each verb; at is their path, with a trailing dot. The Op is nil if its verb goes to several targets, since figures over all of
// them would describe none.
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
		name := b.phase.words.Name(verb)
		if slices.Contains(b.apart, name) {
			b.null(at+name, severalTargets, "several targets: see its steps")
			ops[name] = nil
			continue
		}
		ops[name] = b.op(at+name, verb, t, late)
	}
	return ops
}

// total makes the figures of all ops together. It is nil if they went to several targets.
func (b *builder) total() *run.Figures {
	const at = "total"
	if len(b.phase.Others) > 0 {
		b.null(at, severalTargets, "several targets: see each op, or its steps")
		return nil
	}
	f := b.figures(at, b.totals.Together(), b.settled.Together())
	return &f
}

// scenarios makes a result for each scenario of the phase.
func (b *builder) scenarios(ph *plan.Phase) map[string]*run.Scenario {
	all := map[string]*run.Scenario{}
	for i, s := range ph.Scenarios {
		at, t, late := "scenario."+s.Name, nth(b.totals.Scenarios, i), nth(b.settled.Scenarios, i)
		one := &run.Scenario{Figures: b.figures(at, t, late), Steps: []string{}, StepOrder: s.StepNames(), Step: map[string]*run.Step{}}
		for j, step := range s.Steps {
			name := one.StepOrder[j]
			one.Steps = append(one.Steps, slices.Repeat([]string{step.Op}, step.Repeat())...)
			one.Step[name] = &run.Step{
				Figures: b.figures(at+".step."+name, nth(t.Steps, j), nth(late.Steps, j)),
				Op:      step.Op, Target: step.TargetIn(ph), Dataset: step.DatasetIn(ph), Times: step.Repeat(),
			}
		}
		all[s.Name] = one
	}
	return all
}

// sent says whether requests with a verb were sent, over loadgen's connections or through a driver's client.
func (b *builder) sent(verb driver.Verb) bool {
	if b.phase.Generator.Executor == plan.Thread {
		return false // entries of log files are written, but no requests are sent
	}
	for i := int(verb); i < len(b.totals.Requests); i += driver.NumVerbs {
		if b.totals.Requests[i].Sent > 0 {
			return true
		}
	}
	return false
}

// op takes the ledger from t and the latencies from settled.
func (b *builder) op(at string, verb driver.Verb, t, settled *measure.Op) *run.Op {
	r := &run.Op{Figures: b.figures(at, t, settled), BytesIn: t.In, Acks: []run.Latency{}}
	if t.Out == 0 && b.sent(verb) { // every request has at least one byte
		b.null(at+".bytes_out", reason.NotCounted, "its driver's client does not say how many bytes it sends")
	} else {
		r.BytesOut = &t.Out
	}
	b.volume(at, r, t)
	b.keys(at+".keys", verb, r, t)
	b.hitRatio(at, verb, r)
	for k := 1; k <= len(settled.Acks); k++ {
		good := quantity.Count(uint64(k), "good answer")
		all := settled.AckAll(k)
		r.Acks = append(r.Acks, b.times(fmt.Sprintf("%s.acks.%d", at, k-1), &all, "no op got "+good, "never got "+good))
	}
	if write, sync := settled.SplitAll(); sync.Count() > 0 {
		r.Write, r.Sync = new(b.times(at+".write", &write, "", "failed")), new(b.times(at+".sync", &sync, "", "failed"))
	}
	for i, name := range b.counts.plan.Checks(b.counts.phase, b.phase.words.Name(verb)) {
		if r.Checks == nil {
			r.Checks = map[string]run.Check{}
		}
		check := run.Check{}
		if i < len(t.Checks) {
			check.Failed = t.Checks[i]
		}
		r.Checks[name] = check
	}
	for i := range settled.Kinds {
		name, k := op.KindName(uint8(i+1)), &settled.Kinds[i]
		if b.counts.phase.Chain() != nil && i+1 < int(op.KindWhole) {
			continue
		}
		path, none := at+".kind."+name, "no "+b.words.Name(verb)+" ended so"
		r.AddKind(name, b.latency(path+".response", &k.Response, none), b.latency(path+".service", &k.Service, none))
	}
	return r
}

// figures takes the ledger from t and the latencies from settled.
func (b *builder) figures(at string, t, settled *measure.Op) run.Figures {
	n := t.Causes
	f := run.Figures{
		Ledger: newLedger(t.Ledger()), Sent: t.Due - t.Outcomes[driver.Shed],
		Causes: run.Causes{Reply: n[op.Replied], Timeout: n[op.RequestTimeout], Lost: n[op.Lost], Refused: n[op.Refused], OpTimeout: n[op.OpTimeout]},
	}
	b.rates(at, &f, t)
	b.latencies(at, &f, settled)
	b.grow(at, &f, t)
	return f
}

func newLedger(l measure.Ledger) run.Ledger {
	n := l.Outcomes
	return run.Ledger{
		Due: l.Due, OK: n[driver.OK], Miss: n[driver.Miss], Conflict: n[driver.Conflict], QuorumFailed: n[driver.QuorumFailed],
		Timeout: n[driver.Timeout], Error: n[driver.Error], Shed: n[driver.Shed], InFlight: l.InFlight,
	}
}

func (b *builder) rates(at string, r *run.Figures, t *measure.Op) {
	if wall := b.totals.Span.Last - b.totals.Span.First; wall > 0 {
		r.RateWall = number(float64(r.OK) / seconds(wall))
		r.RatePeak = number(max(*r.RateWall, peak(t.Bins[driver.OK], b.totals)))
	} else {
		b.explain(at, unbounded(b.totals), ".rate_wall", ".rate_peak")
	}
	if r.Rate, r.Answered = b.perSecond(&t.Bins, &t.Turns); r.Rate != nil {
		r.RatePerMinute = number(60 * *r.Rate)
		return
	}
	b.explain(at, b.through.why, ".rate", ".answered", ".rate_per_minute")
}

// volume turns the bytes of all ops into bytes per second on the plateau.
func (b *builder) volume(at string, r *run.Op, t *measure.Op) {
	ended := r.Due - r.Shed - uint64(r.InFlight)
	if b.through.why.Text != "" || ended == 0 {
		b.explain(at, cmp.Or(b.through.why, reason.Why{Code: reason.NoOps, Text: "no op ended"}), ".bytes_in_rate", ".bytes_out_rate")
		return
	}
	share := 0.0 // of all that ended, per second
	for outcome := range driver.Shed {
		share += b.through.of(&t.Bins, &t.Turns, outcome) / float64(ended)
	}
	r.InRate = number(share * float64(t.In))
	if r.BytesOut == nil {
		b.null(at+".bytes_out_rate", reason.NotCounted, "see bytes_out")
		return
	}
	r.OutRate = number(share * float64(t.Out))
}

// keys copies the ledger of keys, or that of the ops if each has one key.
func (b *builder) keys(at string, verb driver.Verb, r *run.Op, t *measure.Op) {
	l, bins, turns := t.Ledger(), &t.Bins, &t.Turns
	if t.Keys.Due > 0 {
		l, bins, turns = t.Keys.Ledger, &t.Keys.Bins, &t.Keys.Turns
	}
	if r.Keys.Ledger = newLedger(l); b.words.Name(verb) == plan.ChainOp {
		r.Keys.Wasted = &t.Keys.Wasted
	}
	if wall := b.totals.Span.Last - b.totals.Span.First; wall > 0 {
		r.Keys.RateWall = number(float64(r.Keys.OK) / seconds(wall))
	} else {
		b.explain(at+".rate_wall", unbounded(b.totals))
	}
	if r.Keys.Rate, r.Keys.Answered = b.perSecond(bins, turns); r.Keys.Rate == nil {
		b.explain(at, b.through.why, ".rate", ".answered")
	}
}

// perSecond returns the rates of ok, and of ok and miss together.
func (b *builder) perSecond(bins, turns *[driver.NumOutcomes]*measure.Bins) (ok, answered *float64) {
	if b.through.why.Text != "" {
		return nil, nil
	}
	return number(b.through.of(bins, turns, driver.OK)), number(b.through.of(bins, turns, driver.OK, driver.Miss))
}

func (b *builder) hitRatio(at string, verb driver.Verb, r *run.Op) {
	switch answered := r.Keys.OK + r.Keys.Miss; {
	case verb != driver.Get && verb != driver.Read && b.counts.phase.Chain() == nil || verb == driver.Put:
		b.null(at+".hit_ratio", reason.NotApplicable, "only a get or a read hits or misses")
	case answered == 0:
		b.null(at+".hit_ratio", reason.NoOps, "no "+b.phase.words.Name(verb)+" was answered")
	default:
		r.HitRatio = number(float64(r.Keys.OK) / float64(answered))
	}
}

// null records why the number at a path, or every number of the object there, is null; with names, those at the path with each of them behind it.
func (p *phase) null(path string, code reason.Code, why string, names ...string) {
	p.explain(path, reason.Why{Code: code, Text: why}, names...)
}

// explain is null for a reason that is already made.
func (p *phase) explain(path string, why reason.Why, names ...string) {
	if names == nil {
		names = []string{""}
	}
	for _, name := range names {
		p.Null(path+name, why)
	}
}

// known removes the reason why a number was null.
func (p *phase) known(path string) {
	delete(p.Nulls, path)
	delete(p.NullCodes, path)
}
