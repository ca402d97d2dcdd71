package judge

import (
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newTarget(t *plan.Target, endpoints []string) run.Target {
	r := run.Target{Name: t.Name, Endpoints: append([]string{}, endpoints...)}
	r.Driver, r.Builtin, r.TLS, r.Placement = t.Driver, t.Builtin != nil, t.TLS != nil, t.Placement
	if n := t.Replication; n != nil {
		r.Replication = &run.Replication{
			Coordinate: n.Coordinate, N: n.N, W: n.W, R: n.R, ReadFanout: n.ReadFanout, ReadFrom: n.ReadFrom,
		}
	}
	if n := t.Copies; n != nil {
		r.Replication = &run.Replication{Coordinate: "server", N: n.N, W: n.W, R: n.R}
	}
	return r
}

func newDataset(p *plan.Plan, ph *plan.Phase) run.Dataset {
	d := p.Dataset(ph.Dataset)
	r := run.Dataset{
		Name: d.Name, Keys: d.Keys.Count, Scope: d.Keys.Scope, Pick: d.Keys.Picking(), Skew: d.Keys.Skew, ValueBytes: d.Values.Size, Values: d.Values.Form(),
	}
	if f := d.Keys.File; f != nil {
		r.File = &run.KeyFile{Path: f.Path, Form: f.Form, Field: f.Field, SHA256: f.SHA256}
	}
	if f := d.Values.File; f != nil {
		r.ValuesFile = &run.ValueFile{
			KeyFile: run.KeyFile{Path: f.Path, Form: f.Form, Field: f.Field, SHA256: f.SHA256}, Encoding: f.Encoding, Pick: f.Pick,
			Values: f.Count, LeastBytes: f.Least, LargestBytes: f.Largest, MeanBytes: f.Mean(),
		}
	}
	return r
}

// shape returns the phase's kind, its load model and that model's parameters, for a step of the given shape or for the whole phase.
func shape(ph *plan.Phase, step pace.Shape) (kind worker.StepKind, model run.Model, s run.Load) {
	s.Batch, s.OnMiss = ph.Batch, ph.OnMiss
	if ph.HitRatio != nil {
		s.HitRatio = *ph.HitRatio
	}
	if o := ph.Schedule(); o != nil {
		s.Sessions, s.Pipeline, s.DurationSeconds, s.RampSeconds = o.Sessions, o.Pipeline, step.Duration.Seconds(), step.Ramp.Seconds()
		s.Rate, s.Arrivals, s.InFlight, s.OnFull = step.Rate, o.Arrivals, o.InFlight, o.OnFull
		switch {
		case ph.Stages != nil:
			return worker.Load, run.ModelStages, s
		case ph.Search != nil:
			return worker.Load, run.ModelSearch, s
		}
		return worker.Load, run.ModelOpen, s
	}
	s.Sessions, s.Pipeline = ph.Clients().Sessions, ph.Clients().Pipeline
	switch {
	case ph.Closed != nil:
		c := ph.Closed
		ramp, _ := c.Whole()
		s.Iterations, s.DurationSeconds, s.RampSeconds, s.ThinkSeconds = c.Iterations, c.Duration.Seconds(), ramp.Seconds(), c.Think.Seconds()
		return worker.Load, run.ModelClosed, s
	case ph.Populate != nil:
		return worker.Populate, run.ModelClosed, s
	case ph.Verify != nil:
		return worker.Verify, run.ModelClosed, s
	default:
		return worker.Clear, run.ModelClosed, s
	}
}

// verbsOf returns the verbs of a mix; a plan contains only known ones.
func (p *phase) verbsOf(mix []plan.Weight) []driver.Verb {
	var verbs []driver.Verb
	for _, w := range mix {
		if v, ok := p.words.Verb(w.Op); ok {
			verbs = append(verbs, v)
		}
	}
	return verbs
}

func newReplayed(t *plan.Trace) *run.Trace {
	r := &run.Trace{
		File: t.File, Form: t.Form, SHA256: t.SHA256, Speed: t.Speed, Lines: t.Lines,
		Ops: traceCounts(t.Ops), LeftOut: traceCounts(t.LeftOut),
	}
	if t.Even {
		r.Speed = 0
	}
	return r
}

func traceCounts(of []plan.TraceCount) []run.TraceCount {
	list := make([]run.TraceCount, len(of))
	for i, c := range of {
		list[i] = run.TraceCount(c)
	}
	return list
}
