package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
)

// Detail is what a run's snapshots hold beyond its result: histograms, over time and in all. It is made by [NewDetail]; a nil one stands for
// a run whose snapshots are not at hand.
//
// It takes as much memory for a day as for a minute: where a step lasts longer than maxColumns of its columns, neighbours are joined.
type Detail struct {
	snapshot measure.Snapshot // room to decode into
	steps    []*steps         // in the order of the run
	cuts     []float64        // ends of warm-ups, in seconds since a step's start; ascending
}

// NewDetail returns the detail of a run without its snapshots.
func NewDetail(r *run.Run) *Detail {
	d := &Detail{}
	for _, ph := range r.Phase {
		if ph.WarmUp.Seconds > 0 && !slices.Contains(d.cuts, ph.WarmUp.Seconds) {
			d.cuts = append(d.cuts, ph.WarmUp.Seconds)
		}
	}
	slices.Sort(d.cuts)
	return d
}

// steps is what one step left behind, or several of a phase.
type steps struct {
	seq     int
	parts   []measure.Totals // between warm-ups' ends
	totals  measure.Totals   // of all
	settled *measure.Totals  // of what the warm-up leaves, which figures are of
	seconds int              // that a column lasts
	most    int              // columns that are kept; 0: maxColumns
	columns []measure.Times  // response times of what ended in it
}

// maxColumns bounds what is kept over time.
const maxColumns = 360

// maxSteps bounds the steps: snapshots may be somebody else's, and each step takes room.
const maxSteps = 4096

// lasts are the seconds that a column can last; each is a multiple of the one before.
var lasts = [...]int{1, 2, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}

// Add takes a snapshot in its binary form, as the run directory keeps them, of any worker. It keeps nothing of b.
func (d *Detail) Add(b []byte) error {
	s := &d.snapshot
	if _, err := s.Decode(b); err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	i := slices.IndexFunc(d.steps, func(p *steps) bool { return p.seq == s.Step })
	if i < 0 && len(d.steps) == maxSteps {
		return fmt.Errorf("snapshots of more than %d steps", maxSteps)
	}
	if i < 0 {
		i = len(d.steps)
		d.steps = append(d.steps, &steps{seq: s.Step, seconds: lasts[0], parts: make([]measure.Totals, len(d.cuts)+1)})
		for j := range d.steps[i].parts {
			d.steps[i].parts[j].Origin = s.Delta.Origin
		}
	}
	return d.steps[i].add(s, d.cuts)
}

func (p *steps) add(s *measure.Snapshot, cuts []float64) error {
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

// settle adds up what the step holds, in all and from a time on.
func (p *steps) settle(from int) {
	p.totals = measure.Totals{Origin: p.parts[0].Origin}
	for i := range p.parts {
		p.totals.Merge(&p.parts[i])
	}
	p.settled = &p.totals
	if from > 0 {
		p.settled = &measure.Totals{Origin: p.parts[0].Origin}
		for i := range p.parts[from:] {
			p.settled.Merge(&p.parts[from+i])
		}
	}
}

// digest is that of all ops of the step.
func (p *steps) digest() (sum uint64) {
	for i := range p.parts {
		sum += p.parts[i].Digest
	}
	return sum
}

// at returns the column of a time, in seconds since the start.
func (p *steps) at(seconds float64) *measure.Times {
	most := maxColumns
	if p.most > 0 {
		most = p.most
	}
	i := max(int(seconds), 0) / p.seconds
	for i >= most && p.seconds < lasts[len(lasts)-1] {
		p.coarsen()
		i = max(int(seconds), 0) / p.seconds
	}
	i = min(i, most-1)
	for len(p.columns) <= i {
		p.columns = append(p.columns, measure.Times{})
	}
	return &p.columns[i]
}

// coarsen joins neighbouring columns to the next length.
func (p *steps) coarsen() {
	next := lasts[slices.Index(lasts[:], p.seconds)+1]
	n := next / p.seconds
	var joined []measure.Times
	for some := range slices.Chunk(p.columns, n) {
		h := some[0]
		for i := range some[1:] {
			h.Merge(&some[1+i])
		}
		joined = append(joined, h)
	}
	p.seconds, p.columns = next, joined
}

// of finds the measured steps of each phase, in their order: those whose digests of ops add up to the phase's. A phase whose steps are not
// all there has none.
func (d *Detail) of(r *run.Run) map[string][]*steps {
	found := map[string][]*steps{}
	if d == nil {
		return found
	}
	next := 0
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		n := max(len(ph.Levels), 1)
		for i := next; i+n <= len(d.steps); i++ {
			var sum uint64
			for _, p := range d.steps[i : i+n] {
				sum += p.digest()
			}
			if digest, err := strconv.ParseUint(ph.Digest, 16, 64); err == nil && digest == sum {
				found[name] = d.steps[i : i+n]
				next = i + n
				for _, p := range found[name] {
					p.settle(after(d.cuts, ph.WarmUp.Seconds))
				}
				break
			}
		}
	}
	return found
}

// together joins the steps of a phase on the clock of the first.
func together(all []*steps) *steps {
	if len(all) == 1 {
		return all[0]
	}
	sum := &steps{seconds: lasts[0]}
	for _, p := range all {
		since := float64(p.totals.Origin-all[0].totals.Origin) / 1e9
		for i := range p.columns {
			sum.at(since + (float64(i)+0.5)*float64(p.seconds)).Merge(&p.columns[i])
		}
		sum.totals.Merge(p.totals.WithoutBins())
	}
	sum.settled = &sum.totals // steps of several have no warm-up
	return sum
}
