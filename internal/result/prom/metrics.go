package prom

import (
	"fmt"
	"slices"
	"strings"
)

// Metric is a metric of /metrics.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// Metrics returns all of them, in order.
func Metrics() (all []Metric) {
	list, _ := families()
	for _, f := range list {
		all = append(all, f.Metric)
	}
	return all
}

// Query returns an example of a query in PromQL: a rate, the p99 of a histogram or, of a gauge, its value.
func (m Metric) Query() string {
	selector := `job="loadgen"`
	classes := m.Type == "histogram" && slices.Contains(m.Labels, "class")
	if classes {
		selector += `,class!="bad"`
	}
	by := slices.DeleteFunc(slices.Clone(m.Labels), func(label string) bool { return label == "run" || classes && label == "class" })
	rate := fmt.Sprintf("sum by (%s) (rate(%s{%s}[4s]))", strings.Join(by, ", "), m.Name, selector)
	switch m.Type {
	case "counter":
		return rate
	case "histogram":
		return "histogram_quantile(0.99, " + rate + ")"
	}
	return m.Name + "{" + selector + "}"
}
