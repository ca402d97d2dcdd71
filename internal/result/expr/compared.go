package expr

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

// compared writes the values on both sides of a comparison of numbers, in their unit, such as "37.2 ms > 20 ms"; "" for any other condition.
func compared(p *plan.Plan, expr hclsyntax.Expression, ctx *hcl.EvalContext) string {
	by, ok := comparison(expr)
	if !ok {
		return ""
	}
	if word, joins := map[*hclsyntax.Operation]string{hclsyntax.OpLogicalAnd: " and ", hclsyntax.OpLogicalOr: " or "}[by.Op]; joins {
		a, b := compared(p, by.LHS, ctx), compared(p, by.RHS, ctx)
		if a == "" || b == "" {
			return ""
		}
		return a + word + b
	}
	left, ok := numberOf(by.LHS, ctx)
	right, also := numberOf(by.RHS, ctx)
	if !ok || !also {
		return ""
	}
	k := quantityOf(p, by)
	a, b := amount(left, k), amount(right, k)
	if a == b && left != right {
		a, b = exactly(left), exactly(right)
	}
	return a + [...]string{" < ", " = ", " > "}[1+cmp.Compare(left, right)] + b
}

// comparison returns the operation that makes a condition of its two sides, without the parentheses around it.
func comparison(expr hclsyntax.Expression) (*hclsyntax.BinaryOpExpr, bool) {
	for {
		inner, ok := expr.(*hclsyntax.ParenthesesExpr)
		if !ok {
			break
		}
		expr = inner.Expression
	}
	by, ok := expr.(*hclsyntax.BinaryOpExpr)
	return by, ok && by.Op.Type == cty.Bool
}

// Limit returns the figure that an assert compares with a constant, as the plan writes it, and the constant, in the figure's unit. Asserts that
// compare two figures, or that join several conditions, have none.
func Limit(a *plan.Assert) (figure string, limit float64, ok bool) {
	expr, diags := parse(a)
	if diags.HasErrors() {
		return "", 0, false
	}
	by, ok := comparison(expr)
	if !ok || (len(by.LHS.Variables()) == 0) == (len(by.RHS.Variables()) == 0) {
		return "", 0, false
	}
	compared, constant := by.LHS, by.RHS
	if len(constant.Variables()) > 0 {
		compared, constant = constant, compared
	}
	limit, ok = numberOf(constant, &hcl.EvalContext{Functions: dialect.Functions()})
	return strings.Join(strings.Fields(string(compared.Range().SliceBytes([]byte(a.That)))), " "), limit, ok
}

// numberOf evaluates an expression to a number.
func numberOf(expr hclsyntax.Expression, ctx *hcl.EvalContext) (f float64, ok bool) {
	v, diags := expr.Value(ctx)
	if diags.HasErrors() || v.Type() != cty.Number || v.IsNull() || !v.IsKnown() {
		return 0, false
	}
	f, _ = v.AsBigFloat().Float64()
	return f, true
}

// quantityOf returns the kind of all quantities in an expression. It is a plain number if they are of several kinds, or of none, or if the expression
// divides.
func quantityOf(p *plan.Plan, expr hclsyntax.Expression) kind {
	found, mixed := anything, false
	see := func(k kind) {
		if k == sizes && found == speeds { // a limit of so many bytes per second
			return
		}
		mixed = mixed || found != anything && k != found
		found = k
	}
	hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch node := node.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			see(kindOf(p, node))
		case *hclsyntax.FunctionCallExpr:
			if k, limit := map[string]kind{"duration": times, "rate": rates, "size": sizes, "percent": shares}[node.Name]; limit {
				see(k)
			}
		case *hclsyntax.BinaryOpExpr:
			mixed = mixed || node.Op == hclsyntax.OpDivide
		}
		return nil
	})
	if mixed {
		return anything
	}
	return found
}

// amount writes a quantity of a kind with its unit.
func amount(v float64, k kind) string {
	unit := ""
	switch k {
	case times:
		unit = UnitOf(v)
	case rates:
		unit = "/s"
	case shares:
		unit = "%"
	case sizes:
		unit = "B"
		for _, larger := range []string{"KiB", "MiB"} {
			if Shown(v, larger) >= 1 {
				unit = larger
			}
		}
	case speeds:
		if unit = "MB/s"; v >= 1e9 {
			unit = "GB/s"
		}
	case micros:
		v, unit = v/1e6, UnitOf(v/1e6)
	}
	text := strings.TrimSuffix(shown(v, unit), " %")
	if strings.Contains(text, ".") && !strings.Contains(text, "e") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if unit != "" && !strings.HasPrefix(unit, "/") {
		text += " "
	}
	return text + UnitText(unit)
}

// exactly writes a number with all its digits.
func exactly(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
