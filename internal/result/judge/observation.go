package judge

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxProbeRows bounds the rows that a phase keeps of an observation. At that number, every second one is dropped.
const maxProbeRows = 4096

// maxReasons bounds how many reasons for missing figures are kept.
const maxReasons = 32

// When in a phase a probe was made. The probe before comes after the setup, when everything is ready for the load.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// Observation collects the probes of one observation in one phase. The zero value has none.
type Observation struct {
	Of      string // what is observed, in words
	Skipped int    // probes that were due while an earlier one was in progress

	first, last *run.Probe                // the probes before and after the load
	newest      *run.Probe                // the last probe so far
	rows        measure.Halved[run.Probe] // each is the first of an equal number of probes
	taken       int
	failed      int
	seconds     float64
	longest     float64
	why         map[string]int // how often a figure was missing, by reason
	sums        map[string]*sum
}

// sum holds what all probes say about a field.
type sum struct {
	n                    int
	last, min, max, mean float64
}

// Begin adds the probe made before the load.
func (o *Observation) Begin(p *run.Probe) {
	p.When, o.first = before, p
	o.add(p)
	o.keep(p)
}

// Add adds a probe made during the load, in order of time.
func (o *Observation) Add(p *run.Probe) {
	p.When = during
	o.add(p)
	o.keep(p)
	if len(o.rows.Cells) >= maxProbeRows {
		o.rows.Halve(func(_, from *run.Probe) { *from = run.Probe{} })
	}
}

// keep adds a probe to the rows, if it begins a row.
func (o *Observation) keep(p *run.Probe) {
	if o.rows.Opens() {
		o.rows.Cells = append(o.rows.Cells, *p)
	}
	o.rows.Count()
}

// End adds the probe made after the load.
func (o *Observation) End(p *run.Probe) {
	p.When, o.last = after, p
	o.add(p)
	o.rows.Cells = append(o.rows.Cells, *p)
}

// SoFar returns the observation as it would be if the load had ended at its newest probe. It shares data with o.
func (o *Observation) SoFar() *Observation {
	c := *o
	if c.last == nil {
		c.last = c.newest
	}
	return &c
}

// Read adds a stored probe, whenever it was made.
func (o *Observation) Read(p *run.Probe) {
	o.Skipped += p.Skipped
	switch p.When {
	case before:
		o.Begin(p)
	case after:
		o.End(p)
	default:
		o.Add(p)
	}
}

// add adds a probe to the figures.
func (o *Observation) add(p *run.Probe) {
	if o.sums == nil {
		o.why, o.sums = map[string]int{}, map[string]*sum{}
	}
	o.newest = p
	o.taken++
	o.seconds += p.Seconds
	o.longest = max(o.longest, p.Seconds)
	if p.Missing[""] != "" {
		o.failed++
	}
	for field, why := range p.Missing {
		if field != "" {
			why = field + ": " + why
		}
		if _, known := o.why[why]; !known && len(o.why) >= maxReasons {
			why = "(other texts)"
		}
		o.why[why]++
	}
	for field, v := range p.Value {
		s := o.sums[field]
		if s == nil {
			s = &sum{min: v, max: v}
			o.sums[field] = s
		}
		s.n++
		s.last, s.min, s.max = v, min(s.min, v), max(s.max, v)
		s.mean += (v - s.mean) / float64(s.n)
	}
}
