package servertest

import (
	"os"
	"strconv"
)

// Loops is how many event loops a worker has in tests that do not choose a number: LOADGEN_TEST_LOOPS, or 1. It does not depend on the machine's
// processors, so that a test that fails does so on all machines.
func Loops() int {
	n, err := strconv.Atoi(os.Getenv("LOADGEN_TEST_LOOPS"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Whole reports whether tests that compute on one goroutine do all of their work. They do only a part under the race detector, which finds nothing
// there and takes ten times as long, and with several event loops, which they do not use. Where tools/test.sh has the detector watch, it runs them
// apart, where the answer is yes.
func Whole() bool { return !raced && Loops() == 1 }

// Draws returns how many draws a simulation makes: as many as LOADGEN_TEST_DRAWS says, or a few.
func Draws(few int) int {
	n, err := strconv.Atoi(os.Getenv("LOADGEN_TEST_DRAWS"))
	if err != nil || n < 1 {
		return few
	}
	return n
}
