package engine

import (
	"bytes"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// meter reads what the kernel has given one thread. It belongs to that thread.
//
//   - Processor time is the clock CLOCK_THREAD_CPUTIME_ID (clock_gettime(2)).
//   - /proc/thread-self/schedstat has three numbers: nanoseconds on a processor, nanoseconds ready to run without one, and how often
//     it was given one (Documentation/scheduler/sched-stats.rst in Linux). Kernels without CONFIG_SCHED_INFO have no such file.
type meter struct {
	schedstat int // descriptor; negative: there is none
	cpu       int64
	queued    queueing
	seen      queueing // when kept was last asked
	line      [64]byte
}

// queueing is what a thread has waited for a processor in its life.
type queueing struct {
	waited int64 // nanoseconds
	times  int64
	known  bool
}

// waking is what a thread may wait each time before it runs, in nanoseconds: on an idle machine, one that sleeps is given a processor 3 to
// 10 µs after it was woken. What is beyond that, others had.
const waking = 10_000

// beyond is what the thread has waited since an earlier reading, but for what wakings take.
func (q queueing) beyond(earlier queueing) int64 {
	return max(0, q.waited-earlier.waited-waking*(q.times-earlier.times))
}

// newMeter returns the meter of the thread that calls it.
func newMeter() *meter {
	fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &meter{schedstat: fd}
}

// begin has later readings count from now. A nil meter reads nothing.
func (m *meter) begin() {
	if m != nil {
		m.cpu, m.queued = m.processor(), m.queue()
		m.seen = m.queued
	}
}

// since returns what the thread had since begin; of its processor time, spun was spent looking for something to do.
func (m *meter) since(wall, spun int64) loopUse {
	u := loopUse{wall: wall}
	if m == nil {
		return u
	}
	u.productive = max(0, m.processor()-m.cpu-spun)
	if now := m.queue(); now.known && m.queued.known {
		u.waited, u.waitKnown = now.beyond(m.queued), true
	}
	return u
}

// kept returns for how long others have had the thread's processor since it was last asked.
func (m *meter) kept() (others int64, known bool) {
	now := m.queue()
	known = now.known && m.seen.known
	others = now.beyond(m.seen)
	m.seen = now
	return others, known
}

// close gives the descriptor back.
func (m *meter) close() {
	if m.schedstat >= 0 {
		_ = unix.Close(m.schedstat) // nothing was written to it
	}
}

// processor returns the thread's processor time in nanoseconds.
func (m *meter) processor() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // only for a wrong address or clock
	}
	return t.Nano()
}

func (m *meter) queue() queueing {
	if m.schedstat < 0 {
		return queueing{}
	}
	// A held loop asks, too. In a call that is not raw the runtime may take its processor away, and a held goroutine that has to wait for another one
	// ends the process.
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(m.schedstat), uintptr(unsafe.Pointer(&m.line[0])), uintptr(len(m.line)), 0, 0, 0)
	if errno != 0 {
		return queueing{}
	}
	return parseSchedstat(m.line[:n])
}

// parseSchedstat reads the line in three numbers: nanoseconds on a processor, nanoseconds that the thread waited for one, how often it got one. It
// allocates nothing: a loop may ask many times a second, for days.
func parseSchedstat(line []byte) queueing {
	var fields [3]int64
	n := 0
	for word := range bytes.FieldsSeq(line) {
		if n == len(fields) {
			break // a later kernel's
		}
		v, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return queueing{}
		}
		fields[n] = v
		n++
	}
	return queueing{waited: fields[1], times: fields[2], known: n == len(fields)}
}

// loopUse is what became of one loop's time in a step, in nanoseconds.
type loopUse struct {
	wall       int64 // from its beginning to its end
	productive int64 // processor time, that spent looking for something to do left out
	waited     int64 // ready to run, without a processor, and for longer than it takes to wake
	waitKnown  bool
	gaps       *gaps // nil: nobody counted them
}

// gaps sums up the times that a loop was kept from its processor.
type gaps struct {
	times                  uint64
	total, longest, others int64 // nanoseconds
}

// leastGap is how long one is to count, and to be looked into: that takes a system call.
const leastGap = int64(200 * time.Microsecond)

// enter takes up a cycle that lasted so much longer than it was to, of which others had the processor for a part. Whole: all the rest
// counts, too. An idle cycle did nothing but look at the clock, so the rest was somebody's. In a long one of a closed load whatever kept the loop, be it a
// stop or its own work, is in the latencies of what was in flight.
func (g *gaps) enter(excess, others int64, whole bool) {
	others = min(others, excess)
	kept := others
	if whole {
		kept = excess
	}
	if kept < leastGap {
		return
	}
	g.times++
	g.total += kept
	g.longest = max(g.longest, kept)
	g.others += others
}
