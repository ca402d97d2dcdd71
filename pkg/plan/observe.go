package plan

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Observe is a set of figures read from the target's side while the plan runs: before and after each phase, and in between.
type Observe struct {
	Name    string        `json:"name"`
	Kind    string        `json:"kind"`       // one of the kinds below; decides which of the following fields are set
	Target  string        `json:"target"`     // server: its endpoints are asked; process: the listeners on its endpoints are measured
	Combine string        `json:"combine"`    // how to combine the figures of several endpoints: "sum", "mean", "min" or "max"; "" where there is one
	Port    int           `json:"port"`       // process: it listens on this port of the coordinator's machine; 0 if not given
	PID     int           `json:"pid"`        // process; 0 if not given
	Path    string        `json:"path"`       // directory
	URL     string        `json:"url"`        // prometheus
	Hook    string        `json:"hook"`       // hook: a command's name; the command line defines the command
	Fields  []Field       `json:"fields"`     // one or more, with distinct names
	Every   time.Duration `json:"every_ns"`   // between two probes during a phase; 0 for none
	Timeout time.Duration `json:"timeout_ns"` // of a probe
}

// Field is one figure of an observation.
type Field struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`    // "bytes", "s", "us"; "" for a plain number
	Counter bool   `json:"counter"` // it never falls until the counting process restarts
	Series  string `json:"series"`  // prometheus: it is the sum of these series
}

// The kinds of observations.
const (
	ObserveServer     = "server"     // what a target's servers report about themselves
	ObserveProcess    = "process"    // what the kernel counts for a process on the coordinator's machine
	ObserveDirectory  = "directory"  // the space that a directory on the coordinator's machine takes
	ObservePrometheus = "prometheus" // series of a Prometheus endpoint
	ObserveHook       = "hook"       // what a command prints
	ObserveCounts     = "counts"     // what one endpoint's server counted; no plan has it: each run asks by itself
)

// GroupField is the memory of the control group that a process is in, which a plan has to ask for.
const GroupField = "cgroup_bytes"

// processFields returns the fields that a process can have.
func processFields() []Field {
	return []Field{
		{Name: "rss_bytes", Unit: "bytes"},
		{Name: "cpu_seconds", Unit: "s", Counter: true},
		{Name: "cpu_user_seconds", Unit: "s", Counter: true},
		{Name: "cpu_system_seconds", Unit: "s", Counter: true},
		{Name: "minor_faults", Counter: true},
		{Name: "major_faults", Counter: true},
		{Name: "read_bytes", Unit: "bytes", Counter: true},
		{Name: "write_bytes", Unit: "bytes", Counter: true},
		{Name: "threads"},
		{Name: GroupField, Unit: "bytes"},
	}
}

// UsualFields returns the fields that an observation of this kind has if its plan chooses none; nil where it has to.
func (o *Observe) UsualFields() []Field {
	switch o.Kind {
	case ObserveProcess:
		return slices.DeleteFunc(processFields(), func(f Field) bool { return f.Name == GroupField })
	case ObserveDirectory:
		return []Field{
			{Name: "used_bytes", Unit: "bytes"},
			{Name: "size_bytes", Unit: "bytes"},
			{Name: "files"},
			{Name: "free_bytes", Unit: "bytes"},
		}
	}
	return nil
}

// Hooks lists the commands that the plan names and the command line must define, each once, without the experiment's.
func (p *Plan) Hooks() []string {
	var names []string
	for _, o := range p.Observes {
		if o.Kind == ObserveHook {
			names = append(names, o.Hook)
		}
	}
	for _, ph := range p.Phases {
		for i := range ph.Events {
			if hook := ph.Events[i].Hook; hook != "" {
				names = append(names, hook)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// observeKinds are the inner blocks of an observe block, which has exactly one.
var observeKinds = []string{ObserveServer, ObserveProcess, ObserveDirectory, ObservePrometheus, ObserveHook}

// observe reads an observe block.
func (r *resolver) observe(body *hclsyntax.Block, targets map[string]*Target) *Observe {
	o := &Observe{Name: body.Labels[0], Fields: []Field{}, Every: time.Second, Timeout: time.Second}
	b := r.block(body, "observe."+o.Name, "observe "+dialect.Quote(o.Name))
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
		r.Fault(b.At, b.Where+": both "+dialect.Listed(kinds), "Write one of them, and an observe block for each other.")
	}
	b.Duration("every", &o.Every)
	b.Duration("timeout", &o.Timeout)
	return o
}

// observed reads the inner block of an observe block.
func (b *block) observed(o *Observe, targets map[string]*Target) {
	switch o.Kind {
	case ObserveServer:
		b.Expect([]string{"target", "fields", "combine"}, nil)
		o.Target = b.Named("target")
		b.combine(o)
		b.serverFields(o, targets[o.Target])
	case ObserveProcess:
		b.Expect([]string{"target", "port", "pid", "combine", "fields"}, nil)
		if b.Has("target") {
			o.Target = b.Named("target")
			b.combine(o)
		}
		dialect.Integer(b.Block, "port", &o.Port)
		dialect.Integer(b.Block, "pid", &o.PID)
		if b.Has("fields") {
			b.fields(o, processField)
		} else {
			o.Fields = o.UsualFields()
		}
	case ObserveDirectory:
		b.Expect([]string{"path"}, nil)
		b.Require("path", `Write path = "/var/lib/…", a directory on the coordinator's machine.`)
		b.Text("path", &o.Path)
		o.Fields, o.Every, o.Timeout = o.UsualFields(), 0, 5*time.Second
	case ObservePrometheus:
		b.Expect([]string{"url", "series"}, nil)
		b.Require("url", `Write url = "http://127.0.0.1:9100/metrics".`)
		b.Text("url", &o.URL)
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

// combine reads how to combine the figures of several endpoints.
func (b *block) combine(o *Observe) {
	o.Combine = "sum"
	b.Text("combine", &o.Combine)
}

// serverFields reads the wanted figures of servers. The default is the driver's list.
func (b *block) serverFields(o *Observe, t *Target) {
	if t == nil {
		b.r.Wrong[b.Path+".fields"] = true
		return
	}
	d, ok := driverNamed(b.r.file.drivers, t.Driver).(driver.Informant)
	if !ok {
		b.r.Wrong[b.Path+".fields"] = true // validation says why
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

// series reads field names and the series that each sums up, in order of the names.
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
		b.Bad("series", dialect.Describe(v), write)
		return
	}
	all := v.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts, err := dialect.Texts(cty.TupleVal([]cty.Value{all[name]}))
		if err != nil {
			b.Bad("series", name+": "+dialect.Describe(all[name]), write)
			return
		}
		metric, _, _ := strings.Cut(texts[0], "{")
		f := describeByName(strings.TrimSpace(metric))
		f.Name, f.Series = name, texts[0]
		o.Fields = append(o.Fields, f)
	}
}

// processField returns the field of a process with this name.
func processField(name string) Field {
	fields := processFields()
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return fields[i]
	}
	return Field{Name: name} // validation says so
}

// describeByName derives a figure's unit and kind from its name's suffix, by Prometheus' naming rules.
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

// hook reads a reference such as hook.restart and returns the name after the dot. Only the command line knows which hooks exist.
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

const (
	maxObserves  = 100
	maxFields    = 200 // of an observation
	maxProbe     = time.Minute
	leastBetween = 10 * time.Millisecond // between two probes
	maxSelector  = 1024                  // bytes
)

// fieldPattern matches valid field names, which appear in paths.
var fieldPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// observe checks an observation.
func (v *validator) observe(o *Observe) {
	at := part{"observe." + o.Name, "observe " + dialect.Quote(o.Name)}
	v.oneOf(at, "kind", o.Kind, observeKinds...)
	inner := at.in(o.Kind)
	if o.Every != 0 && o.Every < leastBetween || o.Every > maxDuration {
		v.fault(fmt.Sprintf("%s: every = %q", at.where, o.Every), `Write "10ms" or more, or "0s" for before and after each phase only.`, at.path+".every")
	}
	if o.Timeout <= 0 || o.Timeout > maxProbe {
		v.fault(fmt.Sprintf("%s: timeout = %q", at.where, o.Timeout), `Write more than 0 and at most "1m": a phase can wait so long for the probe before it.`, at.path+".timeout")
	}
	v.fields(o, inner)
	switch o.Kind {
	case ObserveServer:
		v.observedServer(o, inner)
	case ObserveProcess:
		v.observedProcess(o, inner)
	case ObserveDirectory:
		if o.Path == "" || len(o.Path) > dialect.MaxString || strings.ContainsRune(o.Path, 0) || !utf8.ValidString(o.Path) {
			v.fault(inner.where+": path = "+dialect.Quote(o.Path), `Write the path of a directory on the coordinator's machine.`, inner.path+".path")
		}
	case ObservePrometheus:
		v.observedURL(o, inner)
	case ObserveHook:
		if !namePattern.MatchString(o.Hook) {
			v.fault(inner.where+": a hook named "+dialect.Quote(o.Hook), writeName, inner.path+".run")
		}
	}
	v.foreign(o, at)
}

// foreign finds fields of another kind. Only a decoded plan can have them.
func (v *validator) foreign(o *Observe, at part) {
	only := func(set bool, kinds ...string) bool { return !set || slices.Contains(kinds, o.Kind) }
	ok := only(o.Target != "", ObserveServer, ObserveProcess) && only(o.Combine != "", ObserveServer, ObserveProcess) &&
		only(o.Port != 0 || o.PID != 0, ObserveProcess) && only(o.Path != "", ObserveDirectory) &&
		only(o.URL != "", ObservePrometheus) && only(o.Hook != "", ObserveHook)
	if !ok {
		v.fault(at.where+": a field of another kind", "Leave it out.", at.path)
	}
}

// fields checks names and series. Directories have fixed fields, processes some of a list.
func (v *validator) fields(o *Observe, at part) {
	path := at.path + ".fields"
	if o.Kind == ObservePrometheus {
		path = at.path + ".series"
	}
	if len(o.Fields) == 0 || len(o.Fields) > maxFields {
		v.fault(fmt.Sprintf("%s: %d fields", at.where, len(o.Fields)), fmt.Sprintf("Write 1 to %d of them.", maxFields), path, at.path+".target")
		return
	}
	if o.Kind == ObserveDirectory && !slices.Equal(o.Fields, o.UsualFields()) {
		v.fault(at.where+": other fields than a directory has", "Leave fields out.", path)
		return
	}
	seen := map[string]bool{}
	for _, f := range o.Fields {
		_, err := dialect.ParseSelector(f.Series)
		switch {
		case o.Kind == ObserveProcess && !slices.Contains(processFields(), f):
			v.fault(fmt.Sprintf("%s: a process has no field %s", at.where, dialect.Quote(f.Name)), dialect.Instead(f.Name, namesOf(processFields(), func(f Field) string { return f.Name }), "%q"), path)
		case !fieldPattern.MatchString(f.Name):
			v.fault(fmt.Sprintf("%s: a field named %s", at.where, dialect.Quote(f.Name)), "Write a letter or _, then up to 127 letters, digits and _.", path)
		case seen[f.Name]:
			v.fault(fmt.Sprintf("%s: field %s is there twice", at.where, dialect.Quote(f.Name)), "Write it once.", path)
		case !slices.Contains([]string{"", "bytes", "s", "us"}, f.Unit):
			v.fault(fmt.Sprintf("%s: field %s: unit %s", at.where, dialect.Quote(f.Name), dialect.Quote(f.Unit)), `Write "bytes", "s", "us" or "".`, path)
		case (f.Series != "") != (o.Kind == ObservePrometheus):
			v.fault(fmt.Sprintf("%s: field %s: series %s", at.where, dialect.Quote(f.Name), dialect.Quote(f.Series)), `Write the name of a metric, with labels or without: "jvm_memory_bytes_used{area=\"heap\"}".`, path)
		case len(f.Series) > maxSelector:
			v.fault(fmt.Sprintf("%s: series %s: longer than %d bytes", at.where, f.Name, maxSelector), "Write fewer labels.", path)
		case f.Series != "" && err != nil:
			v.fault(fmt.Sprintf("%s: series %s: %s: %v", at.where, f.Name, dialect.Quote(f.Series), err), `Write the name of a metric, with labels or without: "jvm_memory_bytes_used{area=\"heap\"}".`, path)
		}
		seen[f.Name] = true
	}
}

// observedServer checks that the target's servers report figures.
func (v *validator) observedServer(o *Observe, at part) {
	v.observedTarget(o, at)
	t := v.plan.Target(o.Target)
	if t == nil {
		return
	}
	d := driverNamed(v.drivers, t.Driver)
	if _, ok := d.(driver.Informant); !ok && d != nil {
		v.fault(fmt.Sprintf("%s: the servers of driver %q tell nothing about themselves", at.where, t.Driver),
			"Observe their processes, process { target = target."+t.Name+" }, or leave it out.", at.path+".target", "target."+t.Name+".driver")
	}
}

// observedTarget checks the reference to a target and how its endpoints' figures are combined.
func (v *validator) observedTarget(o *Observe, at part) {
	v.oneOf(at, "combine", o.Combine, "sum", "mean", "min", "max")
	if v.plan.Target(o.Target) == nil {
		v.fault(fmt.Sprintf("%s: unknown target %s", at.where, dialect.Quote(o.Target)), "Write target = target.NAME.", at.path+".target")
	}
}

// observedProcess checks that exactly one way to find the process is given.
func (v *validator) observedProcess(o *Observe, at part) {
	ways := 0
	for _, given := range []bool{o.Target != "", o.Port != 0, o.PID != 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		v.fault(fmt.Sprintf("%s: %d ways to find the process", at.where, ways),
			"Write one of target = target.NAME, port = NUMBER and pid = NUMBER: the process is looked for on the coordinator's machine.", at.path, at.path+".target", at.path+".port", at.path+".pid")
	}
	if o.Target != "" {
		v.observedTarget(o, at)
		v.observedSockets(o, at)
	}
	if o.Port != 0 {
		v.within(at, "port", int64(o.Port), 1, 65535)
	}
	if o.PID != 0 {
		v.within(at, "pid", int64(o.PID), 1, 1<<22)
	}
}

// observedSockets checks that processes listen on the target's endpoints.
func (v *validator) observedSockets(o *Observe, at part) {
	t := v.plan.Target(o.Target)
	if t == nil {
		return
	}
	if d := driverNamed(v.drivers, t.Driver); d != nil && !connects(d) {
		v.fault(fmt.Sprintf("%s: nobody listens on the endpoints of driver %q", at.where, t.Driver), "Write port = NUMBER or pid = NUMBER.",
			at.path+".target", "target."+t.Name+".driver")
	}
}

// observedURL checks the URL of a Prometheus endpoint.
func (v *validator) observedURL(o *Observe, at part) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || len(o.URL) > dialect.MaxString || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.fault(at.where+": url = "+dialect.Quote(o.URL), `Write "http://HOST:PORT/metrics".`, at.path+".url")
	case u.User != nil:
		v.fault(at.where+": url with a user", "Leave user and password out: they would be in the plan and in every result.", at.path+".url")
	}
}
