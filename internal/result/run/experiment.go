package run

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
)

// experimentVersion is the version of an experiment's JSON. Version 2 is read, too: its figures may be of single seconds, and its errors are of 99.9 %.
const experimentVersion = 3

// Experiment is the result of running the variants of a plan repeatedly. Each execution is a [Run] of its own; an Experiment names them and says how
// the variants compare. docs/result.md describes its JSON.
type Experiment struct {
	Schema     int       `json:"schema"`
	ID         string    `json:"experiment_id"`
	Plan       string    `json:"plan"`
	PlanDigest string    `json:"plan_digest"` // of its settings and its variants' plans, in hex; "" in results of an older loadgen
	StartedAt  time.Time `json:"started_at"`
	Loadgen    string    `json:"loadgen"`
	Seed       uint64    `json:"seed"`     // the seed of the order, which is that of the baseline's plan
	Repeat     int       `json:"repeat"`   // how often each variant should run
	Order      string    `json:"order"`    // "interleaved" or "sequential"
	Baseline   string    `json:"baseline"` // a variant's name
	Fork       bool      `json:"fork"`
	Compare    []string  `json:"compare,omitempty"` // metrics compared, by their paths below an op; none for the usual ones
	Matters    float64   `json:"matters,omitempty"` // smallest difference that matters, as a share; 0 if any does
	CapSeconds float64   `json:"cap_seconds"`       // limit for all runs of a variant together; 0 for none
	Seconds    float64   `json:"seconds"`           // from StartedAt to the end of the run that ended last
	Finished   bool      `json:"finished"`          // false if it is in progress or was cut off
	Verdict    Verdict   `json:"verdict"`           // each part is the worst over its runs
	ExitCode   int       `json:"exit_code"`         // the worst over its runs

	ReasonRuns []int `json:"reason_runs,omitempty"` // for each of the verdict's reasons, the number of its run in Runs, from 1, or 0 if it has none; empty in results of an older form

	Labels map[string]string `json:"labels"` // set by the user for the experiment and its runs
	Logs   []string          `json:"logs"`   // log files of the runs that count: where they were, how durable they were, what was verified

	Gate *Gate `json:"gate,omitempty"` // what the plan's gate decided; absent without one

	Variants []Variant       `json:"variants"`           // in the plan's order
	LeftOut  []string        `json:"left_out,omitempty"` // names of variants that were left out because the experiment's `when` was false
	Runs     []ExperimentRun `json:"runs"`               // in the order they were run
	Figures  []Figure        `json:"figures"`            // by phase, op and metric, and then by variant
	Tables   []Table         `json:"tables"`             // the plan's, then one for each phase, op and metric
	Charts   []Chart         `json:"charts"`             // the plan's

	Imported   bool   `json:"-"`          // it came in a pack
	Unverified string `json:"unverified"` // why it could not be verified when it was imported; "" if it was verified, or was made here
}

// Stop says why a variant's runs, or one run, went no further.
type Stop string

// From best to worst.
const (
	StopFinished Stop = "finished" // everything planned was done
	StopCap      Stop = "cap"      // the variant's time was used up; what was measured counts
	StopAborted  Stop = "aborted"  // by the user, or by the plan when ops failed; an incomplete run does not count
	StopFailed   Stop = "failed"   // something could not be run
)

// stops are ordered from best to worst.
var stops = [...]Stop{StopFinished, StopCap, StopAborted, StopFailed}

// Variant is a set of variable values, and how far its runs got.
type Variant struct {
	Name    string            `json:"name"`
	Values  map[string]string `json:"values"`  // HCL literals, by variable
	Runs    int               `json:"runs"`    // runs that count in figures
	Stopped Stop              `json:"stopped"` // the worst of its runs
}

// ExperimentRun is one run of an experiment.
type ExperimentRun struct {
	ID         string  `json:"id"`
	Variant    string  `json:"variant"`
	Repetition int     `json:"repetition"` // from 1
	Seconds    float64 `json:"seconds"`
	Stopped    Stop    `json:"stopped"`
	Verdict    Verdict `json:"verdict"`
	ExitCode   int     `json:"exit_code"`
}

// Counts reports whether the run's figures are compared: it finished, or its variant's cap ended it.
func (r ExperimentRun) Counts() bool { return r.Stopped == StopFinished || r.Stopped == StopCap }

// Figure is one metric of one variant over its repetitions, and how it compares with the baseline's. An unavailable number is null, and Nulls holds
// the reason under its name.
type Figure struct {
	Variant string `json:"variant"`
	Phase   string `json:"phase"`
	Op      string `json:"op"`
	Metric  string `json:"metric"` // its path relative to the op: "rate", "response.p99"
	Unit    string `json:"unit"`   // "/s", "s", or "" for a share

	Values int      `json:"values"` // number of runs that have the metric
	Score  *float64 `json:"score"`  // arithmetic mean of the runs
	Error  *float64 `json:"error"`  // half the width of the score's 95 % confidence interval
	Median *float64 `json:"median"` // of the runs

	Ratio   *float64 `json:"ratio"`    // to the baseline, by geometric means; null for a share
	RatioLo *float64 `json:"ratio_lo"` // 95 % confidence interval of the ratio
	RatioHi *float64 `json:"ratio_hi"`
	P       *float64 `json:"p"`      // from a test by round on logarithms; for a share, on the values
	PHolm   *float64 `json:"p_holm"` // the same, adjusted for all comparisons that the experiment shows
	Spread  *float64 `json:"spread"` // standard deviation between runs, without what a round does to all, relative to the mean; for a share, as a difference
	MDE     *float64 `json:"mde"`    // smallest difference that would be found nine times in ten among all comparisons, as Spread

	Difference   *float64 `json:"difference,omitempty"`    // a share's difference from the baseline's; otherwise absent
	DifferenceLo *float64 `json:"difference_lo,omitempty"` // its 95 % confidence interval
	DifferenceHi *float64 `json:"difference_hi,omitempty"`

	Differs bool   `json:"differs"`
	Finding string `json:"finding"` // in words; "baseline" for the baseline itself

	Code reason.Code `json:"code"` // of the finding; "" in results of an older form

	Validity  Validity               `json:"validity"` // the worst validity of the phases that it is computed from, including the baseline's
	Nulls     map[string]string      `json:"nulls"`
	NullCodes map[string]reason.Code `json:"null_codes"` // of Nulls; empty in results of an older form
}

// Null records why a number is null.
func (f *Figure) Null(name string, why reason.Why) {
	f.Nulls[name], f.NullCodes[name] = why.Text, why.Code
}

// Share says whether the figure is a share, which is compared by difference.
func (f *Figure) Share() bool { return f.Unit == "" }

// Above returns by how much the figure is above the baseline's: the ratio less 1 or, for a share, the difference; NaN if that is unknown.
func (f *Figure) Above() float64 {
	switch {
	case f.Difference != nil:
		return *f.Difference
	case f.Ratio != nil:
		return *f.Ratio - 1
	}
	return math.NaN()
}

// Undecided says that there is no test of whether the figure differs.
func (f *Figure) Undecided() bool {
	return f.Code == "undecided" || f.Code == "no_values" || f.Code == "" && f.RatioHi == nil
}

// Table is a table for people; every output format shows the texts of its cells.
type Table struct {
	Title     string     `json:"title"`
	Transpose bool       `json:"transpose"` // show it with a column for each row
	Columns   []Column   `json:"columns"`
	Rows      []TableRow `json:"rows"`
	Notes     []string   `json:"notes"`
}

// Column describes the cells under it.
type Column struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"` // of the texts
}

// TableRow is a variant, or figures that were not measured here.
type TableRow struct {
	Name      string `json:"name"`
	Elsewhere bool   `json:"elsewhere"` // not measured here
	Cells     []Cell `json:"cells"`     // one for each column
}

// Cell is a value and its text. Without a value, the text is shown instead, and Reason says why there is none.
type Cell struct {
	Value  *float64 `json:"value"` // in base units
	Text   string   `json:"text"`
	Reason string   `json:"reason"`

	Lo *float64 `json:"lo,omitempty"` // 95 % confidence interval of a ratio; absent for any other value, and with too few runs
	Hi *float64 `json:"hi,omitempty"`

	Cause string `json:"cause,omitempty"` // if Reason names a null figure: why that figure is null, without its name
}

// Chart is a chart that the plan describes.
type Chart struct {
	Title string      `json:"title"`
	Over  string      `json:"over"`  // meaning of X: "time" in seconds, "ops" that had ended, "quantile" as a share, "var.NAME" values of a variable
	Unit  string      `json:"unit"`  // unit in which to show Y
	Log   bool        `json:"log"`   // logarithmic Y axis
	Lines []ChartLine `json:"lines"` // by variant, then in the plan's order; over a variable, one for each combination of the others
}

// ChartLine is one variant's line.
type ChartLine struct {
	Name    string     `json:"name"`
	Variant string     `json:"variant"`
	X       []float64  `json:"x"`      // the points' X, ascending
	Y       []*float64 `json:"y"`      // one for each X, in base units; null breaks the line
	Reason  string     `json:"reason"` // why it has no points

	Cause string `json:"cause,omitempty"` // like a cell's
}

// NewExperiment returns an experiment before its first run: complete, valid, exit code 0.
func NewExperiment(id string) *Experiment {
	return &Experiment{
		Schema: experimentVersion, ID: id,
		Verdict: Verdict{Completeness: Complete, Validity: Valid, Assertions: None, Reasons: []string{}, Codes: []reason.Code{}},
		Labels:  map[string]string{}, Logs: []string{}, Variants: []Variant{}, Runs: []ExperimentRun{}, Figures: []Figure{}, Tables: []Table{}, Charts: []Chart{},
	}
}

// CheckValid reports whether the experiment is consistent.
func (x *Experiment) CheckValid() error {
	if x.Schema != experimentVersion && x.Schema != experimentVersion-1 {
		return fmt.Errorf("experiment of schema %d, this loadgen reads %d and %d%s", x.Schema, experimentVersion-1, experimentVersion, madeBy(x.Loadgen))
	}
	known := func(name string) bool {
		return slices.ContainsFunc(x.Variants, func(v Variant) bool { return v.Name == name })
	}
	if !known(x.Baseline) {
		return fmt.Errorf("baseline %q is not a variant of the experiment", x.Baseline)
	}
	for _, r := range x.Runs {
		if !known(r.Variant) {
			return fmt.Errorf("run %s is of variant %q, which the experiment does not have", r.ID, r.Variant)
		}
	}
	for _, c := range x.Charts {
		for _, l := range c.Lines {
			if len(l.X) != len(l.Y) {
				return fmt.Errorf("chart %q: %d x and %d y in line %q of variant %q", c.Title, len(l.X), len(l.Y), l.Name, l.Variant)
			}
		}
	}
	for _, t := range x.Tables {
		for _, row := range t.Rows {
			if len(row.Cells) != len(t.Columns) {
				return fmt.Errorf("table %q: %d cells in row %q, %d columns", t.Title, len(row.Cells), row.Name, len(t.Columns))
			}
		}
	}
	return nil
}

// Ended summarises the run as one of an experiment.
func (r *Run) Ended() ExperimentRun {
	one := ExperimentRun{
		ID: r.ID, Variant: r.Variant, Repetition: r.Repetition, Seconds: r.Seconds, Verdict: r.Verdict, ExitCode: r.ExitCode, Stopped: StopFinished,
	}
	switch {
	case r.Verdict.Completeness == Failed:
		one.Stopped = StopFailed
	case r.Verdict.Completeness == Capped:
		one.Stopped = StopCap
	case r.Verdict.Completeness == Aborted:
		one.Stopped = StopAborted
	}
	return one
}

// Add adds a run that has ended and updates the verdict.
func (x *Experiment) Add(r *Run) {
	one := r.Ended()
	end := r.StartedAt.Add(time.Duration(r.Seconds * float64(time.Second)))
	x.Seconds = max(x.Seconds, end.Round(0).Sub(x.StartedAt.Round(0)).Seconds())
	x.Runs = append(x.Runs, one)
	for i := range x.Variants {
		v := &x.Variants[i]
		if v.Name != r.Variant {
			continue
		}
		if one.Counts() {
			v.Runs++
		}
		v.Stopped = worst(stops[:], v.Stopped, one.Stopped)
	}
	x.judge(one)
}

// Abort records that the experiment ended early, and why. Variants that lack runs count as stopped by that.
func (x *Experiment) Abort(by reason.Why) {
	for i := range x.Variants {
		if v := &x.Variants[i]; v.Runs < x.Repeat {
			v.Stopped = worst(stops[:], v.Stopped, StopAborted)
		}
	}
	x.Verdict.Completeness = worst(completenesses[:], x.Verdict.Completeness, Aborted)
	x.Verdict.Reasons = append([]string{fmt.Sprintf("%s after %s", by.Text, quantity.Count(uint64(len(x.Runs)), "run"))}, x.Verdict.Reasons...)
	x.Verdict.Codes = append([]reason.Code{by.Code}, x.Verdict.Codes...)
	x.ReasonRuns = append([]int{0}, x.ReasonRuns...)
	x.ExitCode = worst(exitCodes[:], x.ExitCode, exit.Aborted)
}

// Cap records that a variant has fewer runs than planned because its time was used up. The plan allows this, so the exit code follows from the runs
// alone.
func (x *Experiment) Cap(variant string) {
	for i := range x.Variants {
		if v := &x.Variants[i]; v.Name == variant {
			v.Stopped = worst(stops[:], v.Stopped, StopCap)
		}
	}
	x.Verdict.Completeness = worst(completenesses[:], x.Verdict.Completeness, Capped)
	x.say(0, CapUsed(variant))
}

// CapUsed is the reason that Cap gives.
func CapUsed(variant string) reason.Why {
	return reason.Why{Code: reason.Capped, Text: variant + ": not run as often as planned: its cap is used up"}
}

// An experiment takes the worst of each of these. They are ordered from best to worst.
var (
	completenesses = [...]Completeness{Complete, Capped, Degraded, Aborted, Failed}
	validities     = [...]Validity{Valid, Suspect, Invalid}
	assertions     = [...]Assertions{None, Pass, Undecided, Fail}
	exitCodes      = [...]int{exit.OK, exit.Undecided, exit.Assert, exit.Invalid, exit.Degraded, exit.Aborted, exit.Failed}
)

// judge adds the latest run to the verdict.
func (x *Experiment) judge(r ExperimentRun) {
	v := &x.Verdict
	v.Completeness = worst(completenesses[:], v.Completeness, r.Verdict.Completeness)
	v.Validity = worst(validities[:], v.Validity, r.Verdict.Validity)
	v.Assertions = worst(assertions[:], v.Assertions, r.Verdict.Assertions)
	for i := range r.Verdict.Reasons {
		why := r.Verdict.why(i)
		x.say(len(x.Runs), reason.Why{Code: why.Code, Text: fmt.Sprintf("%s, repetition %d: %s", r.Variant, r.Repetition, why.Text)})
	}
	x.ExitCode = worst(exitCodes[:], x.ExitCode, r.ExitCode)
}

// say adds a reason of run number of, from 1; 0 for a reason of no run.
func (x *Experiment) say(of int, why reason.Why) {
	x.Verdict.add(why)
	x.ReasonRuns = append(x.ReasonRuns, of)
}

// Own returns the verdict's reasons that belong to no run; in a result of an older form, all of them.
func (x *Experiment) Own() (own []string) {
	for i, text := range x.Verdict.Reasons {
		if i >= len(x.ReasonRuns) || x.ReasonRuns[i] == 0 {
			own = append(own, text)
		}
	}
	return own
}

// worst returns the one of a and b that comes later in order.
func worst[T comparable](order []T, a, b T) T {
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
