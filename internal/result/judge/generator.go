package judge

import (
	"cmp"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/plan"
)

// generator records why parts of the generator's figures are null.
func (p *phase) generator() {
	g := &p.Generator
	if g.RunQueueWait == nil {
		why := "no worker's kernel counts it: /proc/thread-self/schedstat is missing"
		if g.Executor == plan.Blocking {
			why = "loops of the blocking executor have no threads of their own: see sched_latency_p99_seconds"
		}
		p.null("generator.run_queue_wait", reason.NotCounted, why)
	}
	if g.Throttled == nil {
		p.null("generator.throttled", reason.NotCounted, "no worker's kernel counts it: /proc/self/cgroup is missing")
	}
	if g.Interrupted == nil {
		p.null("generator.interrupted", reason.NotCounted, "it is counted for open and closed loads on event loops, where the kernel has /proc/thread-self/schedstat")
	}
	if g.TCP == nil {
		p.null("generator.tcp", reason.NotCounted, "the load had no TCP connections, or its driver made them itself")
	}
	if g.Machine == nil {
		p.null("generator.machine", reason.NotCounted, cmp.Or(g.MachineUnknown, "it is read while a load is measured, and no worker reported it"))
	}
}

// mergeGenerators sums what workers spent, and takes the maximum of figures such as shares and peaks. A figure that only some workers know is taken
// from those.
func mergeGenerators(all []measure.Generator) measure.Generator {
	var sum measure.Generator
	for _, g := range all {
		sum.Executor = cmp.Or(sum.Executor, g.Executor) // the plan sets it, so it is the same for all workers
		sum.Loops += g.Loops
		sum.CPUSeconds += g.CPUSeconds
		sum.AddSpent(&g)
		sum.GCCycles += g.GCCycles
		sum.Mallocs += g.Mallocs
		sum.NoLocalPort += g.NoLocalPort
		sum.Abandoned += g.Abandoned
		sum.Unasked.Add(g.Unasked)
		sum.ProductiveSeconds += g.ProductiveSeconds
		sum.MaxRSSBytes = max(sum.MaxRSSBytes, g.MaxRSSBytes)
		sum.Busy = max(sum.Busy, g.Busy)
		sum.RateWait, sum.BytesWait = max(sum.RateWait, g.RateWait), max(sum.BytesWait, g.BytesWait)
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

// withoutWorkers returns a worker's view of its machine, without the share of other workers on it in others_share.
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
