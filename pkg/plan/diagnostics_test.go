package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

func TestFormatDiagnostics(t *testing.T) {
	src := "first\n\tsecond \u202e\x1b[31m" + strings.Repeat("é", 200) + "\n"
	at := func(file string, line, offset int) *hcl.Range {
		return &hcl.Range{Filename: file, Start: hcl.Pos{Line: line, Byte: offset}}
	}
	got := formatted(t, hcl.Diagnostics{
		{Summary: "late.", Detail: "Write\nless.", Subject: at("p.hcl", 2, 8)},
		{Summary: "early", Subject: at("p.hcl", 1, 0)},
		{Summary: "of a flag", Subject: at("-var", 0, 0)},
		{Summary: "beyond", Subject: at("p.hcl", 9, 99999)},
		{Summary: "nowhere"},
		{Summary: "tu\u2066rned", Subject: at("\u202eq.hcl", 0, 0)},
	}, map[string][]byte{"p.hcl": []byte(src)})
	require.Contains(t, got, "p.hcl:1: early\n     1 | first\n")
	require.Contains(t, got, "p.hcl:2: late. Write less.\n     2 |  second   [31m"+strings.Repeat("é", 72)+"…\n")
	require.Contains(t, got, "-var: of a flag\n")
	require.Contains(t, got, "p.hcl:9: beyond\n")
	require.Contains(t, got, "nowhere\n")
	require.Contains(t, got, " q.hcl: tu rned\n")
	require.Less(t, strings.Index(got, "early"), strings.Index(got, "late"))
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestFormatDiagnosticsReportsTheWriter(t *testing.T) {
	err := plan.FormatDiagnostics(brokenWriter{}, hcl.Diagnostics{{Summary: "x"}}, nil)
	require.ErrorIs(t, err, errBroken)
}

// A plan with more errors than anyone reads says how many more there are.
func TestDiagnosticsAreCapped(t *testing.T) {
	_, diags := resolve(small("locals {\n"+repeated(150, "a%d = nothing")+"}"), "plan.hcl", plan.Vars{})
	require.Len(t, diags, 101)
	require.Equal(t, "and more", diags[100].Summary)
}

// Parse's errors do not hide those that only Resolve finds.
func TestAllErrorsAtOnce(t *testing.T) {
	src := strings.Replace(small("stray = 1"), "iterations = 1", "iterations = -1", 1)
	f, diags := plan.Parse([]byte(src), "plan.hcl", drivers())
	require.Len(t, diags, 1)
	p, more := f.Resolve(plan.Vars{})
	require.Nil(t, p)
	require.Len(t, more, 1)
	require.Contains(t, more[0].Summary, "iterations = -1")
}

// A number of a flag is not rounded.
func TestLargeNumberOfAFlag(t *testing.T) {
	const odd = "9007199254740993" // 2^53 + 1
	src := withVariable("variable \"x\" {\n  type = number\n  default = 1\n}", `"${var.x}"`)
	p, diags := resolve(src, "plan.hcl", plan.Vars{Flags: []string{"x=" + odd}})
	require.Empty(t, diags)
	require.Equal(t, odd, p.Description)
}

// A File may be resolved again with other variables.
func TestResolveTwice(t *testing.T) {
	f, diags := plan.Parse([]byte(withVariable(`variable "x" { default = "a" }`, "var.x")), "plan.hcl", drivers())
	require.Empty(t, diags)
	for _, x := range []string{"b", "c"} {
		p, diags := f.Resolve(plan.Vars{Flags: []string{"x=" + x}})
		require.Empty(t, diags)
		require.Equal(t, x, p.Description)
	}
}

// A file of another kind is called by its name, instead of what HCL finds wrong in it.
func TestFilesThatAreNoPlans(t *testing.T) {
	for text, is := range map[string]string{
		"\n# the shop\nGET http://127.0.0.1:8080/a\nHeader: x\n":            "targets of vegeta",
		`{"method": "GET", "url": "http://127.0.0.1/"}`:                     "targets of vegeta in JSON",
		"{\n  \"name\": \"p\"\n}":                                           "JSON",
		"[general]\nthreads = 4\n":                                          "TOML",
		"---\nplan:\n  rate: 10\n":                                          "YAML",
		"plan: x\n":                                                         "YAML",
		"import http from 'k6/http'\n":                                      "JavaScript",
		"\uFEFF<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">\n": "XML",
	} {
		_, diags := resolve(text, "plan.hcl", plan.Vars{})
		require.Len(t, diags, 1)
		require.Equal(t, "this looks like "+is+", not like a plan", diags[0].Summary)
		require.NotEmpty(t, diags[0].Detail)
	}
	_, diags := resolve("plan \"p\" {\n", "plan.hcl", plan.Vars{})
	require.NotContains(t, diags[0].Summary, "looks like")
}
