package plan

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/zclconf/go-cty/cty"
)

// loadModels are the blocks of which a phase has one.
var loadModels = []string{"closed", "open", "stages", "search", "populate", "clear"}

// phase reads a phase block; nil when it is not to run.
func (r *resolver) phase(body *hclsyntax.Block) *Phase {
	ph := &Phase{Name: body.Labels[0], Ops: []Weight{}, Scenarios: []Scenario{}, Setup: []Weight{}, Batch: 1, MaxBad: 0.01}
	b := r.block(body, "phase."+ph.Name, "phase "+lang.Quote(ph.Name))
	b.Expect([]string{"target", "dataset", "ops", "batch", "when", "bound", "expect_hits", "hit_ratio", "max_bad", "on_error", "stop_after"}, slices.Concat([]string{"setup"}, loadModels), "scenario")
	ph.Target, ph.Dataset = b.Named("target"), b.Named("dataset")
	when := true
	b.Flag("when", &when)
	if !when {
		return nil
	}
	b.loadModel(ph)
	b.mix(ph)
	b.scenarios(ph)
	if setup := b.inner("setup"); setup != nil {
		setup.Expect([]string{"ops"}, nil)
		if setup.Require("ops", "Write ops = { put = 1 }.") {
			ph.Setup = setup.weights("ops")
		}
	}
	lang.Integer(b.Block, "batch", &ph.Batch)
	var hits float64
	if b.Share("expect_hits", &hits) {
		ph.ExpectHits = &hits
	}
	var ratio float64
	if b.Share("hit_ratio", &ratio) {
		ph.HitRatio = &ratio
	}
	if b.Has("bound") {
		ph.Bound = b.Reference("bound", "phase")
	}
	b.Share("max_bad", &ph.MaxBad)
	ph.Stop = b.stop()
	return ph
}

// stop reads how many failures end the load; nil: none do.
func (b *block) stop() *Stop {
	onError := "continue"
	if b.Has("stop_after") {
		onError = "stop"
	}
	b.Text("on_error", &onError)
	switch {
	case onError == "continue" && b.Has("stop_after"):
		b.Bad("on_error", "\"continue\" beside stop_after", "Leave on_error out.")
		return nil
	case onError == "continue":
		return nil
	case onError != "stop":
		b.Bad("on_error", lang.Quote(onError), `Write "stop", to end the run with the first op that fails, or "continue"; stop_after = 100 ends it after so many.`)
		return nil
	}
	const write = `Write a number of errors such as 100, or a share of the ops below 100%, such as "5%".`
	v, ok := b.Value("stop_after")
	if !ok {
		return &Stop{Errors: 1}
	}
	s := new(Stop)
	if v.Type() == cty.Number && v.AsBigFloat().Cmp(big.NewFloat(1)) >= 0 {
		lang.Integer(b.Block, "stop_after", &s.Errors)
		return s
	}
	if v.Type() == cty.String && !strings.HasSuffix(v.AsString(), "%") {
		b.Bad("stop_after", lang.Quote(v.AsString()), write)
		return s
	}
	if b.Share("stop_after", &s.Share) && !(s.Share > 0 && s.Share < 1) {
		b.Bad("stop_after", fmt.Sprintf("a share of %g", s.Share), write)
	}
	return s
}

// loadModel reads the phase's one load model.
func (b *block) loadModel(ph *Phase) {
	for _, model := range loadModels {
		inner := b.inner(model)
		switch {
		case inner == nil:
		case model == "closed":
			ph.Closed = inner.closed()
		case model == "open":
			ph.Open = inner.open()
		case model == "stages":
			ph.Stages = inner.stages()
		case model == "search":
			ph.Search = inner.search()
		case model == "populate":
			ph.Populate = (*Populate)(inner.walk())
		case model == "clear":
			ph.Clear = (*Clear)(inner.walk())
		}
	}
}

// closed reads a closed load.
func (b *block) closed() *Closed {
	c := &Closed{Sessions: 1, Pipeline: 1}
	b.Expect([]string{"sessions", "iterations", "duration", "pipeline", "ramp", "warmup", "think"}, []string{"trace"})
	lang.Integer(b.Block, "sessions", &c.Sessions)
	lang.Integer(b.Block, "pipeline", &c.Pipeline)
	lang.Integer(b.Block, "iterations", &c.Iterations)
	b.Duration("duration", &c.Duration)
	b.Duration("ramp", &c.Ramp)
	b.Duration("warmup", &c.WarmUp)
	b.Duration("think", &c.Think)
	c.Trace = b.untimedTrace()
	// 0 means that the argument is not there, so one that is must not be 0.
	if c.Iterations == 0 {
		b.notZero("iterations", endsAtOnce, writeMore)
	}
	if c.Duration == 0 {
		b.notZero("duration", endsAtOnce, writeMore)
	}
	return c
}

const (
	endsAtOnce = "0 ends the load before it begins"
	writeMore  = "Write more than 0, or leave it out."
)

// notZero reports an argument whose value came out as zero, if it is there at all.
func (b *block) notZero(name, what, write string) {
	if b.r.Wrong[b.Path+"."+name] {
		return
	}
	if _, ok := b.Value(name); ok {
		b.Bad(name, what, write)
	}
}

// scheduleWords are the arguments of a plan.Schedule.
var scheduleWords = []string{"arrivals", "sessions", "pipeline", "in_flight", "on_full", "drain"}

// open reads an open load.
func (b *block) open() *Open {
	b.Expect(slices.Concat([]string{"rate", "duration", "ramp", "warmup"}, scheduleWords), []string{"trace"})
	o := &Open{Schedule: b.schedule(5 * time.Second)}
	if in := b.inner("trace"); in != nil {
		b.trace(o, in)
		return o
	}
	b.level(&o.Rate, &o.Duration, &o.Ramp)
	b.Duration("warmup", &o.WarmUp)
	return o
}

// level reads a rate, how long it lasts and how it is got to.
func (b *block) level(rate *float64, duration, ramp *time.Duration) {
	if b.Require("rate", `Write rate = "10k/s", or how much is to arrive.`) {
		b.Rate("rate", rate)
	}
	if b.Require("duration", `Write duration = "30s", or how long.`) {
		b.Duration("duration", duration)
	}
	b.Duration("ramp", ramp)
}

// schedule reads what all loads have whose ops are due by a schedule.
func (b *block) schedule(drain time.Duration) Schedule {
	s := Schedule{Arrivals: "constant", Sessions: 16, Pipeline: 1, OnFull: "wait", Drain: drain}
	b.Text("arrivals", &s.Arrivals)
	lang.Integer(b.Block, "sessions", &s.Sessions)
	lang.Integer(b.Block, "pipeline", &s.Pipeline)
	s.InFlight = int(min(int64(s.Sessions)*int64(min(max(s.Pipeline, 0), maxPipeline)), math.MaxInt32))
	lang.Integer(b.Block, "in_flight", &s.InFlight)
	b.Text("on_full", &s.OnFull)
	b.Duration("drain", &s.Drain)
	s.Streams = streams(s.Sessions)
	return s
}

// stages reads a load of one stage after another.
func (b *block) stages() *Stages {
	b.Expect(scheduleWords, nil, "stage")
	s := &Stages{Schedule: b.schedule(5 * time.Second), Stages: []Stage{}}
	for _, inner := range b.each("stage") {
		inner.Expect([]string{"rate", "duration", "ramp"}, nil)
		var stage Stage
		inner.level(&stage.Rate, &stage.Duration, &stage.Ramp)
		s.Stages = append(s.Stages, stage)
	}
	return s
}

// search reads a search for a rate.
func (b *block) search() *Search {
	b.Expect(slices.Concat([]string{"from", "to", "step_duration", "precision", "budget"}, scheduleWords), nil, "slo")
	s := &Search{
		Schedule: b.schedule(time.Second),
		From:     1000, To: maxRate, StepDuration: 2 * time.Second, Precision: 0.05, Budget: time.Minute, SLOs: []SLO{},
	}
	b.Rate("from", &s.From)
	b.Rate("to", &s.To)
	b.Duration("step_duration", &s.StepDuration)
	b.Share("precision", &s.Precision)
	b.Duration("budget", &s.Budget)
	for _, inner := range b.each("slo") {
		inner.Expect([]string{"op", "response_p50", "response_p90", "response_p99", "response_p999"}, nil)
		var slo SLO
		inner.Text("op", &slo.Op)
		for _, q := range slo.limits() {
			inner.Duration(q.name, q.limit)
		}
		s.SLOs = append(s.SLOs, slo)
	}
	return s
}

// limit is a quantile of response times and what it must not exceed.
type limit struct {
	name     string
	quantile float64
	limit    *time.Duration
}

// limits lists the quantiles that an SLO may look at.
func (s *SLO) limits() []limit {
	return []limit{
		{"response_p50", 0.5, &s.ResponseP50},
		{"response_p90", 0.9, &s.ResponseP90},
		{"response_p99", 0.99, &s.ResponseP99},
		{"response_p999", 0.999, &s.ResponseP999},
	}
}

// minStreams is the least number of streams of an open load: enough to divide it between 100 workers with 10 loops each.
const minStreams = 1024

// streams returns the least multiple of sessions that is at least minStreams.
func streams(sessions int) int {
	if sessions < 1 || sessions > maxSessions {
		return 0
	}
	return (minStreams + sessions - 1) / sessions * sessions
}

// walk reads the arguments of populate and clear.
func (b *block) walk() *Populate {
	w := &Populate{Sessions: 16, Pipeline: 16}
	b.Expect([]string{"sessions", "pipeline"}, nil)
	lang.Integer(b.Block, "sessions", &w.Sessions)
	lang.Integer(b.Block, "pipeline", &w.Pipeline)
	return w
}

// mix reads the phase's ops. What populate and clear do is in their names.
func (b *block) mix(ph *Phase) {
	switch {
	case ph.Populate != nil:
		ph.Ops = []Weight{{driver.Put.String(), 1}}
	case ph.Clear != nil:
		ph.Ops = []Weight{{driver.Delete.String(), 1}}
	case ph.Closed == nil && ph.Schedule() == nil: // reported as having no load model
		ph.Ops = b.weights("ops")
		b.r.Wrong[b.Path+".ops"] = true
	case ph.Trace() != nil:
		ph.Ops, ph.Trace().ops = ph.Trace().ops, nil
		if b.Has("ops") {
			b.Value("ops")
			b.Bad("ops", "the trace says what ops there are", "Leave ops out.")
		}
	case !b.Has("ops") && slices.ContainsFunc(b.Body.Blocks, func(in *hclsyntax.Block) bool { return in.Type == "scenario" }):
	case b.Require("ops", "Write ops = { get = 9, put = 1 }, or another mix."):
		ph.Ops = b.weights("ops")
	}
	if b.Has("ops") && (ph.Populate != nil || ph.Clear != nil) {
		b.Value("ops")
		b.Bad("ops", "populate always puts and clear always deletes", "Leave ops out.")
	}
}

// weights reads a mix such as { put = 1, get = 9 }, in verb order. An op with the weight 0 is left out.
func (b *block) weights(name string) []Weight {
	const write = "Write a mix such as { put = 1, get = 9 }."
	list := []Weight{}
	v, ok := b.Value(name)
	if !ok {
		return list
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		b.Bad(name, lang.Describe(v), write)
		return list
	}
	for it := v.ElementIterator(); it.Next(); {
		k, w := it.Element()
		op := k.AsString()
		if _, known := driver.ParseVerb(op); !known {
			b.unknownOp(name, op)
			continue
		}
		if w.IsNull() || w.Type() != cty.Number {
			b.Bad(name, fmt.Sprintf("the weight of %s is %s", op, lang.Describe(w)), write)
			continue
		}
		weight, _ := w.AsBigFloat().Float64()
		if weight < 0 {
			b.Bad(name, fmt.Sprintf("the weight of %s is %g", op, weight), write)
		}
		if weight > 0 {
			list = append(list, Weight{op, weight})
		}
	}
	slices.SortFunc(list, func(x, y Weight) int { return verbOf(x.Op) - verbOf(y.Op) })
	return list
}

func (b *block) unknownOp(name, op string) {
	known := verbNames()
	if use := laterWords[op]; use != "" {
		b.Bad(name, op+" is not supported by this version", "Use "+use+".")
		return
	}
	b.Bad(name, "unknown op "+lang.Quote(op), lang.Instead(op, known, "%s"))
}

func verbNames() []string {
	names := make([]string, driver.NumVerbs)
	for v := range driver.NumVerbs {
		names[v] = driver.Verb(v).String()
	}
	return names
}

// verbOf returns the place of an op among the verbs, -1 for an unknown one.
func verbOf(op string) int {
	if v, ok := driver.ParseVerb(op); ok {
		return int(v)
	}
	return -1
}
