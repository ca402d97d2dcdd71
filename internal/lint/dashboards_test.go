package lint_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// metricsPage is the golden file of /metrics.
const metricsPage = "internal/result/prom/testdata/metrics.golden"

var (
	metricName = regexp.MustCompile(`\bloadgen_[a-z_]+`)
	metricType = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
)

// dashboards finds metric names in dashboards, rules and pages that /metrics does not have.
func dashboards(m *module) []string {
	page, err := fs.ReadFile(m.fsys, metricsPage)
	if err != nil {
		return []string{err.Error()}
	}
	var samples []string
	for _, match := range metricType.FindAllStringSubmatch(string(page), -1) {
		samples = append(samples, match[1])
		if match[2] == "histogram" {
			samples = append(samples, match[1]+"_bucket", match[1]+"_sum", match[1]+"_count")
		}
	}
	boards, err := fs.Glob(m.fsys, "grafana/dashboards/*.json")
	if err != nil || len(boards) == 0 {
		return []string{fmt.Sprintf("grafana/dashboards: no dashboards: %v", err)}
	}
	var found []string
	for _, name := range slices.Concat(boards, m.texts) {
		if ext := path.Ext(name); ext == ".json" || ext == ".md" || ext == ".yml" {
			found = append(found, m.lines(name, func(line string) []string { return unknownMetrics(line, samples) })...)
		}
	}
	return found
}

// noMetric looks like a metric's name but is the table that driver postgres creates.
const noMetric = "loadgen_values"

// unknownMetrics returns the names in a line that are neither a metric nor, if they end in an underscore, the beginning of one.
func unknownMetrics(line string, samples []string) []string {
	var found []string
	for _, name := range metricName.FindAllString(line, -1) {
		known := slices.ContainsFunc(samples, func(s string) bool {
			return s == name || name == noMetric || strings.HasSuffix(name, "_") && strings.HasPrefix(s, name)
		})
		if !known {
			found = append(found, fmt.Sprintf("%s is no metric of %s", name, metricsPage))
		}
	}
	return found
}
