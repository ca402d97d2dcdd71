package servertest

import (
	"os"
	"strconv"
)

// Loops is how many event loops a worker has in tests that do not choose a number of their own: LOADGEN_TEST_LOOPS, or 1. The machine's processors do not
// decide it: a test that fails fails on all machines.
func Loops() int {
	n, err := strconv.Atoi(os.Getenv("LOADGEN_TEST_LOOPS"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
