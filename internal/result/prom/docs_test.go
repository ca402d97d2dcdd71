package prom_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/prom"
)

// TestDocsNameEveryMetric compares the tables of docs/metrics.md with the families.
func TestDocsNameEveryMetric(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	tables := map[string]string{}
	for _, m := range prom.Metrics() {
		if tables[subject(m)] == "" {
			tables[subject(m)] = "| metric | type | unit | labels | meaning | query |\n|---|---|---|---|---|---|\n"
		}
		tables[subject(m)] += fmt.Sprintf("| `%s` | %s | %s | %s | %s | `%s` |\n",
			m.Name, m.Type, unit(m.Name), strings.Join(m.Labels, ", "), strings.TrimSuffix(m.Help, "."), query(m))
	}
	got := string(text)
	for name, table := range tables {
		begin, end := fmt.Sprintf("<!-- table: %s (make golden) -->\n", name), "<!-- end -->\n"
		before, rest, ok := strings.Cut(got, begin)
		require.True(t, ok, begin)
		_, after, ok := strings.Cut(rest, end)
		require.True(t, ok, begin)
		got = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	} else {
		require.Equal(t, got, string(text), "make golden rewrites the tables")
	}
}

// subject says what a metric is about, which decides its table.
func subject(m prom.Metric) string {
	if strings.HasPrefix(m.Name, "loadgen_cache_") {
		return "cache"
	}
	for _, label := range []string{"worker", "scenario", "op", "phase"} {
		if slices.Contains(m.Labels, label) {
			return label
		}
	}
	return "run"
}

// unit returns the unit that a metric's name ends in; "" for plain numbers.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes", "ratio"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	if strings.HasSuffix(name, "_ops_per_second") {
		return "ops/s"
	}
	return ""
}

// query returns an example of a query: a rate, a quantile or, of a gauge, the value.
func query(m prom.Metric) string {
	selector := `job="loadgen"`
	by := slices.DeleteFunc(slices.Clone(m.Labels), func(label string) bool { return label == "run" || m.Type == "histogram" && label == "class" })
	if m.Type == "histogram" && slices.Contains(m.Labels, "class") {
		selector += `,class!="bad"`
	}
	rate := fmt.Sprintf("sum by (%s) (rate(%s{%s}[4s]))", strings.Join(by, ", "), m.Name, selector)
	switch m.Type {
	case "counter":
		return rate
	case "histogram":
		return "histogram_quantile(0.99, " + rate + ")"
	}
	return m.Name + "{" + selector + "}"
}
