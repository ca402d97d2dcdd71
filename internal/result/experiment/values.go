package experiment

import (
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
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

// opMetric is a metric by which variants are compared: a rate, a time or a share.
type opMetric = metric.Of[run.Op]

// unitOf returns the unit of a metric in results: "/s", "B/s", "s", or "" for a share.
func unitOf(m opMetric) string {
	switch m.Kind {
	case metric.Rate:
		return map[bool]string{true: "B/s", false: "/s"}[m.Unit == "bytes/s"]
	case metric.Time:
		return "s"
	}
	return ""
}

// blur returns by how much logarithms of a metric may differ because values are reported as the upper bound of a histogram's bucket.
func blur(name string) float64 {
	if _, last, _ := strings.Cut(name, "."); strings.HasPrefix(last, "p") {
		return bucket
	}
	return 0
}

// bucket is the width of a histogram's bucket, as a share of its values (pkg/hist).
const bucket = 1.0 / 128

// metricsOf returns the metrics that a plan's `compare` names; without any, the usual ones.
func metricsOf(names []string) (all []opMetric) {
	if len(names) == 0 {
		for _, m := range metric.Op() {
			if m.Compared == metric.Usually {
				all = append(all, m)
			}
		}
	}
	for _, name := range names {
		if m, known := metric.Named(name); known {
			all = append(all, m)
		}
	}
	return all
}

// values are those of a metric in the runs of a variant that count and have it, with the number of each run's round.
type values struct {
	of     []float64
	rounds []int
}

// at returns the value of a round; NaN if it has none.
func (v values) at(round int) float64 {
	if i := slices.Index(v.rounds, round); i >= 0 {
		return v.of[i]
	}
	return math.NaN()
}

// values returns a variant's values of a metric. It returns none if the metric is missing in a run because ops failed, which count as slower than any
// other: only the better runs would be left, and a comparison by them would flatter the variant.
func (c *comparer) values(s subject, m opMetric, variant string) (all values) {
	for _, r := range c.runs[variant] {
		_, o := s.in(r)
		if o == nil {
			continue
		}
		if v := m.Value(o); v != nil {
			all.of, all.rounds = append(all.of, *v), append(all.rounds, r.Repetition)
		} else if m.Kind == metric.Time && o.Response.Failed > 0 {
			return values{}
		}
	}
	return all
}

// shares returns the interval of a share by all gets that the runs of a variant had answered together, as if they had been one sample.
func (c *comparer) shares(s subject, variant string) (low, high float64) {
	k, n := 0.0, 0.0
	for _, r := range c.runs[variant] {
		if _, o := s.in(r); o != nil {
			k, n = k+float64(o.Keys.OK), n+float64(o.Keys.OK+o.Keys.Miss)
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return stat.Wilson(k, n)
}

// has says whether the metric applies to at least one run. If so, all runs are compared by it.
func (c *comparer) has(s subject, m opMetric) bool {
	for _, runs := range c.runs {
		for _, r := range runs {
			if _, o := s.in(r); o != nil && (m.Only == nil || m.Only(o)) && m.Value(o) != nil {
				return true
			}
		}
	}
	return false
}

// fixed says whether the plan sets a metric, in every run of two variants: it is a rate of an open load that sustained the offered rate and whose ops
// were answered.
func (c *comparer) fixed(s subject, m opMetric, a, b string) bool {
	if m.Kind != metric.Rate {
		return false
	}
	for _, r := range slices.Concat(c.runs[a], c.runs[b]) {
		if p, o := s.in(r); o != nil && (!sustained(p) || float64(o.OK+o.Miss) < kept*float64(o.Due)) {
			return false
		}
	}
	return true
}

// kept is the least share of the offered rate that counts as all of it.
const kept = 0.99

// sustained says whether a phase has a schedule and kept to it.
func sustained(p *run.Phase) bool {
	return p.Model == "open" && p.OfferedRate != nil && p.AchievedRate != nil && *p.AchievedRate >= kept**p.OfferedRate
}
