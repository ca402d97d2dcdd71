package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/search"
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
	Series     []Row           // of a Series
	Generators []Generator     // of the measured step, one for each worker
	Logs       []*Log          // of workers that loaded log files
	Unread     []string        // workers that were lost before they had said what became of theirs
	Aborted    bool            // the step was asked to end early
	Braked     string          // the words of the plan that ended it early; "": none did
	WarmUp     WarmUp          // made by FindWarmUp; the zero value: there is none
	Settled    *measure.Totals // of the measured step after WarmUp; nil when that is all of it
	Losses     []Loss          // of workers, in this phase or before it, for which a part of its load is missing
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
	failed := func(l *Log) bool { return l != nil && l.Failure != "" }
	return m.Aborted || len(m.Losses) > 0 || slices.ContainsFunc(m.Logs, failed)
}

// NewPhase makes the result of phase ph of p and judges it. p is valid: ph is one of its phases, and what ph names is there.
func NewPhase(p *plan.Plan, ph *plan.Phase, m Measured) *Phase {
	r := newLoad(p, ph, m)
	r.observe(p, m.Observed, m.Origin)
	return r
}

// newLoad makes the result of a phase without what was observed.
func newLoad(p *plan.Plan, ph *plan.Phase, m Measured) *Phase {
	switch {
	case len(m.Levels) == 0:
		if ph.Open != nil {
			m.Shape = ph.Open.Shape()
		}
		return newStep(p, ph, m)
	case ph.Search != nil:
		return newSearch(p, ph, m)
	}
	return newStages(p, ph, m)
}

// newStep makes the result of a phase that has one measured step, or of one step of a phase.
func newStep(p *plan.Plan, ph *plan.Phase, m Measured) *Phase {
	r := &Phase{
		Target:    newTarget(p, ph, m.Endpoints),
		Dataset:   newDataset(p, ph),
		Generator: mergeGenerators(m.Generators),
		Levels:    []Level{},
		Nulls:     map[string]string{},
	}
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
func (p *Phase) count(ph *plan.Phase, m Measured) {
	t := m.Load
	p.Requests = requests(t, m.Endpoints, verbsOf(ph.Ops))
	p.Digest = fmt.Sprintf("%016x", t.Digest)
	p.Errors = errorTexts(&t.Errors)
	p.Reconnects, p.LateReplies, p.Foreign = t.Reconnects, t.LateReplies, t.Foreign
	p.Stalls, p.MaxStallSeconds = t.Stalls, seconds(t.MaxStall)
	p.Series = append([]Row{}, m.Series...)
	if slices.ContainsFunc(p.Series, func(row Row) bool { return row.Response.P99 == nil }) {
		p.Nulls["series"] = "no op ended ok or miss in that second, or fewer than 10 beyond that quantile; or ops failed, which are slower than any that did not"
	}
	if m.Setup == nil {
		p.Nulls["setup"] = "the phase has no setup"
		return
	}
	delete(p.Nulls, "setup")
	s := builder{phase: p, totals: m.Setup, settled: m.Setup, through: throughput{why: "setup is untimed"}}
	p.Setup = &ledgers{
		Op:       s.ops("setup.op.", verbsOf(ph.Setup)),
		Requests: requests(m.Setup, m.Endpoints, verbsOf(ph.Setup)),
	}
}

// builder turns the totals of a step into figures, and keeps the reason for each that cannot be had.
type builder struct {
	phase    *Phase
	totals   *measure.Totals
	settled  *measure.Totals // what latencies are made of
	window   window          // of rates
	noWindow string          // why there is none, or ""
	through  throughput      // makes rates of counts
}

// ops makes an Op for each verb; at is the path they will stand under, with a dot at its end.
func (b *builder) ops(at string, verbs []driver.Verb) map[string]*Op {
	ops := map[string]*Op{}
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
func (b *builder) scenarios(ph *plan.Phase) map[string]*scenario {
	all := map[string]*scenario{}
	of := func(t *measure.Totals, i int) *measure.Op {
		if i < len(t.Scenarios) {
			return t.Scenarios[i]
		}
		return &measure.Op{}
	}
	for i, s := range ph.Scenarios {
		at, t := "scenario."+s.Name, of(b.totals, i)
		one := &scenario{Figures: b.figures(at, t, of(b.settled, i)), Steps: []string{}}
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
func (b *builder) op(at string, verb driver.Verb, t, settled *measure.Op) *Op {
	r := &Op{Figures: b.figures(at, t, settled), BytesIn: t.In, Acks: []Latency{}}
	if t.Out == 0 && b.sent(verb) { // whatever a request is, it is more than no byte
		b.null(at+".bytes_out", "its driver's client does not say how many bytes it sends")
	} else {
		r.BytesOut = &t.Out
	}
	b.keys(at+".keys", r, t)
	b.hitRatio(at, verb, r)
	for k := 1; k <= len(settled.Acks); k++ {
		good := plural(uint64(k), "good answer")
		all := settled.AckAll(k)
		r.Acks = append(r.Acks, b.times(fmt.Sprintf("%s.acks.%d", at, k-1), &all, "no op got "+good, "never got "+good))
	}
	return r
}

// figures takes the ledger from t, and latencies from what of it was settled.
func (b *builder) figures(at string, t, settled *measure.Op) Figures {
	f := Figures{Ledger: newLedger(t.Ledger()), Sent: t.Due - t.Outcomes[driver.Shed], Causes: newCauses(t)}
	b.rates(at, &f, t)
	b.latencies(at, &f, settled)
	return f
}

func newLedger(l measure.Ledger) Ledger {
	n := l.Outcomes
	return Ledger{
		Due: l.Due, OK: n[driver.OK], Miss: n[driver.Miss], Conflict: n[driver.Conflict], QuorumFailed: n[driver.QuorumFailed],
		Timeout: n[driver.Timeout], Error: n[driver.Error], Shed: n[driver.Shed], InFlight: l.InFlight,
	}
}

func newCauses(t *measure.Op) Causes {
	n := t.Causes
	return Causes{Reply: n[op.Replied], Timeout: n[op.RequestTimeout], Lost: n[op.Lost], Refused: n[op.Refused], OpTimeout: n[op.OpTimeout]}
}

func (b *builder) rates(at string, r *Figures, t *measure.Op) {
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
func (b *builder) keys(at string, r *Op, t *measure.Op) {
	l, bins, turns := t.Ledger(), &t.Bins, &t.Turns
	if t.Keys.Due > 0 {
		l, bins, turns = t.Keys.Ledger, &t.Keys.Bins, &t.Keys.Turns
	}
	r.Keys = keyLedger{Ledger: newLedger(l)}
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

func (b *builder) hitRatio(at string, verb driver.Verb, r *Op) {
	switch answered := r.Keys.OK + r.Keys.Miss; {
	case verb != driver.Get && verb != driver.Read:
		b.null(at+".hit_ratio", "only a get or a read hits or misses")
	case answered == 0:
		b.null(at+".hit_ratio", "no "+verb.String()+" was answered")
	default:
		r.HitRatio = number(float64(r.Keys.OK) / float64(answered))
	}
}

func (b *builder) latencies(at string, r *Figures, t *measure.Op) {
	response, service := t.ResponseAll(), t.ServiceAll()
	const none, failed = "no op ended ok or miss", "failed"
	r.Response = b.times(at+".response", &response, none, failed)
	r.Service = b.times(at+".service", &service, none, failed)
	r.Lag = b.latency(at+".lag", &t.Lag, "no op was started")
	class := func(name string, c measure.Class, why string) classLatency {
		return classLatency{
			Response: b.latency(at+".latency."+name+".response", &t.Response[c], why),
			Service:  b.latency(at+".latency."+name+".service", &t.Service[c], why),
		}
	}
	r.Latency = classes{
		OK:   class("ok", measure.ClassOK, "no op ended ok"),
		Miss: class("miss", measure.ClassMiss, "no op missed"),
		Bad:  class("bad", measure.ClassBad, "no op ended badly"),
	}
}

// latency sums h up; without samples it keeps why.
func (b *builder) latency(at string, h *hist.Hist, why string) Latency {
	return b.times(at, &measure.Times{Answered: *h}, why, "")
}

// times sums up the latencies of ops of which some may have failed, in a way that has a name: these are slower than any that did not, so mean,
// standard deviation and maximum are those of no op, and no quantile above their share is known. Without samples it keeps why.
func (b *builder) times(at string, t *measure.Times, why, failed string) Latency {
	h := &t.Answered
	if h.Count() == 0 {
		b.null(at, why)
		return Latency{Failed: t.Failed}
	}
	l := Latency{Count: h.Count(), Failed: t.Failed, Min: number(seconds(h.Min()))}
	slower := fmt.Sprintf("%s of %s %s, which counts as slower than any other", decimal(float64(t.Failed)), plural(t.Count(), "op"), failed)
	if t.Failed == 0 {
		l.Mean, l.SD, l.Max = number(h.Mean()/1e9), number(h.SD()/1e9), number(seconds(h.Max()))
	} else {
		for _, name := range []string{"mean", "sd", "max"} {
			b.null(at+"."+name, slower)
		}
	}
	for _, q := range []struct {
		name     string
		permille uint64
		to       **float64
	}{{"p50", 500, &l.P50}, {"p90", 900, &l.P90}, {"p99", 990, &l.P99}, {"p999", 999, &l.P999}} {
		*q.to = quantileOf(t, q.permille)
		switch more := beyond(t.Count(), q.permille); {
		case *q.to != nil:
		case more < leastBeyond:
			b.null(at+"."+q.name, fmt.Sprintf("%d of %s lie beyond it; a quantile takes %d", more, plural(t.Count(), "sample"), leastBeyond))
		default:
			b.null(at+"."+q.name, slower)
		}
	}
	return l
}

// leastBeyond is how many samples have to lie beyond a quantile: with fewer, its own position among them is mere chance. A p99 takes 1,000
// samples, a p99.9 takes 10,000.
const leastBeyond = 10

// beyond returns how many of n samples lie beyond the nearest rank of a quantile: n − ⌈n·q⌉.
func beyond(n, permille uint64) uint64 { return n - (n*permille+999)/1000 }

// quantileOf returns a quantile in seconds, or nil when too few samples lie beyond it, or it is that of an op that failed.
func quantileOf(t *measure.Times, permille uint64) *float64 {
	if beyond(t.Count(), permille) < leastBeyond {
		return nil
	}
	if ns, known := t.Quantile(float64(permille) / 1000); known {
		return number(seconds(ns))
	}
	return nil
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
func requests(t *measure.Totals, endpoints []string, verbs []driver.Verb) []Requests {
	rows := []Requests{}
	for i, r := range t.Requests {
		e, verb := i/driver.NumVerbs, driver.Verb(i%driver.NumVerbs)
		if r == (measure.Requests{}) && (!slices.Contains(verbs, verb) || e >= len(endpoints)) {
			continue
		}
		rows = append(rows, Requests{
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

// log sums up what workers did to log files.
func (b *builder) log(ph *plan.Phase, m Measured) {
	l := mergeLogs(m.Logs)
	if l == nil {
		b.null("log", "the target is no log")
		return
	}
	b.phase.Log = l
	for _, worker := range m.Unread {
		l.Proof, l.Unproven = nil, joint(l.Unproven, "worker "+worker+" was lost")
	}
	l.EntryBytes, l.Bound = b.phase.Dataset.ValueBytes, ph.Bound
	var changed uint64
	var rate float64
	for _, verb := range verbsOf(ph.Ops) {
		o := b.phase.Op[verb.String()]
		if verb != driver.Read {
			changed += o.OK
		}
		if verb.Stores() && o.Rate != nil {
			rate += *o.Rate
		}
	}
	b.nullable(&l.BytesPerSecond, rate*float64(l.EntryBytes), "log.bytes_per_second", "there is no rate of entries")
	if changed > 0 {
		b.nullable(&l.ForcesPerOp, float64(l.Forces)/float64(changed), "log.forces_per_op", "nothing was forced")
	} else {
		b.null("log.forces_per_op", "no op changed anything")
	}
	if l.Proof == nil {
		b.null("log.proof", l.Unproven)
	}
}

// nullable sets a figure that is null when it is 0.
func (b *builder) nullable(to **float64, f float64, path, why string) {
	if f == 0 {
		b.null(path, why)
		return
	}
	*to = number(f)
}

// generator keeps why parts of the generator's account are null.
func (b *builder) generator() {
	g := &b.phase.Generator
	if g.RunQueueWait == nil {
		why := "no kernel of a worker says: /proc/thread-self/schedstat is not there"
		if g.Executor == plan.Blocking {
			why = "loops of the blocking executor have no threads of their own: see sched_latency_p99_seconds"
		}
		b.null("generator.run_queue_wait", why)
	}
	if g.Throttled == nil {
		b.null("generator.throttled", "no kernel of a worker says: /proc/self/cgroup is not there")
	}
	if g.Interrupted == nil {
		b.null("generator.interrupted", "it is counted for open loads on event loops, where the kernel has /proc/thread-self/schedstat")
	}
	if g.TCP == nil {
		b.null("generator.tcp", "the load had no TCP connections, or its driver made them itself")
	}
	if g.Machine == nil {
		b.null("generator.machine", cmp.Or(g.MachineUnknown, "it is read while a load is measured, and no worker says"))
	}
}

// mergeGenerators sums what was spent over workers, and takes the greatest of what is a level. What some workers do not know is that of
// the others.
func mergeGenerators(all []Generator) Generator {
	var sum Generator
	var executors []string
	for _, g := range all {
		if g.Executor != "" && !slices.Contains(executors, g.Executor) {
			executors = append(executors, g.Executor)
		}
		sum.Loops += g.Loops
		sum.CPUSeconds += g.CPUSeconds
		sum.GCCycles += g.GCCycles
		sum.Mallocs += g.Mallocs
		sum.ProductiveSeconds += g.ProductiveSeconds
		sum.MaxRSSBytes = max(sum.MaxRSSBytes, g.MaxRSSBytes)
		sum.Busy = max(sum.Busy, g.Busy)
		sum.GCPauseMaxSeconds = max(sum.GCPauseMaxSeconds, g.GCPauseMaxSeconds)
		sum.SchedLatencyP99Seconds = max(sum.SchedLatencyP99Seconds, g.SchedLatencyP99Seconds)
		if w := g.RunQueueWait; w != nil {
			if sum.RunQueueWait == nil {
				sum.RunQueueWait = new(float64)
			}
			*sum.RunQueueWait = max(*sum.RunQueueWait, *w)
		}
		if t := g.Throttled; t != nil {
			if sum.Throttled == nil {
				sum.Throttled = new(Throttled)
			}
			sum.Throttled.Periods += t.Periods
			sum.Throttled.Seconds += t.Seconds
		}
		if i := g.Interrupted; i != nil {
			if sum.Interrupted == nil {
				sum.Interrupted = new(measure.Interrupted)
			}
			sum.Interrupted.Add(i)
		}
		if t := g.TCP; t != nil {
			if sum.TCP == nil {
				sum.TCP = new(TCP)
			}
			sum.TCP.BytesSent += t.BytesSent
			sum.TCP.BytesRetransmitted += t.BytesRetransmitted
			sum.TCP.Retransmits += t.Retransmits
		}
		if m := withoutWorkers(&g, all); m != nil && m.Worse(sum.Machine) {
			sum.Machine = m
		}
		sum.MachineUnknown = cmp.Or(sum.MachineUnknown, g.MachineUnknown)
	}
	sum.Executor = strings.Join(executors, ", ")
	return sum
}

// withoutWorkers returns what a worker says of its machine, where other workers on it are not others.
func withoutWorkers(g *Generator, all []Generator) *measure.Machine {
	if g.Machine == nil {
		return nil
	}
	m := measure.Machine{OthersShare: g.Machine.OthersShare, IdleShare: g.Machine.IdleShare}
	workers := -g.CPUSeconds
	for _, w := range all {
		if w.Machine != nil && w.Machine.Host == g.Machine.Host {
			workers += w.CPUSeconds
		}
	}
	if g.Machine.Host != "" && g.Machine.Seconds > 0 {
		m.OthersShare = max(0, m.OthersShare-workers/g.Machine.Seconds)
	}
	return &m
}

func number(f float64) *float64 { return &f }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
