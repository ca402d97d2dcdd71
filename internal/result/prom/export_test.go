package prom

import "strings"

// Metric is a family, as docs/metrics.md describes it.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// Metrics returns all families, in order.
func Metrics() (all []Metric) {
	for _, f := range families {
		all = append(all, Metric{f.name, strings.ToLower(f.kind.String()), f.help, f.labels})
	}
	return all
}
