package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/zclconf/go-cty/cty"
)

// observeKinds are the blocks of which an observe block has one.
var observeKinds = []string{ObserveServer, ObserveProcess, ObserveDirectory, ObservePrometheus, ObserveHook}

// observe reads an observe block.
func (r *resolver) observe(body *hclsyntax.Block, targets map[string]*Target) *Observe {
	o := &Observe{Name: body.Labels[0], Fields: []Field{}, Every: time.Second, Timeout: time.Second}
	b := r.block(body, "observe."+o.Name, "observe "+lang.Quote(o.Name))
	b.Expect([]string{"every", "timeout"}, observeKinds)
	var kinds []string
	for _, kind := range observeKinds {
		if inner := b.inner(kind); inner != nil {
			kinds = append(kinds, kind)
			o.Kind = kind
			inner.observed(o, targets)
		}
	}
	switch {
	case len(kinds) == 0:
		r.Wrong[b.Path] = true
		r.Fault(b.At, b.Where+": nothing to observe", "Write server { target = target.NAME }, process { port = 6379 }, directory { path = \"…\" }, prometheus { … } or hook { … }.")
	case len(kinds) > 1:
		r.Wrong[b.Path] = true
		r.Fault(b.At, b.Where+": both "+lang.Listed(kinds), "Write one of them, and an observe block for each other.")
	}
	b.Duration("every", &o.Every)
	b.Duration("timeout", &o.Timeout)
	return o
}

// observed reads what is observed.
func (b *block) observed(o *Observe, targets map[string]*Target) {
	switch o.Kind {
	case ObserveServer:
		b.Expect([]string{"target", "fields", "combine"}, nil)
		o.Target = b.Named("target")
		b.combine(o)
		b.serverFields(o, targets[o.Target])
	case ObserveProcess:
		b.Expect([]string{"target", "port", "pid", "combine"}, nil)
		if b.Has("target") {
			o.Target = b.Named("target")
			b.combine(o)
		}
		lang.Integer(b.Block, "port", &o.Port)
		lang.Integer(b.Block, "pid", &o.PID)
		o.Fields = FixedFields(o.Kind)
	case ObserveDirectory:
		b.Expect([]string{"path"}, nil)
		if b.Require("path", `Write path = "/var/lib/…", a directory on the coordinator's machine.`) {
			b.Text("path", &o.Path)
		}
		o.Fields, o.Every, o.Timeout = FixedFields(o.Kind), 0, 5*time.Second
	case ObservePrometheus:
		b.Expect([]string{"url", "series"}, nil)
		if b.Require("url", `Write url = "http://127.0.0.1:9100/metrics".`) {
			b.Text("url", &o.URL)
		}
		b.series(o)
	case ObserveHook:
		b.Expect([]string{"run", "fields"}, nil)
		o.Hook = b.hook("run")
		o.Every, o.Timeout = 0, 10*time.Second
		if b.Require("fields", `Write fields = ["live_bytes"], the names of what the command prints.`) {
			b.fields(o, describeByName)
		}
	}
}

// combine reads how the figures of several endpoints become one.
func (b *block) combine(o *Observe) {
	o.Combine = "sum"
	b.Text("combine", &o.Combine)
}

// serverFields reads which figures of servers are wanted; without a list they are the driver's.
func (b *block) serverFields(o *Observe, t *Target) {
	if t == nil {
		b.r.Wrong[b.Path+".fields"] = true
		return
	}
	d, ok := driverNamed(b.r.file.drivers, t.Driver).(driver.Informant)
	if !ok {
		b.r.Wrong[b.Path+".fields"] = true // and validation says why
		return
	}
	if b.Has("fields") {
		b.fields(o, func(name string) Field { return fieldOf(d.Describe(name)) })
		return
	}
	for _, f := range d.Figures() {
		o.Fields = append(o.Fields, fieldOf(f))
	}
}

func fieldOf(f driver.Figure) Field { return Field{Name: f.Name, Unit: f.Unit, Counter: f.Counter} }

// fields reads a list of names.
func (b *block) fields(o *Observe, of func(name string) Field) {
	var names []string
	b.Texts("fields", &names)
	for _, name := range names {
		o.Fields = append(o.Fields, of(name))
	}
}

// series reads the names of series and what they are the sums of, in the order of the names.
func (b *block) series(o *Observe) {
	const write = `Write series = { gc = "jvm_gc_collection_seconds_sum" }.`
	if !b.Require("series", write) {
		return
	}
	v, ok := b.Value("series")
	if !ok {
		return
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		b.Bad("series", lang.Describe(v), write)
		return
	}
	all := v.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts, err := lang.Texts(cty.TupleVal([]cty.Value{all[name]}))
		if err != nil {
			b.Bad("series", name+": "+lang.Describe(all[name]), write)
			return
		}
		metric, _, _ := strings.Cut(texts[0], "{")
		f := describeByName(strings.TrimSpace(metric))
		f.Name, f.Series = name, texts[0]
		o.Fields = append(o.Fields, f)
	}
}

// describeByName tells from the end of a name what its figure is, as Prometheus' own rules for names have it.
func describeByName(name string) Field {
	f := Field{Name: name}
	base, total := strings.CutSuffix(name, "_total")
	for _, end := range []string{"_sum", "_count", "_bucket"} {
		if cut, ok := strings.CutSuffix(base, end); ok {
			total = true
			if end == "_sum" {
				base = cut
			}
		}
	}
	f.Counter = total
	switch {
	case strings.HasSuffix(base, "_seconds"):
		f.Unit = "s"
	case strings.HasSuffix(base, "_bytes"):
		f.Unit = "bytes"
	}
	return f
}

// hook reads a reference such as hook.restart and returns the name behind the dot. Which hooks there are only the command line knows.
func (b *block) hook(name string) string {
	write := "Write " + name + " = hook.NAME; the command is named by --allow-exec 'NAME=COMMAND…' when the plan is run."
	if !b.Require(name, write) {
		return ""
	}
	expr := b.Body.Attributes[name].Expr
	b.r.Places[b.Path+"."+name] = expr.Range()
	steps, diags := hcl.AbsTraversalForExpr(expr)
	if !diags.HasErrors() && len(steps) == 2 && steps.RootName() == "hook" {
		if step, ok := steps[1].(hcl.TraverseAttr); ok && namePattern.MatchString(step.Name) {
			return step.Name
		}
	}
	b.Bad(name, "not a reference to a hook", write)
	return ""
}
