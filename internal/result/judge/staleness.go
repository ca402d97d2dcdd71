package judge

import (
	"math"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
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
		for _, name := range []string{"ratio", "low", "high"} {
			p.null("staleness."+name, reason.NoOps, "no get of a key that had been put was answered")
		}
	} else {
		low, high := wilson(t.Stale, t.Gets)
		s.Ratio, s.Low, s.High = number(float64(t.Stale)/float64(t.Gets)), number(low), number(high)
	}
	if t.Stale == 0 {
		for _, name := range []string{"age_mean", "age_p50", "age_p99", "age_max"} {
			p.null("staleness."+name, reason.NoOps, "no get was stale")
		}
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

// wilson returns the 95 % confidence interval of a share that was k of n in a sample (Wilson, Journal of the American Statistical Association 22,
// 1927).
func wilson(k, n uint64) (low, high float64) {
	const z = 1.959963984540054 // the normal distribution's quantile of 97.5 %
	of, all := float64(k), float64(n)
	centre := (of + z*z/2) / (all + z*z)
	half := z / (all + z*z) * math.Sqrt(of*(all-of)/all+z*z/4)
	return max(0, centre-half), min(1, centre+half)
}
