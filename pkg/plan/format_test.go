package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestFormat(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"levels":       {"plan \"a\" {\nseed=1\n}", "plan \"a\" {\n  seed = 1\n}\n"},
		"equals signs": {"locals {\n  a = 1\n  long = 2\n}\n", "locals {\n  a    = 1\n  long = 2\n}\n"},
		"comments":     {"# one\nlocals {a=1} // two\n/* three */\n", "# one\nlocals { a = 1 } // two\n/* three */\n"},
		"nothing":      {"", ""},
		"unknown":      {"phase \"p\" {\nops={get=1}\n}\n", "phase \"p\" {\n  ops = { get = 1 }\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := plan.Format([]byte(c.in), "p.hcl")
			require.Empty(t, diags)
			require.Equal(t, c.out, string(got))
			again, diags := plan.Format(got, "p.hcl")
			require.Empty(t, diags)
			require.Equal(t, c.out, string(again))
		})
	}
}

func TestFormatLeavesWhatIsNotHCL(t *testing.T) {
	for name, src := range map[string]string{
		"cut off":     "plan \"a\" {",
		"nested deep": "locals { a = " + strings.Repeat("(", 200_000) + "}",
		"not UTF-8":   "locals { a = \"\xff\" }\n",
		"too large":   strings.Repeat("#", dialect.MaxSource+1),
	} {
		got, diags := plan.Format([]byte(src), "p.hcl")
		require.True(t, diags.HasErrors(), name)
		require.Nil(t, got, name)
		require.Equal(t, "p.hcl", diags[0].Subject.Filename, name)
	}
}

// TestExamplesAreFormatted holds for the plans that people start from.
func TestExamplesAreFormatted(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.hcl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		got, diags := plan.Format(src, name)
		require.Empty(t, diags)
		require.Equal(t, string(src), string(got), "make fmt lays %s out", name)
	}
}
