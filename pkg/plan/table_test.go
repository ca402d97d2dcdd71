package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

const twoVariants = "experiment {\n matrix { w = [1, 2] }\n}\n"

func TestTables(t *testing.T) {
	f, _ := experimentOf(t, experimental(twoVariants+`
table "t" {
  transpose = true
  variants  = ["w=2"]
  expected "then" {
    source = "a page"
    rate   = 3000 / 60
  }
  column "rate" {
    title = "GET"
    unit  = "/min"
    value = phase.p.op.get.rate
    error = 0.95
  }
  column "gain" { value = rate / baseline.rate }
  column "jmh" {
    value = rate
    error = true
  }
  column "times" {
    value = rate
    ratio = "baseline"
  }
}`))
	tables, diags := f.Tables()
	require.Empty(t, diags)
	require.Len(t, tables, 1)
	require.True(t, tables[0].Transpose)
	require.Equal(t, []bool{false, true}, []bool{tables[0].Shows("w=1"), tables[0].Shows("w=2")})
	require.Equal(t, []string{plan.RatioToBaseline, "x"}, []string{tables[0].Columns[3].Ratio, tables[0].Columns[3].Unit})
	for i, want := range []float64{0.95, 0, 0.999, 0} {
		require.Equal(t, want, tables[0].Columns[i].Confidence, i)
	}
	rate, gain := tables[0].Columns[0], tables[0].Columns[1]
	require.Equal(t, []string{"rate", "GET", "/min", "phase.p.op.get.rate", "plan.hcl"}, []string{rate.Name, rate.Title, rate.Unit, rate.Value, rate.File})
	require.Equal(t, []string{"gain", "gain", "", "rate / baseline.rate"}, []string{gain.Name, gain.Title, gain.Unit, gain.Value})
	require.Equal(t, []plan.Expected{{Name: "then", Source: "a page", Values: map[string]float64{"rate": 50}}}, tables[0].Expected)
}

func TestMistakesInTables(t *testing.T) {
	const column = "column \"a\" { value = phase.p.seconds }\n"
	for _, c := range []struct{ blocks, want string }{
		{"table \"t\" {\n " + column + "}", "a table without an experiment"},
		{twoVariants + "table \"t\" {}", `table "t": no columns`},
		{twoVariants + "table \"t\" {\n " + column + column + "}", `table "t": a second column "a"`},
		{twoVariants + "table \"t\" {\n " + column + " rows = 2\n}", `table "t": unknown attribute "rows"`},
		{twoVariants + "table \"t\" {\n " + column + " variants = []\n}", `table "t": variants: nothing to show`},
		{twoVariants + "table \"t\" {\n " + column + " variants = [\"w=3\"]\n}", `table "t": variants: unknown variant "w=3"`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n ratio = \"other\"\n}\n}", `table "t", column "a": ratio: unknown variant "other"`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n ratio = \"bound\"\n}\n}", `table "t", column "a": ratio: the experiment has no bound`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n ratio = \"baseline\"\n error = true\n}\n}", `table "t", column "a": error: a ratio has an interval of its own`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n ratio = \"baseline\"\n unit = \"ms\"\n}\n}", `table "t", column "a": unit: "ms" of a ratio`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n error = 0\n}\n}", `table "t", column "a": error: 0 is no confidence`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n error = 0.05\n}\n}", `table "t", column "a": error: 0.05 is no confidence`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n error = 1\n}\n}", `table "t", column "a": error: 1 is no confidence`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n error = 95\n}\n}", `table "t", column "a": error: 95 is no confidence`},
		{twoVariants + "table \"t\" {\n column \"a\" {\n value = 1\n error = \"x\"\n}\n}", `table "t", column "a": error: a value of type string`},
		{twoVariants + "table \"t\" {\n column { value = 1 }\n}", `table "t", column without a proper name`},
		{twoVariants + "table \"t\" {\n column \"baseline\" { value = 1 }\n}", `table "t", column without a proper name`},
		{twoVariants + "table \"t\" {\n column \"a\" {}\n}", `table "t", column "a": value is missing`},
		{twoVariants + "table \"t\" {\n column \"a\" { value = local.b }\n}", `table "t", column "a": local.NAME where only a literal may be`},
		{twoVariants + "table \"t\" {\n " + column + "expected \"e\" { a = 1 }\n}", `table "t", expected: no source`},
		{twoVariants + "table \"t\" {\n " + column + "expected \"e\" {\n source = \"s\"\n b = 1\n}\n}", `table "t", expected: the table has no column "b"`},
		{twoVariants + "table \"t\" {\n " + column + "expected \"e\" {\n source = \"s\"\n a = \"x\"\n}\n}", `table "t", expected: a: `},
		{twoVariants + "table \"t\" {\n " + column + "expected {\n source = \"s\"\n}\n}", `table "t", expected without a name`},
	} {
		f, diags := plan.Parse([]byte(experimental(c.blocks)), "plan.hcl", drivers())
		require.Empty(t, diags, c.blocks)
		tables, diags := f.Tables()
		require.Nil(t, tables, c.blocks)
		require.NotEmpty(t, diags, c.blocks)
		require.Contains(t, diags[0].Summary, c.want, c.blocks)
		require.NotEmpty(t, diags[0].Detail, c.blocks)
		require.Positive(t, diags[0].Subject.Start.Line, c.blocks)
	}
}

func TestCharts(t *testing.T) {
	f, _ := experimentOf(t, experimental(twoVariants+`
chart "c" {
  title = "Gets"
  over  = "ops"
  unit  = "/min"
  log   = true
  line "all of them" { value = phase.p.series.rate }
  line "missed" { value = phase.p.series.miss }
}
chart "tail" {
  over = "quantile"
  line "get" { value = phase.p.op.get.response }
}`))
	charts, diags := f.Charts()
	require.Empty(t, diags)
	require.Len(t, charts, 2)
	c := charts[0]
	require.Equal(t, []any{"c", "Gets", plan.OverOps, "/min", true}, []any{c.Name, c.Title, c.Over, c.Unit, c.Log})
	require.Equal(t, []string{"all of them", "phase.p.series.rate", "plan.hcl"}, []string{c.Lines[0].Name, c.Lines[0].Value, c.Lines[0].File})
	require.Equal(t, "missed", c.Lines[1].Name)
	require.Equal(t, []any{"tail", plan.OverQuantile, true}, []any{charts[1].Title, charts[1].Over, charts[1].Log})
}

func TestMistakesInCharts(t *testing.T) {
	const line = "line \"a\" { value = phase.p.series.ok }\n"
	for _, c := range []struct{ blocks, want string }{
		{"chart \"c\" {\n " + line + "}", "a chart without an experiment"},
		{twoVariants + "chart \"c\" {}", `chart "c": no lines`},
		{twoVariants + "chart \"c\" {\n " + line + line + "}", `chart "c": a second line "a"`},
		{twoVariants + "chart \"c\" {\n " + line + " rows = 2\n}", `chart "c": unknown attribute "rows"`},
		{twoVariants + "chart \"c\" {\n " + line + " over = \"space\"\n}", `chart "c": over: charts do not go over "space"`},
		{twoVariants + "chart \"c\" {\n " + line + " over = \"var.nothing\"\n}", `chart "c": over: no variant sets "nothing" to a number`},
		{twoVariants + "chart \"c\" {\n " + line + " over = \"quantile\"\n log = false\n}", `chart "c": log: quantiles are always drawn by the logarithm`},
		{twoVariants + "chart \"c\" {\n " + line + " of = { gone = 1 }\n}", `chart "c": of: the plan has no variable "gone"`},
		{twoVariants + "chart \"c\" {\n " + line + " of = \"all\"\n}", `chart "c": of: `},
		{twoVariants + "chart \"c\" {\n " + line + " of = { w = 77 }\n}", `chart "c": of: no variant has these values`},
		{twoVariants + "chart \"c\" {\n " + line + " variants = [\"w=3\"]\n}", `chart "c": variants: unknown variant "w=3"`},
		{twoVariants + "chart \"c\" {\n " + line + " log = 1\n}", `chart "c": log`},
		{twoVariants + "chart \"c\" {\n line { value = 1 }\n}", `chart "c", line without a proper name`},
		{twoVariants + "chart \"c\" {\n line \"a\" {}\n}", `chart "c", line "a": value is missing`},
		{twoVariants + "chart \"c\" {\n line \"a\" { value = local.b }\n}", `chart "c", line "a": local.NAME where only a literal may be`},
		{twoVariants + "chart \"c\" {\n line \"a\" {\n value = 1\n unit = \"s\"\n}\n}", `chart "c", line "a": unknown attribute "unit"`},
	} {
		f, diags := plan.Parse([]byte(experimental(c.blocks)), "plan.hcl", drivers())
		require.Empty(t, diags, c.blocks)
		charts, diags := f.Charts()
		require.Nil(t, charts, c.blocks)
		require.NotEmpty(t, diags, c.blocks)
		require.Contains(t, diags[0].Summary, c.want, c.blocks)
		require.NotEmpty(t, diags[0].Detail, c.blocks)
		require.Positive(t, diags[0].Subject.Start.Line, c.blocks)
	}
}
