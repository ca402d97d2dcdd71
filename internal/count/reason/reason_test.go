package reason_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodesAreDocumented compares the codes of all packages with those that docs/result.md explains.
func TestCodesAreDocumented(t *testing.T) {
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
	page, err := os.ReadFile("../../../docs/result.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n### Codes\n")
	require.True(t, found)
	section, _, found := strings.Cut(rest, "\n## ")
	require.True(t, found)

	var codes []string
	for _, m := range regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, m[1])
	}
	var documented []string
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+|[a-z]+)`").FindAllStringSubmatch(section, -1) {
		documented = append(documented, m[1])
	}
	require.Greater(t, len(codes), 60)
	for _, code := range codes {
		require.Contains(t, documented, code)
	}
	for _, m := range regexp.MustCompile("(?m)^- `([a-z_]+)`: ").FindAllStringSubmatch(section, -1) {
		require.True(t, slices.Contains(codes, m[1]), "%s is explained, and there is no such code", m[1])
	}
}
