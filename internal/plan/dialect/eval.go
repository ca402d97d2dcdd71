package dialect

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// Bounds on values. The value of every expression and subexpression is weighed as soon as it exists.
const (
	MaxString     = 4 << 10  // bytes
	maxCollection = 10_000   // elements
	maxWeight     = 16 << 20 // bytes of all values made in resolving a plan, as weigh counts them
	valueWeight   = 256      // bytes of a value beside its text and elements, including the cost of making it
	maxDepth      = 400      // nesting of expressions, also through locals
	maxArguments  = 256      // arguments of one call: HCL compares each one's type with all others
)

// evaluator computes the values of expressions.
//
// It walks expressions itself and gives HCL only single operations on known operands: HCL would evaluate a whole tree without
// bounds.
type evaluator struct {
	Reporter
	roots  map[string]names // the names that may follow var. and local.
	weight int
	depth  int
	spent  bool // the bound on weight is reached, which is reported once; nothing more is evaluated
}

// names looks up the names after var. or local.
type names interface {
	// value returns the value of a name. It reports errors in the name, or in the value's own expression, itself.
	value(where, name string, at hcl.Range) (cty.Value, bool)
}

// Scope is what an expression may use.
type Scope struct {
	Where     string                       // begins each message: `phase "put"`
	Functions map[string]function.Function //
	loop      map[string]cty.Value         // variables of for expressions
}

// Eval returns the value of x. If it returns false, it has reported the reason.
func (e *evaluator) Eval(x hclsyntax.Expression, s Scope) (cty.Value, bool) {
	if e.spent {
		return cty.NilVal, false
	}
	if e.depth == maxDepth {
		e.Fault(x.StartRange(), s.Where+": an expression that is nested too deeply", "Split it, or shorten the chain of locals.")
		return cty.NilVal, false
	}
	e.depth++
	v, ok := e.node(x, s)
	e.depth--
	if !ok {
		return cty.NilVal, false
	}
	return v, e.admit(v, x, s)
}

// admit weighs a value and reports one that breaks a bound.
func (e *evaluator) admit(v cty.Value, x hclsyntax.Expression, s Scope) bool {
	if e.spent {
		return false
	}
	weight, err := weigh(v)
	if err != nil {
		remedy := "Write a smaller value."
		if errors.Is(err, errObeyed) {
			remedy = `Write the text without it. Bytes like this get into a request as {value}, from a file of values with encoding = "base64".`
		}
		e.Fault(x.Range(), s.Where+": "+err.Error(), remedy)
		return false
	}
	if e.weight += weight; e.weight > maxWeight {
		e.spent = true
		e.Fault(x.Range(), s.Where+": the plan's values need more than 16 MiB", "Write smaller values, or fewer.")
		return false
	}
	return true
}

// weigh returns how much memory a value may take, or which bound it breaks.
func weigh(v cty.Value) (int, error) {
	if v.IsNull() {
		return valueWeight, nil
	}
	if !v.IsKnown() {
		return 0, fmt.Errorf("a value that is not known")
	}
	t := v.Type()
	switch {
	case t == cty.String:
		n, err := weighText(v.AsString())
		return valueWeight + n, err
	case t == cty.Number:
		if v.AsBigFloat().IsInf() {
			return 0, fmt.Errorf("an infinite number")
		}
		if !finite(v) {
			return 0, fmt.Errorf("a number beyond 10^308 or below 10^-308")
		}
		return valueWeight, nil
	case t.IsCollectionType() || t.IsTupleType() || t.IsObjectType():
		return weighElements(v)
	}
	return valueWeight, nil
}

// errObeyed is the error for text with characters that affect the terminal or page that shows it.
var errObeyed = errors.New("a character that terminals or pages obey, and do not show")

// obeyed matches the same characters as quantity.Obeyed: results and pages quote plans.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

func weighText(text string) (int, error) {
	if len(text) > MaxString {
		return 0, fmt.Errorf("a string of %d bytes, of at most %d", len(text), MaxString)
	}
	if at := strings.IndexFunc(text, obeyed); at >= 0 {
		r, _ := utf8.DecodeRuneInString(text[at:])
		return 0, fmt.Errorf("a string with %U, %w", r, errObeyed)
	}
	return len(text), nil
}

func weighElements(v cty.Value) (int, error) {
	if n := v.LengthInt(); n > maxCollection {
		return 0, fmt.Errorf("a collection of %d elements, of at most %d", n, maxCollection)
	}
	sum := valueWeight
	for it := v.ElementIterator(); it.Next(); {
		key, element := it.Element()
		n, err := weigh(element)
		if err != nil {
			return 0, err
		}
		if key.Type() == cty.String {
			text, err := weighText(key.AsString())
			if err != nil {
				return 0, err
			}
			n += text
		}
		sum += n
	}
	return sum, nil
}

// finite reports whether a number is within the range of a float64, so that its text cannot have a billion digits.
func finite(v cty.Value) bool {
	f := v.AsBigFloat()
	return !f.IsInf() && (f.Sign() == 0 || f.MantExp(nil) < 1024 && f.MantExp(nil) > -1022)
}

// node evaluates the parts of x, then x with their values.
func (e *evaluator) node(x hclsyntax.Expression, s Scope) (cty.Value, bool) {
	switch x := x.(type) {
	case *hclsyntax.LiteralValueExpr:
		return x.Val, true
	case *hclsyntax.ParenthesesExpr:
		return e.Eval(x.Expression, s)
	case *hclsyntax.TemplateWrapExpr:
		return e.Eval(x.Wrapped, s)
	case *hclsyntax.ScopeTraversalExpr:
		return e.reference(x, s)
	case *hclsyntax.TemplateExpr:
		return e.template(x, s)
	case *hclsyntax.ForExpr:
		return e.loop(x, s)
	case *hclsyntax.ConditionalExpr:
		return e.conditional(x, s)
	case *hclsyntax.FunctionCallExpr:
		return e.call(x, s)
	case *hclsyntax.TupleConsExpr:
		c := *x
		c.Exprs = make([]hclsyntax.Expression, len(x.Exprs))
		if !e.operands(s, x.Exprs, c.Exprs) {
			return cty.NilVal, false
		}
		return e.finish(s, x, &c)
	case *hclsyntax.ObjectConsExpr:
		return e.object(x, s)
	}
	return e.operation(x, s)
}

// operation evaluates an expression with a fixed number of operands.
func (e *evaluator) operation(x hclsyntax.Expression, s Scope) (cty.Value, bool) {
	var to [2]hclsyntax.Expression
	switch x := x.(type) {
	case *hclsyntax.UnaryOpExpr:
		if !e.operands(s, []hclsyntax.Expression{x.Val}, to[:]) {
			return cty.NilVal, false
		}
		return e.finish(s, x, &hclsyntax.UnaryOpExpr{Op: x.Op, Val: to[0], SrcRange: x.SrcRange, SymbolRange: x.SymbolRange})
	case *hclsyntax.BinaryOpExpr:
		if !e.operands(s, []hclsyntax.Expression{x.LHS, x.RHS}, to[:]) {
			return cty.NilVal, false
		}
		return e.finish(s, x, &hclsyntax.BinaryOpExpr{Op: x.Op, LHS: to[0], RHS: to[1], SrcRange: x.SrcRange})
	case *hclsyntax.IndexExpr:
		if !e.operands(s, []hclsyntax.Expression{x.Collection, x.Key}, to[:]) {
			return cty.NilVal, false
		}
		c := *x
		c.Collection, c.Key = to[0], to[1]
		return e.finish(s, x, &c)
	case *hclsyntax.RelativeTraversalExpr:
		if !e.operands(s, []hclsyntax.Expression{x.Source}, to[:]) {
			return cty.NilVal, false
		}
		return e.finish(s, x, &hclsyntax.RelativeTraversalExpr{Source: to[0], Traversal: x.Traversal, SrcRange: x.SrcRange})
	}
	e.Fault(x.StartRange(), s.Where+": this kind of expression is not supported", "Write it with operators, functions or one for.")
	return cty.NilVal, false
}

// operands evaluates expressions and puts literals of their values into to. It evaluates all, so that all errors are found.
func (e *evaluator) operands(s Scope, from, to []hclsyntax.Expression) bool {
	all := true
	for i, x := range from {
		v, ok := e.Eval(x, s)
		all = all && ok
		to[i] = &hclsyntax.LiteralValueExpr{Val: v, SrcRange: x.Range()}
	}
	return all
}

// finish evaluates c, whose operands are literals, in place of x.
func (e *evaluator) finish(s Scope, x, c hclsyntax.Expression) (cty.Value, bool) {
	v, diags := c.Value(&hcl.EvalContext{Functions: s.Functions})
	if diags.HasErrors() {
		e.Adopt(s.Where, x.StartRange(), diags)
		return cty.NilVal, false
	}
	return v, true
}

// reference looks up a name, and follows the attributes and indices after it.
func (e *evaluator) reference(x *hclsyntax.ScopeTraversalExpr, s Scope) (cty.Value, bool) {
	root := x.Traversal.RootName()
	if v, ok := s.loop[root]; ok {
		return e.traverse(v, x.Traversal[1:], x, s)
	}
	of, ok := e.roots[root]
	if !ok {
		what, write := "unknown name "+Quote(root), `Write text in quotes, a variable as var.NAME, a local as local.NAME.`
		switch {
		case root == "target" || root == "dataset":
			write = "Only a phase refers to targets and datasets: target = target.NAME, dataset = dataset.NAME."
		case e.roots == nil && Reserved(root):
			what, write = root+".NAME where only a literal may be", "Write the value itself, or compute a local from the variable."
		}
		e.Fault(x.SrcRange, s.Where+": "+what, write)
		return cty.NilVal, false
	}
	if len(x.Traversal) > 1 {
		if name, ok := x.Traversal[1].(hcl.TraverseAttr); ok {
			v, ok := of.value(s.Where, name.Name, x.SrcRange)
			if !ok {
				return cty.NilVal, false
			}
			return e.traverse(v, x.Traversal[2:], x, s)
		}
	}
	e.Fault(x.SrcRange, s.Where+": "+root+" by itself is not a value", fmt.Sprintf("Write %s.NAME.", root))
	return cty.NilVal, false
}

// traverse follows attributes and indices.
func (e *evaluator) traverse(v cty.Value, steps hcl.Traversal, x hclsyntax.Expression, s Scope) (cty.Value, bool) {
	v, diags := steps.TraverseRel(v)
	if diags.HasErrors() {
		e.Adopt(s.Where, x.StartRange(), diags)
		return cty.NilVal, false
	}
	return v, true
}

// template joins the parts of a quoted text.
func (e *evaluator) template(x *hclsyntax.TemplateExpr, s Scope) (cty.Value, bool) {
	var text strings.Builder
	for _, part := range x.Parts {
		v, ok := e.Eval(part, s)
		if !ok {
			return cty.NilVal, false
		}
		str, err := convert.Convert(v, cty.String)
		if err != nil || str.IsNull() {
			e.Fault(part.Range(), s.Where+": text cannot hold "+Describe(v), "Write a string, number or bool between ${ and }.")
			return cty.NilVal, false
		}
		text.WriteString(str.AsString())
		if text.Len() > MaxString {
			e.Fault(x.SrcRange, fmt.Sprintf("%s: a string of more than %d bytes", s.Where, MaxString), "Write a smaller value.")
			return cty.NilVal, false
		}
	}
	return cty.StringVal(text.String()), true
}

// Describe names a value's kind, for messages. It never shows the value.
func Describe(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	return "a value of type " + v.Type().FriendlyName()
}

// conditional evaluates only the branch that is taken.
func (e *evaluator) conditional(x *hclsyntax.ConditionalExpr, s Scope) (cty.Value, bool) {
	yes, ok := e.truth(x.Condition, s)
	if !ok {
		return cty.NilVal, false
	}
	if yes {
		return e.Eval(x.TrueResult, s)
	}
	return e.Eval(x.FalseResult, s)
}

// truth evaluates a condition.
func (e *evaluator) truth(x hclsyntax.Expression, s Scope) (value, ok bool) {
	v, ok := e.Eval(x, s)
	if !ok {
		return false, false
	}
	b, err := convert.Convert(v, cty.Bool)
	if err != nil || b.IsNull() {
		e.Fault(x.Range(), s.Where+": a condition cannot be "+Describe(v), "Write true, false or a comparison.")
		return false, false
	}
	return b.True(), true
}

// call calls a function that the scope has.
func (e *evaluator) call(x *hclsyntax.FunctionCallExpr, s Scope) (cty.Value, bool) {
	if _, known := s.Functions[x.Name]; !known {
		what, write := fmt.Sprintf("unknown function %s", Quote(x.Name)), Instead(x.Name, slices.Sorted(maps.Keys(Functions())), "%s(…)")
		switch {
		case x.Name == secretName:
			what, write = "secret() has no place here", `Only a target's attributes for secrets take one: password = secret("NAME").`
		case x.Name == "zipf":
			what, write = "zipf without quotes", `Write pick = "zipf(0.99)".`
		case len(s.Functions) == 0:
			what, write = "a function where only a literal may be", "Write the value itself."
		}
		e.Fault(x.NameRange, s.Where+": "+what, write)
		return cty.NilVal, false
	}
	c := *x
	c.Args = make([]hclsyntax.Expression, len(x.Args))
	if !e.operands(s, x.Args, c.Args) {
		return cty.NilVal, false
	}
	n := len(c.Args)
	if x.ExpandFinal {
		if last, _ := c.Args[n-1].Value(nil); !last.IsNull() && last.CanIterateElements() {
			n += last.LengthInt()
		}
	}
	if n > maxArguments {
		e.Fault(x.NameRange, fmt.Sprintf("%s: %s with %d arguments", s.Where, x.Name, n), fmt.Sprintf("Write at most %d.", maxArguments))
		return cty.NilVal, false
	}
	return e.finish(s, x, &c)
}

// object evaluates { key = value, … }. A key that is a name stands for itself.
func (e *evaluator) object(x *hclsyntax.ObjectConsExpr, s Scope) (cty.Value, bool) {
	values, all := make(map[string]cty.Value, len(x.Items)), true
	for _, item := range x.Items {
		key, ok := e.key(item.KeyExpr, s)
		v, valueOK := e.Eval(item.ValueExpr, s)
		if !ok || !valueOK {
			all = false
			continue
		}
		if _, twice := values[key]; twice {
			e.Fault(item.KeyExpr.Range(), fmt.Sprintf("%s: %s is there twice", s.Where, Quote(key)), "Write it once.")
			all = false
		}
		values[key] = v
	}
	return cty.ObjectVal(values), all
}

// key evaluates an object's key.
func (e *evaluator) key(x hclsyntax.Expression, s Scope) (string, bool) {
	if k, ok := x.(*hclsyntax.ObjectConsKeyExpr); ok {
		if word := hcl.ExprAsKeyword(k.Wrapped); word != "" && !k.ForceNonLiteral {
			return word, true
		}
		x = k.Wrapped
	}
	v, ok := e.Eval(x, s)
	if !ok {
		return "", false
	}
	return e.keyText(v, x.Range(), s)
}

func (e *evaluator) keyText(v cty.Value, at hcl.Range, s Scope) (string, bool) {
	str, err := convert.Convert(v, cty.String)
	if err != nil || str.IsNull() {
		e.Fault(at, s.Where+": a key cannot be "+Describe(v), "Write a name or a string.")
		return "", false
	}
	return str.AsString(), true
}

// loop evaluates [for …] and {for …}, up to the first element that fails.
func (e *evaluator) loop(x *hclsyntax.ForExpr, s Scope) (cty.Value, bool) {
	over, ok := e.Eval(x.CollExpr, s)
	if !ok {
		return cty.NilVal, false
	}
	if over.IsNull() || !over.CanIterateElements() {
		e.Fault(x.CollExpr.Range(), s.Where+": for cannot go through "+Describe(over), "Write a list or an object after in.")
		return cty.NilVal, false
	}
	tuple, object := []cty.Value{}, map[string]cty.Value{}
	for it := over.ElementIterator(); it.Next(); {
		key, element := it.Element()
		inner := s
		inner.loop = map[string]cty.Value{x.ValVar: element}
		if x.KeyVar != "" {
			inner.loop[x.KeyVar] = key
		}
		if !e.iteration(x, inner, &tuple, object) {
			return cty.NilVal, false
		}
	}
	if x.KeyExpr != nil {
		return cty.ObjectVal(object), true
	}
	return cty.TupleVal(tuple), true
}

// iteration adds the value for one element to the tuple or, if there is a key, to the object.
func (e *evaluator) iteration(x *hclsyntax.ForExpr, s Scope, tuple *[]cty.Value, object map[string]cty.Value) bool {
	if x.CondExpr != nil {
		if include, ok := e.truth(x.CondExpr, s); !ok || !include {
			return ok
		}
	}
	v, ok := e.Eval(x.ValExpr, s)
	if !ok {
		return false
	}
	if x.KeyExpr == nil {
		*tuple = append(*tuple, v)
		return true
	}
	k, ok := e.Eval(x.KeyExpr, s)
	if !ok {
		return false
	}
	key, ok := e.keyText(k, x.KeyExpr.Range(), s)
	if _, twice := object[key]; ok && twice {
		e.Fault(x.KeyExpr.Range(), fmt.Sprintf("%s: two elements give the key %s", s.Where, Quote(key)), "Write a key that differs.")
		return false
	}
	object[key] = v
	return ok
}
