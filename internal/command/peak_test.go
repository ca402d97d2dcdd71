package command_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// peak tracks the peak memory of a started process. The function it returns waits for the process to end, and returns the peak in bytes. wait(2)
// reports at least what the parent used when it started the process, so it says nothing about a small one.
func peak(pid int) func() int64 {
	most := make(chan int64, 1)
	go func() {
		top := int64(0)
		for {
			now, ok := highWater(pid)
			if !ok {
				most <- top
				return
			}
			top = max(top, now)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() int64 { return <-most }
}

// highWater returns the most bytes that a process has had in memory so far; false once it has none.
func highWater(pid int) (bytes int64, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
