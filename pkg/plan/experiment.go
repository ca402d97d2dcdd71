package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Bounds of an experiment.
const (
	MaxVariants = 1000
	MaxRepeat   = 1000
)

// Experiment says which variants of a plan to compare, and how often to run each.
type Experiment struct {
	Repeat   int           `json:"repeat"`   // runs of each variant; 5 by default
	Order    string        `json:"order"`    // "interleaved": each variant once, then all again in the reverse order, and so on; or "sequential"
	Baseline string        `json:"baseline"` // the variant that the others are compared with; the first by default
	Fork     bool          `json:"fork"`     // each run loads from its own process
	Cap      time.Duration `json:"cap"`      // limit on the total time of a variant's runs; 0 for none

	Compare   []string  `json:"compare,omitempty"` // metrics to compare, by their paths below an op; none for the usual ones
	CompareAt hcl.Range `json:"-"`                 // where the plan names them
	Matters   float64   `json:"matters,omitempty"` // smallest difference that matters, as a share; 0 if any does

	Gate *Gate `json:"gate,omitempty"` // nil for none

	// Bound holds values of variables, as HCL literals: a variant's bound is the variant with these values and otherwise its own. Empty for none.
	Bound map[string]string `json:"bound"`

	Restart        string        `json:"restart"`            // the hook that restarts targets before each run; "" for none
	RestartTimeout time.Duration `json:"restart_timeout"`    // of that hook
	Variants       []Variant     `json:"variants"`           // two or more: the named ones, then those of the matrix
	LeftOut        []string      `json:"left_out,omitempty"` // names of the variants that Keep has left out

	when hcl.Range // where the plan says which variants to leave out
}

// Gate asks whether the variant is worse than the baseline. Repeat is then the most pairs of runs.
type Gate struct {
	Metric string    `json:"metric"` // as in Compare, or [CPUPerOp]; "" for the default
	Phase  string    `json:"phase"`  // "" for the only one
	Op     string    `json:"op"`     // "" for the only one
	Worse  float64   `json:"worse"`  // by how much worse it must not be, as a share
	At     hcl.Range `json:"-"`      // where the plan says so
}

// CPUPerOp is a gate's metric: the processor time of the servers for an op.
const CPUPerOp = "cpu_per_op"

// The pairs of a gate.
const (
	LeastPairs = 8
	mostPairs  = 40
)

// The orders of runs.
const (
	interleaved = "interleaved"
	sequential  = "sequential"
)

// Sequential reports whether all runs of a variant come before those of the next.
func (e *Experiment) Sequential() bool { return e.Order == sequential }

// names returns the names of the variants.
func (e *Experiment) names() []string {
	return namesOf(e.Variants, func(v Variant) string { return v.Name })
}

// Variant is a named set of variable values.
type Variant struct {
	Name   string            `json:"name"`
	Values map[string]string `json:"values"` // HCL literals, by variable

	given map[string]dialect.Given
}

// Experiment reads the plan's experiment block; nil when it has none. Resolve checks whether the values fit their variables.
func (f *File) Experiment() (*Experiment, hcl.Diagnostics) {
	if f.experiment == nil {
		return nil, nil
	}
	r := f.resolver()
	e := r.experiment(f.experiment)
	if r.Failed() {
		return nil, r.Result()
	}
	return e, nil
}

// experiment reads an experiment block.
func (r *resolver) experiment(body *hclsyntax.Block) *Experiment {
	e := &Experiment{Repeat: 5, Order: interleaved, RestartTimeout: time.Minute}
	variants := *body.Body
	variants.Blocks = nil
	for _, in := range body.Body.Blocks {
		if in.Type == "variant" {
			e.Variants = append(e.Variants, r.variant(in))
		} else {
			variants.Blocks = append(variants.Blocks, in)
		}
	}
	b := r.block(&hclsyntax.Block{Body: &variants, TypeRange: body.TypeRange, LabelRanges: body.LabelRanges}, "experiment", "experiment")
	b.Expect([]string{"repeat", "order", "baseline", "compare", "matters", "bound", "fork", "cap", "restart", "restart_timeout", "when"}, []string{"variant", "matrix", "gate"})
	if in := b.inner("gate"); in != nil {
		e.Gate, e.Repeat = in.gate(), mostPairs
	}
	dialect.Integer(b.Block, "repeat", &e.Repeat)
	b.Text("order", &e.Order)
	b.Text("baseline", &e.Baseline)
	b.Texts("compare", &e.Compare)
	e.CompareAt = r.Places[b.Path+".compare"]
	if b.Share("matters", &e.Matters) && (e.Matters <= 0 || e.Matters > 1) {
		b.Bad("matters", fmt.Sprint(e.Matters), `Write more than 0 and at most "100%"; leave it out if any difference matters.`)
	}
	e.Bound = b.valuesOf("bound", `bound = { layout = "raw" }`)
	b.Flag("fork", &e.Fork)
	b.Duration("cap", &e.Cap)
	if b.Has("restart") {
		e.Restart = b.hook("restart")
	}
	b.Duration("restart_timeout", &e.RestartTimeout)
	if a := b.Body.Attributes["when"]; a != nil { // it depends on a variant's values: see leftOut
		e.when = a.Expr.Range()
	}
	if m := b.inner("matrix"); m != nil {
		e.Variants = append(e.Variants, m.matrix()...)
	}
	if !r.Failed() {
		b.checkExperiment(e)
	}
	return e
}

// gate reads a gate block.
func (b *block) gate() *Gate {
	g := &Gate{At: b.At}
	b.Expect([]string{"metric", "phase", "op", "worse"}, nil)
	b.Text("metric", &g.Metric)
	b.Text("phase", &g.Phase)
	b.Text("op", &g.Op)
	if !b.Share("worse", &g.Worse) {
		if !b.Has("worse") {
			b.r.Fault(b.At, "a gate without worse", `Write worse = "3%": by how much worse the variant must not be.`)
		}
	} else if g.Worse <= 0 || g.Worse >= 1 {
		b.Bad("worse", fmt.Sprint(g.Worse), `Write more than 0 and less than "100%".`)
	}
	return g
}

// Guard puts a gate before the variant of an experiment of two, in place of the plan's own.
func (e *Experiment) Guard(worse float64) {
	if e.Gate == nil {
		e.Gate = &Gate{}
		if e.Repeat < LeastPairs {
			e.Repeat = mostPairs
		}
	}
	e.Gate.Worse = worse
}

// leftOut reports whether the variant that is being resolved is left out.
func (r *resolver) leftOut() bool {
	if r.file.experiment == nil {
		return false
	}
	when := true
	body := &hclsyntax.Body{Attributes: r.file.experiment.Body.Attributes, SrcRange: r.file.experiment.Body.SrcRange}
	r.block(&hclsyntax.Block{Body: body, TypeRange: r.file.experiment.TypeRange}, "experiment", "experiment").Flag("when", &when)
	return !when
}

// Keep leaves out the variants for which the experiment's `when` is false. It takes the plans of all variants, in the order of Variants, and returns
// those of the variants that stay. Two or more must stay, among them the baseline.
func (e *Experiment) Keep(plans []*Plan) ([]*Plan, hcl.Diagnostics) {
	var kept []*Plan
	var variants []Variant
	for i, v := range e.Variants {
		if plans[i].LeftOut {
			e.LeftOut = append(e.LeftOut, v.Name)
			continue
		}
		kept, variants = append(kept, plans[i]), append(variants, v)
	}
	e.Variants = variants
	refuse := func(what, remedy string) hcl.Diagnostics {
		return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: &e.when, Summary: "experiment.when " + what, Detail: remedy}}
	}
	switch {
	case len(variants) < 2:
		return nil, refuse(fmt.Sprintf("is true of %d of %d variants", len(variants), len(plans)), "Give the variables that it asks for, so that two or more are left.")
	case slices.Contains(e.LeftOut, e.Baseline):
		return nil, refuse("is false of the baseline, "+dialect.Quote(e.Baseline), "Give the variables that it asks for, or name another baseline.")
	}
	return kept, nil
}

// checkExperiment reports conflicts and sets the default baseline.
func (b *block) checkExperiment(e *Experiment) {
	names := e.names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			b.r.Fault(b.At, "experiment: two variants named "+dialect.Quote(name), "Give one another name.")
		}
	}
	switch {
	case len(names) < 2 || len(names) > MaxVariants:
		b.r.Fault(b.At, fmt.Sprintf("experiment: %d variants", len(names)),
			fmt.Sprintf("Write 2 to %d of them: variant \"NAME\" { VARIABLE = VALUE }, or matrix { VARIABLE = [VALUE, …] }.", MaxVariants))
		return
	case e.Baseline == "":
		e.Baseline = names[0]
	case !slices.Contains(names, e.Baseline):
		b.Bad("baseline", "unknown variant "+dialect.Quote(e.Baseline), dialect.Instead(e.Baseline, names, "%q"))
	}
	b.checkCompared(e.Compare)
	if len(e.Bound) > 0 && !slices.ContainsFunc(e.Variants, func(v Variant) bool { return e.BoundOf(v.Name) >= 0 }) {
		b.Bad("bound", "no variant is the bound of another", "Write values that a variant has, such as bound = { layout = \"raw\" }.")
	}
	switch {
	case e.Gate == nil:
	case len(names) != 2:
		b.r.Fault(e.Gate.At, fmt.Sprintf("a gate, and %d variants", len(names)), "Keep two, the baseline and one other: a gate says whether the one is worse than the other.")
	case e.Sequential():
		b.r.Fault(e.Gate.At, "a gate, and order = \"sequential\"", "Leave order out: a gate compares runs that take turns.")
	case e.Repeat < LeastPairs:
		b.Bad("repeat", fmt.Sprint(e.Repeat), fmt.Sprintf("Write %d or more, the most pairs of runs that the gate may take; leave it out for %d.", LeastPairs, mostPairs))
	}
	if e.Repeat < 1 || e.Repeat > MaxRepeat {
		b.Bad("repeat", fmt.Sprint(e.Repeat), fmt.Sprintf("Write a number from 1 to %d.", MaxRepeat))
	}
	switch {
	case e.RestartTimeout <= 0 || e.RestartTimeout > time.Hour:
		b.Bad("restart_timeout", e.RestartTimeout.String(), `Write more than 0 and at most "1h".`)
	case b.Has("restart_timeout") && e.Restart == "":
		b.Bad("restart_timeout", "nothing is restarted", "Write restart = hook.NAME, or leave it out.")
	}
	if e.Order != interleaved && e.Order != sequential {
		b.Bad("order", "unknown order "+dialect.Quote(e.Order), `Write "interleaved" or "sequential".`)
	}
}

// checkCompared reports metrics that are named twice. Whether they exist is checked where results are known.
func (b *block) checkCompared(names []string) {
	if b.Has("compare") && len(names) == 0 {
		b.Bad("compare", "nothing to compare", `Write metrics such as compare = ["rate", "response.p99"], or leave it out.`)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			b.Bad("compare", dialect.Quote(name)+" twice", "Name each metric once.")
		}
	}
}

// valuesOf reads an attribute that holds values of variables; example shows one in messages.
func (b *block) valuesOf(attribute, example string) map[string]string {
	values := map[string]string{}
	a := b.Body.Attributes[attribute]
	if a == nil {
		return values
	}
	b.r.Places[b.Path+"."+attribute] = a.Expr.Range()
	v, ok := b.r.Literal(a.Expr, b.Where)
	if !ok {
		return values
	}
	if !v.Type().IsObjectType() || v.IsNull() {
		b.Bad(attribute, dialect.Describe(v), "Write values of variables, such as "+example+".")
		return values
	}
	known := b.r.file.names("variable")
	for it := v.ElementIterator(); it.Next(); {
		name, value := it.Element()
		if !slices.Contains(known, name.AsString()) {
			b.Bad(attribute, "the plan has no variable "+dialect.Quote(name.AsString()), dialect.Instead(name.AsString(), known, attribute+" = { %s = … }"))
			continue
		}
		values[name.AsString()] = constant(value)
	}
	return values
}

// BoundOf returns the index of the named variant's bound: the variant whose values are the same but for those of Bound. It is −1 when
// there is none.
func (e *Experiment) BoundOf(name string) int {
	at := slices.Index(e.names(), name)
	if at < 0 || len(e.Bound) == 0 {
		return -1
	}
	want := maps.Clone(e.Variants[at].Values)
	maps.Copy(want, e.Bound)
	return slices.IndexFunc(e.Variants, func(v Variant) bool { return maps.Equal(v.Values, want) })
}

// variant reads a variant block: attributes are variables.
func (r *resolver) variant(body *hclsyntax.Block) Variant {
	v := Variant{Values: map[string]string{}, given: map[string]dialect.Given{}}
	if len(body.Labels) != 1 || !namePattern.MatchString(body.Labels[0]) {
		r.Fault(body.DefRange(), "experiment: a variant without a proper name", `Write variant "NAME" { VARIABLE = VALUE }. `+writeName)
		return v
	}
	v.Name = body.Labels[0]
	where := "variant " + dialect.Quote(v.Name)
	for _, in := range body.Body.Blocks {
		r.Fault(in.TypeRange, where+" holds no blocks", "Write VARIABLE = VALUE.")
	}
	for _, a := range dialect.Attributes(body.Body) {
		if !r.isVariable(where, a) {
			continue
		}
		if value, ok := r.Literal(a.Expr, where); ok {
			v.set(a.Name, value, a.Expr.Range())
		}
	}
	return v
}

// isVariable says whether an attribute names a variable of the plan, and reports one that does not.
func (r *resolver) isVariable(where string, a *hclsyntax.Attribute) bool {
	known := r.file.names("variable")
	if slices.Contains(known, a.Name) {
		return true
	}
	r.Fault(a.NameRange, fmt.Sprintf("%s: the plan has no variable %s", where, dialect.Quote(a.Name)), dialect.Instead(a.Name, known, "%s = …"))
	return false
}

func (v *Variant) set(name string, value cty.Value, at hcl.Range) {
	v.Values[name] = constant(value)
	v.given[name] = dialect.VariantValue("variant "+dialect.Quote(v.Name), value, at)
}

// matrix reads a matrix block: each attribute is a variable with a list of values, and every combination is a variant. The last variable
// changes fastest.
func (b *block) matrix() []Variant {
	all := []Variant{{Values: map[string]string{}, given: map[string]dialect.Given{}}}
	for _, in := range b.Body.Blocks {
		b.r.Fault(in.TypeRange, b.Where+" holds no blocks", "Write VARIABLE = [VALUE, …].")
	}
	for _, a := range dialect.Attributes(b.Body) {
		if !b.r.isVariable(b.Where, a) {
			continue
		}
		list, ok := b.r.Literal(a.Expr, b.Where)
		if !ok {
			continue
		}
		b.r.Places[b.Path+"."+a.Name] = a.Expr.Range()
		if !list.CanIterateElements() || list.Type().IsMapType() || list.Type().IsObjectType() || list.LengthInt() == 0 {
			b.Bad(a.Name, dialect.Describe(list), "Write a list of values: [1, 2, 3].")
			continue
		}
		if len(all)*list.LengthInt() > MaxVariants {
			b.Bad(a.Name, "too many combinations", fmt.Sprintf("Write lists that make at most %d variants.", MaxVariants))
			return nil
		}
		all = product(all, a, list)
	}
	return all
}

// product returns each variant with each value of a variable.
func product(variants []Variant, a *hclsyntax.Attribute, list cty.Value) []Variant {
	var all []Variant
	for _, v := range variants {
		for _, value := range list.AsValueSlice() {
			one := Variant{Values: maps.Clone(v.Values), given: maps.Clone(v.given)}
			one.Name = strings.TrimPrefix(v.Name+","+a.Name+"="+plainText(value), ",")
			one.set(a.Name, value, a.Expr.Range())
			all = append(all, one)
		}
	}
	return all
}

// plainText returns a value's form in a variant's name: strings lose their quotes.
func plainText(v cty.Value) string {
	if v.Type() == cty.String {
		return dialect.Printable(v.AsString())
	}
	return constant(v)
}

// variantNamed returns the values of a variant of the plan's experiment.
func (r *resolver) variantNamed(name string) map[string]dialect.Given {
	e, diags := r.file.Experiment()
	if e == nil {
		if len(diags) == 0 {
			r.Fault(hcl.Range{Filename: "--variant"}, "the plan has no experiment block", "Leave --variant out.")
		}
		for _, d := range diags {
			r.Keep(d)
		}
		return nil
	}
	if i := slices.Index(e.names(), name); i >= 0 {
		return e.Variants[i].given
	}
	r.Fault(hcl.Range{Filename: "--variant"}, "the plan has no variant "+dialect.Quote(name), dialect.Instead(name, e.names(), "--variant %s"))
	return nil
}
