package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/plan"
)

// withVariable is a valid plan whose description shows the value of variable x as text.
func withVariable(block, show string) string {
	return strings.Replace(small(block), `plan "p" {}`, `plan "p" { description = `+show+` }`, 1)
}

func TestVariablePrecedence(t *testing.T) {
	src := withVariable(`variable "x" { default = "default" }`, "var.x")
	environ := []string{"LOADGEN_VAR_x=environment", "LOADGEN_VAR_other=ignored", "x=ignored", "PATH"}
	file := []byte("# of a file\nx = \"file\"\n")
	cases := []struct {
		name string
		vars plan.Vars
		want string
	}{
		{"default", plan.Vars{}, "default"},
		{"environment", plan.Vars{Environ: environ}, "environment"},
		{"file", plan.Vars{Environ: environ, Files: []dialect.VarFile{{Text: file}}}, "file"},
		{"flag", plan.Vars{Environ: environ, Files: []dialect.VarFile{{Text: file}}, Flags: []string{"x=flag"}}, "flag"},
		{"last flag", plan.Vars{Flags: []string{"x=flag", "x=last"}}, "last"},
		{"empty flag", plan.Vars{Flags: []string{"x="}}, ""},
		{"verbatim", plan.Vars{Flags: []string{`x="${y}=\n`}}, `"${y}=\n`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, good(t, src, c.vars).Description)
		})
	}
}

func TestVariableTypes(t *testing.T) {
	cases := []struct{ name, block, show, flag, want string }{
		{"no type, no default", `variable "x" {}`, "var.x", "2", "2"},
		{"number by default", `variable "x" { default = 2 }`, `"${var.x + 1}"`, "5", "6"},
		{"bool by default", `variable "x" { default = true }`, `var.x ? "yes" : "no"`, "false", "no"},
		{"string by default", `variable "x" { default = "2" }`, `"<${var.x}>"`, "1 + 1", "<1 + 1>"},
		{"list", "variable \"x\" {\n type = list(string)\n default = []\n }", `join(",", var.x)`, `["a", "b"]`, "a,b"},
		{"list between commas", `variable "x" { type = list(string) }`, `join(";", var.x)`, `127.0.0.1:1, [::1]:2`, "127.0.0.1:1;[::1]:2"},
		{"empty list", `variable "x" { type = list(string) }`, `"<${join(",", var.x)}>"`, ``, "<>"},
		{"count", `variable "x" { default = 2 }`, `"${var.x + 1}"`, "10k", "10001"},
		{"count by default", "variable \"x\" {\n type = number\n default = \"1M\"\n }", `"${var.x}"`, "0.5M", "500000"},
		{"list of numbers as strings", `variable "x" { type = list(string) }`, `join(",", var.x)`, `[1, 2]`, "1,2"},
		{"object", `variable "x" { type = object({ a = number }) }`, `tostring(var.x.a)`, `{ a = 7 }`, "7"},
		{"map", `variable "x" { type = map(number) }`, `tostring(var.x["k"])`, `{ k = 7 }`, "7"},
		{"any by default", `variable "x" { default = ["a"] }`, `join("", var.x)`, `["b", 3]`, "b3"},
		{"null default", "variable \"x\" {\n type = number\n default = null\n }", `tostring(var.x)`, "-1.5", "-1.5"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src := withVariable(c.block, c.show)
			require.Equal(t, c.want, good(t, src, plan.Vars{Flags: []string{"x=" + c.flag}}).Description)
		})
	}
}

func TestWrongVariables(t *testing.T) {
	const number = `variable "width" { default = 2 }`
	cases := []struct {
		name, block string
		vars        plan.Vars
		want        string
	}{
		{
			"unknown flag", number,
			plan.Vars{Flags: []string{"widht=2"}},
			`-var: the plan has no variable "widht". Write -var width=…. There is width.`,
		},
		{
			"no variables", "",
			plan.Vars{Flags: []string{"width=2"}},
			`-var: the plan has no variable "width". There are none: write variable "width" {} in the plan to have it.`,
		},
		{
			"flag without value", number,
			plan.Vars{Flags: []string{"width"}},
			`-var: "width" has no value. Write -var NAME=TEXT.`,
		},
		{
			"no literal", number,
			plan.Vars{Flags: []string{"width=two"}},
			`plan.hcl:13: variable "width": -var width="two" is no number. Write -var width=2.`,
		},
		{
			"reference", number,
			plan.Vars{Flags: []string{"width=var.width"}},
			`plan.hcl:13: variable "width": -var width="var.width" is no number. Write -var width=2.`,
		},
		{
			"function", number,
			plan.Vars{Flags: []string{"width=abs(1)"}},
			`plan.hcl:13: variable "width": -var width="abs(1)" is no number. Write -var width=2.`,
		},
		{
			"null", number,
			plan.Vars{Flags: []string{"width=null"}},
			`plan.hcl:13: variable "width": -var width is of type number, not null. Write a value such as 2.`,
		},
		{
			"wrong type", number,
			plan.Vars{Environ: []string{"LOADGEN_VAR_width=[1]"}},
			`plan.hcl:13: variable "width": LOADGEN_VAR_width is of type number, not a value of type tuple. Write a value such as 2.`,
		},
		{
			"hostile", number,
			plan.Vars{Flags: []string{"width=" + strings.Repeat("(", 1000)}},
			`plan.hcl:13: variable "width": -var width="(((((((((((((((((((((((((((((((("… is no number. Write -var width=2.`,
		},
		{
			"not UTF-8", `variable "x" {}`,
			plan.Vars{Flags: []string{"x=\xff"}},
			`plan.hcl:13: variable "x": the text of -var x is not UTF-8. Write UTF-8.`,
		},
		{
			"long", `variable "x" {}`,
			plan.Vars{Flags: []string{"x=" + strings.Repeat("x", 5000)}},
			`plan.hcl:13: variable "x": -var x: a string of 5000 bytes, of at most 4096. Write a smaller value.`,
		},
		{
			"missing", "variable \"x\" {\n type = bool\n}",
			plan.Vars{},
			`plan.hcl:13: variable "x" has no value. Write -var x=true, or a default.`,
		},
		{
			"unknown in file", number,
			plan.Vars{Files: []dialect.VarFile{{Name: "vars.hcl", Text: []byte("widht = 2\n")}}},
			`vars.hcl:1: the plan has no variable "widht". Write width = …. There is width.`,
		},
		{
			"wrong type in file", number,
			plan.Vars{Files: []dialect.VarFile{{Name: "vars.hcl", Text: []byte("\nwidth = [2]\n")}}},
			`vars.hcl:2: variable "width" is of type number, not a value of type tuple. Write a value such as 2.`,
		},
		{
			"block in file", number,
			plan.Vars{Files: []dialect.VarFile{{Name: "vars.hcl", Text: []byte("width {}\n")}}},
			`vars.hcl:1: a variable file has no blocks. Write NAME = VALUE, one on a line.`,
		},
		{
			"no file of HCL", number,
			plan.Vars{Files: []dialect.VarFile{{Name: "vars.hcl", Text: []byte("width = \n")}}},
			`vars.hcl:1: Invalid expression.`,
		},
		{
			"hostile file", number,
			plan.Vars{Files: []dialect.VarFile{{Name: "vars.hcl", Text: []byte("width = " + strings.Repeat("[", 1000))}}},
			`vars.hcl:1: brackets nested more than 100 deep.`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, diags := resolve(small(c.block), "plan.hcl", c.vars)
			require.Nil(t, p)
			require.Len(t, diags, 1)
			require.True(t, strings.HasPrefix(formatted(t, diags, nil), c.want), "%s", formatted(t, diags, nil))
		})
	}
}

func TestVariablesAndLocalsInAsserts(t *testing.T) {
	src := small(`
variable "most" { default = "20ms" }
variable "nodes" { default = ["a", "$${b}"] }
locals {
  least = -0.5
  own   = { x = "${var.most}!" }
}
assert "all" {
  that = phase.x.op.get.rate > local.least && length(var.nodes) > 1 && "${local.own.x}" != duration(var.most) # why
}
`)
	a := good(t, src, plan.Vars{}).Asserts[0]
	require.Equal(t, `phase.x.op.get.rate > (-0.5) && length(["a", "$${b}"]) > 1 && "${"20ms!"}" != duration("20ms")`, a.That)
	require.Equal(t, "plan.hcl", a.File)
	require.Equal(t, 21, a.Line)
}

// A phase's target may be the one that a variable names.
func TestTargetsByVariables(t *testing.T) {
	src := strings.Replace(caches, `plan "p" {}`, "plan \"p\" {}\nvariable \"on\" { default = \"plain\" }", 1) +
		strings.Replace(phase("x", "plain", "shared", gets), "target.plain", `target[var.on]`, 1) +
		strings.Replace(phase("y", "plain", "shared", gets), "target.plain", `target["quorum"]`, 1)
	p := good(t, src, plan.Vars{Flags: []string{"on=quorum"}})
	require.Equal(t, "quorum", p.Phases[0].Target)
	require.Equal(t, "quorum", p.Phases[1].Target)
	require.Equal(t, "plain", good(t, src, plan.Vars{}).Phases[0].Target)
}
