package plan_test

import (
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

// experimental is a plan whose description shows its variables, with an experiment.
func experimental(experiment string) string {
	return withVariable(`
variable "x" { default = "a" }
variable "w" { default = 2 }
`+experiment, `"${var.x} ${var.w}"`)
}

func experimentOf(t *testing.T, src string) (*plan.File, *plan.Experiment) {
	t.Helper()
	f, diags := plan.Parse([]byte(src), "plan.hcl", drivers())
	require.Empty(t, diags)
	e, diags := f.Experiment()
	require.Empty(t, diags)
	return f, e
}

func TestVariants(t *testing.T) {
	f, e := experimentOf(t, experimental(`
experiment {
  repeat   = 3
  order    = "sequential"
  baseline = "second"
  fork     = true
  cap      = "10m"
  compare  = ["rate", "response.p99"]
  matters  = "2%"
  variant "first" { w = 1 }
  variant "second" {
    w = 2
    x = "b"
  }
  matrix {
    x = ["c", "d"]
    w = [3, -4]
  }
}`))
	require.Equal(t, 3, e.Repeat)
	require.Equal(t, "sequential", e.Order)
	require.Equal(t, "second", e.Baseline)
	require.True(t, e.Fork)
	require.Equal(t, 10*time.Minute, e.Cap)
	require.Equal(t, []string{"rate", "response.p99"}, e.Compare)
	require.InDelta(t, 0.02, e.Matters, 0)
	shown := map[string]string{}
	var names []string
	for _, v := range e.Variants {
		names = append(names, v.Name)
		p, diags := f.Resolve(plan.Vars{Variant: v.Name})
		require.Empty(t, diags)
		shown[v.Name] = p.Description
	}
	require.Equal(t, []string{"first", "second", "x=c,w=3", "x=c,w=(-4)", "x=d,w=3", "x=d,w=(-4)"}, names)
	require.Equal(t, map[string]string{
		"first": "a 1", "second": "b 2", "x=c,w=3": "c 3", "x=c,w=(-4)": "c -4", "x=d,w=3": "d 3", "x=d,w=(-4)": "d -4",
	}, shown)
	require.Equal(t, map[string]string{"w": "2", "x": `"b"`}, e.Variants[1].Values)

	p, diags := f.Resolve(plan.Vars{})
	require.Empty(t, diags)
	require.Equal(t, "a 2", p.Description, "without a variant the variables have their own values")
}

func TestExperimentDefaults(t *testing.T) {
	_, e := experimentOf(t, experimental("experiment {\n matrix { w = [1, 2] }\n}"))
	require.Equal(t, []any{5, "interleaved", "w=1", false, time.Duration(0)}, []any{e.Repeat, e.Order, e.Baseline, e.Fork, e.Cap})

	f, diags := plan.Parse([]byte(small("")), "plan.hcl", drivers())
	require.Empty(t, diags)
	e, diags = f.Experiment()
	require.Nil(t, e)
	require.Empty(t, diags)
}

// TestVariantsLeftOut: those for which the experiment's condition is false are not run. Two must be left, and the baseline.
func TestVariantsLeftOut(t *testing.T) {
	for condition, want := range map[string]string{
		`var.w < 3`:                "", // w=3 is left out
		`var.w == 2`:               "experiment.when is true of 1 of 3 variants",
		`var.w > 1`:                `experiment.when is false of the baseline, "w=1"`,
		`var.w == 1 ? "no" : true`: "experiment: when: ",
	} {
		f, e := experimentOf(t, experimental("experiment {\n when = "+condition+"\n matrix { w = [1, 2, 3] }\n}"))
		var plans []*plan.Plan
		var diags hcl.Diagnostics
		for _, v := range e.Variants {
			p, more := f.Resolve(plan.Vars{Variant: v.Name})
			plans, diags = append(plans, p), append(diags, more...)
		}
		if !diags.HasErrors() {
			plans, diags = e.Keep(plans)
		}
		if want != "" {
			require.Contains(t, diags[0].Summary, want)
			require.Equal(t, "plan.hcl", diags[0].Subject.Filename)
			continue
		}
		require.Empty(t, diags)
		require.Len(t, plans, 2)
		require.Len(t, e.Variants, 2)
		require.Equal(t, []string{"w=3"}, e.LeftOut)
	}
}

func TestMistakesInExperiments(t *testing.T) {
	const two = `variant "a" { w = 1 }
  variant "b" { w = 2 }`
	for _, c := range []struct{ block, want string }{
		{"experiment {}", "experiment: 0 variants"},
		{"experiment {\n variant \"a\" { w = 1 }\n}", "experiment: 1 variants"},
		{"experiment {\n " + two + "\n variant \"a\" { w = 3 }\n}", `experiment: two variants named "a"`},
		{"experiment {\n " + two + "\n repeat = 0\n}", "experiment: repeat: 0"},
		{"experiment {\n " + two + "\n order = \"random\"\n}", `experiment: order: unknown order "random"`},
		{"experiment {\n " + two + "\n compare = []\n}", "experiment: compare: nothing to compare"},
		{"experiment {\n " + two + "\n compare = [\"rate\", \"rate\"]\n}", `experiment: compare: "rate" twice`},
		{"experiment {\n " + two + "\n matters = 0\n}", "experiment: matters: 0"},
		{"experiment {\n " + two + "\n matters = \"200%\"\n}", "experiment: matters: "},
		{"experiment {\n " + two + "\n baseline = \"c\"\n}", `experiment: baseline: unknown variant "c"`},
		{"experiment {\n " + two + "\n repeats = 2\n}", "experiment: unknown attribute \"repeats\""},
		{"experiment {\n " + two + "\n variant \"c\" { v = 2 }\n}", `variant "c": the plan has no variable "v"`},
		{"experiment {\n " + two + "\n variant \"c d\" { w = 2 }\n}", "experiment: a variant without a proper name"},
		{"experiment {\n " + two + "\n variant { w = 2 }\n}", "experiment: a variant without a proper name"},
		{"experiment {\n " + two + "\n variant \"c\" { w = var.x }\n}", `variant "c": `},
		{"experiment {\n matrix { w = 2 }\n}", "experiment, matrix: w: a value of type number"},
		{"experiment {\n matrix { w = [] }\n}", "experiment, matrix: w: "},
		{"experiment {\n matrix { v = [1, 2] }\n}", `experiment, matrix: the plan has no variable "v"`},
		{"experiment {\n matrix { w = range(2000) }\n}", "experiment, matrix: "},
	} {
		f, diags := plan.Parse([]byte(experimental(c.block)), "plan.hcl", drivers())
		require.Empty(t, diags, c.block)
		e, diags := f.Experiment()
		require.Nil(t, e, c.block)
		require.NotEmpty(t, diags, c.block)
		require.Contains(t, diags[0].Summary, c.want, c.block)
		require.NotEmpty(t, diags[0].Detail, c.block)
		require.Positive(t, diags[0].Subject.Start.Line, c.block)
	}
}

func TestMistakesWithVariants(t *testing.T) {
	f, _ := experimentOf(t, experimental("experiment {\n matrix { w = [1, \"many\"] }\n}"))
	summaries := func(diags hcl.Diagnostics) []string {
		var all []string
		for _, d := range diags {
			all = append(all, d.Summary)
		}
		return all
	}
	_, diags := f.Resolve(plan.Vars{Variant: "w=1", Flags: []string{"w=3"}})
	require.Equal(t, []string{`variant "w=1" sets w, and so does -var w`}, summaries(diags))
	_, diags = f.Resolve(plan.Vars{Variant: "w=many"})
	require.Equal(t, []string{`variable "w" is of type number, not a value of type string`}, summaries(diags))
	_, diags = f.Resolve(plan.Vars{Variant: "w=2"})
	require.Equal(t, []string{`the plan has no variant "w=2"`}, summaries(diags))

	f, diags = plan.Parse([]byte(small("")), "plan.hcl", drivers())
	require.Empty(t, diags)
	_, diags = f.Resolve(plan.Vars{Variant: "a"})
	require.Equal(t, []string{"the plan has no experiment block"}, summaries(diags))

	for _, block := range []string{"experiment \"e\" {}", "experiment {}\nexperiment {}"} {
		_, diags = plan.Parse([]byte(experimental(block)), "plan.hcl", drivers())
		require.Len(t, diags, 1, block)
	}
}

// TestBounds finds for each variant of a matrix the one that has the bound's values and otherwise its own.
func TestBounds(t *testing.T) {
	text := func(bound string) string {
		return "plan \"p\" {}\nvariable \"layout\" { default = \"a\" }\nvariable \"n\" { default = 1 }\nexperiment {\n" + bound +
			"\n matrix {\n layout = [\"a\", \"raw\"]\n n = [1, 2]\n }\n}\n"
	}
	file, diags := plan.Parse([]byte(text(`bound = { layout = "raw" }`)), "plan.hcl", drivers())
	require.False(t, diags.HasErrors(), diags)
	e, diags := file.Experiment()
	require.Empty(t, diags)
	for name, bound := range map[string]int{"layout=a,n=1": 2, "layout=a,n=2": 3, "layout=raw,n=1": 2, "layout=raw,n=2": 3, "else": -1} {
		require.Equal(t, bound, e.BoundOf(name), name)
	}
	for bound, says := range map[string]string{
		`bound = { layout = "b" }`: "no variant is the bound of another",
		`bound = { lay = "raw" }`:  `the plan has no variable "lay"`,
		`bound = "raw"`:            "bound = ",
	} {
		file, _ := plan.Parse([]byte(text(bound)), "plan.hcl", drivers())
		_, diags := file.Experiment()
		require.NotEmpty(t, diags, bound)
		require.Contains(t, diags[0].Summary+diags[0].Detail, says)
	}
	file, _ = plan.Parse([]byte(text("")), "plan.hcl", drivers())
	e, _ = file.Experiment()
	require.Equal(t, -1, e.BoundOf("layout=a,n=1"))
}
