package cachenode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// maxSigma bounds the shape of log-normal times: beyond it, a few draws in a million make up the mean.
const maxSigma = 3

// Times are durations: always the same, or drawn each time. The zero value always gives 0.
type Times struct {
	Family string        // "exp", "uniform" or "lognormal"; "" for constant times
	First  time.Duration // the constant, the mean, the least, or the median
	Second time.Duration // of uniform: the largest
	Sigma  float64       // of lognormal: the standard deviation of the times' logarithm
}

// timesForms says what ParseTimes reads.
const timesForms = "write a duration with its unit, like 100us, or exp(100us), uniform(50us, 200us) or lognormal(100us, 0.5)"

// ParseTimes reads a constant duration or a distribution: exp(MEAN), uniform(LEAST, LARGEST), lognormal(MEDIAN, SIGMA).
func ParseTimes(text string) (Times, error) {
	wrong := fmt.Errorf("%q: %s", text, timesForms)
	family, rest, drawn := strings.Cut(strings.TrimSpace(text), "(")
	if !drawn {
		d, err := time.ParseDuration(family)
		if err != nil {
			return Times{}, wrong
		}
		t := Times{First: d}
		return t, t.validate()
	}
	inside, closed := strings.CutSuffix(rest, ")")
	args := strings.Split(inside, ",")
	want, known := map[string]int{"exp": 1, "uniform": 2, "lognormal": 2}[family]
	if !closed || !known || len(args) != want {
		return Times{}, wrong
	}
	t := Times{Family: family}
	var err error
	if t.First, err = time.ParseDuration(strings.TrimSpace(args[0])); err != nil {
		return Times{}, wrong
	}
	switch family {
	case "uniform":
		t.Second, err = time.ParseDuration(strings.TrimSpace(args[1]))
	case "lognormal":
		t.Sigma, err = strconv.ParseFloat(strings.TrimSpace(args[1]), 64)
	}
	if err != nil {
		return Times{}, wrong
	}
	return t, t.validate()
}

func (t Times) validate() error {
	switch {
	case t.First < 0 || t.First > maxFault:
		return fmt.Errorf("%v: write 0s to %v", t.First, maxFault)
	case t.Family == "":
		return nil
	case t.Family == "uniform" && (t.Second <= t.First || t.Second > maxFault):
		return fmt.Errorf("%v: write the least time first, then a larger one of at most %v", t, maxFault)
	case t.Family != "uniform" && t.First == 0:
		return fmt.Errorf("%v: write a time above 0", t)
	case t.Family == "lognormal" && !(t.Sigma > 0 && t.Sigma <= maxSigma):
		return fmt.Errorf("%v: write a sigma above 0, at most %d", t, maxSigma)
	}
	return nil
}

// String writes the times as ParseTimes reads them.
func (t Times) String() string {
	switch t.Family {
	case "":
		return t.First.String()
	case "uniform":
		return fmt.Sprintf("uniform(%v, %v)", t.First, t.Second)
	case "lognormal":
		return fmt.Sprintf("lognormal(%v, %v)", t.First, t.Sigma)
	}
	return fmt.Sprintf("%s(%v)", t.Family, t.First)
}

// drawn reports whether the times vary.
func (t Times) drawn() bool { return t.Family != "" }

// draw returns the next time. Each takes one number from the source and puts it through the distribution's inverse.
func (t Times) draw(random *rand.PCG) time.Duration {
	if !t.drawn() {
		return t.First
	}
	u := unit(random)
	switch t.Family {
	case "uniform":
		return t.First + time.Duration(u*float64(t.Second-t.First))
	case "lognormal":
		return time.Duration(float64(t.First) * math.Exp(t.Sigma*math.Sqrt2*math.Erfinv(2*u-1)))
	}
	return time.Duration(-math.Log(u) * float64(t.First))
}

// unit draws from (0, 1).
func unit(random *rand.PCG) float64 { return (float64(random.Uint64()>>11) + 0.5) / (1 << 53) }

// A node draws everything from one seed through several sources, so that a draw from one does not change the others' draws.
const (
	serviceSource uint64 = iota
	delaySource
	faultSource
)
