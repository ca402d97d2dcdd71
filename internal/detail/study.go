package detail

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
	Detail *Run     // nil: the snapshots are not at hand
	Plan   []byte   // canonical JSON, of an experiment the baseline's; nil: not at hand
	Study  *Study   // of an experiment
}

// Study is an experiment with what its runs hold. It is made by [NewStudy].
type Study struct {
	Experiment *run.Experiment
	Runs       []*run.Run // those that were added, in that order

	pools map[poolKey]*Pool
}

type poolKey struct{ variant, phase string }

// Pool is what the repetitions of one variant hold of one phase.
type Pool struct {
	Kept   *Step        // their ops together, all on the phase's clock; nil: of none
	series [][]Interval // how ops ended over time, of each repetition
}

// MaxPoints bounds what is kept over time of a variant, of which an experiment may have many.
const MaxPoints = 120

// NewStudy returns the study of an experiment without its runs.
func NewStudy(x *run.Experiment) *Study {
	return &Study{Experiment: x, pools: map[poolKey]*Pool{}}
}

// Pool returns what the repetitions of a variant hold of a phase; nil where none has been in it.
func (s *Study) Pool(variant, phase string) *Pool { return s.pools[poolKey{variant, phase}] }

// Add takes a run of the experiment, with its detail if that is at hand, of which it keeps a sum over the variant's repetitions. Runs that do
// not count are kept in Runs only.
func (s *Study) Add(r *run.Run, d *Run) {
	s.Runs = append(s.Runs, r)
	if !s.counts(r) {
		return
	}
	measured := d.Phases(r)
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		if !ph.Kind.Timed() {
			continue
		}
		key := poolKey{r.Variant, name}
		if s.pools[key] == nil {
			s.pools[key] = &Pool{}
		}
		s.pools[key].add(ph, measured[name])
	}
}

func (s *Study) counts(r *run.Run) bool {
	i := slices.IndexFunc(s.Experiment.Runs, func(named run.ExperimentRun) bool { return named.ID == r.ID })
	return i >= 0 && s.Experiment.Runs[i].Counts()
}

func (p *Pool) add(ph *run.Phase, st []*Step) {
	if len(st) == 0 {
		cols, _ := Intervals(ph.Series)
		p.series = append(p.series, cols)
		return
	}
	sum := Together(st)
	cols, _ := Finest(ph, sum)
	p.series = append(p.series, cols)
	if p.Kept == nil {
		p.Kept = &Step{Seconds: lasts[0], most: MaxPoints, words: sum.words}
	}
	for i := range sum.Columns {
		p.Kept.at((float64(i) + 0.5) * float64(sum.Seconds)).Merge(&sum.Columns[i])
	}
	best := sum
	if at := ph.Search; at != nil && at.Level != nil {
		best = st[*at.Level]
	}
	p.Kept.Totals.Merge(best.Settled.WithoutBins())
}

// Rates are ops that ended ok a second, over time: the mean of the repetitions that were still going on. Points are as wide as step.
func (p *Pool) Rates(step float64) (at []float64, rates []float64) {
	var ok, covered []float64
	for _, cols := range p.series {
		for _, c := range cols {
			for i := int(c.From / step); float64(i)*step < c.To; i++ {
				part := min(c.To, float64(i+1)*step) - max(c.From, float64(i)*step)
				for len(ok) <= i {
					ok, covered = append(ok, 0), append(covered, 0)
				}
				ok[i] += c.OK * part / (c.To - c.From)
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

// End is when the last repetition ended, and the widest of its points.
func (p *Pool) End() (end, widest float64) {
	for _, cols := range p.series {
		for _, c := range cols {
			end, widest = max(end, c.To), max(widest, c.To-c.From)
		}
	}
	return end, widest
}

// Op returns the totals of a verb over the repetitions, or nil.
func (p *Pool) Op(verb string) *measure.Op {
	if p.Kept == nil {
		return nil
	}
	return opOf(&p.Kept.Totals, p.Kept.words, verb)
}

// Latency returns what a latency of an op sums up, over the repetitions of a variant that count; nil when there is none.
// The path is that below the op: response, latency.ok.service, acks.0.
func (s *Study) Latency(variant, phase, verb string, path ...string) *measure.Times {
	p := s.Pool(variant, phase)
	if p == nil {
		return nil
	}
	o := p.Op(verb)
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
