package run

import (
	"slices"

	"github.com/loadgen/loadgen/internal/base/exit"
)

// Gate is what an experiment's gate decided: whether a variant is worse than the baseline, by pairs of runs.
type Gate struct {
	Metric string  `json:"metric"` // "cpu_per_op", or the metric's path relative to the op
	Phase  string  `json:"phase"`
	Op     string  `json:"op"`    // "" for cpu_per_op, which is of all ops
	Worse  float64 `json:"worse"` // by how much worse the variant must not be, as a share

	Decision Decision `json:"decision"` // "" before it is decided
	Pairs    int      `json:"pairs"`    // pairs that count
	Again    int      `json:"again"`    // pairs that did not, and were run again

	By     *float64 `json:"by"`     // by how much worse the variant is, as a share; below 0 if it is better. Null without pairs
	Lo     *float64 `json:"lo"`     // at least by so much, by the test of this look
	Hi     *float64 `json:"hi"`     // at most
	Spread *float64 `json:"spread"` // standard deviation between runs, as a share, estimated from the pairs
	Needed int      `json:"needed"` // pairs that would decide, about; 0 unless undecided
	Text   string   `json:"text"`   // the decision, in a sentence
	Why    []string `json:"why"`    // why pairs do not count
}

// Decision is the outcome of a gate.
type Decision string

// Decisions.
const (
	GateFailed    Decision = "fail"        // it is worse
	GatePassed    Decision = "pass"        // it is not worse by the limit
	GateUndecided Decision = "cannot_tell" // neither was shown
)

// Decide takes the gate's decision into the exit code: the first that applies of failed, aborted, degraded, the gate or an assert failed, cannot tell,
// invalid. Invalid are only doubts about counts and values: the gate has seen to those about time that touch its metric.
func (x *Experiment) Decide() {
	var codes []int
	if slices.Contains([]int{exit.Degraded, exit.Aborted, exit.Failed}, x.ExitCode) {
		codes = append(codes, x.ExitCode)
	}
	for _, r := range x.Runs {
		switch {
		case r.Verdict.Assertions == Fail:
			codes = append(codes, exit.Assert)
		case r.Verdict.Miscounted():
			codes = append(codes, exit.Invalid)
		}
	}
	switch x.Gate.Decision {
	case GateFailed:
		codes = append(codes, exit.Assert)
	case GateUndecided:
		codes = append(codes, exit.Undecided)
	}
	order := []int{exit.OK, exit.Invalid, exit.Undecided, exit.Assert, exit.Degraded, exit.Aborted, exit.Failed}
	x.ExitCode = exit.OK
	for _, code := range codes {
		x.ExitCode = worst(order, x.ExitCode, code)
	}
}
