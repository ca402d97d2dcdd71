package measure

import "github.com/loadgen/loadgen/pkg/hist"

// NumOrdinals is the number of bins of a Growth.
const NumOrdinals = 128

// maxOrdinalShift is the shift at which the bins hold every ordinal: 128 bins of 2^57.
const maxOrdinalShift = 57

// Growth holds service times by ordinal: bin i holds the ops with ordinals i<<Shift < n ≤ (i+1)<<Shift. An op's ordinal is its position in the step's
// schedule, from 1; the plan determines it. When an ordinal falls beyond the last bin, neighbours are joined and the width doubles. So the width
// depends only on the largest ordinal, whatever the order of ops and of merges. The zero value is empty and ready; a nil *Growth may be read.
type Growth struct {
	Shift uint8
	Bins  []GrowthBin // up to the last that is not empty; a reused Growth may have room for more
}

// GrowthBin holds the ended ops of one bin.
type GrowthBin struct {
	Answered hist.Hist // service times of those that ended ok or miss, ns
	Failed   uint64    // those that ended otherwise
}

// Ended returns how many of the bin's ops have ended.
func (b *GrowthBin) Ended() uint64 { return b.Answered.Count() + b.Failed }

// Grow counts an op by its ordinal, in addition to Record. It allocates where Record does, and at the first use of a bin.
func (t *Totals) Grow(s *Sample, ordinal uint64) { t.of(s.Verb).grow(s, ordinal) }

// GrowScenario counts a scenario by its ordinal, in addition to RecordScenario.
func (t *Totals) GrowScenario(i int, s *Sample, ordinal uint64) { t.scenario(i).grow(s, ordinal) }

func (o *Op) grow(s *Sample, ordinal uint64) {
	g := made(&o.Growth)
	ordinal = max(ordinal, 1) - 1
	g.coarsen(narrowest(g.Shift, ordinal, NumOrdinals))
	b := g.bin(int(ordinal >> g.Shift))
	if classOf(s.Outcome) == ClassBad {
		b.Failed++
		return
	}
	b.Answered.Record(s.End - s.Start)
}

// bin returns a bin, creating it and those before it at first use.
func (g *Growth) bin(i int) *GrowthBin {
	lengthen(&g.Bins, i+1)
	return &g.Bins[i]
}

// coarsen joins neighbours until bins are at least 2^shift ordinals wide.
func (g *Growth) coarsen(shift uint8) {
	if shift <= g.Shift {
		return
	}
	Fold(g.Bins, 1<<(shift-g.Shift), func(into, from *GrowthBin) {
		into.merge(from)
		from.reset()
	})
	g.Shift = shift
}

func (b *GrowthBin) merge(o *GrowthBin) {
	b.Answered.Merge(&o.Answered)
	b.Failed += o.Failed
}

func (b *GrowthBin) reset() {
	b.Answered.Reset()
	b.Failed = 0
}

// Used returns the bins up to the last that is not empty.
func (g *Growth) Used() []GrowthBin {
	if g == nil {
		return nil
	}
	return trimmed(g.Bins, func(b *GrowthBin) bool { return b.Ended() == 0 })
}

// Ended returns the number of ops counted.
func (g *Growth) Ended() (n uint64) {
	for i := range g.Used() {
		n += g.Bins[i].Ended()
	}
	return n
}

// merge adds what o counted.
func (g *Growth) merge(o *Growth) {
	g.coarsen(o.Shift)
	by := g.Shift - o.Shift
	for i := range o.Used() {
		if b := &o.Bins[i]; b.Ended() > 0 {
			g.bin(i >> by).merge(b)
		}
	}
}

func (g *Growth) reset() {
	g.Shift = 0
	for i := range g.Bins {
		g.Bins[i].reset()
	}
}

// print returns a 64-bit digest of the latencies, which adds up as they merge, and the number of failed ops. It ignores which bins they are in.
func (g *Growth) print() (print, failed uint64) {
	for i := range g.Used() {
		print += g.Bins[i].Answered.Print()
		failed += g.Bins[i].Failed
	}
	return print, failed
}
