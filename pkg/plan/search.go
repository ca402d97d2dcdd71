package plan

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Search looks for the largest rate at which every SLO holds, by a closed step and then steps at rates between From and To.
type Search struct {
	Schedule
	From         float64       `json:"from"`             // the lowest rate, in arrivals per second
	To           float64       `json:"to"`               // the highest rate
	StepDuration time.Duration `json:"step_duration_ns"` // the least length of a step at a rate
	Precision    float64       `json:"precision"`        // how wide the interval of the answer may be, as a share of its lower end
	Budget       time.Duration `json:"budget_ns"`        // for all steps together
	SLOs         []SLO         `json:"slos"`             // one or more
}

// SLO limits the response times of ops. A limit of 0 means none; at least one is set.
type SLO struct {
	Op           string        `json:"op"` // "" for each op of the mix
	ResponseP50  time.Duration `json:"response_p50_ns"`
	ResponseP90  time.Duration `json:"response_p90_ns"`
	ResponseP95  time.Duration `json:"response_p95_ns,omitempty"` // omitted if 0, so that digests of plans without it stay as they were
	ResponseP99  time.Duration `json:"response_p99_ns"`
	ResponseP999 time.Duration `json:"response_p999_ns"`

	Others map[string]time.Duration `json:"others_ns,omitempty"` // of other quantiles that the plan names, by name: p97
}

// Closed returns the shape of a search's first step, which has no rate: a closed load that lasts long enough to show the target's capacity.
func (s *Search) Closed() Shape {
	const most, parts = time.Second, 20
	return Shape{Duration: max(min(most, s.Budget/parts), minStep)}
}

// Arrivals returns how many arrivals a step of a search needs: few, to have a dozen slow ops if a quantile is just within its limit, or many, for each
// quantile to be known.
func (ph *Phase) Arrivals() (few, many float64) {
	const dozen = 12
	for i := range ph.Search.SLOs {
		slo := &ph.Search.SLOs[i]
		for _, q := range slo.Limits() {
			if each := ph.rarest(slo.Op); each > 0 {
				few, many = max(few, dozen/(1-q.Share)/each), max(many, wanted(ph, q.Share)/each)
			}
		}
	}
	return few, many
}

// As returns the phase as a step of the given shape carries it out: a step of a search that has no rate is a closed load.
func (ph *Phase) As(shape Shape) *Phase {
	s := ph.Search
	if s == nil || shape.Rate > 0 {
		return ph
	}
	closed := *ph
	closed.Search, closed.Closed = nil, &Closed{Clients: Clients{Sessions: s.Sessions, Pipeline: max(1, s.InFlight/s.Sessions)}, Duration: shape.Duration}
	return &closed
}

// rarest returns the mean number of ops per arrival: of the given op or, if that is "", of the rarest.
func (ph *Phase) rarest(op string) float64 {
	ops, weight := float64(0), float64(0)
	for _, w := range ph.Ops {
		weight += w.Weight
		if op == "" && (ops == 0 || w.Weight < ops) || op == w.Op {
			ops = w.Weight
		}
	}
	return ops * ph.StepsPerArrival() / weight
}

// search reads a search for a rate.
func (b *block) search() *Search {
	b.Expect(slices.Concat([]string{"from", "to", "step_duration", "precision", "budget"}, scheduleWords), nil, "slo")
	s := &Search{
		Schedule: b.schedule(time.Second),
		From:     1000, To: maxRate, Precision: 0.05, Budget: time.Minute, SLOs: []SLO{},
	}
	b.Rate("from", &s.From)
	b.Rate("to", &s.To)
	b.Share("precision", &s.Precision)
	b.Duration("budget", &s.Budget)
	s.StepDuration = s.Closed().Duration
	b.Duration("step_duration", &s.StepDuration)
	for _, inner := range b.each("slo") {
		s.SLOs = append(s.SLOs, inner.slo("op"))
	}
	return s
}

// slo reads limits of response times, with the block's other attributes.
func (b *block) slo(attributes ...string) SLO {
	words := slices.Clone(usualLimits[:])
	for _, a := range dialect.Attributes(b.Body) {
		if _, ok := quantity.Quantile(strings.TrimPrefix(a.Name, "response_")); ok && strings.HasPrefix(a.Name, "response_") && !slices.Contains(words, a.Name) {
			words = append(words, a.Name)
		}
	}
	b.Expect(append(attributes, words...), nil)
	var slo SLO
	b.Text("op", &slo.Op)
	for _, word := range words {
		if v, ok := b.Value(word); ok && v.Type() == cty.Number && v.AsBigFloat().Sign() != 0 && !b.r.HasUnit(b.Body.Attributes[word].Expr) {
			b.Bad(word, "a number without a unit", `Write text such as "5ms": a bare number is often meant as milliseconds, but would be seconds.`)
			continue
		}
		if at := slo.usual(word); at != nil {
			b.Duration(word, at)
			continue
		}
		var limit time.Duration
		b.Duration(word, &limit)
		if slo.Others == nil {
			slo.Others = map[string]time.Duration{}
		}
		slo.Others[strings.TrimPrefix(word, "response_")] = limit
	}
	return slo
}

// held makes asserts of a block's limits of an op or step, whose figures have a path in the result.
func (b *block) held(slo SLO, path ...string) {
	at := strings.Join(path, ".")
	for _, limit := range slo.Limits() {
		b.r.plan.Asserts = append(b.r.plan.Asserts, &Assert{
			Name: strings.TrimPrefix(at, "phase.") + ": " + limit.Name + " <= " + limit.Most.String(),
			That: fmt.Sprintf("%s.response.%s <= duration(%q)", at, limit.Name, limit.Most),
			File: filepath.Base(b.r.file.name), Line: b.At.Start.Line,
		})
	}
}

// Limit is a quantile of response times and its upper bound.
type Limit struct {
	Name  string // p95
	Share float64
	Most  time.Duration
}

// usualLimits are the attributes for the quantiles that every result has.
var usualLimits = [...]string{"response_p50", "response_p90", "response_p95", "response_p99", "response_p999"}

// usual returns the field for the limit of such an attribute; nil for any other.
func (s *SLO) usual(word string) *time.Duration {
	i := slices.Index(usualLimits[:], word)
	if i < 0 {
		return nil
	}
	return [...]*time.Duration{&s.ResponseP50, &s.ResponseP90, &s.ResponseP95, &s.ResponseP99, &s.ResponseP999}[i]
}

// Limits lists what an SLO limits, the lowest quantile first.
func (s *SLO) Limits() (all []Limit) {
	add := func(name string, most time.Duration) {
		share, _ := quantity.Quantile(name)
		all = append(all, Limit{name, share, most})
	}
	for _, word := range usualLimits {
		if most := *s.usual(word); most != 0 {
			add(strings.TrimPrefix(word, "response_"), most)
		}
	}
	for name, most := range s.Others {
		add(name, most)
	}
	slices.SortFunc(all, func(a, b Limit) int { return cmp.Compare(a.Share, b.Share) })
	return all
}

// beyond is how many samples must lie beyond a quantile to make it meaningful.
const beyond = 10

// search checks a search for a rate.
func (v *validator) search(ph *Phase, at part) {
	s := ph.Search
	v.schedule(&s.Schedule, at)
	v.arrive(s.From, at, "from")
	v.arrive(s.To, at, "to")
	if s.From > s.To {
		v.fault(fmt.Sprintf("%s: from is above to", at.where), "Write a lower from, or a higher to.", at.path+".from", at.path+".to")
	}
	v.lasts(at, "step_duration", s.StepDuration, minStep)
	v.lasts(at, "budget", s.Budget, minStep)
	if !(s.Precision >= 0.001 && s.Precision <= 1) {
		v.fault(fmt.Sprintf("%s: precision = %g", at.where, s.Precision), `Write a share from "0.1%" to "100%".`, at.path+".precision")
	}
	if s.Budget < s.StepDuration {
		v.fault(at.where+": budget is shorter than step_duration", "Write a longer budget, enough for ten steps or more.", at.path+".budget", at.path+".step_duration")
	}
	if n := len(s.SLOs); n < 1 || n > maxSLOs {
		v.fault(fmt.Sprintf("%s: %d objectives", at.where, n),
			fmt.Sprintf(`Write 1 to %d blocks such as slo { response_p99 = "5ms" }.`, maxSLOs), at.path)
		return
	}
	for i := range s.SLOs {
		n := i + 1
		v.slo(ph, &s.SLOs[i], part{fmt.Sprintf("%s.slo.%d", at.path, n), fmt.Sprintf("%s, slo %d", at.where, n)})
	}
}

// wanted returns how many ops a step must expect for a quantile to have enough samples. If their number is random, by Poisson arrivals or a
// mix, the expectation is four standard deviations higher, so that only one step in 30,000 falls short. Ops of a scenario come together.
func wanted(ph *Phase, quantile float64) float64 {
	need := math.Round(beyond / (1 - quantile))
	if ph.Search.Poisson() || len(ph.Scenarios) > 1 || len(ph.Scenarios) == 0 && len(ph.Ops) > 1 {
		together := float64(ph.MostSteps())
		return math.Ceil(math.Pow(2*math.Sqrt(together)+math.Sqrt(4*together+need), 2)) // n − 4·√(together·n) = need
	}
	return need
}

// slo checks an objective, and that a step at the lowest rate has enough ops for its quantiles.
func (v *validator) slo(ph *Phase, slo *SLO, at part) {
	if slo.Op != "" && !slices.ContainsFunc(ph.Ops, func(w Weight) bool { return w.Op == slo.Op }) {
		v.fault(fmt.Sprintf("%s: op = %s is not in the mix", at.where, dialect.Quote(slo.Op)), "Write an op of the mix, or none for each of them.", at.path+".op")
		return
	}
	s := ph.Search
	ops := s.From * max(s.StepDuration, s.Budget/4).Seconds() * ph.rarest(slo.Op)
	limits, named := slo.Limits(), v.plan.QuantileNames()
	for _, q := range limits {
		word := "response_" + q.Name
		v.lasts(at, word, q.Most, time.Nanosecond)
		if _, other := slo.Others[q.Name]; other && !slices.Contains(named, q.Name) {
			v.fault(fmt.Sprintf("%s: %s of a plan that does not name that quantile", at.where, word),
				fmt.Sprintf("Write quantiles = [%s] in the plan block, with others to show.", strconv.FormatFloat(q.Share, 'f', -1, 64)), at.path+"."+word)
		}
		if need := wanted(ph, q.Share); ops < need {
			v.fault(fmt.Sprintf("%s: %s of %.0f ops, which is what the lowest rate brings in a quarter of the budget", at.where, word, ops),
				fmt.Sprintf("Write a higher from or a longer budget: that quantile needs %.0f ops.", need), at.path+"."+word)
		}
	}
	if len(limits) == 0 {
		v.fault(at.where+": no limit", `Write response_p99 = "5ms", or another quantile: p50, p90, p95, p99, p999.`, at.path)
	}
}
