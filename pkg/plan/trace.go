package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

const (
	maxSpeed     = 1e6
	maxTraceOps  = 1 << 10 // distinct ops of a trace
	maxTraceName = 40      // bytes of an op's name
)

// requestsForm is the form of a trace of whole requests, each sent by the target's op of its name.
const requestsForm = "requests"

// Trace is a file of recorded ops, whose times an open load keeps. Each worker reads the file where the load runs.
type Trace struct {
	File    string       `json:"file"`             // as written in the plan
	Form    string       `json:"form"`             // "cache", "csv", "json", "requests" or "mooncake"
	Speed   float64      `json:"speed"`            // open load: replay speed relative to the recording; closed load: 0
	Loop    bool         `json:"loop,omitempty"`   // closed load: start again at the trace's end
	Even    bool         `json:"even"`             // ops are due at even intervals, at the load's rate, instead of at the trace's times
	SHA256  string       `json:"sha256"`           // of the file, in lower-case hex
	Length  int64        `json:"length,omitempty"` // length of the file, in bytes; 0 if unknown, as in older plans
	Lines   int64        `json:"lines"`            // that are ops
	Ops     []TraceCount `json:"ops"`              // lines by the trace's name for the op
	LeftOut []TraceCount `json:"left_out"`         // the same for lines whose op has no equivalent here
	Chain   *Chain       `json:"chain,omitempty"`  // how chains are carried out; nil if lines are ops of one key

	ops []Weight // kept here until they become the phase's
}

// TraceCount is the number of a trace's lines with an op.
type TraceCount struct {
	Op    string `json:"op"`
	Lines int64  `json:"lines"`
}

// counts lists lines by op, sorted by name.
func counts(of map[string]int64) []TraceCount {
	list := []TraceCount{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, TraceCount{dialect.Printable(name), of[name]})
	}
	return list
}

// trace reads the trace of an open load, and with it the load's rate and duration.
func (b *block) trace(o *Open, in *block) {
	t := in.traceFile(b)
	t.Speed = 1
	if v, ok := in.As("speed", cty.Number, "Write a number such as 2.0, how many times as fast as it was."); ok {
		t.Speed, _ = v.AsBigFloat().Float64()
	}
	in.without("an open load keeps the trace's times, and ends with it", "Leave it out, or write closed { trace { … } }.", "loop")
	o.Trace = t
	b.without("the trace says when ops are due", "Leave it out.", "duration", "ramp", "arrivals", "in_flight", "warmup")
	o.Duration = time.Second
	if b.Has("rate") {
		b.Rate("rate", &o.Rate)
		t.Even = true
	} else {
		o.Rate = 1
	}
	if !(t.Speed > 0 && t.Speed <= maxSpeed) {
		return
	}
	if facts, ok := in.look(t, true); ok {
		o.measure(t, facts.Span)
	}
}

// untimedTrace reads the trace of a closed load; nil when there is none.
func (b *block) untimedTrace() *Trace {
	in := b.inner("trace")
	if in == nil {
		b.withoutTrace()
		return nil
	}
	t := in.traceFile(b)
	in.Flag("loop", &t.Loop)
	in.without("sessions replay as fast as they can", "Leave it out, or write open { trace { … } }.", "speed")
	in.look(t, false)
	return t
}

// traceFile reads the file and form of a trace in a load.
func (b *block) traceFile(load *block) *Trace {
	t := &Trace{Form: "cache", Ops: []TraceCount{}, LeftOut: []TraceCount{}, Chain: load.chain(), ops: []Weight{{driver.Get.String(), 1}}}
	if t.Chain != nil {
		t.ops = []Weight{{ChainOp, 1}}
	}
	b.Expect([]string{"file", "form", "speed", "loop"}, nil)
	b.Require("file", `Write file = "trace.csv".`)
	b.Text("file", &t.File)
	b.Text("form", &t.Form)
	return t
}

// look reads the file, if a reader was given, and stores in t what the file holds.
func (b *block) look(t *Trace, timed bool) (facts TraceFacts, ok bool) {
	if t.File == "" || b.r.traces == nil {
		return facts, false
	}
	facts, err := b.r.traces(t.File, t.Form, timed)
	if err != nil {
		b.Bad("file", err.Error(), "")
		return facts, false
	}
	t.SHA256, t.Length, t.Lines, t.Ops, t.LeftOut = facts.SHA256, facts.Length, facts.Lines, counts(facts.Ops), counts(facts.LeftOut)
	if c := t.Chain; c != nil {
		c.Keys, c.Longest, c.Below, c.Together = facts.Keys, facts.Longest, facts.Below, facts.Together
		return facts, true
	}
	t.ops = nil
	if t.Form == requestsForm {
		if facts.Commands != nil {
			t.Ops = counts(facts.Commands)
		}
		for _, name := range slices.Sorted(maps.Keys(facts.Ops)) {
			t.ops = append(t.ops, Weight{name, float64(facts.Ops[name])})
		}
		slices.SortStableFunc(t.ops, func(a, b Weight) int { return cmp.Compare(verbFor(a.Op), verbFor(b.Op)) })
		return facts, true
	}
	for verb, n := range facts.Verbs {
		if n > 0 {
			t.ops = append(t.ops, Weight{driver.Verb(verb).String(), float64(n)})
		}
	}
	return facts, true
}

// measure sets the replay's duration and, unless the plan gives the rate, its mean rate.
func (o *Open) measure(t *Trace, span time.Duration) {
	if t.Even {
		o.Duration = time.Duration(math.Ceil(float64(t.Lines) / o.Rate * 1e9))
		return
	}
	o.Duration = max(time.Duration(float64(span)/t.Speed)+1, time.Millisecond)
	o.Rate = min(float64(t.Lines)/o.Duration.Seconds(), maxRate)
}

var sha256Pattern = regexp.MustCompile("^[0-9a-f]{64}$")

// trace checks the trace of a load.
func (v *validator) trace(ph *Phase, t *Trace, at part) {
	v.oneOf(at, "form", t.Form, "cache", "csv", "json", requestsForm, mooncakeForm)
	if t.File == "" || len(t.File) > dialect.MaxString {
		v.fault(fmt.Sprintf("%s: file = %s", at.where, dialect.Quote(t.File)), `Write the path of a file: file = "trace.csv".`, at.path+".file")
	}
	switch timed := ph.Closed == nil; {
	case !timed && (t.Speed != 0 || t.Even) || timed && t.Loop:
		v.fault(at.where+": times in a closed load, or loop in an open one", "Check the plan's text again.", at.path)
	case timed && !(t.Speed > 0 && t.Speed <= maxSpeed):
		v.fault(fmt.Sprintf("%s: speed = %g", at.where, t.Speed), "Write a number above 0 and up to 1e6: 2.0 is twice as fast.", at.path+".speed")
	}
	if t.Even && t.Speed != 1 {
		v.fault(at.where+": speed beside rate", "Write one of them: rate sets the distances between ops, speed keeps those of the trace.", at.path+".speed")
	}
	if t.SHA256 != "" && (!sha256Pattern.MatchString(t.SHA256) || t.Lines < 1) || t.Length < 0 || len(t.Ops)+len(t.LeftOut) > 2*maxTraceOps {
		v.fault(at.where+": impossible attributes of the file", "Check the plan's text again.", at.path)
	}
	for _, c := range slices.Concat(t.Ops, t.LeftOut) {
		if len(c.Op) > maxTraceName || c.Lines < 1 {
			v.fault(at.where+": impossible attributes of the file's ops", "Check the plan's text again.", at.path)
		}
	}
	if ph.HitRatio != nil {
		v.fault(at.where+": a trace beside hit_ratio", "Leave hit_ratio out: which keys are asked for is the trace's.", "phase."+ph.Name+".hit_ratio", at.path)
	}
	if len(ph.Scenarios) > 0 {
		v.fault(at.where+": a trace beside scenarios", "Leave the scenarios out: ops come from the trace.", at.path)
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && (d.Values.Record != nil || d.Values.Sizes != nil || d.Values.File != nil) {
		v.fault(fmt.Sprintf("%s: values of dataset %q that have sizes of their own", at.where, d.Name),
			"Write a dataset with a plain size: the trace says how large values are.", at.path, "dataset."+d.Name+".values")
	}
	if target := v.plan.Target(ph.Target); target != nil {
		if _, local := driverNamed(v.drivers, target.Driver).(localfile.Driver); local {
			v.fault(fmt.Sprintf("%s: on driver %q", at.where, target.Driver), "Write a target that is a cache.", at.path)
		}
	}
}

// TraceFacts describes the content of a trace.
type TraceFacts struct {
	SHA256       string
	Length       int64 // of the file, in bytes
	Lines        int64
	Span         time.Duration
	Verbs        []int64 // lines by driver.Verb
	Ops, LeftOut map[string]int64
	Commands     map[string]int64 // what whole requests ask for; nil if that is unknown

	Keys, Below, Together int64 // of chains, as in Chain
	Longest               int
}
