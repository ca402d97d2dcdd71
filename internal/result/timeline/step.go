package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Step is the data of one step, or of several steps of a phase.
type Step struct {
	seq     int
	parts   []measure.Totals // between the ends of warm-ups
	most    int              // the most columns; 0 for maxColumns
	Totals  measure.Totals   // of the whole step
	Settled *measure.Totals  // after the warm-up; figures are computed from it
	Seconds int              // length of a column
	words   driver.Words     // of the plan
	Columns []measure.Times  // response times of the ops that ended in each
}

// maxColumns bounds the columns kept over time.
const maxColumns = 360

// lasts are the possible lengths of a column, in seconds; each is a multiple of the one before.
var lasts = [...]int{1, 2, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}

func (p *Step) add(s *measure.Snapshot, cuts []float64) error {
	if at := p.parts[0].Origin; at != s.Delta.Origin {
		return fmt.Errorf("snapshot %d counts from %d ns, others of its step from %d ns", s.SeqFirst, s.Delta.Origin, at)
	}
	middle := float64(s.From+(s.To-s.From)/2-s.Delta.Origin) / 1e9
	p.parts[after(cuts, middle)].Merge(&s.Delta)
	column := p.at(middle)
	for _, o := range s.Delta.Ops {
		if o != nil {
			column.Answered.Merge(&o.Response[measure.ClassOK])
			column.Answered.Merge(&o.Response[measure.ClassMiss])
			ledger := o.Ledger()
			column.Failed += ledger.Failed()
		}
	}
	return nil
}

// after counts the warm-ups that have ended by a time.
func after(cuts []float64, seconds float64) int {
	n := 0
	for n < len(cuts) && cuts[n] <= seconds {
		n++
	}
	return n
}

// settle adds up the step's parts: all of them, and those from index from on.
func (p *Step) settle(from int) {
	p.Totals = measure.Totals{}
	p.Totals.Origin = p.parts[0].Origin
	for i := range p.parts {
		p.Totals.Merge(&p.parts[i])
	}
	p.Settled = &p.Totals
	if from > 0 {
		p.Settled = new(measure.Totals)
		p.Settled.Origin = p.parts[0].Origin
		for i := range p.parts[from:] {
			p.Settled.Merge(&p.parts[from+i])
		}
	}
}

// at returns the column of a time, in seconds since the start.
func (p *Step) at(seconds float64) *measure.Times {
	most := cmp.Or(p.most, maxColumns)
	i := max(int(seconds), 0) / p.Seconds
	for i >= most && p.Seconds < lasts[len(lasts)-1] {
		p.coarsen()
		i = max(int(seconds), 0) / p.Seconds
	}
	i = min(i, most-1)
	for len(p.Columns) <= i {
		p.Columns = append(p.Columns, measure.Times{})
	}
	return &p.Columns[i]
}

// Coarsen joins columns until each lasts at least seconds, which must be the column length of some step.
func (p *Step) Coarsen(seconds int) {
	for p.Seconds < seconds {
		p.coarsen()
	}
}

// coarsen joins neighbouring columns to the next length.
func (p *Step) coarsen() {
	next := lasts[slices.Index(lasts[:], p.Seconds)+1]
	p.Columns = measure.Fold(p.Columns, next/p.Seconds, func(into, from *measure.Times) {
		into.Merge(from)
		*from = measure.Times{}
	})
	p.Seconds = next
}

// Together joins the steps of a phase on the clock of the first.
func Together(all []*Step) *Step {
	if len(all) == 1 {
		return all[0]
	}
	sum := &Step{Seconds: lasts[0], words: all[0].words}
	for _, p := range all {
		since := float64(p.Totals.Origin-all[0].Totals.Origin) / 1e9
		for i := range p.Columns {
			sum.at(since + (float64(i)+0.5)*float64(p.Seconds)).Merge(&p.Columns[i])
		}
		sum.Totals.Merge(p.Totals.WithoutBins())
	}
	sum.Settled = &sum.Totals // phases with several steps have no warm-up
	return sum
}

// Op returns the totals that a verb's figures are computed from, or nil.
func (p *Step) Op(verb string) *measure.Op {
	if v, ok := p.words.Verb(verb); ok {
		return p.Settled.Ops[v]
	}
	return nil
}
