package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
)

// Completeness says whether the whole plan was carried out.
type Completeness string

// From best to worst.
const (
	Complete Completeness = "complete"
	Capped   Completeness = "capped"   // the plan's time limit ended it; what was measured counts
	Degraded Completeness = "degraded" // a worker was lost; the gap is named
	Aborted  Completeness = "aborted"  // stopped by the user, or by the plan when ops failed
	Failed   Completeness = "failed"   // something could not be run
)

// Better says whether a run of this completeness got further than one of another.
func (c Completeness) Better(than Completeness) bool {
	return slices.Index(completenesses[:], c) < slices.Index(completenesses[:], than)
}

// Validity says whether the figures can be trusted.
type Validity string

// From best to worst.
const (
	Valid   Validity = "valid"
	Suspect Validity = "suspect"
	Invalid Validity = "invalid"
)

// Worse says whether figures of this validity are less trustworthy than those of another.
func (v Validity) Worse(than Validity) bool { return v.rank() > than.rank() }

// And returns the worse of two validities.
func (v Validity) And(other Validity) Validity {
	if other.Worse(v) {
		return other
	}
	return v
}

// rank orders validities from best to worst.
func (v Validity) rank() int {
	if i := slices.Index([]Validity{Valid, Suspect}, v); i >= 0 {
		return i
	}
	return 2
}

// known says whether v is one of the constants.
func (v Validity) known() bool { return v == Valid || v == Suspect || v == Invalid }

// Mark returns the mark that follows figures, and precedes the reasons that affect them.
func (v Validity) Mark() string { return map[Validity]string{Suspect: "?", Invalid: "!"}[v] }

// ValidityOf returns how far the figure at a path relative to the phase, such as "op.get.response.p99", can be trusted: the worst validity of the
// reasons that touch it. A reason that touches an op's figure also touches the total's.
func (p *Phase) ValidityOf(path string) Validity {
	worst := Valid
	for _, why := range p.Reasons {
		if slices.ContainsFunc(why.Touches, func(t string) bool { return touches(t, path) }) {
			worst = worst.And(why.Validity)
		}
	}
	return worst
}

// Bound says whether the figure at a path relative to the phase stands as a bound: every reason that touches it leaves one, and the same.
func (p *Phase) Bound(path string) (is reason.Bound) {
	last := path[strings.LastIndexByte(path, '.')+1:]
	_, quantile := quantity.Quantile(last)
	of := map[reason.Bound]bool{
		reason.AtLeast: path == "search.rate",
		reason.AtMost:  strings.Contains(path, ".response.") && (quantile || slices.Contains([]string{"min", "mean", "max"}, last)),
	}
	for _, why := range p.Reasons {
		if !slices.ContainsFunc(why.Touches, func(t string) bool { return touches(t, path) }) {
			continue
		}
		if !of[why.OneSided] {
			return ""
		}
		is = why.OneSided
	}
	return is
}

// touches says whether a reason that touches an object touches the figure at a path.
func touches(object, path string) bool {
	if within(path, object) {
		return true
	}
	of, isTotal := strings.CutPrefix(path, "total.")
	op, isOp := strings.CutPrefix(object, "op.")
	_, figure, one := strings.Cut(op, ".")
	return isTotal && (object == "op" || isOp && (!one || within(of, figure)))
}

// within says whether path is object or lies below it.
func within(path, object string) bool {
	rest, ok := strings.CutPrefix(path, object)
	return ok && (rest == "" || rest[0] == '.')
}

// Assertions is the result of the plan's asserts.
type Assertions string

// From best to worst.
const (
	None      Assertions = "none" // the plan has none, or the run ended before they could be evaluated
	Pass      Assertions = "pass"
	Undecided Assertions = "undecided" // at least one could not be decided, and none failed
	Fail      Assertions = "fail"
)

// Verdict is the judgement on a run, in three independent parts.
type Verdict struct {
	Completeness Completeness `json:"completeness"`
	Validity     Validity     `json:"validity"` // of the worst phase
	Assertions   Assertions   `json:"assertions"`
	Reasons      []string     `json:"reasons"` // completeness first, then phases in order, then asserts

	Codes []reason.Code `json:"codes"` // code of each of Reasons; empty in results of an older form

	Phases map[string]Validity `json:"-"` // of each phase that has ended; in the JSON, it is in the phase
}

// Conclude records how far the run got, and why it got no further. The verdict also covers the phases and asserts added before or after.
func (r *Run) Conclude(c Completeness, reasons ...reason.Why) {
	r.Verdict.Completeness = c
	r.stopped = reasons
	r.judge()
}

// Stopped returns the reasons with which the run was concluded.
func (r *Run) Stopped() []reason.Why { return r.stopped }

// SetAsserts sets the results of the plan's asserts.
func (r *Run) SetAsserts(results []AssertResult) {
	r.Asserts = append([]AssertResult{}, results...)
	r.judge()
}

// judge derives the verdict and the exit code from what the run holds.
func (r *Run) judge() {
	v := Verdict{
		Completeness: r.Verdict.Completeness,
		Validity:     Valid,
		Assertions:   None,
		Reasons:      []string{},
		Codes:        []reason.Code{},
	}
	for _, why := range r.stopped {
		v.add(why)
	}
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		if v.Phases == nil {
			v.Phases = map[string]Validity{}
		}
		v.Phases[name] = p.Validity
		v.Validity = v.Validity.And(p.Validity)
		for _, why := range p.Reasons {
			v.add(reason.Why{Code: why.Code, Text: fmt.Sprintf("phase %s: %s", name, why.Text)})
		}
	}
	for _, a := range r.Asserts {
		if v.Assertions == None {
			v.Assertions = Pass
		}
		if a.OK != nil && *a.OK {
			continue
		}
		is := Fail
		if a.OK == nil {
			is = Undecided
		}
		v.Assertions = worst(assertions[:], v.Assertions, is)
		v.add(a.failure())
	}
	r.Verdict = v
	r.ExitCode = exitCode(v, r.Strict)
}

// Miscounted says whether figures are INVALID for doubts about counts or values, and not only about times.
func (v *Verdict) Miscounted() bool {
	return v.Validity == Invalid && slices.ContainsFunc(v.Codes, reason.Code.Counts)
}

// add appends a reason.
func (v *Verdict) add(why reason.Why) {
	v.Reasons, v.Codes = append(v.Reasons, why.Text), append(v.Codes, why.Code)
}

// why returns reason i with its code, which is "" in results of an older form.
func (v *Verdict) why(i int) reason.Why {
	w := reason.Why{Text: v.Reasons[i]}
	if i < len(v.Codes) {
		w.Code = v.Codes[i]
	}
	return w
}

// has says whether a reason is among the verdict's own.
func (v *Verdict) has(why reason.Why) bool {
	for i := range v.Reasons {
		if v.why(i) == why {
			return true
		}
	}
	return false
}

// EndedBy says whether a phase's reason is also the reason for the run's end: ops that must all succeed did not.
func (r *Run) EndedBy(why *Reason) bool {
	codes := r.Verdict.Codes
	return why.Code == reason.SetupFailed && len(codes) > 0 && codes[0] == reason.SetupFailed
}

// Codes of asserts that did not pass.
const (
	assertFailed    reason.Code = "assert_failed"    // it does not hold
	assertUndecided reason.Code = "assert_undecided" // a figure that it names is null, or a bound that does not decide it
)

// failure says in a line why the assert did not pass.
func (a *AssertResult) failure() reason.Why {
	if a.OK == nil {
		return reason.Why{Code: assertUndecided, Text: fmt.Sprintf("assert %q could not be decided: %s", a.Name, a.Reason)}
	}
	return reason.Why{Code: assertFailed, Text: fmt.Sprintf("assert %q does not hold: %s, with %s", a.Name, a.That, a.Value)}
}

// exitCode returns the code of the most serious condition that applies.
func exitCode(v Verdict, strict bool) int {
	switch {
	case v.Completeness == Failed:
		return exit.Failed
	case v.Completeness == Aborted:
		return exit.Aborted
	case v.Completeness == Degraded:
		return exit.Degraded
	case v.Validity == Invalid, strict && v.Validity == Suspect:
		return exit.Invalid
	case v.Assertions == Fail:
		return exit.Assert
	case v.Assertions == Undecided, slices.Contains(v.Codes, reason.CannotTell):
		return exit.Undecided
	}
	return exit.OK
}
