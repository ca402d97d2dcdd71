package judge

import (
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newTarget(p *plan.Plan, ph *plan.Phase, endpoints []string) run.Target {
	r := run.Target{Name: ph.Target, Endpoints: append([]string{}, endpoints...)}
	t := p.Target(ph.Target)
	r.Driver, r.Builtin, r.TLS, r.Placement = t.Driver, t.Builtin != nil, t.TLS != nil, t.Placement
	if n := t.Replication; n != nil {
		r.Replication = &run.Replication{
			Coordinate: n.Coordinate, N: n.N, W: n.W, R: n.R, ReadFanout: n.ReadFanout, ReadFrom: n.ReadFrom,
		}
	}
	return r
}

func newDataset(p *plan.Plan, ph *plan.Phase) run.Dataset {
	d := p.Dataset(ph.Dataset)
	r := run.Dataset{
		Name: d.Name, Keys: d.Keys.Count, Scope: d.Keys.Scope, Pick: d.Keys.Picking(), Skew: d.Keys.Skew, ValueBytes: d.Values.Size, Values: d.Values.Form(),
	}
	if f := d.Keys.File; f != nil {
		r.File = newKeyFile(f)
	}
	if f := d.Values.File; f != nil {
		r.ValuesFile = &run.ValueFile{
			KeyFile: *newKeyFile(&f.EntryFile), Encoding: f.Encoding, Pick: f.Pick,
			Values: f.Count, LeastBytes: f.Least, LargestBytes: f.Largest, MeanBytes: f.Mean(),
		}
	}
	return r
}

func newKeyFile(f *plan.EntryFile) *run.KeyFile {
	return &run.KeyFile{Path: f.Path, Form: f.Form, Field: f.Field, SHA256: f.SHA256}
}

// shape returns the phase's kind, its load model and what the model asks for, in a step of the given shape or in all.
func shape(ph *plan.Phase, step pace.Shape) (kind, model string, s run.Shape) {
	kind, model, s = bareShape(ph, step)
	s.Batch = ph.Batch
	if ph.HitRatio != nil {
		s.HitRatio = *ph.HitRatio
	}
	return kind, model, s
}

// bareShape is shape, without what all models have in common.
func bareShape(ph *plan.Phase, step pace.Shape) (kind, model string, s run.Shape) {
	if o := ph.Schedule(); o != nil {
		s := run.Shape{
			Sessions: o.Sessions, Pipeline: o.Pipeline, DurationSeconds: step.Duration.Seconds(), RampSeconds: step.Ramp.Seconds(),
			Rate: step.Rate, Arrivals: o.Arrivals, InFlight: o.InFlight, OnFull: o.OnFull,
		}
		switch {
		case ph.Stages != nil:
			return string(run.Load), "stages", s
		case ph.Search != nil:
			return string(run.Load), "search", s
		}
		return string(run.Load), "open", s
	}
	switch {
	case ph.Closed != nil:
		c := ph.Closed
		return string(run.Load), "closed", run.Shape{
			Sessions: c.Sessions, Pipeline: c.Pipeline, Iterations: c.Iterations, DurationSeconds: c.Duration.Seconds(),
			RampSeconds: c.Ramp.Seconds(), ThinkSeconds: c.Think.Seconds(),
		}
	case ph.Populate != nil:
		return string(run.Populate), "closed", run.Shape{Sessions: ph.Populate.Sessions, Pipeline: ph.Populate.Pipeline}
	default:
		return string(run.Clear), "closed", run.Shape{Sessions: ph.Clear.Sessions, Pipeline: ph.Clear.Pipeline}
	}
}

// verbsOf returns the verbs of a mix; a plan holds none but known ones.
func verbsOf(mix []plan.Weight) []driver.Verb {
	var verbs []driver.Verb
	for _, w := range mix {
		if v, ok := driver.ParseVerb(w.Op); ok {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

func newReplayed(t *plan.Trace) *run.Replayed {
	r := &run.Replayed{
		File: t.File, Form: t.Form, SHA256: t.SHA256, Speed: t.Speed, Lines: t.Lines,
		Ops: append([]plan.TraceCount{}, t.Ops...), LeftOut: append([]plan.TraceCount{}, t.LeftOut...),
	}
	if t.Even {
		r.Speed = 0
	}
	return r
}
