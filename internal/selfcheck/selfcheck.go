// Package selfcheck compares what loadgen measures with what is known to be true, and says what on a machine would disturb it. It runs
// nothing itself: the load comes from a plan, which its caller has carried out as it does any other.
//
// What is expected of a target with known times is those times and the floor: what the same load measures, in the same process,
// on a target that takes none. Of independent quantities that is their convolution. Quantiles are then compared one by
// one; a figure may be off by 20 µs, or by a share of the expected where that is more.
package selfcheck

import (
	_ "embed" // of the plan
	"fmt"
	"time"

	"github.com/loadgen/loadgen/pkg/hist"
)

// margin is how far a figure may always be from what is expected: about what waking a thread takes.
const margin = 20 * time.Microsecond

// quantiles are those that are compared.
var quantiles = [...]float64{0.5, 0.9, 0.99}

// Result is all that a self-check has found.
type Result struct {
	Machine Machine `json:"machine"`
	Lags    Lags    `json:"lags"`
	Floors  Floors  `json:"floors"`
	Answers []Check `json:"answers"`
	Doubts  []Doubt `json:"doubts"`
	OK      bool    `json:"ok"` // every answer is as expected
}

// Floors are what nothing costs.
type Floors struct {
	GeneratorNS float64 `json:"generator_ns"` // processor time of an op without a target
	P50         float64 `json:"p50_seconds"`  // response of a built-in node that takes no time for its answer, one op at a time
	P99         float64 `json:"p99_seconds"`
}

// Check is one comparison.
type Check struct {
	Name    string   `json:"name"`
	Figures []Figure `json:"figures"`
	OK      bool     `json:"ok"`
	Attempt int      `json:"attempt"` // of which these figures are, from 1
	Queued  float64  `json:"queued"`  // for which share of the time, at most, the generator had no processor while they were measured
}

// Figure is one number that was measured, and what it was to be. Times are seconds.
type Figure struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured"`
	Expected float64 `json:"expected"`
	Within   float64 `json:"within"` // how far they may be apart
	Time     bool    `json:"time"`   // else a count
}

// OK says whether the figure is as expected.
func (f *Figure) OK() bool {
	return f.Measured >= f.Expected-f.Within && f.Measured <= f.Expected+f.Within
}

// NewCheck makes a comparison of its figures.
func NewCheck(name string, figures ...Figure) Check {
	c := Check{Name: name, Figures: figures, OK: true}
	for i := range figures {
		c.OK = c.OK && figures[i].OK()
	}
	return c
}

// Compare holds the quantiles of what was measured against those of what was expected, both in nanoseconds. share is how far they may be
// apart in relation to the expected, where that is more than the margin.
func Compare(name string, measured, expected *hist.Hist, share float64) Check {
	var figures []Figure
	for _, q := range quantiles {
		want := float64(expected.Quantile(q)) / 1e9
		figures = append(figures, Figure{
			Name: fmt.Sprintf("p%g", 100*q), Time: true,
			Measured: float64(measured.Quantile(q)) / 1e9, Expected: want, Within: max(margin.Seconds(), share*want),
		})
	}
	return NewCheck(name, figures...)
}

// Enter takes the comparisons of an attempt. Those that came out right in an earlier one stand.
func (r *Result) Enter(attempt int, checks []Check) {
	for i, c := range checks {
		c.Attempt = attempt
		switch {
		case i >= len(r.Answers):
			r.Answers = append(r.Answers, c)
		case !r.Answers[i].OK:
			r.Answers[i] = c
		}
	}
}

// Conclude makes the result's verdict.
func (r *Result) Conclude() {
	r.OK = len(r.Answers) > 0
	for i := range r.Answers {
		r.OK = r.OK && r.Answers[i].OK
	}
}

// Plan is the text of the plan that is run. Its variables hold the addresses of the nodes: plain, half, constant, exponential, queue and
// held.
//
//go:embed plan.hcl
var Plan []byte
