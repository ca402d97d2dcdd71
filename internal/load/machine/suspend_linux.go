package machine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Suspended returns how long this machine has been suspended since it started: the lead of CLOCK_BOOTTIME, which goes on during suspension, over
// CLOCK_MONOTONIC, which processes measure time by (clock_gettime(2)). If the caller is interrupted between the two readings, the result is that much
// less. Both are raw system calls, which take about 0.2 µs together, so a goroutine that is locked to its processor may call it.
func Suspended() time.Duration {
	boot := raw(unix.CLOCK_BOOTTIME)
	return time.Duration(boot - raw(unix.CLOCK_MONOTONIC))
}

// raw reads a clock, in nanoseconds.
func raw(clock uintptr) int64 {
	var t unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic(errno) // only for an invalid address or clock
	}
	return t.Nano()
}
