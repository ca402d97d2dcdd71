package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

// unitless finds numbers without a unit beside figures in seconds or bytes whose names do not say so: response.p99 < 500 would mean 500 s, and hold.
type unitless struct {
	p     *plan.Plan
	a     *plan.Assert
	loops []*hclsyntax.ForExpr // those around the expression
	found hcl.Diagnostics
}

// Enter implements hclsyntax.Walker.
func (u *unitless) Enter(node hclsyntax.Node) hcl.Diagnostics {
	switch x := node.(type) {
	case *hclsyntax.ForExpr:
		u.loops = append(u.loops, x)
	case *hclsyntax.BinaryOpExpr:
		if x.Op.Type == cty.Bool || x.Op == hclsyntax.OpAdd || x.Op == hclsyntax.OpSubtract {
			u.beside(x.LHS, x.RHS)
			u.beside(x.RHS, x.LHS)
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (u *unitless) Exit(node hclsyntax.Node) hcl.Diagnostics {
	if _, ok := node.(*hclsyntax.ForExpr); ok {
		u.loops = u.loops[:len(u.loops)-1]
	}
	return nil
}

// beside reports a number without a unit beside a figure.
func (u *unitless) beside(figure, limit hclsyntax.Expression) {
	k := u.silent(figure, len(u.loops))
	if k == anything || !u.bare(limit) {
		return
	}
	given, is, write := u.text(limit), "seconds", fmt.Sprintf(`duration("%sms")`, u.text(limit))
	if _, err := strconv.ParseFloat(given, 64); k == sizes {
		is, write = "bytes", `size("1MiB")`
	} else if err != nil {
		write = `duration("500ms")`
	}
	u.found = append(u.found, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: fmt.Sprintf("%s without a unit beside %s, which is in %s", given, u.text(figure), is),
		Detail: fmt.Sprintf("Write %s, or another unit.", write), Subject: limit.Range().Ptr(),
	})
}

// text returns the source of an expression, in one line.
func (u *unitless) text(x hclsyntax.Expression) string {
	return strings.Join(strings.Fields(string(x.Range().SliceBytes([]byte(u.a.That)))), " ")
}

// silent returns times or sizes if that is what an expression within so many loops is, and no name in it says so; otherwise anything.
func (u *unitless) silent(x hclsyntax.Expression, loops int) kind {
	if path := u.path(x, loops); len(path) > 1 && path[0] == "phase" {
		name := path[len(path)-1]
		k, observed := kindObserved(u.p, path)
		if field := min(len(path)-1, map[string]int{"observe": 4, "probes": 6}[path[min(2, len(path)-1)]]); observed {
			name = path[field]
		} else {
			k = kindNamed(name)
		}
		if k == times && !strings.HasSuffix("_"+name, "_seconds") || k == sizes && !strings.Contains(name, "bytes") {
			return k
		}
		return anything
	}
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		for i := loops - 1; i >= 0; i-- {
			if u.loops[i].ValVar == x.Traversal.RootName() && len(x.Traversal) == 1 {
				return u.silent(u.loops[i].CollExpr, i)
			}
		}
	case *hclsyntax.ParenthesesExpr:
		return u.silent(x.Expression, loops)
	case *hclsyntax.UnaryOpExpr:
		return u.silent(x.Val, loops)
	case *hclsyntax.ConditionalExpr:
		return u.first(loops, x.TrueResult, x.FalseResult)
	case *hclsyntax.TupleConsExpr:
		return u.first(loops, x.Exprs...)
	case *hclsyntax.FunctionCallExpr:
		if slices.Contains([]string{"abs", "ceil", "coalesce", "concat", "floor", "max", "min", "tonumber"}, x.Name) {
			return u.first(loops, x.Args...)
		}
	case *hclsyntax.ForExpr:
		around := u.loops
		u.loops = append(slices.Clip(around[:loops]), x)
		defer func() { u.loops = around }()
		return u.silent(x.ValExpr, loops+1)
	case *hclsyntax.BinaryOpExpr:
		switch {
		case x.Op == hclsyntax.OpAdd, x.Op == hclsyntax.OpSubtract, x.Op == hclsyntax.OpModulo:
			return u.first(loops, x.LHS, x.RHS)
		case x.Op == hclsyntax.OpMultiply && u.bare(x.LHS):
			return u.silent(x.RHS, loops)
		case (x.Op == hclsyntax.OpMultiply || x.Op == hclsyntax.OpDivide) && u.bare(x.RHS):
			return u.silent(x.LHS, loops)
		}
	}
	return anything
}

// first returns the first kind that is known.
func (u *unitless) first(loops int, all ...hclsyntax.Expression) kind {
	for _, x := range all {
		if k := u.silent(x, loops); k != anything {
			return k
		}
	}
	return anything
}

// path returns the names that lead to a figure, without indices; nil if an expression is none. A loop's variable is what the loop goes over.
func (u *unitless) path(x hclsyntax.Expression, loops int) []string {
	join := func(to []string, more hcl.Traversal) []string {
		for _, step := range more {
			if name, ok := nameOf(step); ok && strings.Trim(name, "0123456789") != "" {
				to = append(to, name)
			}
		}
		return to
	}
	switch x := x.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		for i := loops - 1; i >= 0; i-- {
			if u.loops[i].ValVar == x.Traversal.RootName() {
				return join(u.path(u.loops[i].CollExpr, i), x.Traversal[1:])
			}
		}
		return join(nil, x.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		return join(u.path(x.Source, loops), x.Traversal)
	case *hclsyntax.SplatExpr:
		if each, ok := x.Each.(*hclsyntax.RelativeTraversalExpr); ok {
			return join(u.path(x.Source, loops), each.Traversal)
		}
	case *hclsyntax.IndexExpr:
		return u.path(x.Collection, loops)
	case *hclsyntax.ParenthesesExpr:
		return u.path(x.Expression, loops)
	}
	return nil
}

// bare says whether an expression is a number other than 0, and nothing in it had a unit.
func (u *unitless) bare(x hclsyntax.Expression) bool {
	switch x := x.(type) {
	case *hclsyntax.ParenthesesExpr:
		return u.bare(x.Expression)
	case *hclsyntax.ConditionalExpr:
		return u.bare(x.TrueResult) || u.bare(x.FalseResult)
	}
	v, diags := x.Value(&hcl.EvalContext{Functions: dialect.Functions()})
	if diags.HasErrors() || v.IsNull() {
		return false
	}
	n, err := convert.Convert(v, cty.Number)
	if err != nil || n.AsBigFloat().Sign() == 0 || new(dialect.Reader).HasUnit(x) {
		return false
	}
	bare := true
	_ = hclsyntax.VisitAll(x, func(node hclsyntax.Node) hcl.Diagnostics {
		if literal, ok := node.(*hclsyntax.LiteralValueExpr); ok {
			bare = bare && !slices.Contains(u.a.WithUnit, u.text(literal))
		}
		return nil
	})
	return bare
}
