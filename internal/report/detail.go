package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Detail is what a run's snapshots hold beyond its result: histograms, over time and in all. The zero Detail is empty and ready; a nil
// one stands for a run whose snapshots are not at hand.
//
// It takes as much memory for a day as for a minute: where a step lasts longer than maxColumns of its columns, neighbours are joined.
type Detail struct {
	snapshot measure.Snapshot // room to decode into
	steps    []*steps         // in the order of the run
}

// steps is what one step left behind, or several of a phase.
type steps struct {
	seq     int
	totals  measure.Totals
	seconds int         // that a column lasts
	columns []hist.Hist // response times of ok and miss that ended in it
}

// maxColumns bounds what is kept over time.
const maxColumns = 360

// lasts are the seconds that a column can last; each is a multiple of the one before.
var lasts = [...]int{1, 2, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}

// Add takes a snapshot in its binary form, as the run directory keeps them, of any worker. It keeps nothing of b.
func (d *Detail) Add(b []byte) error {
	s := &d.snapshot
	if _, err := s.Decode(b); err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	i := slices.IndexFunc(d.steps, func(p *steps) bool { return p.seq == s.Step })
	if i < 0 {
		i = len(d.steps)
		d.steps = append(d.steps, &steps{seq: s.Step, seconds: lasts[0]})
	}
	return d.steps[i].add(s)
}

func (p *steps) add(s *measure.Snapshot) error {
	if p.totals.Origin == 0 {
		p.totals.Origin = s.Delta.Origin
	}
	if p.totals.Origin != s.Delta.Origin {
		return fmt.Errorf("snapshot %d counts from %d ns, others of its step from %d ns", s.SeqFirst, s.Delta.Origin, p.totals.Origin)
	}
	p.totals.Merge(&s.Delta)
	middle := s.From + (s.To-s.From)/2 - s.Delta.Origin
	column := p.at(float64(middle) / 1e9)
	for _, o := range s.Delta.Ops {
		if o != nil {
			column.Merge(&o.Response[measure.ClassOK])
			column.Merge(&o.Response[measure.ClassMiss])
		}
	}
	return nil
}

// at returns the column of a time, in seconds since the start.
func (p *steps) at(seconds float64) *hist.Hist {
	i := max(int(seconds), 0) / p.seconds
	for i >= maxColumns && p.seconds < lasts[len(lasts)-1] {
		p.coarsen()
		i = max(int(seconds), 0) / p.seconds
	}
	i = min(i, maxColumns-1)
	for len(p.columns) <= i {
		p.columns = append(p.columns, hist.Hist{})
	}
	return &p.columns[i]
}

// coarsen joins neighbouring columns to the next length.
func (p *steps) coarsen() {
	next := lasts[slices.Index(lasts[:], p.seconds)+1]
	n := next / p.seconds
	var joined []hist.Hist
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
				sum += p.totals.Digest
			}
			if digest, err := strconv.ParseUint(ph.Digest, 16, 64); err == nil && digest == sum {
				found[name] = d.steps[i : i+n]
				next = i + n
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
	return sum
}
