package expr

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Evaluate decides the plan's asserts over a result of the same plan, in the plan's order. OK is nil, with the reason, if a null or an
// error prevents a decision.
func Evaluate(p *plan.Plan, r *run.Run) []run.AssertResult {
	results := []run.AssertResult{}
	if len(p.Asserts) == 0 {
		return results // without converting the whole result
	}
	result, err := valueOf(p, r)
	for _, a := range p.Asserts {
		out := run.AssertResult{Name: a.Name, That: a.That}
		if err != nil {
			out.Reason = err.Error()
		} else {
			evaluate(p, a, context(result), r, &out)
		}
		results = append(results, out)
	}
	return results
}

// valueOf returns the result as its JSON has it, so that expressions and jq see the same values.
func valueOf(p *plan.Plan, r *run.Run) (cty.Value, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return cty.NilVal, fmt.Errorf("encode the result: %w", err)
	}
	if len(p.Quantiles) > 0 {
		if b, err = lifted(b); err != nil {
			return cty.NilVal, err
		}
	}
	v, err := ctyjson.Unmarshal(b, resultType(p))
	if err != nil {
		return cty.NilVal, fmt.Errorf("read the result as the plan's: %w", err)
	}
	return v, nil
}

// lifted also makes the plan's quantiles fields beside the usual ones: response.quantiles.p9999 is response.p9999, too.
func lifted(result []byte) ([]byte, error) {
	var all any
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			quantiles, _ := v["quantiles"].(map[string]any)
			maps.Copy(v, quantiles)
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(all)
	return json.Marshal(all)
}

func evaluate(p *plan.Plan, a *plan.Assert, ctx *hcl.EvalContext, r *run.Run, out *run.AssertResult) {
	expr, diags := parse(a)
	if diags.HasErrors() {
		out.Reason = explain(diags)
		return
	}
	var null run.Cell
	if out.Value, null = look(expr, ctx, r); null.Reason != "" {
		out.Reason = null.Reason
		return
	}
	if divisor := zeroDivisor(expr, ctx); divisor != nil {
		from, to := divisor.Range().Start.Byte, divisor.Range().End.Byte
		out.Reason = "division by " + a.That[from:to] + ", which is 0"
		return
	}
	v, diags := expr.Value(ctx)
	switch {
	case diags.HasErrors():
		out.Reason = explain(diags)
	case v.IsNull() || v.Type() != cty.Bool:
		out.Reason = "the condition is " + article(v.Type().FriendlyName()) + ", not true or false"
	default:
		out.OK, out.Reason = known(expr, ctx, r)
		if sides := compared(p, expr, ctx); sides != "" {
			out.Value = sides
		}
	}
}

// known decides a condition that has a value. If only a figure's bound is known, and the truth on its other side could decide otherwise, it returns nil
// and says so.
func known(expr hclsyntax.Expression, ctx *hcl.EvalContext, r *run.Run) (ok *bool, open string) {
	v, _ := expr.Value(ctx)
	is := v.IsKnown() && v.Type() == cty.Bool && !v.IsNull() && v.True()
	by, compares := comparison(expr)
	if compares && (by.Op == hclsyntax.OpLogicalAnd || by.Op == hclsyntax.OpLogicalOr) {
		for _, side := range []hclsyntax.Expression{by.LHS, by.RHS} {
			is, why := known(side, ctx, r)
			if is != nil && *is == (by.Op == hclsyntax.OpLogicalOr) {
				return is, "" // the other does not matter
			}
			open = cmp.Or(open, why)
		}
		if open != "" {
			return nil, open
		}
		return &is, ""
	}
	for _, path := range expr.Variables() {
		steps := stepsOf(path)
		if len(steps) < 3 || steps[0] != "phase" || r.Phase[steps[1]] == nil {
			continue
		}
		bound := r.Phase[steps[1]].Bound(strings.Join(steps[2:], "."))
		if bound == "" {
			continue
		}
		shown := is // of several figures, only that it holds
		if compares {
			below := by.Op == hclsyntax.OpLessThan || by.Op == hclsyntax.OpLessThanOrEqual
			above := by.Op == hclsyntax.OpGreaterThan || by.Op == hclsyntax.OpGreaterThanOrEqual
			_, left := by.LHS.(*hclsyntax.ScopeTraversalExpr)
			_, right := by.RHS.(*hclsyntax.ScopeTraversalExpr)
			if (below || above) && left != right {
				shown = is == ((below == left) == (bound == reason.AtMost))
			}
		}
		if !shown {
			return nil, text(path) + " is only known to be " + strings.ReplaceAll(string(bound), "_", " ") + " that, since loadgen itself delayed ops or ended early"
		}
	}
	return &is, ""
}

// stepsOf returns the names and indices of a path.
func stepsOf(path hcl.Traversal) (steps []string) {
	for _, step := range path {
		name, _ := nameOf(step)
		steps = append(steps, name)
	}
	return steps
}

// look returns the quantities that an expression names with their values. null is an empty cell with the reason of the first null among them.
func look(expr hclsyntax.Expression, ctx *hcl.EvalContext, r *run.Run) (values string, null run.Cell) {
	var seen []string
	for _, path := range expr.Variables() {
		v := cty.NilVal
		for i := range path {
			var diags hcl.Diagnostics
			if v, diags = path[:i+1].TraverseAbs(ctx); diags.HasErrors() {
				return strings.Join(seen, ", "), run.Cell{Reason: explain(diags)}
			}
			if v.IsNull() {
				return strings.Join(seen, ", "), whyNull(path[:i+1], r)
			}
		}
		if !v.Type().IsPrimitiveType() {
			continue
		}
		if s := text(path) + " = " + literal(v); !slices.Contains(seen, s) {
			seen = append(seen, s)
		}
	}
	return strings.Join(seen, ", "), run.Cell{}
}

// zeroDivisor returns a divisor in an expression that is 0, or nil. HCL would continue with infinity, which is greater than any limit
// and so passes asserts. It ignores divisors that depend on the variable of a for expression, since they cannot be evaluated here.
func zeroDivisor(expr hclsyntax.Expression, ctx *hcl.EvalContext) (zero hclsyntax.Expression) {
	hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		by, ok := node.(*hclsyntax.BinaryOpExpr)
		if !ok || by.Op != hclsyntax.OpDivide {
			return nil
		}
		v, diags := by.RHS.Value(ctx)
		if !diags.HasErrors() && v.Type() == cty.Number && !v.IsNull() && v.AsBigFloat().Sign() == 0 {
			zero = by.RHS
		}
		return nil
	})
	return zero
}

func whyNull(path hcl.Traversal, r *run.Run) run.Cell {
	steps := stepsOf(path)
	last := steps[len(steps)-1]
	if _, quantile := quantity.Quantile(last); quantile {
		if why := r.Why(append(slices.Clone(steps[:len(steps)-1]), "quantiles", last)...).Text; why != "" {
			return run.Cell{Reason: text(path) + " is null: " + why, Cause: why}
		}
	}
	if why := r.Why(steps...).Text; why != "" {
		return run.Cell{Reason: text(path) + " is null: " + why, Cause: why}
	}
	return run.Cell{Reason: text(path) + " is null"}
}

// explain puts HCL's diagnostics into one line.
func explain(diags hcl.Diagnostics) string {
	d := diags.Errs()[0].(*hcl.Diagnostic)
	return strings.TrimSuffix(d.Summary, ".") + ": " + strings.TrimSuffix(d.Detail, ".")
}

// literal writes a value as in an expression.
func literal(v cty.Value) string {
	switch v.Type() {
	case cty.String:
		return fmt.Sprintf("%q", v.AsString())
	case cty.Bool:
		return fmt.Sprint(v.True())
	default:
		f, _ := v.AsBigFloat().Float64()
		return fmt.Sprint(f)
	}
}

// text writes a path as in an expression.
func text(path hcl.Traversal) string {
	var b strings.Builder
	for i, step := range path {
		name, ok := nameOf(step)
		_, index := step.(hcl.TraverseIndex)
		switch {
		case !ok:
			b.WriteString("[*]")
		case i == 0:
			b.WriteString(name)
		case !index || hclsyntax.ValidIdentifier(name):
			b.WriteString("." + name)
		case strings.Trim(name, "0123456789") == "":
			b.WriteString("[" + name + "]")
		default:
			fmt.Fprintf(&b, "[%q]", name)
		}
	}
	return b.String()
}

// nameOf returns the name or index that a step leads to, and false for a step that leads to several.
func nameOf(step hcl.Traverser) (string, bool) {
	switch step := step.(type) {
	case hcl.TraverseRoot:
		return step.Name, true
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		switch {
		case step.Key.Type() == cty.String:
			return step.Key.AsString(), true
		case step.Key.Type() == cty.Number:
			return step.Key.AsBigFloat().Text('f', -1), true
		}
	}
	return "", false
}
