package selfcheck

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// Doubt is something about a machine that disturbs measurements.
type Doubt struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// Thresholds above or below which something becomes a doubt.
const (
	manyOthers  = 0.1              // processors that others use
	muchStolen  = 0.002            // share of processors' time that the hypervisor takes
	fewFiles    = 4096             // open files at the same time
	littleSpace = 512 << 20        // bytes of available memory
	slowClock   = 200              // ns to read the clock
	lateTimer   = time.Millisecond // p99 by which a sleep is too long
	muchTaken   = 0.01             // share of a thread's time
	longTaken   = 5 * time.Millisecond
)

// Doubt lists the facts about the machine that would disturb a measurement, and what to do about them.
func (r *Result) Doubt() {
	r.Doubts = []Doubt{}
	m, l := &r.Machine, &r.Lags
	doubt := func(is bool, remedy, what string, args ...any) {
		if is {
			r.Doubts = append(r.Doubts, Doubt{fmt.Sprintf(what, args...), remedy})
		}
	}
	doubt(m.CPUs < 2, "use a machine with two or more, or keep the target on another",
		"there is one processor: generator and target wait for each other")
	doubt(m.OtherCPUs != nil && *m.OtherCPUs > manyOthers, "stop them, or measure on a machine of its own",
		"other programs kept %.1f processors busy meanwhile", value(m.OtherCPUs))
	doubt(m.StolenShare != nil && *m.StolenShare > muchStolen, "take a machine whose processors are not shared with others' (a dedicated host)",
		"the hypervisor gave %.1f %% of the processors' time to other machines", 100*value(m.StolenShare))
	doubt(m.Throttled != nil && *m.Throttled > 0, "raise the quota (cpu.max of the control group, --cpus of a container)",
		"the control group had spent its processor time, and stood still, in %.0f periods", value(m.Throttled))
	doubt(m.CgroupCPUs != nil, "raise or lift it (cpu.max of the control group, --cpus of a container), or keep the load well below",
		"the control group may use %g processors: it stands still when they are spent", value(m.CgroupCPUs))
	doubt(m.Governor != "" && m.Governor != "performance", "cpupower frequency-set -g performance",
		"the processors' frequency follows their load (governor %s): after a pause, ops take longer", m.Governor)
	doubt(m.SMT != nil && *m.SMT, "pin generator and target to different cores (lscpu -e), or echo off >/sys/devices/system/cpu/smt/control",
		"two processors share a core (SMT): what runs on one slows the other")
	doubt(m.FDSoft != nil && *m.FDSoft < fewFiles, "ulimit -n 65536",
		"a process may have %.0f files open, connections included", value(m.FDSoft))
	doubt(m.AvailableBytes != nil && *m.AvailableBytes < littleSpace, "stop what holds it, or take a larger machine",
		"%.0f MiB of memory are available", value(m.AvailableBytes)/(1<<20))
	doubt(m.SwappedBytes != nil && *m.SwappedBytes > 0, "swapoff -a, once there is memory for it",
		"%.0f MiB of memory are swapped out: a program that touches them waits for a disk", value(m.SwappedBytes)/(1<<20))
	doubt(l.ClockNS > slowClock, "echo tsc >/sys/devices/system/clocksource/clocksource0/current_clocksource, if the processor has one that is stable",
		"reading the clock takes %.0f ns, from clock source %s", l.ClockNS, m.ClockSource)
	doubt(l.TimerP99 > lateTimer.Seconds(), "look for what keeps the processors from waking: other programs, power saving, a hypervisor",
		"1 %% of sleeps end more than %s late", quantity.Duration(l.TimerP99))
	doubt(l.Taken > muchTaken || l.LongestTaken > longTaken.Seconds(), "stop other programs, or keep processors free for this one (isolcpus, cpuset)",
		"a computing thread was kept waiting for %.1f %% of the time, up to %s at a stretch", 100*l.Taken, quantity.Duration(l.LongestTaken))
	for i := range r.Answers {
		c := &r.Answers[i]
		doubt(!c.OK && c.Queued > muchTaken, "stop other programs, and try again",
			"the generator waited for a processor for %.1f %% of the time while it measured %q", 100*c.Queued, c.Name)
	}
}

// value returns a number that may be missing; 0 if it is.
func value[T float64 | int64 | uint64](p *T) float64 {
	if p == nil {
		return 0
	}
	return float64(*p)
}
