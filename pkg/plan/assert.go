package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Assert is a condition on the result: text that is evaluated after the run.
type Assert struct {
	Name string `json:"name"`
	That string `json:"that"`
	File string `json:"file"`
	Line int    `json:"line"`

	WithUnit []string `json:"-"` // the numbers in That that are values of locals computed by duration or size
}

// assert reads an assert block. Its condition stays text, with variables and locals replaced by their values: the result that it is
// evaluated over has neither.
func (r *resolver) assert(body *hclsyntax.Block) {
	a := &Assert{Name: body.Labels[0], File: filepath.Base(r.file.name)} // without the directory, which must not change the plan's digest
	b := r.block(body, "assert."+a.Name, "assert "+dialect.Quote(a.Name))
	b.Expect([]string{"that"}, nil)
	if !b.Require("that", "Write a condition, such as that = phase.NAME.op.get.response.p99 < duration(\"20ms\").") {
		return
	}
	that := b.Body.Attributes["that"]
	a.Line = that.NameRange.Start.Line
	r.Places[b.Path+".that"] = that.Expr.Range()
	if _, quoted := that.Expr.(*hclsyntax.TemplateExpr); quoted {
		text := strings.TrimLeft(string(r.file.src[that.Expr.Range().Start.Byte:that.Expr.Range().End.Byte]), `" `)
		first, _, _ := strings.Cut(text, "(") // a condition may be written like p(95)<500
		b.Bad("that", "text, not a condition", cmp.Or(Meant("assert", first), "Write the condition without quotes."))
		return
	}
	text, ok := r.substitute(that, b.Scope())
	if !ok {
		r.Wrong[b.Path+".that"] = true
		return
	}
	a.That = text
	for _, of := range that.Expr.Variables() {
		if x := (&hclsyntax.ScopeTraversalExpr{Traversal: of, SrcRange: of.SourceRange()}); r.HasUnit(x) {
			if v, ok := r.Eval(x, b.Scope()); ok {
				a.WithUnit = append(a.WithUnit, constant(v))
			}
		}
	}
	r.plan.Asserts = append(r.plan.Asserts, a)
}

// assert checks a condition's text as the guard checks a plan's. Names in it are checked where results are known.
func (v *validator) assert(a *Assert) {
	path := "assert." + a.Name + ".that"
	if err := checkCondition(a.That); err != nil {
		v.fault(fmt.Sprintf("assert %s: %v", dialect.Quote(a.Name), err), "Write a condition over the result.", path)
	}
	if len(a.File) > dialect.MaxString || a.Line < 0 || a.Line > dialect.MaxSource {
		v.fault(fmt.Sprintf("assert %s: no place in a text", dialect.Quote(a.Name)), "Write file and line.", path)
	}
}

// checkCondition checks an assert's text with the guard and the parser.
func checkCondition(text string) error {
	if text == "" || len(text) > dialect.MaxString {
		return fmt.Errorf("a condition of %d bytes, of 1 to %d", len(text), dialect.MaxString)
	}
	if d := dialect.Guard([]byte(text), ""); d != nil {
		return errors.New(d.Summary)
	}
	x, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if !diags.HasErrors() {
		diags = dialect.CheckSyntax(x)
	}
	if diags.HasErrors() {
		return errors.New(diags[0].Summary)
	}
	return nil
}
