package cachenode

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/plan/pace"
)

// Times are durations: always the same, or drawn each time.
type Times = pace.Times

// timesForms says what ParseTimes reads.
const timesForms = "write a duration with its unit, like 100us, or exp(100us), uniform(50us, 200us) or lognormal(100us, 0.5)"

// ParseTimes reads a constant duration or a distribution: exp(MEAN), uniform(LEAST, LARGEST), lognormal(MEDIAN, SIGMA).
func ParseTimes(text string) (Times, error) {
	t, ok := pace.ReadTimes(text)
	if !ok {
		return Times{}, fmt.Errorf("%q: %s", text, timesForms)
	}
	return t, t.Validate(maxFault)
}

// A node draws everything from one seed through several sources, so that a draw from one does not change the others' draws.
const (
	serviceSource uint64 = iota
	delaySource
	faultSource
)
