package machine

import (
	"syscall"
	"time"
)

// ProcessorTime is what this process has used, user + system.
func ProcessorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for a wrong selector
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
