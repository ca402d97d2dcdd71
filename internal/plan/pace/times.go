package pace

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
	Family string        `json:"family"`     // "exp" or "exponential", "uniform" or "lognormal"; "" for constant times
	First  time.Duration `json:"first_ns"`   // the constant, the mean, the least, or the median
	Second time.Duration `json:"largest_ns"` // of uniform; of the others what stands for longer draws, 0 if nothing does
	Sigma  float64       `json:"sigma"`      // of lognormal: the standard deviation of the times' logarithm
}

// ReadTimes reads a constant duration or a distribution: exp(MEAN), exponential(MEAN), uniform(LEAST, LARGEST) or lognormal(MEDIAN, SIGMA), all but uniform
// optionally with the LARGEST. It returns false if the text is none of these.
func ReadTimes(text string) (t Times, ok bool) {
	family, rest, drawn := strings.Cut(strings.TrimSpace(text), "(")
	var err error
	if !drawn {
		t.First, err = time.ParseDuration(family)
		return t, err == nil
	}
	inside, closed := strings.CutSuffix(rest, ")")
	args := strings.Split(inside, ",")
	least, known := map[string]int{"exp": 1, "exponential": 1, "uniform": 2, "lognormal": 2}[family]
	most := max(2, least+1)
	if family == "uniform" {
		most = 2
	}
	if !closed || !known || len(args) < least || len(args) > most {
		return Times{}, false
	}
	t.Family = family
	read := func(i int, to *time.Duration) {
		if err == nil && i < len(args) {
			*to, err = time.ParseDuration(strings.TrimSpace(args[i]))
		}
	}
	read(0, &t.First)
	if family == "lognormal" && err == nil {
		t.Sigma, err = strconv.ParseFloat(strings.TrimSpace(args[1]), 64)
	}
	read(most-1, &t.Second)
	return t, err == nil
}

// Validate reports what is wrong with the times, of which none may be longer than most.
func (t Times) Validate(most time.Duration) error {
	_, known := map[string]bool{"": true, "exp": true, "exponential": true, "uniform": true, "lognormal": true}[t.Family]
	switch {
	case !known:
		return fmt.Errorf("unknown times %.20q", t.Family)
	case t.First < 0 || t.First > most:
		return fmt.Errorf("%v: write 0s to %v", t.First, most)
	case t.Family == "":
		return nil
	case t.Family == "uniform" && (t.Second <= t.First || t.Second > most):
		return fmt.Errorf("%v: write the least time first, then a larger one of at most %v", t, most)
	case t.Family != "uniform" && t.Second != 0 && (t.Second <= t.First || t.Second > most):
		return fmt.Errorf("%v: write a largest time above the first, of at most %v", t, most)
	case t.Family != "uniform" && t.First == 0:
		return fmt.Errorf("%v: write a time above 0", t)
	case t.Family == "lognormal" && !(t.Sigma > 0 && t.Sigma <= maxSigma):
		return fmt.Errorf("%v: write a sigma above 0, at most %d", t, maxSigma)
	}
	return nil
}

// String writes the times as [ReadTimes] reads them.
func (t Times) String() string {
	args := []string{t.First.String()}
	if t.Family == "" {
		return args[0]
	}
	if t.Family == "lognormal" {
		args = append(args, fmt.Sprint(t.Sigma))
	}
	if t.Second != 0 {
		args = append(args, t.Second.String())
	}
	return t.Family + "(" + strings.Join(args, ", ") + ")"
}

// Drawn reports whether the times vary.
func (t Times) Drawn() bool { return t.Family != "" }

// Draw returns the next time. Each takes one number from the source and puts it through the distribution's inverse.
func (t Times) Draw(random *rand.PCG) time.Duration {
	if !t.Drawn() {
		return t.First
	}
	return t.at(Unit(random))
}

// at puts a number from (0, 1) through the inverse of the distribution.
func (t Times) at(u float64) time.Duration {
	is := -math.Log(u) * float64(t.First)
	switch t.Family {
	case "uniform":
		return t.First + time.Duration(u*float64(t.Second-t.First))
	case "lognormal":
		is = float64(t.First) * math.Exp(t.Sigma*math.Sqrt2*math.Erfinv(2*u-1))
	}
	if t.Second != 0 {
		is = min(is, float64(t.Second))
	}
	return time.Duration(is)
}

// Mean returns the mean of the times, by the midpoints of 10,000 equal shares.
func (t Times) Mean() time.Duration {
	const parts = 10_000
	sum := 0.0
	for i := range parts {
		sum += float64(t.at((float64(i) + 0.5) / parts))
	}
	return time.Duration(sum / parts)
}

// Unit draws from (0, 1).
func Unit(random *rand.PCG) float64 { return (float64(random.Uint64()>>11) + 0.5) / (1 << 53) }
