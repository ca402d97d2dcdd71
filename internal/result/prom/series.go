package prom

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// maxFields is how many fields of an observation are shown.
const maxFields = 30

// Numbers of series.
const (
	runSeries       = 1
	verdictSeries   = 3
	phaseSeries     = 9
	setupSeries     = 1 + driver.NumOutcomes
	endpointSeries  = 3
	cacheSeries     = 12
	opSeries        = 4 + driver.NumOutcomes
	requestSeries   = 5
	keySeries       = 1 + driver.NumOutcomes
	scenarioSeries  = 2 + driver.NumOutcomes + measure.NumClasses*histogramSeries
	workerSeries    = 5
	histogramSeries = len(classicBounds) + 3 // +Inf, sum and count
	ackSeries       = 3
	partHistograms  = 2                        // write and sync
	histograms      = 1 + 2*measure.NumClasses // lag; service and response of each class
)

// Series returns how many samples the text page of a coordinator has throughout a run: what the plan costs a Prometheus without native histograms.
// One that scrapes native histograms stores a single series for each histogram instead.
func Series(p *plan.Plan, workers int) int {
	n := runSeries + verdictSeries + workers*workerSeries + phasesSeries(p)
	v := NewView("", p)
	n += len(v.Events)
	for _, a := range v.Asserts {
		n++
		if a.HasLimit {
			n++
		}
	}
	for _, o := range v.Observed {
		n += len(o.Fields)
	}
	return n
}

// PartSeries is Series for a worker's page, without the metrics of its process.
func PartSeries(p *plan.Plan) int { return runSeries + phasesSeries(p) }

func phasesSeries(p *plan.Plan) (n int) {
	for _, ph := range NewView("", p).Phases {
		n += ph.series()
		for _, verb := range ph.Verbs {
			n += ph.opSeries(verb)
		}
		for _, s := range ph.Scenarios {
			n += (1 + len(s.Steps)) * scenarioSeries
		}
	}
	return n
}

// series returns how many samples the phase has besides those of its ops and scenarios.
func (ph *Phase) series() int {
	n := phaseSeries
	for _, t := range ph.Targets {
		n += endpointSeries*len(endpointNames(t.Endpoints)) + requestSeries*len(t.Verbs)
	}
	if ph.Cached {
		n += cacheSeries
	}
	if ph.HasSetup {
		n += setupSeries
	}
	return n
}

// opSeries returns how many samples the ops of a verb have.
func (ph *Phase) opSeries(verb driver.Verb) int {
	n := 0
	if ph.Batch > 1 {
		n = keySeries
	}
	if ph.divides(verb) {
		n += partHistograms * histogramSeries
	}
	return n + opSeries + histograms*histogramSeries + min(ph.Copies, maxAcks)*ackSeries
}
