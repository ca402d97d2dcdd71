package servertest

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// hangs is how long a test may take that has a deadline: some ten times what the slowest takes with -race on a machine with two busy processors.
const hangs = 3 * time.Minute

// Deadline ends the test program when t is not over after three minutes, which are virtual ones if it is called in a bubble: it names t and prints the stacks of all
// goroutines. Without it a test that hangs keeps the rest of its package waiting for as long as go test's -timeout says. Helpers call it that most
// tests of a package go through; benchmarks take as long as they are told to.
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
