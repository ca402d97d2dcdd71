package engine

import (
	"bytes"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// meter reads the kernel's accounting of one thread. It belongs to that thread.
//
//   - Processor time is the clock CLOCK_THREAD_CPUTIME_ID (clock_gettime(2)).
//   - /proc/thread-self/schedstat has three numbers: nanoseconds on a processor, nanoseconds ready to run without one, and how often
//     it was given one (Documentation/scheduler/sched-stats.rst in Linux). Kernels without CONFIG_SCHED_INFO have no such file.
type meter struct {
	schedstat int // file descriptor; negative if there is none, so that nothing can be read
	cpu       int64
	queued    queueing
	seen      queueing // the reading of the last call of kept
	line      [64]byte
}

// queueing is how long a thread has waited for a processor in its life, and how often it was given one.
type queueing struct {
	waited int64 // nanoseconds
	times  int64
	known  bool
}

// waking is how long a thread may wait for a processor each time, in nanoseconds: on an idle machine, a sleeping thread gets one 3 to 10 µs after it
// is woken. During any longer wait, others had the processor.
const waking = 10_000

// beyond returns how long the thread has waited since an earlier reading, less what waking up takes.
func (q queueing) beyond(earlier queueing) int64 {
	return max(0, q.waited-earlier.waited-waking*(q.times-earlier.times))
}

// newMeter returns the meter of the thread that calls it.
func newMeter() *meter { return openMeter("/proc/thread-self/schedstat") }

// openMeter returns a meter that reads the thread's schedstat from a path.
func openMeter(path string) *meter {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &meter{schedstat: fd}
}

// begin makes later readings count from now. A nil meter reads nothing.
func (m *meter) begin() {
	if m != nil {
		m.cpu, m.queued = m.processor(), m.queue()
		m.seen = m.queued
	}
}

// since returns what the thread used since begin. spun is the part of its processor time in which it looked for something to do.
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

// kept returns how long other threads had this thread's processor since the last call.
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
	// This must be a raw system call, since a held loop makes it. During any other the runtime may take its processor (P) away, and a held goroutine
	// that has to wait for another ends the process.
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(m.schedstat), uintptr(unsafe.Pointer(&m.line[0])), uintptr(len(m.line)), 0, 0, 0)
	if errno != 0 {
		return queueing{}
	}
	return parseSchedstat(m.line[:n])
}

// parseSchedstat reads the three numbers of the line: nanoseconds on a processor, nanoseconds waiting for one, and how often the thread got one. It
// allocates nothing: a loop may call it many times a second, for days.
func parseSchedstat(line []byte) queueing {
	var fields [3]int64
	n := 0
	for word := range bytes.FieldsSeq(line) {
		if n == len(fields) {
			break // fields of later kernels
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

// loopUse is how one loop spent its time in a step, in nanoseconds.
type loopUse struct {
	wall       int64 // from its beginning to its end
	productive int64 // processor time, less the time spent looking for something to do
	waited     int64 // ready to run without a processor, beyond what waking takes
	waitKnown  bool
	gaps       *gaps // nil if gaps were not counted

	rateWait, bytesWait int64 // how long due ops waited for the policy's rate, and for its bytes_per_second
}

// gaps sums up the times for which a loop was kept from its processor.
type gaps struct {
	times                  uint64
	total, longest, others int64 // nanoseconds
}

// leastGap is the shortest gap that is examined, which takes a system call, and counted.
const leastGap = int64(200 * time.Microsecond)

// enter records a cycle that overran by excess. For others of that time, other threads had the processor. If whole, all of excess counts: for an idle
// cycle, which only reads the clock, because something else must have taken the rest; for a closed load's long cycle, because the delay is in the
// latencies of the ops in flight, whatever caused it.
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
