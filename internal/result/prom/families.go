package prom

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric name with its type, help text and labels.
type family struct {
	Metric
	desc *prometheus.Desc
}

// table has a line for each family: its name without loadgen_, its type, its labels and its help text.
//
//go:embed families.tsv
var table string

// families are the metrics of the table, in its order, and by their names there.
var families = sync.OnceValues(func() (all []*family, named map[string]*family) {
	named = map[string]*family{}
	for line := range strings.Lines(table) {
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		f := &family{Metric: Metric{Name: "loadgen_" + c[0], Type: c[1], Labels: strings.Fields(c[2]), Help: c[3]}}
		f.desc = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		all, named[c[0]] = append(all, f), f
	}
	return all, named
})
