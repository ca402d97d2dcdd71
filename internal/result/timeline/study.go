package timeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Source is a run or an experiment, with everything available about it.
type Source struct {
	Run    *run.Run // nil for an experiment
	Detail *Run     // nil if snapshots are not available
	Plan   []byte   // canonical JSON, for an experiment the baseline's; nil if not available
	Study  *Study   // for an experiment
}

// Study is an experiment with the contents of its runs. [NewStudy] makes it.
type Study struct {
	Experiment *run.Experiment
	Runs       []*run.Run // in the order added

	pools map[poolKey]*Pool
}

type poolKey struct{ variant, phase string }

// Pool holds the data of one phase from all repetitions of one variant.
type Pool struct {
	Kept   *Step        // their ops together, on the phase's clock; nil if there are none
	series [][]Interval // how ops ended over time, per repetition
}

// MaxPoints bounds the points over time that are kept per variant; an experiment may have many variants.
const MaxPoints = 120

// NewStudy returns the study of an experiment without its runs.
func NewStudy(x *run.Experiment) *Study {
	return &Study{Experiment: x, pools: map[poolKey]*Pool{}}
}

// Pool returns the data of a phase from a variant's repetitions; nil if none has the phase.
func (s *Study) Pool(variant, phase string) *Pool { return s.pools[poolKey{variant, phase}] }

// Add adds a run of the experiment, with its detail if available, to the sums over its variant's repetitions. Runs that do not count are only kept in
// Runs.
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
		p.Kept = &Step{Seconds: lasts[0], most: MaxPoints, words: sum.words, Settled: new(measure.Totals)}
	}
	for i := range sum.Columns {
		p.Kept.at((float64(i) + 0.5) * float64(sum.Seconds)).Merge(&sum.Columns[i])
	}
	best := sum
	if at := ph.Search; at != nil && at.Level != nil {
		best = st[*at.Level]
	}
	p.Kept.Settled.Merge(best.Settled.WithoutBins())
}

// Rates returns ops that ended ok per second, over time: the mean over the repetitions still running. Points are step seconds apart.
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
		if covered[i] > step/2 { // otherwise the repetitions cover hardly any of it
			at, rates = append(at, (float64(i)+0.5)*step), append(rates, ok[i]/covered[i])
		}
	}
	return at, rates
}

// End returns when the last repetition ended, and the width of the widest interval.
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
	return p.Kept.Op(verb)
}

// Latency returns the times behind a latency of an op, over the repetitions of a variant that count; nil if there are none. The path is relative to
// the op: response, latency.ok.service, acks.0.
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
	if write, sync := o.SplitAll(); sync.Count() > 0 {
		all["write"], all["sync"] = write, sync
	}
	if t, ok := all[strings.Join(path, ".")]; ok {
		return &t
	}
	return nil
}
