package plan

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// resolver turns a File into a Plan.
type resolver struct {
	*dialect.Reader
	file   *File
	plan   *Plan
	traces func(file, form string, timed bool) (TraceFacts, error) // from Vars
	keys   func(file, form, field string) (EntryFacts, error)      // from Vars
	values func(file, form, field, encoding string) (EntryFacts, error)

	content func(file string) ([]byte, error)

	ops []string // ops that mixes may have
}

// resolver returns a resolver that has resolved nothing yet.
func (f *File) resolver() *resolver {
	return &resolver{Reader: dialect.NewReader(dialect.Words{Names: f.names, Labelled: labelledBlocks, Meant: Meant}), file: f}
}

// Resolve evaluates the plan with the given variables. The Plan is nil if Parse or Resolve found an error. The diagnostics are those
// that Parse has not reported.
func (f *File) Resolve(vars Vars) (*Plan, hcl.Diagnostics) {
	r := f.resolver()
	r.traces, r.keys, r.values, r.content = vars.Trace, vars.Keys, vars.Values, vars.Content
	r.plan = &Plan{Seed: 1, Targets: []*Target{}, Datasets: []*Dataset{}, Observes: []*Observe{}, Phases: []*Phase{}, Asserts: []*Assert{}}
	r.Declare(f.blocks["variable"], f.locals, r.inputs(vars))
	r.resolvePlan()
	r.plan.LeftOut = r.leftOut()
	targets, datasets := map[string]*Target{}, map[string]*Dataset{}
	var all []*Target
	for _, b := range f.blocks["target"] {
		t := r.target(b)
		targets[t.Name], all = t, append(all, t)
	}
	r.ops = opNames(all)
	for _, b := range f.blocks["dataset"] {
		datasets[b.Labels[0]] = r.dataset(b)
	}
	for _, b := range f.blocks["observe"] {
		r.plan.Observes = append(r.plan.Observes, r.observe(b, targets))
	}
	for _, b := range f.blocks["phase"] {
		if ph := r.phase(b); ph != nil {
			r.plan.Phases = append(r.plan.Phases, ph)
		}
	}
	for _, b := range f.blocks["assert"] {
		r.assert(b)
	}
	spare := r.keepUsed(targets, datasets)
	r.plan.applyDefaults(r.Places, f.drivers)
	spare.applyDefaults(r.Places, f.drivers)
	r.check(append(r.plan.validate(f.drivers), spare.validateParts(f.drivers)...))
	f.draft = r.draft()
	if r.Failed() || f.broken {
		return nil, r.Result()
	}
	return r.plan, nil
}

// Draft returns a Plan with only the targets, observations, phases, asserts and quantiles that the last Resolve found, even if something else was wrong. It is
// enough to check the asserts, so that all mistakes are reported at once. It is nil when errors leave phases or observations unclear.
func (f *File) Draft() *Plan { return f.draft }

// draft makes the Plan that Draft returns.
func (r *resolver) draft() *Plan {
	for _, b := range r.file.blocks["phase"] {
		path := "phase." + b.Labels[0]
		if r.Wrong[path] || r.Wrong[path+".when"] || r.Wrong[path+".ops"] || r.Wrong[path+".setup"] || r.Wrong[path+".setup.ops"] {
			return nil
		}
	}
	for _, o := range r.plan.Observes {
		if path := "observe." + o.Name; r.Wrong[path] || r.Wrong[path+"."+o.Kind+".fields"] || r.Wrong[path+"."+o.Kind+".series"] || r.Wrong[path+"."+o.Kind+".target"] {
			return nil
		}
	}
	return &Plan{Targets: r.plan.Targets, Observes: r.plan.Observes, Phases: r.plan.Phases, Asserts: r.plan.Asserts, Quantiles: r.plan.Quantiles}
}

// inputs returns the values that variables get from outside the plan.
func (r *resolver) inputs(vars Vars) dialect.Inputs {
	in := dialect.Inputs{Flags: vars.Flags, Files: vars.Files, Environ: vars.Environ}
	if vars.Variant != "" {
		in.Variant = r.variantNamed(vars.Variant)
	}
	return in
}

// resolvePlan reads the plan block.
func (r *resolver) resolvePlan() {
	if r.file.plan == nil {
		r.Wrong["plan"] = true
		return
	}
	r.plan.Name = r.file.plan.Labels[0]
	b := r.block(r.file.plan, "plan", "plan "+dialect.Quote(r.plan.Name))
	b.Expect([]string{"description", "seed", "on_worker_loss", "quantiles"}, nil)
	b.Text("description", &r.plan.Description)
	r.plan.Quantiles = b.quantiles()
	b.Unsigned("seed", &r.plan.Seed)
	b.Text("on_worker_loss", &r.plan.OnWorkerLoss)
}

// keepUsed adds to the plan the targets that a phase or an observation uses and the datasets that a phase uses, in the order of the text. It returns
// the others, which may have mistakes, too.
func (r *resolver) keepUsed(targets map[string]*Target, datasets map[string]*Dataset) (spare *Plan) {
	spare = &Plan{}
	used := r.plan.inUse()
	for _, ph := range r.plan.Phases {
		for _, name := range ph.named() {
			if t := targets[name]; t != nil {
				for _, behind := range t.behind() {
					used["target."+behind] = true
				}
			}
		}
	}
	for _, name := range r.file.names("target") {
		to := spare
		if used["target."+name] {
			to = r.plan
		}
		to.Targets = append(to.Targets, targets[name])
	}
	for _, name := range r.file.names("dataset") {
		to := spare
		if used["dataset."+name] {
			to = r.plan
		}
		to.Datasets = append(to.Datasets, datasets[name])
	}
	return spare
}

// check reports each problem where it was written. It skips problems about values that are already reported as wrong.
func (r *resolver) check(problems []problem) {
	for _, p := range problems {
		known := true
		for _, path := range p.about {
			known = known && !r.isWrong(path)
		}
		if known {
			r.Fault(r.place(p.about[0]), p.what, p.write)
		}
	}
}

// isWrong reports whether an error about a path or one of its parents was already reported.
func (r *resolver) isWrong(path string) bool {
	for ; path != ""; path = parent(path) {
		if r.Wrong[path] {
			return true
		}
	}
	return false
}

// place returns where a path, or else its nearest parent, was written.
func (r *resolver) place(path string) hcl.Range {
	for ; path != ""; path = parent(path) {
		if at, ok := r.Places[path]; ok {
			return at
		}
	}
	if r.file.plan != nil {
		return r.file.plan.DefRange()
	}
	return hcl.Range{Filename: r.file.name, Start: hcl.InitialPos, End: hcl.InitialPos}
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// missing reports a block that is not there.
func (b *block) missing(name, write string) {
	b.r.Wrong[b.Path+"."+name] = true
	b.r.Fault(b.At, fmt.Sprintf("%s: %s is missing", b.Where, name), "Write "+write+".")
}

// substitute returns the text of an attribute's expression, with variables and locals replaced by their values.
func (r *resolver) substitute(a *hclsyntax.Attribute, s dialect.Scope) (string, bool) {
	from, to := a.EqualsRange.End.Byte, a.SrcRange.End.Byte
	var text strings.Builder
	all := true
	diags := hclsyntax.VisitAll(a.Expr, func(node hclsyntax.Node) hcl.Diagnostics {
		x, ok := node.(*hclsyntax.ScopeTraversalExpr)
		if !ok || !dialect.Reserved(x.Traversal.RootName()) {
			return nil
		}
		v, ok := r.Eval(x, s)
		if !ok {
			all = false
			return nil
		}
		text.Write(r.file.src[from:x.SrcRange.Start.Byte])
		text.WriteString(constant(v))
		from = x.SrcRange.End.Byte
		if text.Len() > dialect.MaxString {
			all = false
			return hcl.Diagnostics{dialect.GuardDiag(x.SrcRange, fmt.Sprintf("%s: a condition of more than %d bytes", s.Where, dialect.MaxString), "Write a shorter one.")}
		}
		return nil
	})
	if len(diags) > 0 {
		r.Keep(diags[0])
	}
	text.Write(r.file.src[from:to])
	return strings.TrimSpace(text.String()), all
}

// constant writes a value as an expression.
func constant(v cty.Value) string {
	text := string(hclwrite.TokensForValue(v).Bytes())
	if v.Type() == cty.Number && strings.HasPrefix(text, "-") {
		return "(" + text + ")"
	}
	return text
}

// driverNamed returns the driver with a name, nil for none.
func driverNamed(drivers []driver.Driver, name string) driver.Driver {
	if inside := (driver.Inside{}); inside.Name() == name {
		return inside
	}
	return first(drivers, func(d driver.Driver) bool { return d.Name() == name })
}

func driverNames(drivers []driver.Driver) []string {
	return namesOf(drivers, driver.Driver.Name)
}
