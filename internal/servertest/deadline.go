package servertest

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// hangs is the longest that a test with a deadline may take: about ten times as long as the slowest with -race on a machine with two busy processors.
const hangs = 3 * time.Minute

// Deadline ends the test program if t is not over after three minutes, which are virtual if it is called in a synctest bubble. It names t and prints
// the stacks of all goroutines. Without it, a hanging test blocks the rest of its package until go test's -timeout. Helpers that most tests of a
// package use call it. Benchmarks have no deadline.
func Deadline(t testing.TB) {
	t.Helper()
	if _, bench := t.(*testing.B); bench {
		return
	}
	name := t.Name()
	timer := time.AfterFunc(hangs, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s is not over after %v", name, hangs))
	})
	t.Cleanup(func() { timer.Stop() })
}
