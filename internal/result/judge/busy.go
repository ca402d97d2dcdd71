package judge

import (
	"fmt"
	"math"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// heldBack says that a worker's policy kept ops from starting when they were due. It returns "" if that was the case for no more than 1 % of the
// time.
func heldBack(g *measure.Generator) string {
	limit, share := "rate", g.RateWait
	if g.BytesWait > share {
		limit, share = "bytes_per_second", g.BytesWait
	}
	if share <= invalidHeldBack {
		return ""
	}
	return fmt.Sprintf("a worker's policy held the load back: ops that were due waited for its %s %s of the time", limit, quantity.Percent(share))
}

// judgePolicy checks whether a worker's policy held the load back. This comes before its consequences, such as a rate below the one offered.
func (p *phase) judgePolicy(d *doubts) {
	if why := heldBack(&p.Generator); why != "" && p.Kind.Timed() {
		d.add(reason.PolicyLimit, run.Invalid, p.all(), "%s", why)
	}
}

// NoLocalPort is the code of a generator whose machine has run out of local ports.
const NoLocalPort reason.Code = "no_local_port"

// abandoned is the code of a load that went on at the target beyond its end.
const abandoned reason.Code = "abandoned"

// judgeGenerator checks whether the figures describe the target or loadgen itself.
func (p *phase) judgeGenerator(d *doubts) {
	g, busy := p.Generator, quantity.Percent(p.Generator.Busy)
	switch closed := p.Closed(); {
	case closed && g.Busy > invalidBusy:
		d.add(reason.ClientBound, run.Suspect, append(p.each(rateFigures()), "steady.rate"), "client-bound: the generator's loop was busy %s of the time, so the rate is loadgen's limit, not the target's", busy)
	case p.Model == run.ModelSearch && g.Busy > invalidBusy: // a rate that holds would also hold with an idle generator
		d.add(reason.ClientBound, run.Suspect, p.each(latencyFigures), "client-bound: the generator's loop was busy %s of the time, so latencies include its own delays", busy)
	case g.Busy > invalidBusy:
		d.add(reason.ClientBound, run.Invalid, p.all(), "client-bound: the generator's loop was busy %s of the time", busy)
	case !closed && g.Busy > suspectBusy:
		d.add(reason.GeneratorBusy, run.Suspect, p.each(latencyFigures), "the generator's loop was busy %s of the time", busy)
	}
	if g.NoLocalPort > 0 {
		d.add(NoLocalPort, run.Suspect, p.all(),
			"%s to connect found no local port or address: keep connections open, load from fewer sessions or more machines, or widen net.ipv4.ip_local_port_range",
			quantity.Count(g.NoLocalPort, "attempt"))
	}
	if g.Abandoned > 0 {
		d.add(abandoned, run.Suspect, p.all(), "at the end, %s closed whose server was still at work for the load, and had not given up within 2 s of being asked: look there for what goes on",
			quantity.Count(g.Abandoned, "connection")+" had to be")
	}
	switch {
	case p.Stalls == 0 && p.Closed():
		p.judgeGaps(d)
	case p.Stalls == 0:
	case p.Closed(): // a closed load's lag does not show a stall
		d.add(reason.StoodStill, run.Suspect, p.each(rateFigures(), latencyFigures), "the generator stood still %s for more than 250 ms, at most %s",
			quantity.Count(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	default:
		d.add(reason.StoodStill, p.stalled(), p.each(latencyFigures, []string{"lag"}), "the generator stood still %s for more than 250 ms, at most %s",
			quantity.Count(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	}
	blocks := g.Executor == plan.Blocking // clients that block allocate, so collections are part of their work, but long stops are not
	if g.GCCycles > 0 && (!blocks || g.GCPauseMaxSeconds > suspectPause) {
		d.add(reason.GarbageCollection, run.Suspect, p.each(latencyFigures), "%s ran in the generator while it measured", quantity.Count(uint64(g.GCCycles), "garbage collection"))
	}
	if blocks && g.SchedLatencyP99Seconds > suspectSched {
		d.add(reason.GoScheduler, run.Suspect, p.each(latencyFigures, []string{"lag"}), "goroutines that could run waited for a thread: p99 %s", quantity.Duration(g.SchedLatencyP99Seconds))
	}
}

// judgeGaps checks whether a closed phase's loops were kept from their processors, which lag does not show: for a share of the time, or occasionally
// for so long that the gaps make up the slowest thousandth of the latencies.
func (p *phase) judgeGaps(d *doubts) {
	g := p.Generator
	i := g.Interrupted
	if i == nil || i.Times == 0 {
		return
	}
	if w := g.RunQueueWait; w != nil && *w > suspectQueued && i.OthersSeconds > i.Seconds/2 {
		return // judgeMachine says the same about all these figures
	}
	loops := float64(max(1, g.Loops))
	long := min(float64(i.Times), math.Floor(i.Seconds/measure.LongGap.Seconds()))
	met := long * float64(max(1, p.Load.Sessions)*max(1, p.Load.Pipeline)) / loops // how many ops the gaps may have met in flight
	why := kept(i, "the rest was a stop of the process, a hypervisor, or the loop's own work")
	switch {
	case i.Seconds/loops > suspectGaps*p.Seconds:
		d.add(reason.Interrupted, run.Suspect, p.each(rateFigures(), latencyFigures), "%s", why)
	case i.MaxSeconds >= measure.LongGap.Seconds() && met >= suspectMet*p.ended():
		d.add(reason.Interrupted, run.Suspect, p.each(tailFigures), "%s", why)
	}
}

// ended returns how many ops were answered.
func (p *phase) ended() (n float64) {
	for _, o := range p.parts() {
		n += float64(o.OK + o.Miss)
	}
	return n
}

// stalled judges an open phase whose loops stood still: if that made at least 1 % of the ops late, the load is that of another schedule.
func (p *phase) stalled() run.Validity {
	for _, o := range p.parts() {
		for _, q := range lateness {
			if lag := q.of(&o.Lag); lag != nil && *lag > suspectLag && p.generatorLag(q.beyond) > suspectLag {
				return run.Invalid
			}
		}
	}
	return run.Suspect
}

// judgeMachine checks whether the machine held up the generator or its packets.
func (p *phase) judgeMachine(d *doubts) {
	g := p.Generator
	if w := g.RunQueueWait; w != nil && *w > suspectQueued {
		v, touches := run.Suspect, p.each(rateFigures(), latencyFigures)
		if !p.Closed() {
			touches = p.each(latencyFigures, []string{"lag"})
			if *w > invalidQueued && p.Model != run.ModelSearch { // a rate that holds would also hold without the wait
				v = run.Invalid
			}
		}
		others := "others had"
		switch m := g.Machine; {
		case p.Target.Builtin:
			others = "others (such as the built-in nodes) had"
		case m != nil && m.OthersShare < *w/2:
			others = "others had, or a limit on loadgen's surroundings that it cannot see, such as a container's CPU quota"
		}
		d.add(reason.RunQueue, v, touches, "the generator's loop waited %s of the time for a processor, which %s", quantity.Percent(*w), others)
	}
	if t := g.Throttled; t != nil && t.Periods > 0 {
		d.add(reason.CpuQuota, run.Invalid, p.all(), "a CPU quota kept the generator from running %s, for %s in all", quantity.Count(t.Periods, "time"), quantity.Duration(t.Seconds))
	}
	if m := g.Machine; m.Doubtful() {
		d.add(reason.Neighbours, run.Suspect, append(p.each(rateFigures(), latencyFigures), "achieved_rate", "steady"),
			"processes other than loadgen's and the target's had %s of the processors' time on a worker's machine, and %s of it was idle: loadgen or the target may have needed it; stop them, or use another machine",
			quantity.Percent(m.OthersShare), quantity.Percent(m.IdleShare))
	}
	if t := g.TCP; t != nil && t.BytesSent > 0 {
		if share := float64(t.BytesRetransmitted) / float64(t.BytesSent); share > suspectResent {
			d.add(reason.Retransmits, run.Suspect, p.each(latencyFigures), "TCP sent %s of the bytes again, in %s: the network lost them, or the other end was late",
				quantity.Percent(share), quantity.Count(t.Retransmits, "segment"))
		}
	}
}
