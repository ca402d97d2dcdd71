package judge

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTableIsExplained compares docs/truth.md with the table of invariants.
func TestTheTableIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/truth.md")
	require.NoError(t, err)
	var want strings.Builder
	want.WriteString("| must hold | else | silent if |\n|---|---|---|\n")
	for _, row := range invariants() {
		want.WriteString("| " + row.holds + " | [" + string(row.code) + "](reasons.md#" + string(row.code) + ") | " + row.silent + " |\n")
	}
	require.Contains(t, string(page), want.String(), "paste it")
}
