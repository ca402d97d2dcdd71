package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Open is a load of arrivals at one rate. They do not wait for the target.
type Open struct {
	Schedule
	Rate     float64       `json:"rate"`        // arrivals per second after Ramp
	Duration time.Duration `json:"duration_ns"` // Ramp included
	Ramp     time.Duration `json:"ramp_ns"`     // the rate rises linearly from 0
	WarmUp   time.Duration `json:"warmup_ns"`   // excluded from rates and latencies, Ramp included; 0 if derived from the series
	Trace    *Trace        `json:"trace"`       // source of ops and due times, and of Rate and Duration; nil for none
}

// Schedule is the common part of open, stages and search: how ops arrive, and which sessions take them.
type Schedule struct {
	Arrivals string `json:"arrivals"` // constantArrivals or poissonArrivals
	Clients
	InFlight int           `json:"in_flight"` // most ops started but not ended, at most Sessions × Pipeline
	OnFull   string        `json:"on_full"`   // waitWhenFull or shedWhenFull
	Drain    time.Duration `json:"drain_ns"`  // ops may start and end this long after a step's last due time
	Streams  int           `json:"streams"`   // a multiple of Sessions, at least 1,024
}

// Shape is the rate of a load over time: a ramp, and what follows it.
type Shape struct {
	Rate     float64       // per second after the ramp
	From     float64       // per second where the ramp begins
	Ramp     time.Duration // the rate goes linearly from From to Rate
	Duration time.Duration // total, ramp included
}

// How ops of an open load arrive.
const (
	constantArrivals = "constant" // at even intervals
	poissonArrivals  = "poisson"  // at random intervals
)

// What happens to an op that is due while InFlight ops are in flight.
const (
	waitWhenFull = "wait" // it starts late
	shedWhenFull = "shed" // it never starts
)

// Sheds reports whether an op that is due while the load is full never starts.
func (s *Schedule) Sheds() bool { return s.OnFull == shedWhenFull }

// Poisson reports whether ops arrive at random intervals.
func (s *Schedule) Poisson() bool { return s.Arrivals == poissonArrivals }

// Shape returns the rate over time of an open load.
func (o *Open) Shape() Shape { return Shape{Rate: o.Rate, Ramp: o.Ramp, Duration: o.Duration} }

// scheduleWords are the arguments of a Schedule.
var scheduleWords = []string{"arrivals", "sessions", "pipeline", "in_flight", "on_full", "drain"}

// open reads an open load.
func (b *block) open() *Open {
	b.Expect(slices.Concat([]string{"rate", "duration", "ramp", "warmup"}, scheduleWords), []string{"trace", "chain", "reconnect"})
	o := &Open{Schedule: b.schedule(5 * time.Second)}
	o.Reconnect = b.reconnect()
	if in := b.inner("trace"); in != nil {
		b.trace(o, in)
		return o
	}
	b.withoutTrace()
	b.level(&o.Rate, &o.Duration, &o.Ramp)
	b.Duration("warmup", &o.WarmUp)
	return o
}

// level reads a rate, its duration and the ramp to it.
func (b *block) level(rate *float64, duration, ramp *time.Duration) {
	b.Require("rate", `Write rate = "10k/s", or how much is to arrive.`)
	b.Rate("rate", rate)
	b.Require("duration", `Write duration = "30s", or how long.`)
	b.Duration("duration", duration)
	b.Duration("ramp", ramp)
}

// schedule reads the arguments that all loads with a schedule have in common.
func (b *block) schedule(drain time.Duration) Schedule {
	s := Schedule{Arrivals: constantArrivals, Clients: Clients{Sessions: 16, Pipeline: 1}, OnFull: waitWhenFull, Drain: drain}
	b.Text("arrivals", &s.Arrivals)
	b.clients(&s.Clients)
	s.InFlight = int(min(int64(s.Sessions)*int64(min(max(s.Pipeline, 0), maxPipeline)), math.MaxInt32))
	dialect.Integer(b.Block, "in_flight", &s.InFlight)
	b.Text("on_full", &s.OnFull)
	b.Duration("drain", &s.Drain)
	s.Streams = streams(s.Sessions)
	return s
}

// minStreams is the least number of streams of an open load: enough for 100 workers with 10 loops each.
const minStreams = 1024

// streams returns the least multiple of sessions that is at least minStreams.
func streams(sessions int) int {
	if sessions < 1 || sessions > maxSessions {
		return 0
	}
	return (minStreams + sessions - 1) / sessions * sessions
}

// minStep is the shortest step of a search: a shorter one would measure only how steps begin and end.
const minStep = 10 * time.Millisecond

// open checks an open load.
func (v *validator) open(o *Open, at part) {
	v.schedule(&o.Schedule, at)
	v.level(o.Rate, o.Duration, o.Ramp, at)
	if o.Duration > 0 && o.Ramp == o.Duration {
		v.fault(at.where+": ramp is as long as duration", "Write a shorter ramp, or a longer duration: rates are counted after the ramp.", at.path+".ramp", at.path+".duration")
	}
	v.warmUp(at, o.WarmUp, o.Duration)
}

// level checks a rate, its duration and the ramp to it.
func (v *validator) level(rate float64, duration, ramp time.Duration, at part) {
	v.arrive(rate, at, "rate")
	v.lasts(at, "duration", duration, time.Nanosecond)
	v.lasts(at, "ramp", ramp, 0)
	if ramp > duration {
		v.fault(at.where+": ramp is longer than duration", "Write a shorter ramp: duration includes it.", at.path+".ramp", at.path+".duration")
	}
}

// arrive checks an arrival rate.
func (v *validator) arrive(rate float64, at part, name string) {
	if !(rate > 0 && rate <= maxRate) {
		v.fault(fmt.Sprintf("%s: %s = %g per second", at.where, name, rate), "Write a rate above 0 and up to 1G/s.", at.path+"."+name)
	}
}

// schedule checks what all loads with a schedule have in common.
func (v *validator) schedule(s *Schedule, at part) {
	v.clients(&s.Clients, at)
	v.lasts(at, "drain", s.Drain, 0)
	v.oneOf(at, "arrivals", s.Arrivals, constantArrivals, poissonArrivals)
	v.oneOf(at, "on_full", s.OnFull, waitWhenFull, shedWhenFull)
	if most := int64(s.Sessions) * int64(s.Pipeline); most > 0 && (s.InFlight < 1 || int64(s.InFlight) > most) {
		v.fault(fmt.Sprintf("%s: in_flight = %d", at.where, s.InFlight),
			fmt.Sprintf("Write a number from 1 to sessions × pipeline = %d, or more sessions.", most),
			at.path+".in_flight", at.path+".sessions", at.path+".pipeline")
	}
	if s.Streams != streams(s.Sessions) {
		v.fault(fmt.Sprintf("%s: %d streams", at.where, s.Streams), fmt.Sprintf("Write %d.", streams(s.Sessions)), at.path+".sessions")
	}
}
