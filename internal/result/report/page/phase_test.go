package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// The times of an invalid phase's card are marked, as its rates are.
func TestTimesOfACardAreMarked(t *testing.T) {
	ms := 0.001
	ph := &run.Phase{Reasons: []run.Reason{{Validity: run.Invalid, Touches: []string{"op.get.response.p99"}}}}
	require.Equal(t, "9 gets answered: half of them within 1.00\u00a0ms, 99 % within 1.00\u00a0ms!.",
		latencySentence(ph, "op.get", "9 gets answered", &run.Latency{P50: &ms, P99: &ms}))
}
