package judge

import (
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// staleness copies the comparison of the versions that gets returned with those that had been acknowledged.
func (p *phase) staleness(ph *plan.Phase, m *Measured) {
	if !ph.Staleness {
		return
	}
	var t measure.Staleness
	if m.Load.Versions != nil {
		t = m.Load.Versions.Staleness
	}
	s := &run.Staleness{Gets: t.Gets, Stale: t.Stale, ByOne: t.Behind[0], ByTwo: t.Behind[1], ByThree: t.Behind[2], ByMore: t.Behind[3], Backwards: t.Backwards}
	p.Staleness = s
	if t.Gets == 0 {
		p.null("staleness.", reason.NoOps, "no get of a key that had been put was answered", "ratio", "low", "high")
	} else {
		s.Ratio = number(float64(t.Stale) / float64(t.Gets))
		p.bursts(s)
	}
	if t.Stale == 0 {
		p.null("staleness.", reason.NoOps, "no get was stale", "age_mean", "age_p50", "age_p99", "age_max")
		return
	}
	ages := measure.Times{Answered: t.Age}
	s.AgeMean, s.AgeMax = number(seconds(t.Age.Mean())), number(seconds(t.Age.Max()))
	s.AgeP50, s.AgeP99 = quantileOf(&ages, 0.5), quantileOf(&ages, 0.99)
	for name, age := range map[string]*float64{"age_p50": s.AgeP50, "age_p99": s.AgeP99} {
		if age == nil {
			p.null("staleness."+name, reason.TooFew, "fewer than 10 stale gets are beyond it")
		}
	}
}

// bursts sets the interval of the share of stale gets, by rows of the series.
func (p *phase) bursts(s *run.Staleness) {
	var stale, gets []float64
	for _, row := range p.counts.Series {
		stale, gets = append(stale, float64(row.Stale)), append(gets, float64(row.Compared))
	}
	if low, high, known := stat.Bursts(stale, gets); known {
		s.Low, s.High = number(low), number(high)
		return
	}
	p.null("staleness.", reason.TooFew, "stale gets come in bursts, and fewer than ten seconds had any: run longer", "low", "high")
}
