package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

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
		{twoVariants + "chart \"c\" {\n " + line + " over = \"var.nothing\"\n}", `chart "c": over: no variant sets "nothing"`},
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
