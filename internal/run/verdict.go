package run

import (
	"fmt"
	"slices"
	"strings"
)

// Completeness says whether all of the plan was carried out.
type Completeness string

// From best to worst.
const (
	Complete Completeness = "complete"
	Capped   Completeness = "capped"   // ended by the time that its plan gave it; what there is counts
	Degraded Completeness = "degraded" // a worker was lost; the gap is named
	Aborted  Completeness = "aborted"  // stopped by the user, or by the plan when its ops failed
	Failed   Completeness = "failed"   // something could not be run
)

// Validity says whether the figures may be believed.
type Validity string

// From best to worst.
const (
	Valid   Validity = "valid"
	Suspect Validity = "suspect"
	Invalid Validity = "invalid"
)

// Worse says whether figures of this validity are to be believed less than those of another.
func (v Validity) Worse(than Validity) bool { return v.rank() > than.rank() }

// rank orders validities from best to worst.
func (v Validity) rank() int {
	switch v {
	case Valid:
		return 0
	case Suspect:
		return 1
	default:
		return 2
	}
}

// known says whether it is one of them.
func (v Validity) known() bool { return v == Valid || v == Suspect || v == Invalid }

// ValidityOf returns how far the figure at a path below the phase, such as "op.get.response.p99", may be believed: the worst of what
// touches it.
func (p *Phase) ValidityOf(path string) Validity {
	worst := Valid
	for _, why := range p.Reasons {
		if why.Validity.Worse(worst) && slices.ContainsFunc(why.Touches, func(t string) bool { return within(path, t) }) {
			worst = why.Validity
		}
	}
	return worst
}

// within says whether a path is at another one or below it.
func within(path, object string) bool {
	rest, ok := strings.CutPrefix(path, object)
	return ok && (rest == "" || rest[0] == '.')
}

// Assertions says what became of the plan's asserts.
type Assertions string

// An assert that could not be decided fails.
const (
	Pass Assertions = "pass"
	Fail Assertions = "fail"
	None Assertions = "none" // the plan has none, or the run ended before they could be looked at
)

// Verdict is the judgement on a run, in three parts that do not hide each other.
type Verdict struct {
	Completeness Completeness `json:"completeness"`
	Validity     Validity     `json:"validity"` // of the worst phase
	Assertions   Assertions   `json:"assertions"`
	Reasons      []string     `json:"reasons"` // completeness first, then phases in their order, then asserts

	Phases map[string]Validity `json:"-"` // of each phase that has ended; the JSON has it in the phase
}

// Exit codes of a run. 2, wrong usage or an invalid plan, comes before there is one.
const (
	ExitOK       = 0
	ExitAssert   = 1
	ExitDegraded = 3
	ExitInvalid  = 4
	ExitAborted  = 5
	ExitFailed   = 6
)

// Conclude says how far the run got, and why it got no further. The phases and asserts added so far, or later, are judged on.
func (r *Run) Conclude(c Completeness, reasons ...string) {
	r.Verdict.Completeness = c
	r.stopped = reasons
	r.judge()
}

// SetAsserts takes the results of the plan's asserts.
func (r *Run) SetAsserts(results []AssertResult) {
	r.Asserts = append([]AssertResult{}, results...)
	r.judge()
}

// judge makes the verdict and the exit code from what the run holds.
func (r *Run) judge() {
	v := Verdict{
		Completeness: r.Verdict.Completeness,
		Validity:     Valid,
		Assertions:   None,
		Reasons:      append([]string{}, r.stopped...),
	}
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		if v.Phases == nil {
			v.Phases = map[string]Validity{}
		}
		v.Phases[name] = p.Validity
		if p.Validity.Worse(v.Validity) {
			v.Validity = p.Validity
		}
		for _, why := range p.Reasons {
			v.Reasons = append(v.Reasons, fmt.Sprintf("phase %s: %s", name, why.Text))
		}
	}
	for _, a := range r.Asserts {
		if v.Assertions == None {
			v.Assertions = Pass
		}
		if a.OK != nil && *a.OK {
			continue
		}
		v.Assertions = Fail
		v.Reasons = append(v.Reasons, a.failure())
	}
	r.Verdict = v
	r.ExitCode = exitCode(v, r.Strict)
}

// failure says in a line why the assert did not pass.
func (a *AssertResult) failure() string {
	if a.OK == nil {
		return fmt.Sprintf("assert %q could not be decided: %s", a.Name, a.Reason)
	}
	return fmt.Sprintf("assert %q does not hold: %s, with %s", a.Name, a.That, a.Value)
}

// exitCode is the first that applies, the gravest first.
func exitCode(v Verdict, strict bool) int {
	switch {
	case v.Completeness == Failed:
		return ExitFailed
	case v.Completeness == Aborted:
		return ExitAborted
	case v.Completeness == Degraded:
		return ExitDegraded
	case v.Validity == Invalid, strict && v.Validity == Suspect:
		return ExitInvalid
	case v.Assertions == Fail:
		return ExitAssert
	}
	return ExitOK
}
