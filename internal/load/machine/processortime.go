package machine

import (
	"syscall"
	"time"
)

// ProcessorTime is the CPU time that this process has used, user + system.
func ProcessorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for an invalid argument
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
