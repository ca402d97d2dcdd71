package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Inputs holds the values that variables get from outside the text. The variant and flags take precedence, and may not set the same variable.
// Then come files, the environment and the variable's default. A string variable takes a flag's or the environment's text verbatim; others
// parse it as an HCL literal, or as a count ("10k") or a list of strings ("a,b").
type Inputs struct {
	Flags   []string         // NAME=TEXT each; if a name repeats, the last one wins
	Files   []VarFile        // if several have a name, the last one wins
	Environ []string         // KEY=TEXT each, as from os.Environ; LOADGEN_VAR_NAME sets NAME
	Variant map[string]Given // values that the chosen variant sets; nil for none
}

// VarFile is a file of values: attributes, NAME = literal.
type VarFile struct {
	Name string // name of the file in diagnostics
	Text []byte
}

const envPrefix = "LOADGEN_VAR_"

// variable is a variable block and its value.
type variable struct {
	at    hcl.Range
	typ   cty.Type // cty.DynamicPseudoType for any type
	value cty.Value
	ok    bool // value is set; otherwise the reason has been reported
}

// variables holds a plan's variables by name.
type variables struct {
	r    *Reader
	list map[string]*variable
	all  []string // names, in the order of the text
}

// value implements names.
func (vs *variables) value(where, name string, at hcl.Range) (cty.Value, bool) {
	v, known := vs.list[name]
	if !known {
		vs.r.Fault(at, fmt.Sprintf("%s: unknown variable var.%s", where, name), Instead(name, vs.all, "var.%s"))
		return cty.NilVal, false
	}
	return v.value, v.ok
}

// Given is a value from outside the text, before its variable's type is known.
type Given struct {
	from  string // its name in messages: "-var w", "LOADGEN_VAR_w"
	text  string //
	value cty.Value
	at    hcl.Range // place of value; zero for a text value
}

// VariantValue returns a value that a variant sets at a place of the text; from is its name in messages.
func VariantValue(from string, value cty.Value, at hcl.Range) Given {
	return Given{from: from, value: value, at: at}
}

// Declare evaluates the variables and locals of these blocks. Afterwards expressions may use them.
func (r *Reader) Declare(variables, locals []*hclsyntax.Block, in Inputs) {
	ls := r.collectLocals(locals)
	r.roots = map[string]names{"var": r.resolveVariables(variables, in), "local": ls}
	for _, l := range ls.all { // errors in unused ones are found, too
		ls.evaluate(l)
	}
}

// resolveVariables gives every variable its value.
func (r *Reader) resolveVariables(blocks []*hclsyntax.Block, in Inputs) *variables {
	vs := &variables{r: r, list: map[string]*variable{}}
	for _, b := range blocks {
		vs.all = append(vs.all, b.Labels[0])
	}
	outside := r.outside(in, vs.all)
	for _, b := range blocks {
		name := b.Labels[0]
		vs.list[name] = r.variable(name, b, outside[name])
	}
	return vs
}

// noVariable returns the remedy for a value of a variable that the plan lacks.
func noVariable(name string, known []string, form string) string {
	if len(known) == 0 {
		return fmt.Sprintf("There are none: write variable %s {} in the plan to have it.", Quote(name))
	}
	return Instead(name, known, form)
}

// outside collects the values given from outside the plan, by variable.
func (r *Reader) outside(in Inputs, known []string) map[string]Given {
	from := map[string]Given{}
	for _, e := range in.Environ {
		key, text, _ := strings.Cut(e, "=")
		if name, ok := strings.CutPrefix(key, envPrefix); ok && slices.Contains(known, name) {
			from[name] = Given{from: key, text: text}
		}
	}
	for _, f := range in.Files {
		r.fileValues(f, known, from)
	}
	for _, f := range in.Flags {
		name, text, found := strings.Cut(f, "=")
		at := hcl.Range{Filename: "-var"}
		switch {
		case !found:
			r.Fault(at, Quote(f)+" has no value", "Write -var NAME=TEXT.")
		case !slices.Contains(known, name):
			r.Fault(at, "the plan has no variable "+Quote(name), noVariable(name, known, "-var %s=…"))
		default:
			from[name] = Given{from: "-var " + name, text: text}
		}
	}
	r.variantValues(in.Variant, from)
	return from
}

// variantValues adds the values of a variant. It reports a flag that sets the same variable.
func (r *Reader) variantValues(variant, to map[string]Given) {
	for name, value := range variant {
		if from := to[name]; strings.HasPrefix(from.from, "-var ") {
			r.Fault(value.at, fmt.Sprintf("%s sets %s, and so does %s", value.from, name, from.from), "Leave one of them out.")
		}
		to[name] = value
	}
}

// fileValues adds the values of a variable file.
func (r *Reader) fileValues(in VarFile, known []string, to map[string]Given) {
	body := r.Parse(in.Text, in.Name)
	if body == nil {
		return
	}
	for _, b := range body.Blocks {
		r.Fault(b.TypeRange, "a variable file has no blocks", "Write NAME = VALUE, one on a line.")
	}
	for _, a := range Attributes(body) {
		if !slices.Contains(known, a.Name) {
			r.Fault(a.NameRange, "the plan has no variable "+Quote(a.Name), noVariable(a.Name, known, "%s = …"))
			continue
		}
		if v, ok := r.Literal(a.Expr, "variable file"); ok {
			to[a.Name] = Given{from: a.Name, value: v, at: a.Expr.Range()}
		}
	}
}

// Literal evaluates an expression without names or functions.
func (r *Reader) Literal(x hclsyntax.Expression, where string) (cty.Value, bool) {
	roots := r.roots
	r.roots = nil
	v, ok := r.Eval(x, Scope{Where: where})
	r.roots = roots
	return v, ok
}

// variable reads a variable block and gives it its value.
func (r *Reader) variable(name string, body *hclsyntax.Block, from Given) *variable {
	b := r.Block(body, "variable."+name, "variable "+Quote(name))
	b.Expect([]string{"type", "default", "description"}, nil)
	v := &variable{at: body.DefRange()}
	deflt, hasDefault, ok := r.declared(b, v)
	if !ok {
		return v
	}
	switch {
	case from.value != cty.NilVal:
		v.value, v.ok = r.fit(v, from.value, b.Where, from.at)
	case from.from != "":
		v.value, v.ok = r.fromText(v, from, b.Where)
	case hasDefault:
		v.value, v.ok = deflt, true
	default:
		r.Fault(v.at, b.Where+" has no value", fmt.Sprintf("Write -var %s=%s, or a default.", name, example(v.typ)))
	}
	return v
}

// declared reads a variable's type and default. Without a type it takes its default's; without either it is a string.
func (r *Reader) declared(b *Block, v *variable) (deflt cty.Value, hasDefault, ok bool) {
	v.typ = cty.String
	typed := b.Body.Attributes["type"]
	if typed != nil {
		t, diags := typeexpr.TypeConstraint(typed.Expr)
		if diags.HasErrors() {
			r.Fault(typed.Expr.Range(), b.Where+": no type", "Write string, number, bool, list(string) or the like, without quotes.")
			return cty.NilVal, false, false
		}
		v.typ = t
	}
	a := b.Body.Attributes["default"]
	if a == nil {
		return cty.NilVal, false, true
	}
	deflt, ok = r.Literal(a.Expr, b.Where)
	if !ok || deflt.IsNull() {
		return cty.NilVal, false, ok
	}
	if typed == nil {
		if v.typ = deflt.Type(); !v.typ.IsPrimitiveType() {
			v.typ = cty.DynamicPseudoType
		}
	}
	deflt, ok = r.fit(v, deflt, b.Where, a.Expr.Range())
	return deflt, true, ok
}

// fit converts a value to the variable's type.
func (r *Reader) fit(v *variable, value cty.Value, where string, at hcl.Range) (cty.Value, bool) {
	fitted, err := convert.Convert(value, v.typ)
	if v.typ == cty.Number {
		fitted, err = asNumber(value)
	}
	if err != nil || fitted.IsNull() {
		such := example(v.typ)
		if v.typ.Equals(cty.List(cty.String)) {
			such = `'["a","b"]'` // in a plan, commas alone do not make a list
		}
		r.Fault(at, fmt.Sprintf("%s is of type %s, not %s", where, typeexpr.TypeString(v.typ), Describe(value)), fmt.Sprintf("Write a value such as %s.", such))
		return cty.NilVal, false
	}
	return fitted, r.admit(fitted, &hclsyntax.LiteralValueExpr{Val: fitted, SrcRange: at}, Scope{Where: where})
}

// fromText reads a value from the text of a flag or the environment.
func (r *Reader) fromText(v *variable, from Given, where string) (cty.Value, bool) {
	if !utf8.ValidString(from.text) {
		r.Fault(v.at, fmt.Sprintf("%s: the text of %s is not UTF-8", where, from.from), "Write UTF-8.")
		return cty.NilVal, false
	}
	if v.typ == cty.String {
		return r.fit(v, cty.StringVal(from.text), where+": "+from.from, v.at)
	}
	if n, err := ParseCount(from.text); err == nil && v.typ == cty.Number {
		return cty.NumberIntVal(n), true
	}
	if plain := !strings.HasPrefix(strings.TrimSpace(from.text), "["); plain && v.typ.Equals(cty.List(cty.String)) {
		return r.fit(v, listed(from.text), where+": "+from.from, v.at)
	}
	var quiet Reporter
	if d := Guard([]byte(from.text), from.from); d != nil {
		quiet.Keep(d)
	} else if x, diags := hclsyntax.ParseExpression([]byte(from.text), from.from, hcl.InitialPos); diags.HasErrors() {
		quiet.Adopt("", v.at, diags)
	} else if diags := CheckSyntax(x); diags.HasErrors() {
		quiet.Adopt("", v.at, diags)
	} else if value, ok := r.quietLiteral(x); ok {
		return r.fit(v, value, where+": "+from.from, v.at)
	}
	r.Fault(v.at, fmt.Sprintf("%s: %s=%s is no %s", where, from.from, Quote(from.text), typeexpr.TypeString(v.typ)),
		fmt.Sprintf("Write %s=%s.", from.from, example(v.typ)))
	return cty.NilVal, false
}

// listed returns the strings between the commas of a text.
func listed(text string) cty.Value {
	var list []cty.Value
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, cty.StringVal(part))
		}
	}
	if len(list) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	return cty.ListVal(list)
}

// quietLiteral is Literal for text outside the plan, where the place of an error is of no use.
func (r *Reader) quietLiteral(x hclsyntax.Expression) (cty.Value, bool) {
	loud := r.Reporter
	r.Reporter = Reporter{}
	v, ok := r.Literal(x, "")
	r.Reporter = loud
	return v, ok
}

// example returns a value of a type, as written on the command line.
func example(t cty.Type) string {
	switch {
	case t == cty.String:
		return "TEXT"
	case t == cty.Number:
		return "2"
	case t == cty.Bool:
		return "true"
	case t.IsListType() || t.IsSetType():
		if t.ElementType() == cty.String {
			return `'["a","b"]'`
		}
		return "'[" + example(t.ElementType()) + "]'"
	case t.IsMapType() || t.IsObjectType():
		return "'{ key = … }'"
	}
	return "2, true or '[\"a\",\"b\"]'"
}

// locals holds a plan's locals. Each is evaluated on first use.
type locals struct {
	r    *Reader
	list map[string]*local
	all  []*local // in the order of the text
}

// local is one of them.
type local struct {
	attr    *hclsyntax.Attribute
	value   cty.Value
	ok      bool
	unit    bool // as HasUnit
	started bool
	done    bool
}

// collectLocals collects the locals of all blocks.
func (r *Reader) collectLocals(blocks []*hclsyntax.Block) *locals {
	ls := &locals{r: r, list: map[string]*local{}}
	for _, b := range blocks {
		for _, inner := range b.Body.Blocks {
			r.Fault(inner.TypeRange, "locals hold no blocks", "Write NAME = VALUE.")
		}
		for _, a := range Attributes(b.Body) {
			if first, twice := ls.list[a.Name]; twice {
				r.Fault(a.NameRange, "a second local named "+Quote(a.Name),
					fmt.Sprintf("Give it another name: the first is at %s:%d.", a.NameRange.Filename, first.attr.NameRange.Start.Line))
				continue
			}
			l := &local{attr: a}
			ls.list[a.Name] = l
			ls.all = append(ls.all, l)
		}
	}
	return ls
}

// evaluate computes a local once.
func (ls *locals) evaluate(l *local) {
	if l.started {
		return
	}
	l.started = true
	l.value, l.ok = ls.r.Eval(l.attr.Expr, Scope{Where: "local " + Quote(l.attr.Name), Functions: ls.r.functions})
	l.unit = ls.r.HasUnit(l.attr.Expr)
	l.done = true
}

// value implements names.
func (ls *locals) value(where, name string, at hcl.Range) (cty.Value, bool) {
	l, known := ls.list[name]
	if !known {
		var all []string
		for _, l := range ls.all {
			all = append(all, l.attr.Name)
		}
		ls.r.Fault(at, fmt.Sprintf("%s: unknown local.%s", where, name), Instead(name, all, "local.%s"))
		return cty.NilVal, false
	}
	if l.started && !l.done {
		ls.r.Fault(at, fmt.Sprintf("%s: local.%s depends on itself", where, name), "Write one of the locals on the way as a value.")
		return cty.NilVal, false
	}
	ls.evaluate(l)
	return l.value, l.ok
}
