package plan

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	maxSpeed     = 1e6
	maxTraceOps  = 64 // different ops of a trace
	maxTraceName = 40 // bytes of one
)

// Trace is a file of ops that were once asked for, at the times at which they were. Where the load runs, each worker reads it.
type Trace struct {
	File    string       `json:"file"` // as the plan has it
	Form    string       `json:"form"` // "cache", "csv" or "json"
	Speed   float64      `json:"speed"`
	Even    bool         `json:"even"`     // ops are due at even distances, at the load's rate, instead of at the trace's times
	SHA256  string       `json:"sha256"`   // of the file, in lower-case hex
	Lines   int64        `json:"lines"`    // that are ops
	Ops     []TraceCount `json:"ops"`      // lines by what the trace calls the op
	LeftOut []TraceCount `json:"left_out"` // lines that are no op here, likewise
}

// TraceCount is how many lines of a trace have an op.
type TraceCount struct {
	Op    string `json:"op"`
	Lines int64  `json:"lines"`
}

// TraceFacts are what a trace was found to hold.
type TraceFacts struct {
	SHA256       string
	Lines        int64
	Span         time.Duration
	Verbs        [driver.NumVerbs]int64
	Ops, LeftOut map[string]int64
}

// counts lists lines by op, in the order of names.
func counts(of map[string]int64) []TraceCount {
	list := []TraceCount{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, TraceCount{printable(name), of[name]})
	}
	return list
}

// trace reads the trace of an open load, and with it the load's rate, duration and ops.
func (b *block) trace(o *Open) []Weight {
	t := &Trace{Form: "cache", Speed: 1, Ops: []TraceCount{}, LeftOut: []TraceCount{}}
	in := b.inner("trace")
	in.expect([]string{"file", "form", "speed"}, nil)
	if in.require("file", `Write file = "trace.csv".`) {
		in.text("file", &t.File)
	}
	in.text("form", &t.Form)
	if v, ok := in.as("speed", cty.Number, "Write a number such as 2.0, how many times as fast as it was."); ok {
		t.Speed, _ = v.AsBigFloat().Float64()
	}
	o.Trace = t
	for _, name := range []string{"duration", "ramp", "arrivals", "in_flight", "warmup"} {
		if b.has(name) {
			b.value(name)
			b.bad(name, "the trace says when ops are due", "Leave it out.")
		}
	}
	weights := []Weight{{driver.Get.String(), 1}}
	o.Duration = time.Second
	if b.has("rate") {
		b.rate("rate", &o.Rate)
		t.Even = true
	} else {
		o.Rate = 1
	}
	if t.File == "" || b.r.traces == nil || !(t.Speed > 0 && t.Speed <= maxSpeed) {
		return weights
	}
	facts, err := b.r.traces(t.File, t.Form)
	if err != nil {
		in.bad("file", err.Error(), "")
		return weights
	}
	t.SHA256, t.Lines, t.Ops, t.LeftOut = facts.SHA256, facts.Lines, counts(facts.Ops), counts(facts.LeftOut)
	o.measure(t, facts.Span)
	weights = nil
	for verb, n := range facts.Verbs {
		if n > 0 {
			weights = append(weights, Weight{driver.Verb(verb).String(), float64(n)})
		}
	}
	return weights
}

// measure sets how long the replay lasts, and its mean rate.
func (o *Open) measure(t *Trace, span time.Duration) {
	if t.Even {
		o.Duration = time.Duration(math.Ceil(float64(t.Lines) / o.Rate * 1e9))
		return
	}
	o.Duration = max(time.Duration(float64(span)/t.Speed)+1, time.Millisecond)
	o.Rate = min(float64(t.Lines)/o.Duration.Seconds(), maxRate)
}

var sha256Pattern = regexp.MustCompile("^[0-9a-f]{64}$")

// trace checks the trace of an open load.
func (v *validator) trace(ph *Phase, t *Trace, at part) {
	v.oneOf(at, "form", t.Form, "cache", "csv", "json")
	if t.File == "" || len(t.File) > maxString {
		v.fault(fmt.Sprintf("%s: file = %s", at.where, quote(t.File)), `Write the path of a file: file = "trace.csv".`, at.path+".file")
	}
	if !(t.Speed > 0 && t.Speed <= maxSpeed) {
		v.fault(fmt.Sprintf("%s: speed = %g", at.where, t.Speed), "Write a number above 0 and up to 1e6: 2.0 is twice as fast.", at.path+".speed")
	}
	if t.Even && t.Speed != 1 {
		v.fault(at.where+": speed beside rate", "Write one of them: rate sets the distances between ops, speed keeps those of the trace.", at.path+".speed")
	}
	if t.SHA256 != "" && (!sha256Pattern.MatchString(t.SHA256) || t.Lines < 1) || len(t.Ops)+len(t.LeftOut) > 2*maxTraceOps {
		v.fault(at.where+": what it says of the file cannot be", "Check the plan's text again.", at.path)
	}
	for _, c := range slices.Concat(t.Ops, t.LeftOut) {
		if len(c.Op) > maxTraceName || c.Lines < 1 {
			v.fault(at.where+": what it says of the file's ops cannot be", "Check the plan's text again.", at.path)
		}
	}
	if len(ph.Scenarios) > 0 {
		v.fault(at.where+": a trace beside scenarios", "Leave the scenarios out: ops come from the trace.", at.path)
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && (d.Values.Record != nil || d.Values.Sizes != nil || d.Values.File != nil) {
		v.fault(fmt.Sprintf("%s: values of dataset %q that have sizes of their own", at.where, d.Name),
			"Write a dataset with a plain size: the trace says how large values are.", at.path, "dataset."+d.Name+".values")
	}
	if target := v.plan.Target(ph.Target); target != nil {
		if _, local := driverNamed(v.drivers, target.Driver).(driver.Local); local {
			v.fault(fmt.Sprintf("%s: on driver %q", at.where, target.Driver), "Write a target that is a cache.", at.path)
		}
	}
}
