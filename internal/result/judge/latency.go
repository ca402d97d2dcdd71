package judge

import (
	"fmt"
	"math"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/hist"
)

func (b *builder) latencies(at string, r *run.Figures, t *measure.Op) {
	response, service := t.ResponseAll(), t.ServiceAll()
	const none, failed = "no op ended ok or miss", "failed"
	r.Response = b.times(at+".response", &response, none, failed)
	r.Service = b.times(at+".service", &service, none, failed)
	r.Lag = b.latency(at+".lag", &t.Lag, "no op was started")
	class := func(name string, c measure.Class, why string) (response, service run.Latency) {
		at := at + ".latency." + name
		return b.latency(at+".response", &t.Response[c], why), b.latency(at+".service", &t.Service[c], why)
	}
	r.Latency.OK.Response, r.Latency.OK.Service = class("ok", measure.ClassOK, "no op ended ok")
	r.Latency.Miss.Response, r.Latency.Miss.Service = class("miss", measure.ClassMiss, "no op missed")
	r.Latency.Bad.Response, r.Latency.Bad.Service = class("bad", measure.ClassBad, "no op ended badly")
}

// latency summarises h; without samples it records why.
func (b *builder) latency(at string, h *hist.Hist, why string) run.Latency {
	return b.times(at, &measure.Times{Answered: *h}, why, "")
}

// times summarises the latencies of ops, some of which may have failed; failed is the word for their outcome. Failed ops count as slower than any
// other, so mean, standard deviation and maximum are null, as is every quantile that falls among them. Without samples it records why.
func (b *builder) times(at string, t *measure.Times, why, failed string) run.Latency {
	h := &t.Answered
	if h.Count() == 0 {
		b.null(at, reason.NoOps, why)
		l := run.Latency{Failed: t.Failed}
		l.SetQuantiles(b.phase.quantiles, func(float64, string) *float64 { return nil })
		return l
	}
	l := run.Latency{Count: h.Count(), Failed: t.Failed, Min: number(seconds(h.Min()))}
	slower := fmt.Sprintf("%s of %s %s; these count as slower than any other", quantity.Number(float64(t.Failed)), quantity.Count(t.Count(), "op"), failed)
	if t.Failed == 0 {
		l.Mean, l.SD, l.Max = number(seconds(h.Mean())), number(seconds(h.SD())), number(seconds(h.Max()))
	} else {
		b.null(at, reason.OpsFailed, slower, ".mean", ".sd", ".max")
	}
	l.SetQuantiles(b.phase.quantiles, func(share float64, path string) *float64 {
		v := quantileOf(t, share)
		switch more := beyond(t.Count(), share); {
		case v != nil:
		case more < leastBeyond:
			b.null(at+"."+path, reason.TooFew, fmt.Sprintf("%d of %s lie beyond it; a quantile needs %d: %s would do", more, quantity.Count(t.Count(), "sample"), leastBeyond, quantity.Thousands(uint64(math.Ceil(leastBeyond/(1-share)-1e-6)))))
		default:
			b.null(at+"."+path, reason.OpsFailed, slower)
		}
		return v
	})
	return l
}
