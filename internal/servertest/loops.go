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

// Whole reports whether tests that compute on one goroutine do all of it. They do a part under the race detector, which finds nothing there and takes ten
// times as long, and with several event loops, of which they have none. tools/test.sh runs the packages that ask once more where it is true.
func Whole() bool { return !raced && Loops() == 1 }
