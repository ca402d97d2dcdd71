package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
)

// minStep is the shortest step of a search: below, it measures how the step begins and ends.
const minStep = 10 * time.Millisecond

// beyond is how many samples must lie beyond a quantile before it says something.
const beyond = 10

// eachIn puts names behind a path.
func eachIn(path string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, path+"."+name)
	}
	return paths
}

// scheduled names the load model that has the phase's schedule.
func (ph *Phase) scheduled() string {
	switch {
	case ph.Stages != nil:
		return "stages"
	case ph.Search != nil:
		return "search"
	}
	return "open"
}

// open checks an open load.
func (v *validator) open(o *Open, at part) {
	v.schedule(&o.Schedule, at)
	v.level(o.Rate, o.Duration, o.Ramp, at)
	v.warmUp(at, o.WarmUp, o.Duration)
}

// level checks a rate, how long it lasts and how it is got to.
func (v *validator) level(rate float64, duration, ramp time.Duration, at part) {
	v.arrive(rate, at, "rate")
	v.lasts(at, "duration", duration, time.Nanosecond)
	v.lasts(at, "ramp", ramp, 0)
	if ramp > duration {
		v.fault(at.where+": ramp is longer than duration", "Write a shorter ramp: duration includes it.", at.path+".ramp", at.path+".duration")
	}
}

// arrive checks a rate of arrivals.
func (v *validator) arrive(rate float64, at part, name string) {
	if !(rate > 0 && rate <= maxRate) {
		v.fault(fmt.Sprintf("%s: %s = %g per second", at.where, name, rate), "Write a rate above 0 and up to 1G/s.", at.path+"."+name)
	}
}

// schedule checks what all loads have whose ops are due by a schedule.
func (v *validator) schedule(s *Schedule, at part) {
	v.connections(at, s.Sessions, s.Pipeline)
	v.lasts(at, "drain", s.Drain, 0)
	v.oneOf(at, "arrivals", s.Arrivals, "constant", "poisson")
	v.oneOf(at, "on_full", s.OnFull, "wait", "shed")
	if most := int64(s.Sessions) * int64(s.Pipeline); most > 0 && (s.InFlight < 1 || int64(s.InFlight) > most) {
		v.fault(fmt.Sprintf("%s: in_flight = %d", at.where, s.InFlight),
			fmt.Sprintf("Write a number from 1 to sessions × pipeline = %d, or more sessions.", most),
			at.path+".in_flight", at.path+".sessions", at.path+".pipeline")
	}
	if s.Streams != streams(s.Sessions) {
		v.fault(fmt.Sprintf("%s: %d streams", at.where, s.Streams), fmt.Sprintf("Write %d.", streams(s.Sessions)), at.path+".sessions")
	}
}

// stages checks a load of one stage after another.
func (v *validator) stages(s *Stages, at part) {
	v.schedule(&s.Schedule, at)
	if n := len(s.Stages); n < 1 || n > maxStages {
		v.fault(fmt.Sprintf("%s: %d stages", at.where, n), fmt.Sprintf("Write 1 to %d blocks stage { … }.", maxStages), at.path)
		return
	}
	for i, stage := range s.Stages {
		n := i + 1
		v.level(stage.Rate, stage.Duration, stage.Ramp, part{fmt.Sprintf("%s.stage.%d", at.path, n), fmt.Sprintf("%s, stage %d", at.where, n)})
	}
}

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

// wanted returns how many ops a step is to bring for a quantile to have its samples. Where chance decides how many come, by Poisson arrivals or
// a mix, so many are to be expected that those come but once in 30,000 steps: four standard deviations more. Ops of a scenario come together.
func wanted(ph *Phase, quantile float64) float64 {
	need := math.Round(beyond / (1 - quantile))
	if ph.Search.Arrivals == "poisson" || len(ph.Scenarios) > 1 || len(ph.Scenarios) == 0 && len(ph.Ops) > 1 {
		together := float64(ph.MostSteps())
		return math.Ceil(math.Pow(2*math.Sqrt(together)+math.Sqrt(4*together+need), 2)) // n − 4·√(together·n) = need
	}
	return need
}

// slo checks an objective, and that a step at the lowest rate has ops enough for its quantiles.
func (v *validator) slo(ph *Phase, slo *SLO, at part) {
	ops, weight := float64(0), float64(0)
	for _, w := range ph.Ops {
		weight += w.Weight
		if slo.Op == "" && (ops == 0 || w.Weight < ops) || slo.Op == w.Op {
			ops = w.Weight
		}
	}
	verb, known := driver.ParseVerb(slo.Op)
	if slo.Op != "" && (!known || weightOf(ph.Ops, verb) == 0) {
		v.fault(fmt.Sprintf("%s: op = %s is not in the mix", at.where, lang.Quote(slo.Op)), "Write an op of the mix, or none for each of them.", at.path+".op")
		return
	}
	ops *= ph.Search.From * ph.Search.StepDuration.Seconds() * ph.StepsPerArrival() / weight
	limited := false
	for _, q := range slo.limits() {
		if *q.limit == 0 {
			continue
		}
		limited = true
		v.lasts(at, q.name, *q.limit, time.Nanosecond)
		if need := wanted(ph, q.quantile); ops < need {
			v.fault(fmt.Sprintf("%s: %s of %.0f ops, which is what the lowest rate brings in a step", at.where, q.name, ops),
				fmt.Sprintf("Write a higher from or a longer step_duration: that quantile wants %.0f ops.", need), at.path+"."+q.name)
		}
	}
	if !limited {
		v.fault(at.where+": no limit", `Write response_p99 = "5ms", or another quantile: p50, p90, p99, p999.`, at.path)
	}
}
