package engine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// ownThread locks the goroutine to its thread until release is called, and makes the kernel wake the thread when a wait is over instead of up to 50
// µs later, to save power. If cpu is not negative the thread runs there, even if it is not one of the process's CPUs. The runtime does not start
// threads from a locked one, so the others stay where they are.
func ownThread(cpu int) (release func(), err error) {
	const least, standard = 1, 0 // nanoseconds; 0 restores the thread's initial value
	runtime.LockOSThread()
	unpin := func() bool { return true }
	if cpu >= 0 {
		if unpin, err = pin(cpu); err != nil {
			runtime.UnlockOSThread()
			return nil, fmt.Errorf("run a thread on CPU %d: %w: write CPUs in --pin that are in /sys/devices/system/cpu/online and that this control group may use", cpu, err)
		}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, least, 0, 0, 0) // if it fails, waits are longer and lag shows it
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, standard, 0, 0, 0)
		if unpin() {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}, nil
}

// pinnedNice is the nice value of a pinned thread. It gives nine times the weight of other threads, so those bound to the same CPU still run every 30
// ms or so.
const pinnedNice = -10

// pin restricts this thread to one CPU and, if the process may, raises its priority there. A thread that watches the clock whenever it is idle has no
// credit with a fair scheduler, which would let system daemons run for milliseconds. undo takes that back, and reports whether it could.
func pin(cpu int) (undo func() bool, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	only.Set(cpu)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return nil, err
	}
	const least = 20 // getpriority returns this minus the nice value
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	preferred := err == nil && unix.Setpriority(unix.PRIO_PROCESS, 0, pinnedNice) == nil
	return func() bool {
		return (!preferred || unix.Setpriority(unix.PRIO_PROCESS, 0, least-priority) == nil) && unix.SchedSetaffinity(0, &before) == nil
	}, nil
}

// ranOn is where a loop's thread ran in its latest step. It belongs to that thread during the step.
type ranOn struct {
	pinned     bool
	began, end int // CPUs; −1: not known
}

func (r *ranOn) take(pinned bool) { r.pinned, r.began = pinned, onCPU() }
func (r *ranOn) leave()           { r.end = onCPU() }

// onCPU returns the number of the CPU that the calling thread runs on, or −1.
func onCPU() int {
	line, _ := os.ReadFile("/proc/thread-self/stat") // an empty line if it cannot be read
	return parseOnCPU(line)
}

// parseOnCPU reads field 39 of the line in proc(5)'s stat. The name in field 2, in parentheses, may contain any bytes.
func parseOnCPU(line []byte) int {
	const processor, afterName = 39, 3
	name := bytes.LastIndexByte(line, ')')
	words := bytes.Fields(line[name+1:])
	if name < 0 || len(words) <= processor-afterName {
		return -1
	}
	cpu, err := strconv.ParseUint(string(words[processor-afterName]), 10, 16)
	if err != nil {
		return -1
	}
	return int(cpu)
}
