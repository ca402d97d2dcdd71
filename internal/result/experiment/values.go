package experiment

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// subject is one op of one phase.
type subject struct{ phase, op string }

// subjectsOf lists the ops of measured loads, in the order in which the phases ran.
func subjectsOf(runs []*run.Run) []subject {
	var phases []string
	union := map[string]*run.Phase{} // the ops of all runs
	for _, r := range runs {
		for _, name := range r.PhaseOrder {
			p := r.Phase[name]
			if !p.Kind.Timed() {
				continue
			}
			if !slices.Contains(phases, name) {
				phases = append(phases, name)
				union[name] = &run.Phase{Op: map[string]*run.Op{}}
			}
			for _, op := range p.Verbs() {
				union[name].Op[op] = p.Op[op]
			}
		}
	}
	var all []subject
	for _, name := range phases {
		for _, op := range union[name].Verbs() {
			all = append(all, subject{name, op})
		}
	}
	return all
}

// in returns the phase and the op in a run; nil if it does not have them.
func (s subject) in(r *run.Run) (*run.Phase, *run.Op) {
	p := r.Phase[s.phase]
	if p == nil || p.Op[s.op] == nil {
		return nil, nil
	}
	return p, p.Op[s.op]
}

// metric is a quantity of an op by which variants are compared.
type metric struct {
	name string // its path relative to the op
	unit string // "/s", "s", or "" for a share
	of   func(o *run.Op) *float64
	only func(o *run.Op) bool // whether it says something about an op; nil: about every one
}

// share says that it is compared by difference, since a ratio of shares near 1 says nothing about what is lacking.
func (m metric) share() bool { return m.unit == "" }

// blur is how much logarithms of the metric may differ because values are reported as the upper bound of a histogram's bucket.
func (m metric) blur() float64 {
	if _, last, _ := strings.Cut(m.name, "."); strings.HasPrefix(last, "p") {
		return bucket
	}
	return 0
}

// bucket is the width of a histogram's bucket, as a share of its values (pkg/hist).
const bucket = 1.0 / 128

// metricsOf returns the metrics of a plan's names.
func metricsOf(names []string) (all []metric) {
	for _, name := range names {
		m := metric{name: name}
		of, quantity, _ := strings.Cut(name, ".")
		switch of {
		case "rate":
			m.unit, m.of = "/s", func(o *run.Op) *float64 { return o.Rate }
		case "answered":
			m.unit, m.of = "/s", func(o *run.Op) *float64 { return o.Answered }
		case "keys":
			m.unit, m.of, m.only = "/s", func(o *run.Op) *float64 { return o.Keys.Rate }, (*run.Op).Batched
		case "hit_ratio":
			m.of = func(o *run.Op) *float64 { return o.HitRatio }
		case "response":
			m.unit, m.of = "s", func(o *run.Op) *float64 { return latency(&o.Response, quantity) }
		case "service":
			m.unit, m.of = "s", func(o *run.Op) *float64 { return latency(&o.Service, quantity) }
		}
		all = append(all, m)
	}
	return all
}

// latency returns a figure of a latency by its name.
func latency(l *run.Latency, name string) *float64 {
	return map[string]*float64{"mean": l.Mean, "p50": l.P50, "p90": l.P90, "p95": l.P95, "p99": l.P99, "p999": l.P999}[name]
}

// compared returns the metrics by which an experiment compares its variants.
func compared(x *run.Experiment) []metric {
	return metricsOf((&plan.Experiment{Compare: x.Compare}).Metrics())
}

// values returns a variant's values of a metric, one for each run that counts and has it. If ops in one failed, which count as slower than any other,
// there are none: the runs that have the metric are then the better ones, and a comparison by these would flatter the variant.
func (c *comparer) values(s subject, m metric, variant string) (values []float64) {
	for _, r := range c.runs[variant] {
		_, o := s.in(r)
		if o == nil {
			continue
		}
		if v := m.of(o); v != nil {
			values = append(values, *v)
		} else if m.unit == "s" && o.Response.Failed > 0 {
			return nil
		}
	}
	return values
}

// has says whether the metric says something about at least one run. If so, all are compared by it, even those with ops of one key, say.
func (c *comparer) has(s subject, m metric) bool {
	for _, runs := range c.runs {
		for _, r := range runs {
			if _, o := s.in(r); o != nil && (m.only == nil || m.only(o)) && m.of(o) != nil {
				return true
			}
		}
	}
	return false
}

// fixed says whether a metric is what the plan asked for, in every run of two variants: a rate of an open load that sustained what was offered, and
// whose ops were answered: how many of those hit is hit_ratio's.
func (c *comparer) fixed(s subject, m metric, a, b string) bool {
	if m.unit != "/s" {
		return false
	}
	for _, r := range slices.Concat(c.runs[a], c.runs[b]) {
		if p, o := s.in(r); o != nil && (!sustained(p) || float64(o.OK+o.Miss) < kept*float64(o.Due)) {
			return false
		}
	}
	return true
}

// kept is the least share of what was offered that counts as all of it.
const kept = 0.99

// sustained says whether a phase has a schedule, and kept to it.
func sustained(p *run.Phase) bool {
	return p.Model == "open" && p.OfferedRate != nil && p.AchievedRate != nil && *p.AchievedRate >= kept**p.OfferedRate
}
