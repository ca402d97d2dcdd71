package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/plan/pace"
)

// Closed is a load of a fixed number of sessions, each with Pipeline ops in flight: the next op is due when one ends.
type Closed struct {
	Clients
	Iterations int64         `json:"iterations"`  // ops per session; 0 for until Duration, or the end of a sequence
	Duration   time.Duration `json:"duration_ns"` // 0 for until Iterations; if both are set, whichever comes first ends the load
	Ramp       time.Duration `json:"ramp_ns"`     // session i of n starts at Ramp·i/n
	WarmUp     time.Duration `json:"warmup_ns"`   // excluded from rates and latencies; 0 if derived from the series
	Think      time.Duration `json:"think_ns"`    // from an op's end to the next one's due time; the mean of Thinks

	Thinks *pace.Times `json:"think,omitempty"`  // nil if think times are all the same
	Trace  *Trace      `json:"trace,omitempty"`  // source of ops; nil for none
	Stages []Users     `json:"stages,omitempty"` // how many sessions there are over time, Sessions at most, for Duration in all; none if always Sessions
}

// closed reads a closed load.
func (b *block) closed() *Closed {
	c := &Closed{Clients: Clients{Sessions: 1, Pipeline: 1}}
	b.Expect([]string{"sessions", "iterations", "duration", "pipeline", "ramp", "warmup", "think"}, []string{"trace", "chain", "reconnect"})
	b.clients(&c.Clients)
	dialect.Integer(b.Block, "iterations", &c.Iterations)
	b.Duration("duration", &c.Duration)
	b.Duration("ramp", &c.Ramp)
	b.Duration("warmup", &c.WarmUp)
	b.think(&c.Think, &c.Thinks)
	c.Trace, c.Reconnect = b.untimedTrace(), b.reconnect()
	// 0 stands for an absent argument, so one that is present must not be 0.
	if c.Iterations == 0 {
		b.notZero("iterations", endsAtOnce, writeMore)
	}
	if c.Duration == 0 {
		b.notZero("duration", endsAtOnce, writeMore)
	}
	return c
}

const writeThinks = `Write a time such as "1s", "uniform(1s, 3s)", "exponential(2s, 20s)" for mean and maximum, or "lognormal(2s, 0.5, 20s)" for median, sigma and maximum.`

// think reads a think time: its mean, and how it is drawn unless it is constant.
func (b *block) think(mean *time.Duration, drawn **pace.Times) {
	v, ok := b.Value("think")
	if !ok || v.Type() != cty.String || !strings.Contains(v.AsString(), "(") {
		b.Duration("think", mean)
		return
	}
	t, ok := pace.ReadTimes(v.AsString())
	if !ok || t.Family == "exp" || t.Second == 0 {
		b.Bad("think", "unknown times "+dialect.Quote(v.AsString()), writeThinks)
		return
	}
	if err := t.Validate(maxDuration); err != nil {
		b.Bad("think", err.Error(), writeThinks)
		return
	}
	*mean, *drawn = t.Mean(), &t
}

// think checks a think time.
func (v *validator) think(mean time.Duration, drawn *pace.Times, at part) {
	v.lasts(at, "think", mean, 0)
	if drawn != nil && (drawn.Validate(maxDuration) != nil || mean != drawn.Mean()) {
		v.fault(at.where+": think", writeThinks, at.path+".think")
	}
}

const (
	endsAtOnce = "0 ends the load before it begins"
	writeMore  = "Write more than 0, or leave it out."
)

// notZero reports an argument that is present although its value is zero.
func (b *block) notZero(name, what, write string) {
	if b.r.Wrong[b.Path+"."+name] {
		return
	}
	if _, ok := b.Value(name); ok {
		b.Bad(name, what, write)
	}
}

// closed checks a closed load.
func (v *validator) closed(ph *Phase, at part) {
	c := ph.Closed
	v.clients(&c.Clients, at)
	v.users(c, at)
	if c.Iterations != 0 { // 0 for none
		v.within(at, "iterations", c.Iterations, 1, maxIterations)
	}
	if c.Duration != 0 {
		v.lasts(at, "duration", c.Duration, time.Nanosecond)
	}
	v.lasts(at, "ramp", c.Ramp, 0)
	v.think(c.Think, c.Thinks, at)
	d := v.plan.Dataset(ph.Dataset)
	switch {
	case c.Iterations != 0 || c.Duration != 0:
	case c.Trace != nil && c.Trace.Loop:
		v.fault(at.where+": a trace that begins again, and neither iterations nor duration", `Write duration = "30s", or iterations = 1000 for each session, or leave loop out.`,
			at.path+".trace.loop", at.path)
	case c.Trace == nil && d != nil && d.Keys.Pick != sequencePick && !d.Rows.Once():
		v.fault(at.where+": neither iterations nor duration", `Write iterations = 1000, for each session, or duration = "30s".`,
			at.path, at.path+".iterations", at.path+".duration", "dataset."+d.Name+".keys.pick")
	}
	v.warmUp(at, c.WarmUp, c.Duration)
	if c.Duration > 0 && c.Ramp >= c.Duration {
		v.fault(at.where+": ramp is not shorter than duration", "Write a shorter ramp, or a longer duration.", at.path+".ramp", at.path+".duration")
	}
}

// warmUp checks a warm-up, the beginning of a load that figures exclude. It requires a duration: otherwise it is unknown how much is left.
func (v *validator) warmUp(at part, warmUp, duration time.Duration) {
	v.lasts(at, "warmup", warmUp, 0)
	switch {
	case warmUp > 0 && duration == 0:
		v.fault(at.where+": warmup without duration", `Write duration = "60s" instead of iterations: of a load that ends with its work, nobody knows how much a warm-up would leave.`,
			at.path+".warmup", at.path)
	case warmUp > 0 && warmUp > duration-leastMeasured:
		v.fault(fmt.Sprintf("%s: warmup leaves less than %v of duration", at.where, leastMeasured), "Write a shorter warmup, or a longer duration: it is a part of it.",
			at.path+".warmup", at.path+".duration")
	}
}

// leastMeasured is the least time that a warm-up must leave: it ends on a full second of the run's clock.
const leastMeasured = 2 * time.Second
