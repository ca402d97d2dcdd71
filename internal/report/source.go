package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
)

// Source is a run with all that is known of it, or an experiment.
type Source struct {
	Run    *run.Run // nil: an experiment
	Detail *Detail  // nil: the snapshots are not at hand
	Plan   []byte   // canonical JSON, of an experiment the baseline's; nil: not at hand
	Study  *Study   // of an experiment
}

// Study is an experiment with what its runs hold. It is made by [NewStudy].
type Study struct {
	Experiment *run.Experiment
	Runs       []*run.Run // those that were added, in that order

	pools map[poolKey]*pool
}

type poolKey struct{ variant, phase string }

// pool is what the repetitions of one variant hold of one phase.
type pool struct {
	kept   *steps     // their ops together, all on the phase's clock; nil: of none
	series [][]column // how ops ended over time, of each repetition
}

// poolColumns bounds what is kept over time of a variant, of which an experiment may have many.
const poolColumns = 120

// NewStudy returns the study of an experiment without its runs.
func NewStudy(x *run.Experiment) *Study {
	return &Study{Experiment: x, pools: map[poolKey]*pool{}}
}

// Add takes a run of the experiment, with its detail if that is at hand, of which it keeps a sum over the variant's repetitions. Runs that do
// not count are kept in Runs only.
func (s *Study) Add(r *run.Run, d *Detail) {
	s.Runs = append(s.Runs, r)
	if !s.counts(r) {
		return
	}
	measured := d.of(r)
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		if ph.Kind != string(run.Load) {
			continue
		}
		key := poolKey{r.Variant, name}
		if s.pools[key] == nil {
			s.pools[key] = &pool{}
		}
		s.pools[key].add(ph, measured[name])
	}
}

func (s *Study) counts(r *run.Run) bool {
	i := slices.IndexFunc(s.Experiment.Runs, func(named run.ExperimentRun) bool { return named.ID == r.ID })
	return i >= 0 && s.Experiment.Runs[i].Counts()
}

func (p *pool) add(ph *run.Phase, st []*steps) {
	if len(st) == 0 {
		cols, _ := columnsOf(ph.Series)
		p.series = append(p.series, cols)
		return
	}
	sum := together(st)
	cols, _ := endsOf(ph, sum)
	p.series = append(p.series, cols)
	if p.kept == nil {
		p.kept = &steps{seconds: lasts[0], most: poolColumns}
	}
	for i := range sum.columns {
		p.kept.at((float64(i) + 0.5) * float64(sum.seconds)).Merge(&sum.columns[i])
	}
	best := sum
	if at := ph.Search; at != nil && at.Level != nil {
		best = st[*at.Level]
	}
	p.kept.totals.Merge(best.settled.WithoutBins())
}

// ratesOf are ops that ended ok a second, over time: the mean of the repetitions that were still going on. Points are as wide as step.
func (p *pool) ratesOf(step float64) (at []float64, rates []float64) {
	var ok, covered []float64
	for _, cols := range p.series {
		for _, c := range cols {
			for i := int(c.from / step); float64(i)*step < c.to; i++ {
				part := min(c.to, float64(i+1)*step) - max(c.from, float64(i)*step)
				for len(ok) <= i {
					ok, covered = append(ok, 0), append(covered, 0)
				}
				ok[i] += c.ok * part / (c.to - c.from)
				covered[i] += part
			}
		}
	}
	for i := range ok {
		if covered[i] > step/2 { // else there is hardly anything of it
			at, rates = append(at, (float64(i)+0.5)*step), append(rates, ok[i]/covered[i])
		}
	}
	return at, rates
}

// end is when the last repetition ended, and the widest of its points.
func (p *pool) end() (end, widest float64) {
	for _, cols := range p.series {
		for _, c := range cols {
			end, widest = max(end, c.to), max(widest, c.to-c.from)
		}
	}
	return end, widest
}

// op returns the totals of a verb over the repetitions, or nil.
func (p *pool) op(verb string) *measure.Op {
	if p.kept == nil {
		return nil
	}
	return opOf(&p.kept.totals, verb)
}

// Latency returns what a latency of an op sums up, over the repetitions of a variant that count; nil when there is none.
// The path is that below the op: response, latency.ok.service, acks.0.
func (s *Study) Latency(variant, phase, verb string, path ...string) *measure.Times {
	p := s.pools[poolKey{variant, phase}]
	if p == nil {
		return nil
	}
	o := p.op(verb)
	if o == nil {
		return nil
	}
	all := map[string]measure.Times{"response": o.ResponseAll(), "service": o.ServiceAll(), "lag": {Answered: o.Lag}}
	for class, name := range []string{measure.ClassOK: "ok", measure.ClassMiss: "miss", measure.ClassBad: "bad"} {
		all["latency."+name+".response"], all["latency."+name+".service"] = measure.Times{Answered: o.Response[class]}, measure.Times{Answered: o.Service[class]}
	}
	for k := range o.Acks {
		all["acks."+strconv.Itoa(k)] = o.AckAll(k + 1)
	}
	if t, ok := all[strings.Join(path, ".")]; ok {
		return &t
	}
	return nil
}
