package reason_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/report/words"
)

// TestCodesAreExplained compares the codes of all packages with those that docs/reasons.md and package words explain. Each entry says what its code means, when it
// arises and what to do.
func TestCodesAreExplained(t *testing.T) {
	var source []byte
	files, err := filepath.Glob("../../*/*/*.go")
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		source = append(source, b...)
	}
	var codes []string
	for _, m := range regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, m[1])
	}
	require.Greater(t, len(codes), 60)

	var explained []string
	for _, e := range words.Explanations() {
		explained = append(explained, e.Code)
		require.Contains(t, codes, e.Code, "it is explained, and there is no such code")
		require.Regexp(t, `^\S.*\.$`, e.Means, e.Code)
		for _, begins := range []string{"When: ", "Do: "} {
			require.True(t, slices.ContainsFunc(e.More, func(part string) bool { return strings.HasPrefix(part, begins) }), "%s: %s", e.Code, begins)
		}
	}
	for _, code := range codes {
		require.Contains(t, explained, code)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(explained))), len(explained), "each once")
}
