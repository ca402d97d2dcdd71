package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// madeBy names the version that has made a result of another schema, since that reads it.
func madeBy(version string) string {
	if version == "" {
		return ""
	}
	return ": it was made by loadgen " + version
}

// CheckValid returns an error if the result is not consistent. Its schema must be the one this program writes. Every phase of the order must exist,
// with everything that accompanies its figures. Facts that the result states twice must agree. A phase whose ledgers do not balance, or that has ops
// nobody asked for, must be judged invalid. No phase may be better than its reasons, and the verdict and the exit code must be those of the phases
// and asserts.
func (r *Run) CheckValid() error {
	if r.Schema != schemaVersion {
		return fmt.Errorf("result of schema %d, this loadgen reads %d%s", r.Schema, schemaVersion, madeBy(r.Loadgen))
	}
	if order := slices.Sorted(slices.Values(r.PhaseOrder)); !slices.Equal(order, slices.Sorted(maps.Keys(r.Phase))) {
		return fmt.Errorf("phase_order does not name each phase once: %q", r.PhaseOrder)
	}
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		if p == nil {
			return fmt.Errorf("phase %q is null", name)
		}
		if err := cmp.Or(checkCounted(reflect.ValueOf(p)), p.checkWhole()); err != nil {
			return fmt.Errorf("phase %q: %w", name, err)
		}
		if err := cmp.Or(p.checkLedgers(), p.CheckRequests()); err != nil && p.Validity != Invalid {
			return fmt.Errorf("phase %q is judged %s: %w", name, p.Validity, err)
		}
		if err := p.checkJudgement(); err != nil {
			return fmt.Errorf("phase %q: %w", name, err)
		}
	}
	for i := range r.Losses {
		if err := r.Losses[i].CheckValid(); err != nil {
			return fmt.Errorf("losses[%d]: %w", i, err)
		}
	}
	return r.checkVerdict()
}

// mostCounted bounds counts, so that their sums do not wrap and JSON readers represent them exactly.
const mostCounted = 1 << 53

// checkCounted bounds every count within a value. Byte counts are exempt: nothing sums them.
func checkCounted(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Uint64:
		if n := v.Uint(); n > mostCounted {
			return fmt.Errorf("a count of %d", n)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkCounted(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); strings.HasPrefix(f.Name, "Bytes") {
				continue
			}
			if err := checkCounted(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkCounted(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, of := range v.Seq2() {
			if err := checkCounted(of); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkVerdict compares the verdict and the exit code with the facts that they follow from.
func (r *Run) checkVerdict() error {
	v := r.Verdict
	made := Run{Header: r.Header, Asserts: r.Asserts, PhaseOrder: r.PhaseOrder, Phase: r.Phase, Verdict: Verdict{Completeness: v.Completeness}}
	made.judge()
	if v.Assertions == Fail && made.Verdict.Assertions == Undecided { // an older form, in which one that could not be decided failed
		made.Verdict.Assertions = Fail
		made.ExitCode = exitCode(made.Verdict, r.Strict)
	}
	switch want := made.Verdict; {
	case !slices.Contains(completenesses[:], v.Completeness):
		return fmt.Errorf("verdict: completeness is %q", v.Completeness)
	case v.Completeness == Complete && len(r.Losses) > 0:
		return fmt.Errorf("verdict: complete, though worker %s was lost", r.Losses[0].Worker)
	case v.Validity != want.Validity:
		return fmt.Errorf("verdict: %s, but the worst phase is %s", v.Validity, want.Validity)
	case v.Assertions != want.Assertions:
		return fmt.Errorf("verdict: assertions are %s, but by the asserts they are %s", v.Assertions, want.Assertions)
	case r.ExitCode != made.ExitCode:
		return fmt.Errorf("exit code %d, but that of the verdict is %d", r.ExitCode, made.ExitCode)
	default:
		if n := len(v.Codes); n > 0 && n != len(v.Reasons) {
			return fmt.Errorf("verdict: %d codes of %s", n, quantity.Count(len(v.Reasons), "reason"))
		}
		for i, why := range want.Reasons {
			switch {
			case !slices.Contains(v.Reasons, why):
				return fmt.Errorf("verdict: a reason is not among its own: %s", why)
			case len(v.Codes) > 0 && !v.has(want.why(i)):
				return fmt.Errorf("verdict: the code of a reason is not %q: %s", want.Codes[i], why)
			}
		}
	}
	return nil
}

// checkJudgement checks that a phase, and each of its levels, is exactly as good as the worst of its reasons.
func (p *Phase) checkJudgement() error {
	if err := checkReasons(p.Validity, p.Reasons); err != nil {
		return err
	}
	if m := p.Generator.Machine; m != nil {
		const rounding = 1e-9
		switch {
		case !(m.OthersShare >= 0 && m.IdleShare >= 0 && m.OthersShare+m.IdleShare <= 1+rounding):
			return fmt.Errorf("generator: others had %v of the machine's processors, and %v of them was idle", m.OthersShare, m.IdleShare)
		case m.Doubtful() && p.Kind.Timed() && p.Validity == Valid:
			return fmt.Errorf("judged valid, but others had %v of the processors, and %v of them was idle", m.OthersShare, m.IdleShare)
		}
	}
	for i := range p.Levels {
		if err := checkReasons(p.Levels[i].Validity, p.Levels[i].Reasons); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	return nil
}

func checkReasons(is Validity, reasons []Reason) error {
	worst := Valid
	for _, why := range reasons {
		if !why.Validity.known() {
			return fmt.Errorf("a reason is judged %q", why.Validity)
		}
		worst = worst.And(why.Validity)
	}
	if is != worst {
		return fmt.Errorf("judged %s, but the worst of its reasons is %s", is, worst)
	}
	return nil
}

// checkWhole finds nulls where a related field says that there is a value.
func (p *Phase) checkWhole() error {
	if err := checkFigures(p.Op, p.Scenario, len(p.Others) > 0); err != nil {
		return err
	}
	if p.Setup != nil {
		if err := checkFigures(p.Setup.Op, nil, false); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	if err := cmp.Or(p.checkSteps(), p.checkFiner()); err != nil {
		return err
	}
	for i := range p.Series {
		if err := p.Series[i].Response.quantiles().check(); err != nil {
			return fmt.Errorf("series, row %d: %w", i, err)
		}
	}
	for i := range p.Levels {
		if err := checkFigures(p.Levels[i].Op, p.Levels[i].Scenario, len(p.Others) > 0); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	for name, fields := range p.Observe {
		for field, o := range fields {
			if o.Last != nil && (o.Min == nil || o.Max == nil || o.Mean == nil) {
				return fmt.Errorf("observe %s: %s has a last value, and no least, most or mean", name, field)
			}
		}
		if p.Probes[name] == nil {
			return fmt.Errorf("observe %s: nothing is said of its probes", name)
		}
	}
	for name, probes := range p.Probes {
		if probes == nil {
			return fmt.Errorf("probes %s is null", name)
		}
	}
	for _, t := range []Trend{p.Steady.Rate, p.Steady.Response} {
		if t.CI95 != nil && (t.Effective == nil || t.Drift == nil || t.DriftP == nil) {
			return errors.New("a trend with a confidence interval, and no more")
		}
	}
	return p.checkSearch()
}

// checkSteps checks that a phase has one step for each of its levels, in order, or one for all of its load.
func (p *Phase) checkSteps() error {
	if n := len(p.Steps); n > 0 && n != max(len(p.Levels), 1) && !(n == 1 && p.Closed()) { // stages of sessions are one load
		return fmt.Errorf("%d steps of %d levels", n, len(p.Levels))
	}
	for i, seq := range p.Steps {
		if seq < 0 || i > 0 && seq <= p.Steps[i-1] {
			return fmt.Errorf("the steps %v are not in the order of a run", p.Steps)
		}
	}
	return nil
}

// held is the outcome of a level at which every objective held.
const held = "held"

// checkSearch checks that the results of a search are among its levels.
func (p *Phase) checkSearch() error {
	s := p.Search
	switch {
	case s == nil:
		return nil
	case s.Low == nil && s.High != nil, s.Low != nil && s.High == nil && s.ClientBound == nil, s.High != nil && *s.Low > *s.High:
		return errors.New("search: the ends of its interval do not go together")
	case s.Held < 0 || s.Tries < s.Held:
		return fmt.Errorf("search: %d of %d tries held", s.Held, s.Tries)
	}
	for _, at := range []*int{s.Level, s.KneeLevel} {
		if at != nil && (*at < 0 || *at >= len(p.Levels)) {
			return fmt.Errorf("search: level %d of %d", *at, len(p.Levels))
		}
	}
	for _, c := range []struct {
		name  string
		rate  *float64
		level *int
	}{{"rate", s.Rate, s.Level}, {"knee", s.Knee, s.KneeLevel}} {
		switch {
		case (c.rate == nil) != (c.level == nil):
			return fmt.Errorf("search: a %s without its level, or the other way round", c.name)
		case c.rate != nil && p.Levels[*c.level].Offered() != *c.rate && p.Levels[*c.level].Rate != *c.rate: // as older loadgens have it
			return fmt.Errorf("search: %s %v, but its level offered %v", c.name, *c.rate, p.Levels[*c.level].Offered())
		case c.rate != nil && p.Levels[*c.level].Outcome != held:
			return fmt.Errorf("search: the level of its %s is %q", c.name, p.Levels[*c.level].Outcome)
		}
	}
	return nil
}

// checkFigures checks the figures of a load. apart says that it had several targets, so that an op may have no figures.
func checkFigures(ops map[string]*Op, scenarios map[string]*Scenario, apart bool) error {
	for verb, o := range ops {
		switch {
		case o == nil && apart:
			continue
		case o == nil:
			return fmt.Errorf("%s is null", verb)
		}
		if err := cmp.Or(o.check(o.apart()...), o.checkHits()); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	for name, s := range scenarios {
		if s == nil {
			return fmt.Errorf("scenario %s is null", name)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("scenario %s: %w", name, err)
		}
		if err := s.checkSteps(); err != nil {
			return fmt.Errorf("scenario %s: %w", name, err)
		}
	}
	return nil
}

// apart lists the latencies that not every op has.
func (o *Op) apart() []Latency {
	all := slices.Clone(o.Acks)
	for _, part := range []*Latency{o.Write, o.Sync} {
		if part != nil {
			all = append(all, *part)
		}
	}
	return all
}

// checkSteps checks that the order names every step, and that each is complete.
func (s *Scenario) checkSteps() error {
	if len(s.StepOrder) != len(s.Step) {
		return fmt.Errorf("%d names of %d steps", len(s.StepOrder), len(s.Step))
	}
	for _, name := range s.StepOrder {
		step := s.Step[name]
		if step == nil {
			return fmt.Errorf("step %s is null", name)
		}
		if err := cmp.Or(step.check(), step.checkLedger()); err != nil {
			return fmt.Errorf("step %s: %w", name, err)
		}
	}
	return nil
}

// checkLedger compares due ops with ended ones, and the latencies with both.
func (f *Figures) checkLedger() error {
	return cmp.Or(f.Ledger.check(), f.checkCounts())
}

// check compares what was due with what ended.
func (l *Ledger) check() error {
	if l.InFlight < 0 {
		return fmt.Errorf("%d in flight", l.InFlight)
	}
	if ended := l.OK + l.Miss + l.Conflict + l.QuorumFailed + l.Timeout + l.Error + l.Shed; l.Due != ended+uint64(l.InFlight) {
		return fmt.Errorf("due %d, but %d ended and %d in flight", l.Due, ended, l.InFlight)
	}
	return nil
}

// check checks that rates come in both units, and that latencies are complete.
func (f *Figures) check(apart ...Latency) error {
	const rounding = 1e-9
	switch {
	case (f.Rate == nil) != (f.RatePerMinute == nil) || (f.Rate == nil) != (f.Answered == nil):
		return errors.New("a rate per second, per minute or of what was answered without the others")
	case f.Rate != nil && math.Abs(*f.RatePerMinute-60**f.Rate) > rounding*math.Abs(*f.RatePerMinute):
		return fmt.Errorf("a rate of %v/s, and of %v a minute", *f.Rate, *f.RatePerMinute)
	}
	if err := f.Growth.check(); err != nil {
		return err
	}
	latencies := []Latency{f.Response, f.Service, f.Lag}
	for _, c := range []class{f.Latency.OK, f.Latency.Miss, f.Latency.Bad} {
		latencies = append(latencies, c.Response, c.Service)
	}
	for _, l := range append(latencies, apart...) {
		if err := l.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkCounts checks that every op that went wrong has a cause, and that latencies cover the ops that they claim.
func (f *Figures) checkCounts() error {
	c := f.Causes
	if caused, bad := c.Reply+c.Timeout+c.Lost+c.Refused+c.OpTimeout, f.Conflict+f.QuorumFailed+f.Timeout+f.Error; caused != bad {
		return fmt.Errorf("%d causes of %s that went wrong", caused, quantity.Count(bad, "op"))
	}
	ok, miss := f.Latency.OK, f.Latency.Miss
	for _, c := range []struct {
		name      string
		is, parts uint64
		of        string
		most      uint64
	}{
		{"response", f.Response.Count, ok.Response.Count + miss.Response.Count, "ok and miss", f.OK + f.Miss},
		{"service", f.Service.Count, ok.Service.Count + miss.Service.Count, "ok and miss", f.OK + f.Miss},
		{"lag", f.Lag.Count, f.Lag.Count, "what was sent", f.Sent},
	} {
		if c.is != c.parts || c.is > c.most {
			return fmt.Errorf("%s: %s, of %d %s", c.name, quantity.Count(c.is, "sample"), c.most, c.of)
		}
	}
	return nil
}

// check checks that a latency has all figures that its number of samples allows, and that they ascend.
func (l *Latency) check() error {
	if l.Count > 0 && (l.Min == nil || l.Failed == 0 && (l.Mean == nil || l.SD == nil || l.Max == nil)) {
		return fmt.Errorf("%s without a mean, sd, min or max", quantity.Count(l.Count, "latency sample"))
	}
	least := math.Inf(-1)
	if err := l.quantiles().check(); err != nil {
		return err
	}
	figures := []*float64{l.Min}
	for _, name := range slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(l.Quantiles)), usual[:]...))) {
		figures = append(figures, l.Quantile(name))
	}
	for _, f := range append(figures, l.Max) {
		if f == nil {
			continue
		}
		if *f < least {
			return fmt.Errorf("a latency whose quantiles fall from %v to %v", least, *f)
		}
		least = *f
	}
	return nil
}

// checkHits compares the hit ratio with the counts of keys.
func (o *Op) checkHits() error {
	if answered := float64(o.Keys.OK + o.Keys.Miss); o.HitRatio != nil && *o.HitRatio != float64(o.Keys.OK)/answered {
		return fmt.Errorf("hit_ratio %v, but %d of %v keys that were answered hit", *o.HitRatio, o.Keys.OK, answered)
	}
	return nil
}

func (p *Phase) checkLedgers() error {
	if p.Setup != nil {
		if err := checkLedgers(p.Setup.Op, p.Setup.Requests); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	for name, s := range p.Scenario {
		if err := s.checkLedger(); err != nil {
			return fmt.Errorf("scenario %s: %w", name, err)
		}
	}
	if err := cmp.Or(p.Verify.check(), p.Staleness.check(), p.Connections.check()); err != nil {
		return err
	}
	if err := p.Cache.check(); err != nil {
		return err
	}
	for name, e := range p.Event {
		if err := e.check(); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
	}
	if (p.Stalls == 0) != (p.MaxStallSeconds == 0) {
		return fmt.Errorf("%s, but the longest is %v s", quantity.Count(p.Stalls, "stall"), p.MaxStallSeconds)
	}
	return cmp.Or(checkLedgers(p.Op, p.Requests), p.checkTotal())
}

// checkTotal compares the total with the ops.
func (p *Phase) checkTotal() error {
	if p.Total == nil {
		return nil
	}
	if err := cmp.Or(p.Total.check(), p.Total.checkLedger()); err != nil {
		return fmt.Errorf("total: %w", err)
	}
	due, ok := uint64(0), uint64(0)
	for _, o := range p.Op {
		if o != nil {
			due, ok = due+o.Due, ok+o.OK
		}
	}
	if p.Total.Due != due || p.Total.OK != ok {
		return fmt.Errorf("total: %d due and %d ok, but those of its ops come to %d and %d", p.Total.Due, p.Total.OK, due, ok)
	}
	return nil
}

func checkLedgers(ops map[string]*Op, requests []Requests) error {
	for verb, o := range ops {
		if o == nil { // only its steps have ledgers
			continue
		}
		if err := o.Figures.Ledger.check(); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		if err := o.Keys.Ledger.check(); err != nil {
			return fmt.Errorf("%s: keys: %w", verb, err)
		}
		if o.Sent != o.Due-o.Shed {
			return fmt.Errorf("%s: sent %d, but due %d and shed %d", verb, o.Sent, o.Due, o.Shed)
		}
		if err := o.checkCounts(); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	for _, r := range requests {
		if r.InFlight < 0 {
			return fmt.Errorf("%s at %s: %d in flight", r.Verb, r.Endpoint, r.InFlight)
		}
		if ended := r.Answered + r.Moved + r.Ask + r.Timeout + r.Error; r.Sent != ended+uint64(r.InFlight) {
			return fmt.Errorf("%s at %s: sent %d, but %d ended and %d in flight", r.Verb, r.Endpoint, r.Sent, ended, r.InFlight)
		}
	}
	return nil
}

// CheckRequests compares ops with requests: ops that ended ok or miss must have been sent to, and answered by, as many endpoints as they need. The
// error names the first verb for which that is not so.
func (p *Phase) CheckRequests() error {
	kind := p.Kind
	if p.Setup != nil {
		if err := checkAnswered(worker.Setup, p.Target.Replication, p.Setup.Op, p.Setup.Requests); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	if len(p.Others) == 0 {
		return checkAnswered(kind, p.Target.Replication, p.Op, p.Requests)
	}
	for _, t := range append([]Target{p.Target}, p.Others...) {
		if t.Driver == (driver.Inside{}).Name() { // requests went to its cache and its source, if to any
			continue
		}
		sent := slices.DeleteFunc(slices.Clone(p.Requests), func(r Requests) bool { return r.Target != t.Name })
		if err := checkAnswered(kind, t.Replication, p.opsOn(t.Name), sent); err != nil {
			return fmt.Errorf("target %s: %w", t.Name, err)
		}
	}
	return nil
}

// opsOn returns the ops of each verb that steps of scenarios completed on a target: their OK and Miss counts.
func (p *Phase) opsOn(target string) map[string]*Op {
	all := map[string]*Op{}
	for _, s := range p.Scenario {
		for _, step := range s.Step {
			if step.Target != target {
				continue
			}
			if all[step.Op] == nil {
				all[step.Op] = new(Op)
			}
			all[step.Op].OK += step.OK
			all[step.Op].Miss += step.Miss
		}
	}
	return all
}

// chainOp is plan.ChainOp, an op that is carried out by gets.
const chainOp = "chain"

func checkAnswered(kind worker.StepKind, r *Replication, ops map[string]*Op, requests []Requests) error {
	for _, verb := range slices.Sorted(maps.Keys(ops)) {
		var answered uint64
		for _, sent := range requests {
			if sent.Verb == verb || verb == chainOp && sent.Verb == driver.Get.String() {
				answered += sent.Answered
			}
		}
		o, each := ops[verb], answers(r, kind, verb)
		if done := o.OK + o.Miss; answered/each < done {
			return fmt.Errorf("%s: %s ended ok or miss, which takes %s, and %s were",
				verb, quantity.Count(done, "op"), quantity.Count(done*each, "answered request"), quantity.Number(float64(answered)))
		}
	}
	return nil
}

// answers returns how many good answers an op needs to end ok or miss, for a target with replication r, or nil for none.
func answers(r *Replication, kind worker.StepKind, verb string) uint64 {
	switch {
	case r == nil || !r.ByClient():
		return 1
	case !kind.Timed() && kind != worker.Verify: // these go to all endpoints of a key
		return uint64(max(1, r.N))
	case verb == driver.Get.String():
		return uint64(max(1, r.R))
	}
	return uint64(max(1, r.W))
}
