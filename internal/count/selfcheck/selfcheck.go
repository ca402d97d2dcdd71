// Package selfcheck compares loadgen's measurements with known answers, and says what would disturb measurements on a machine. It runs no load
// itself: the load comes from a plan, which the caller runs like any other.
//
// On a target with known service times, measured times should be these times plus the floor, which the same load measures, in the same process, on a
// target that takes no time. For independent quantities, the distribution of the sum is their convolution. The quantiles are then compared one by
// one. A figure may be off by 20 µs, or by a share of the expected value if that is more.
package selfcheck

import (
	_ "embed" // for plan.hcl
	"fmt"
	"time"

	"github.com/loadgen/loadgen/pkg/hist"
)

// margin is the tolerance of every figure: about the time that it takes to wake a thread.
const margin = 20 * time.Microsecond

// quantiles are the quantiles that are compared.
var quantiles = [...]float64{0.5, 0.9, 0.99}

// Result is everything a self-check has found.
type Result struct {
	Machine Machine `json:"machine"`
	Lags    Lags    `json:"lags"`
	Floors  Floors  `json:"floors"`
	Answers []Check `json:"answers"`
	Doubts  []Doubt `json:"doubts"`
	OK      bool    `json:"ok"` // every answer is as expected
}

// Floors are the costs of an op for which the target has nothing to do.
type Floors struct {
	GeneratorNS float64 `json:"generator_ns"` // processor time of an op without a target
	P50         float64 `json:"p50_seconds"`  // response time of a built-in node that answers at once, one op at a time
	P99         float64 `json:"p99_seconds"`
}

// Check is one comparison.
type Check struct {
	Name    string   `json:"name"`
	Figures []Figure `json:"figures"`
	OK      bool     `json:"ok"`
	Attempt int      `json:"attempt"` // the attempt that gave these figures, from 1
	Queued  float64  `json:"queued"`  // the largest share of the attempt's time in which the generator had no processor
}

// Figure is one measured number and its expected value. Times are in seconds.
type Figure struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured"`
	Expected float64 `json:"expected"`
	Within   float64 `json:"within"` // how far the two may be apart
	Time     bool    `json:"time"`   // the values are times; otherwise counts
}

// OK says whether the figure is as expected.
func (f *Figure) OK() bool {
	return f.Measured >= f.Expected-f.Within && f.Measured <= f.Expected+f.Within
}

// NewCheck makes a comparison from its figures.
func NewCheck(name string, figures ...Figure) Check {
	c := Check{Name: name, Figures: figures, OK: true}
	for i := range figures {
		c.OK = c.OK && figures[i].OK()
	}
	return c
}

// Compare compares the quantiles of a measured and an expected distribution, both in nanoseconds. share is the tolerance relative to the expected
// value, used if it is more than the margin.
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

// Enter adds the comparisons of an attempt. Those that succeeded in an earlier attempt stay.
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

// Conclude sets OK.
func (r *Result) Conclude() {
	r.OK = len(r.Answers) > 0
	for i := range r.Answers {
		r.OK = r.OK && r.Answers[i].OK
	}
}

// Plan is the text of the plan to run. Its variables hold the nodes' addresses: plain, half, constant, exponential, queue and
// held.
//
//go:embed plan.hcl
var Plan []byte
