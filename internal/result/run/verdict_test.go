package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
)

func TestVerdict(t *testing.T) {
	yes, no := true, false
	pass := AssertResult{Name: "quick", That: "a < 1", OK: &yes}
	fail := AssertResult{Name: "quick", That: "a < 1", Value: "a = 2", OK: &no}
	coded := map[string]reason.Code{
		"stop": reason.User.Code, "phase b: doubt": reason.Drift,
		`assert "quick" does not hold: a < 1, with a = 2`: assertFailed,
		`assert "quick" could not be decided: no plateau`: assertUndecided,
	}
	tests := []struct {
		name         string
		completeness Completeness
		validity     Validity
		strict       bool
		asserts      []AssertResult
		assertions   Assertions
		exit         int
		reasons      []string
	}{
		{name: "good", completeness: Complete, validity: Valid, assertions: None, exit: 0},
		{name: "passed", completeness: Complete, validity: Valid, asserts: []AssertResult{pass}, assertions: Pass, exit: 0},
		{
			name: "assert failed", completeness: Complete, validity: Valid, asserts: []AssertResult{pass, fail}, assertions: Fail, exit: 1,
			reasons: []string{`assert "quick" does not hold: a < 1, with a = 2`},
		},
		{
			name: "assert not decided", completeness: Complete, validity: Valid, assertions: Undecided, exit: 7,
			asserts: []AssertResult{{Name: "quick", Reason: "no plateau"}},
			reasons: []string{`assert "quick" could not be decided: no plateau`},
		},
		{name: "suspect", completeness: Complete, validity: Suspect, assertions: None, exit: 0, reasons: []string{"phase b: doubt"}},
		{name: "suspect, strict", completeness: Complete, validity: Suspect, strict: true, assertions: None, exit: 4, reasons: []string{"phase b: doubt"}},
		{
			name: "invalid before asserts", completeness: Complete, validity: Invalid, asserts: []AssertResult{fail}, assertions: Fail, exit: 4,
			reasons: []string{"phase b: doubt", `assert "quick" does not hold: a < 1, with a = 2`},
		},
		{name: "degraded before invalid", completeness: Degraded, validity: Invalid, assertions: None, exit: 3, reasons: []string{"stop", "phase b: doubt"}},
		{name: "aborted before invalid", completeness: Aborted, validity: Invalid, assertions: None, exit: 5, reasons: []string{"stop", "phase b: doubt"}},
		{
			name: "failed before all", completeness: Failed, validity: Invalid, asserts: []AssertResult{fail}, assertions: Fail, exit: 6,
			reasons: []string{"stop", "phase b: doubt", `assert "quick" does not hold: a < 1, with a = 2`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := New(Header{Strict: tt.strict}, machine.Environment{})
			if tt.completeness == Complete {
				r.Conclude(Complete)
			} else {
				r.Conclude(tt.completeness, reason.Why{Code: reason.User.Code, Text: "stop"})
			}
			r.Add("a", &Phase{Validity: Valid})
			b := &Phase{Validity: tt.validity}
			if tt.validity != Valid {
				b.Reasons = []Reason{{Validity: tt.validity, Code: reason.Drift, Text: "doubt"}}
			}
			r.Add("b", b)
			r.SetAsserts(tt.asserts)
			codes := []reason.Code{}
			for _, text := range tt.reasons {
				codes = append(codes, coded[text])
			}
			require.Equal(t, Verdict{
				Completeness: tt.completeness, Validity: tt.validity, Assertions: tt.assertions,
				Reasons: append([]string{}, tt.reasons...), Codes: codes, Phases: map[string]Validity{"a": Valid, "b": tt.validity},
			}, r.Verdict)
			require.Equal(t, tt.exit, r.ExitCode)
			require.Panics(t, func() { r.Add("b", b) })
		})
	}
}

// TestCodesOfAnOtherReason are found; a result of an older form, without codes, is read.
func TestCodesOfAnOtherReason(t *testing.T) {
	r := New(Header{}, machine.Environment{})
	r.SetAsserts([]AssertResult{{Name: "a"}, {Name: "b"}})
	require.NoError(t, r.CheckValid())
	r.Verdict.Codes[1] = assertFailed
	require.ErrorContains(t, r.CheckValid(), `verdict: the code of a reason is not "assert_undecided": assert "b"`)
	r.Verdict.Codes = r.Verdict.Codes[:1]
	require.ErrorContains(t, r.CheckValid(), "verdict: 1 codes of 2 reasons")
	r.Verdict.Codes = nil
	require.NoError(t, r.CheckValid())
	x := NewExperiment("x")
	x.Add(r)
	require.Equal(t, []reason.Code{"", ""}, x.Verdict.Codes)
}

// TestRunEndedByASetup is true for that reason of the phase, and for no other.
func TestRunEndedByASetup(t *testing.T) {
	r := New(Header{}, machine.Environment{})
	why := &Reason{Validity: Invalid, Code: reason.SetupFailed}
	require.False(t, r.EndedBy(why))
	r.Conclude(Failed, reason.Why{Code: reason.SetupFailed})
	require.True(t, r.EndedBy(why))
	require.False(t, r.EndedBy(&Reason{Code: reason.Drift}))
}
