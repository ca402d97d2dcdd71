package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Check returns all errors in the plan's asserts: a name that the result lacks, a function or an operand that does not fit, a
// condition that is not a bool, a number without its unit. Subjects have file and line, but no offset in the file, since an assert's text may differ from what
// was read there.
func Check(p *plan.Plan) hcl.Diagnostics {
	ctx := context(cty.UnknownVal(resultType(p)))
	var all hcl.Diagnostics
	for _, a := range p.Asserts {
		for _, d := range check(p, a, ctx) {
			all = append(all, placeAt(fmt.Sprintf("assert %q", a.Name), a.File, a.Line, d))
		}
	}
	return all
}

func check(p *plan.Plan, a *plan.Assert, ctx *hcl.EvalContext) hcl.Diagnostics {
	expr, diags := parse(a)
	if diags = checkPaths(expr, diags, ctx); diags.HasErrors() {
		return diags
	}
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return inNumbers(expr, diags)
	}
	if got := v.Type(); got != cty.Bool && got != cty.DynamicPseudoType {
		return fault(expr, "the condition is "+article(got.FriendlyName())+", not true or false", `Write a comparison, such as phase.NAME.op.get.response.p99 < duration("20ms").`)
	}
	u := &unitless{p: p, a: a}
	hclsyntax.Walk(expr, u)
	return u.found
}

// fault reports what is wrong with an expression, and what to write.
func fault(expr hclsyntax.Expression, what, write string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: what, Detail: write, Subject: expr.Range().Ptr()}}
}

// notNumber reports an expression whose value has another type than a number.
func notNumber(expr hclsyntax.Expression, v cty.Value, write string) hcl.Diagnostics {
	if got := v.Type(); got != cty.Number && got != cty.DynamicPseudoType {
		return fault(expr, "the value is "+article(got.FriendlyName())+", not a number", write)
	}
	return nil
}

// inNumbers adds hints to errors: how to write quantities if operands do not fit, and what to write instead of functions of other languages.
func inNumbers(expr hclsyntax.Expression, diags hcl.Diagnostics) hcl.Diagnostics {
	var operands []hcl.Expression
	hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch by := node.(type) {
		case *hclsyntax.BinaryOpExpr:
			operands = append(operands, by.LHS, by.RHS)
		case *hclsyntax.UnaryOpExpr:
			operands = append(operands, by.Val)
		}
		return nil
	})
	for _, d := range diags {
		if call, ok := d.Expression.(*hclsyntax.FunctionCallExpr); ok && plan.Meant("assert", call.Name) != "" {
			d.Detail = plan.Meant("assert", call.Name)
			continue
		}
		if slices.Contains(operands, d.Expression) {
			d.Detail += ` Figures are numbers: write duration("5ms"), size("64MiB"), rate("50k/s") or percent("1%") beside them.`
		}
	}
	return diags
}

func parse(a *plan.Assert) (hclsyntax.Expression, hcl.Diagnostics) {
	return hclsyntax.ParseExpression([]byte(a.That), a.File, hcl.Pos{Line: a.Line, Column: 1})
}

// context gives expressions access to a result, or an unknown of its type.
func context(result cty.Value) *hcl.EvalContext {
	variables := map[string]cty.Value{}
	for name := range result.Type().AttributeTypes() {
		variables[name] = result.GetAttr(name)
	}
	return &hcl.EvalContext{Variables: variables, Functions: dialect.Functions()}
}

// checkPaths returns the errors of parsing an expression or, if there are none, those in its paths through what a context has.
func checkPaths(expr hclsyntax.Expression, diags hcl.Diagnostics, ctx *hcl.EvalContext) hcl.Diagnostics {
	if diags.HasErrors() {
		return diags
	}
	types := map[string]cty.Type{}
	for name, v := range ctx.Variables {
		types[name] = v.Type()
	}
	for _, traversal := range expr.Variables() {
		if d := checkPath(traversal, cty.Object(types)); d != nil {
			diags = append(diags, d)
		}
	}
	return diags
}

// checkPath follows a path through the result's type and returns an error about the first step that leads nowhere.
func checkPath(path hcl.Traversal, t cty.Type) *hcl.Diagnostic {
	for i, step := range path {
		if !t.IsObjectType() {
			if !t.IsCollectionType() {
				return nil // HCL reports such errors itself
			}
			t = t.ElementType()
			continue
		}
		name, ok := nameOf(step)
		if !ok {
			return nil
		}
		if !t.HasAttribute(name) {
			return unknown(path[:i], name, t, step.SourceRange())
		}
		t = t.AttributeType(name)
	}
	return nil
}

func unknown(path hcl.Traversal, name string, t cty.Type, at hcl.Range) *hcl.Diagnostic {
	where, names, below := "the result", slices.Sorted(maps.Keys(t.AttributeTypes())), ""
	for _, part := range []string{"scenario", "op", "response"} { // what is left out most often
		if slices.Contains(names, part) && t.AttributeType(part).IsObjectType() && t.AttributeType(part).HasAttribute(name) {
			below = part + "." + name
		}
	}
	if len(path) > 0 {
		where = text(path)
	}
	instead := "There are " + strings.Join(names, ", ") + "."
	if len(names) == 0 {
		instead = "By this plan there is nothing."
	}
	near := dialect.DidYouMean(name, names)
	share, quantile := quantity.Quantile(name)
	meant := plan.Meant("assert", name)
	switch latency := slices.Contains(names, "p999"); {
	case len(path) == 0 && meant != "":
		instead = meant
	case latency && name == "p100":
		instead = "Write max."
	case latency && quantile:
		instead = fmt.Sprintf("Write quantiles = [%s] in the plan block, with others to show.", strconv.FormatFloat(share, 'f', -1, 64))
	case below != "":
		instead = fmt.Sprintf("Write %s.", below)
	case near != "":
		instead = fmt.Sprintf("Did you mean %q? %s", near, instead)
	}
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  fmt.Sprintf("%s has no %q", where, name),
		Detail:   instead,
		Subject:  &at,
	}
}

// placeAt says what a diagnostic is about, and keeps the parts of its subject that are valid in the file.
func placeAt(what, file string, line int, d *hcl.Diagnostic) *hcl.Diagnostic {
	if d.Subject != nil {
		line = d.Subject.Start.Line
	}
	pos := hcl.Pos{Line: line, Column: 1, Byte: -1}
	return &hcl.Diagnostic{
		Severity: d.Severity,
		Summary:  what + ": " + d.Summary,
		Detail:   d.Detail,
		Subject:  &hcl.Range{Filename: file, Start: pos, End: pos},
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
