package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/machine"
)

// ownThread locks the goroutine to its thread until release is called, and makes the kernel wake the thread at the end of a wait instead of up to 50
// µs later to save power. If cpus are given, the thread runs there, even if the process may not, and if pinned, with priority. The runtime starts no
// threads from a locked one, so other threads stay where they are.
func ownThread(cpus []int, pinned bool) (release func(), err error) {
	const least, standard = 1, 0 // nanoseconds; 0 restores the thread's initial value
	runtime.LockOSThread()
	unbind := func() error { return nil }
	if len(cpus) > 0 {
		if unbind, err = bind(cpus, pinned); err != nil {
			runtime.UnlockOSThread()
			return nil, fmt.Errorf("run a thread on CPU %s: %w: write CPUs in --pin that are in /sys/devices/system/cpu/online and that this control group may use", machine.List(cpus), err)
		}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, least, 0, 0, 0) // if it fails, waits are longer and lag shows it
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, standard, 0, 0, 0)
		if unbind() == nil {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}, nil
}

// pinnedNice is the nice value of a pinned thread. It gives the thread nine times the weight of others, so those bound to the same CPU still run
// every 30 ms or so.
const pinnedNice = -10

// bind restricts this thread to some CPUs and, if it is pinned and the process may, raises its priority there. A thread that watches the clock
// whenever it is idle has no credit with a fair scheduler, which would let system daemons run for milliseconds. undo reverts both.
func bind(cpus []int, pinned bool) (undo func() error, err error) {
	spread, err := machine.Confine(cpus)
	if err != nil || !pinned {
		return spread, err
	}
	const least = 20 // getpriority returns this minus the nice value
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, 0, pinnedNice) != nil {
		return spread, nil
	}
	return func() error { return cmp.Or(unix.Setpriority(unix.PRIO_PROCESS, 0, least-priority), spread()) }, nil
}

// ranOn records where a loop's thread ran in its latest step. It belongs to that thread during the step.
type ranOn struct {
	pinned     bool
	began, end int // CPUs at the step's begin and end; −1 if not known
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
