package experiment

import (
	"maps"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/stat"
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
			maps.Copy(union[name].Op, p.Op)
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

// metric is a quantity of an op by which variants are compared.
type metric struct {
	name string // its path relative to the op
	path []string
	unit string
	of   func(o *run.Op) *float64                  // the value of a run
	in   func(row run.Row, width float64) *float64 // the value of a second, for a phase with one op; nil if rows do not have it
	only func(o *run.Op) bool                      // whether the metric adds something for an op; nil: for every op
}

// metrics are the metrics by which variants are compared.
var metrics = [...]metric{
	{
		name: "rate", path: []string{"rate"}, unit: "/s",
		of: func(o *run.Op) *float64 { return o.Rate },
		in: func(row run.Row, width float64) *float64 { return number(float64(row.OK) / width) },
	},
	{
		name: "response.p50", path: []string{"response", "p50"}, unit: "s",
		of: func(o *run.Op) *float64 { return o.Response.P50 },
		in: func(row run.Row, _ float64) *float64 { return row.Response.P50 },
	},
	{
		name: "response.p99", path: []string{"response", "p99"}, unit: "s",
		of: func(o *run.Op) *float64 { return o.Response.P99 },
		in: func(row run.Row, _ float64) *float64 { return row.Response.P99 },
	},
	{
		name: "response.mean", path: []string{"response", "mean"}, unit: "s",
		of: func(o *run.Op) *float64 { return o.Response.Mean },
		in: func(row run.Row, _ float64) *float64 { return row.Response.Mean },
	},
	{
		name: "keys.rate", path: []string{"keys", "rate"}, unit: "/s",
		of:   func(o *run.Op) *float64 { return o.Keys.Rate },
		only: (*run.Op).Batched,
	},
	{name: "hit_ratio", path: []string{"hit_ratio"}, of: func(o *run.Op) *float64 { return o.HitRatio }},
}

// minSeconds is how many whole seconds each repetition needs for its seconds to be its values.
const minSeconds = 10

// samples are the values of one metric.
type samples struct {
	by        map[string]Sample // by variant; those without values are absent
	perSecond bool
}

// samples takes the values of single seconds if every repetition has enough of them, and otherwise one value of each repetition.
func (c *comparer) samples(s subject, m metric) samples {
	if by, ok := c.collect(func(r *run.Run) []float64 { return seconds(r, s, m) }); ok {
		return samples{by: by, perSecond: true}
	}
	by, _ := c.collect(func(r *run.Run) []float64 {
		if p := r.Phase[s.phase]; p != nil && p.Op[s.op] != nil {
			if v := m.of(p.Op[s.op]); v != nil {
				return []float64{*v}
			}
		}
		return nil
	})
	for variant, runs := range c.runs {
		if slices.ContainsFunc(runs, func(r *run.Run) bool { return censored(r, s, m) }) {
			delete(by, variant)
		}
	}
	return samples{by: by}
}

// censored says whether a repetition lacks a metric because ops in it failed, which count as slower than any other. The repetitions that have it are
// the better ones, so comparing a variant by these alone would flatter it.
func censored(r *run.Run, s subject, m metric) bool {
	p := r.Phase[s.phase]
	if p == nil || p.Op[s.op] == nil || m.path[0] != "response" {
		return false
	}
	o := p.Op[s.op]
	return m.of(o) == nil && o.Response.Failed > 0
}

// has says whether the metric adds something for at least one run. If so, all are compared by it, even those with ops of one key, say.
func (c *comparer) has(s subject, m metric) bool {
	if m.only == nil {
		return true
	}
	for _, runs := range c.runs {
		for _, r := range runs {
			if p := r.Phase[s.phase]; p != nil && p.Op[s.op] != nil && m.only(p.Op[s.op]) {
				return true
			}
		}
	}
	return false
}

// collect calls values for every run that counts. all says whether each had some.
func (c *comparer) collect(values func(*run.Run) []float64) (by map[string]Sample, all bool) {
	by, all = map[string]Sample{}, true
	for variant, runs := range c.runs {
		for _, r := range runs {
			if v := values(r); len(v) > 0 {
				by[variant] = append(by[variant], v)
			} else {
				all = false
			}
		}
	}
	return by, all && len(by) > 0
}

// seconds returns a run's values of single seconds with the whole load on, without ramp and warm-up; nil if there are fewer than ten. Rows cover all
// ops of a phase, so a phase with several ops has none, nor does one whose load changes from level to level. It also returns nil if a second lacks
// the value: that is usually one with few ops, which says more about a closed load than those with many.
func seconds(r *run.Run, s subject, m metric) []float64 {
	p := r.Phase[s.phase]
	if p == nil || m.in == nil || len(p.Op) != 1 || p.Op[s.op] == nil || len(p.Levels) > 0 {
		return nil
	}
	var values []float64
	from, length := 0.0, stat.Spacing(p.Series, run.Row.End)
	begin, end := max(p.Load.RampSeconds, p.WarmUp.Seconds), math.Inf(1)
	for _, row := range p.Series {
		width := row.T - from
		if from >= begin {
			end = min(end, from+float64(p.Steady.Seconds)) // after that, sessions begin to end
			if width > length-0.1 && width < length+0.1 && from < end-length/2 {
				v := m.in(row, width)
				if v == nil {
					return nil
				}
				values = append(values, *v)
			}
		}
		from = row.T
	}
	if len(values) < minSeconds {
		return nil
	}
	return values
}
