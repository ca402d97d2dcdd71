package judge

import (
	"cmp"
	"math"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/run/conditions"
	"github.com/loadgen/loadgen/pkg/plan"
)

// generator keeps why parts of the generator's account are null.
func (b *builder) generator() {
	g := &b.phase.Generator
	if g.RunQueueWait == nil {
		why := "no kernel of a worker says: /proc/thread-self/schedstat is not there"
		if g.Executor == plan.Blocking {
			why = "loops of the blocking executor have no threads of their own: see sched_latency_p99_seconds"
		}
		b.null("generator.run_queue_wait", reason.NotCounted, why)
	}
	if g.Throttled == nil {
		b.null("generator.throttled", reason.NotCounted, "no kernel of a worker says: /proc/self/cgroup is not there")
	}
	if g.Interrupted == nil {
		b.null("generator.interrupted", reason.NotCounted, "it is counted for open and closed loads on event loops, where the kernel has /proc/thread-self/schedstat")
	}
	if g.TCP == nil {
		b.null("generator.tcp", reason.NotCounted, "the load had no TCP connections, or its driver made them itself")
	}
	if g.Machine == nil {
		b.null("generator.machine", reason.NotCounted, cmp.Or(g.MachineUnknown, "it is read while a load is measured, and no worker says"))
	}
}

// mergeGenerators sums what was spent over workers, and takes the greatest of what is a level. What some workers do not know is that of
// the others.
func mergeGenerators(all []measure.Generator) measure.Generator {
	var sum measure.Generator
	for _, g := range all {
		sum.Executor = cmp.Or(sum.Executor, g.Executor) // the plan's, so they all have it
		sum.Loops += g.Loops
		sum.CPUSeconds += g.CPUSeconds
		sum.AddSpent(&g)
		sum.GCCycles += g.GCCycles
		sum.Mallocs += g.Mallocs
		sum.ProductiveSeconds += g.ProductiveSeconds
		sum.MaxRSSBytes = max(sum.MaxRSSBytes, g.MaxRSSBytes)
		sum.Busy = max(sum.Busy, g.Busy)
		sum.GCPauseMaxSeconds = max(sum.GCPauseMaxSeconds, g.GCPauseMaxSeconds)
		sum.SchedLatencyP99Seconds = max(sum.SchedLatencyP99Seconds, g.SchedLatencyP99Seconds)
		if w := g.RunQueueWait; w != nil {
			if sum.RunQueueWait == nil {
				sum.RunQueueWait = new(float64)
			}
			*sum.RunQueueWait = max(*sum.RunQueueWait, *w)
		}
		if t := g.Throttled; t != nil {
			if sum.Throttled == nil {
				sum.Throttled = new(measure.Throttled)
			}
			sum.Throttled.Periods += t.Periods
			sum.Throttled.Seconds += t.Seconds
		}
		if i := g.Interrupted; i != nil {
			if sum.Interrupted == nil {
				sum.Interrupted = new(measure.Interrupted)
			}
			sum.Interrupted.Add(i)
		}
		if t := g.TCP; t != nil {
			if sum.TCP == nil {
				sum.TCP = new(measure.TCP)
			}
			sum.TCP.BytesSent += t.BytesSent
			sum.TCP.BytesRetransmitted += t.BytesRetransmitted
			sum.TCP.Retransmits += t.Retransmits
		}
		if m := withoutWorkers(&g, all); m != nil && m.Worse(sum.Machine) {
			sum.Machine = m
		}
		sum.MachineUnknown = cmp.Or(sum.MachineUnknown, g.MachineUnknown)
	}
	return sum
}

// withoutWorkers returns what a worker says of its machine, where other workers on it are not others.
func withoutWorkers(g *measure.Generator, all []measure.Generator) *measure.Machine {
	if g.Machine == nil {
		return nil
	}
	m := measure.Machine{OthersShare: g.Machine.OthersShare, IdleShare: g.Machine.IdleShare}
	workers := -g.CPUSeconds
	for _, w := range all {
		if w.Machine != nil && w.Machine.Host == g.Machine.Host {
			workers += w.CPUSeconds
		}
	}
	if g.Machine.Host != "" && g.Machine.Seconds > 0 {
		m.OthersShare = max(0, m.OthersShare-workers/g.Machine.Seconds)
	}
	return &m
}

// judgeGenerator asks whether the figures are those of the target or of loadgen.
func (p *phase) judgeGenerator() {
	g, busy := p.Generator, quantity.Percent(p.Generator.Busy)
	switch closed := p.Closed(); {
	case closed && g.Busy > invalidBusy:
		p.doubt(reason.ClientBound, run.Suspect, append(p.each(rateFigures), "steady.rate"), "client-bound: the generator's loop was busy %s of the time, so the rate is its own", busy)
	case p.Model == conditions.Search && g.Busy > invalidBusy: // what holds nevertheless would hold all the more with an idle one
		p.doubt(reason.ClientBound, run.Suspect, p.each(latencyFigures), "client-bound: the generator's loop was busy %s of the time, so latencies are its own, too", busy)
	case g.Busy > invalidBusy:
		p.doubt(reason.ClientBound, run.Invalid, p.all(), "client-bound: the generator's loop was busy %s of the time", busy)
	case !closed && g.Busy > suspectBusy:
		p.doubt(reason.GeneratorBusy, run.Suspect, p.each(latencyFigures), "the generator's loop was busy %s of the time", busy)
	}
	switch {
	case p.Stalls == 0 && p.Closed():
		p.judgeGaps()
	case p.Stalls == 0:
	case p.Closed(): // its lag does not show it
		p.doubt(reason.StoodStill, run.Suspect, p.each(rateFigures, latencyFigures), "the generator stood still %s for more than 250 ms, at most %s",
			quantity.Count(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	default:
		p.doubt(reason.StoodStill, p.stalled(), p.each(latencyFigures, []string{"lag"}), "the generator stood still %s for more than 250 ms, at most %s",
			quantity.Count(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	}
	blocks := g.Executor == plan.Blocking // whose clients allocate: collections are part of them, long stops are not
	if g.GCCycles > 0 && (!blocks || g.GCPauseMaxSeconds > suspectPause) {
		p.doubt(reason.GarbageCollection, run.Suspect, p.each(latencyFigures), "%s ran in the generator while it measured", quantity.Count(uint64(g.GCCycles), "garbage collection"))
	}
	if blocks && g.SchedLatencyP99Seconds > suspectSched {
		p.doubt(reason.GoScheduler, run.Suspect, p.each(latencyFigures, []string{"lag"}), "goroutines that could run waited for a thread: p99 %s", quantity.Duration(g.SchedLatencyP99Seconds))
	}
}

// judgeGaps asks of a closed phase, whose ops have no lag, whether the loop was kept from them: for a share of the time, or now and then for so
// long that the last thousandth of the latencies is made of it.
func (p *phase) judgeGaps() {
	g := p.Generator
	i := g.Interrupted
	if i == nil || i.Times == 0 {
		return
	}
	if w := g.RunQueueWait; w != nil && *w > suspectQueued && i.OthersSeconds > i.Seconds/2 {
		return // judgeMachine says the same of as many figures
	}
	loops := float64(max(1, g.Loops))
	long := min(float64(i.Times), math.Floor(i.Seconds/measure.LongGap.Seconds()))
	met := long * float64(max(1, p.Load.Sessions)*max(1, p.Load.Pipeline)) / loops // ops that may have been in flight
	why := kept(i, "the rest is a stop of the process, a hypervisor's, or work of the loop itself")
	switch {
	case i.Seconds/loops > suspectGaps*p.Seconds:
		p.doubt(reason.Interrupted, run.Suspect, p.each(rateFigures, latencyFigures), "%s", why)
	case i.MaxSeconds >= measure.LongGap.Seconds() && met >= suspectMet*p.ended():
		p.doubt(reason.Interrupted, run.Suspect, p.each(tailFigures), "%s", why)
	}
}

// ended is how many ops were answered.
func (p *phase) ended() (n float64) {
	for _, o := range p.Op {
		n += float64(o.OK + o.Miss)
	}
	return n
}

// stalled judges an open phase in which loops stood still: when 1 % of the ops or more were late for it, they are the load of another schedule.
func (p *phase) stalled() run.Validity {
	for _, o := range p.Op {
		for _, q := range lateness {
			if lag := q.of(&o.Lag); lag != nil && *lag > suspectLag && p.generatorLag(q.beyond) > suspectLag {
				return run.Invalid
			}
		}
	}
	return run.Suspect
}

// judgeMachine asks what kept the generator, or its packets, from moving.
func (p *phase) judgeMachine() {
	g := p.Generator
	if w := g.RunQueueWait; w != nil && *w > suspectQueued {
		v, touches := run.Suspect, p.each(rateFigures, latencyFigures)
		if !p.Closed() {
			touches = p.each(latencyFigures, []string{"lag"})
			if *w > invalidQueued && p.Model != conditions.Search { // what holds nevertheless would hold all the more otherwise
				v = run.Invalid
			}
		}
		others := "others"
		if p.Target.Builtin {
			others = "others (such as the built-in nodes)"
		}
		p.doubt(reason.RunQueue, v, touches, "the generator's loop waited %s of the time for a processor, which %s had", quantity.Percent(*w), others)
	}
	if t := g.Throttled; t != nil && t.Periods > 0 {
		p.doubt(reason.CpuQuota, run.Invalid, p.all(), "a CPU quota kept the generator from running %s, for %s in all", quantity.Count(t.Periods, "time"), quantity.Duration(t.Seconds))
	}
	if m := g.Machine; m.Doubtful() {
		p.doubt(reason.Neighbours, run.Suspect, append(p.each(rateFigures, latencyFigures), "achieved_rate", "steady"),
			"processes other than loadgen's and the target's had %s of the processors' time on a worker's machine, and %s of it was idle: loadgen or the target may have wanted it; stop them, or run where they are not",
			quantity.Percent(m.OthersShare), quantity.Percent(m.IdleShare))
	}
	if t := g.TCP; t != nil && t.BytesSent > 0 {
		if share := float64(t.BytesRetransmitted) / float64(t.BytesSent); share > suspectResent {
			p.doubt(reason.Retransmits, run.Suspect, p.each(latencyFigures), "TCP sent %s of the bytes again, in %s: the network lost them, or the other end was late",
				quantity.Percent(share), quantity.Count(t.Retransmits, "segment"))
		}
	}
}
