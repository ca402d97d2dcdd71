package prom

import (
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Series returns how many samples the text page of a coordinator has throughout a run: what the plan costs a Prometheus without native histograms.
// One that scrapes native histograms stores a single series for each histogram instead.
func Series(p *plan.Plan, workers int) int {
	return New(func() []worker.Status { return make([]worker.Status, workers) }).samples(p)
}

// PartSeries is Series for a worker's page, without the metrics of its process.
func PartSeries(p *plan.Plan) int { return NewPart().samples(p) }

// samples counts those of the page before the run.
func (c *Collector) samples(p *plan.Plan) (n int) {
	v := NewView("", p)
	c.collect(&v, func(m *metric) {
		n++
		if h := m.dto.Histogram; h != nil {
			n += len(h.Bucket) + 2 // +Inf, sum and count
		}
	})
	return n
}
