package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	shipped "github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// resolve parses and resolves, as a command does.
func resolve(src, name string, vars plan.Vars) (*plan.Plan, hcl.Diagnostics) {
	f, diags := plan.Parse([]byte(src), name, drivers())
	if f == nil {
		return nil, diags
	}
	p, more := f.Resolve(vars)
	return p, append(diags, more...)
}

// formatted is what a command prints of diagnostics.
func formatted(t *testing.T, diags hcl.Diagnostics, sources map[string][]byte) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, plan.FormatDiagnostics(&b, diags, sources))
	return b.String()
}

// good resolves a plan that must be valid.
func good(t *testing.T, src string, vars plan.Vars) *plan.Plan {
	t.Helper()
	p, diags := resolve(src, "plan.hcl", vars)
	require.Empty(t, formatted(t, diags, map[string][]byte{"plan.hcl": []byte(src)}))
	require.NotNil(t, p)
	return p
}

// golden compares got with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run with -update to make it")
	require.Equal(t, string(want), got)
}

func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.hcl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".hcl")
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			p, diags := resolve(string(src), "plan.hcl", plan.Vars{})
			require.Nil(t, p)
			require.True(t, diags.HasErrors())
			for _, d := range diags {
				require.NotNil(t, d.Subject, d.Summary)
				require.NotEmpty(t, d.Summary)
			}
			golden(t, strings.TrimSuffix(file, ".hcl")+".txt", formatted(t, diags, map[string][]byte{"plan.hcl": src}))
		})
	}
}

func TestPlansOfTheRepository(t *testing.T) {
	all, err := filepath.Glob("../../plans/*.hcl")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 3)
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".hcl")
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			f, diags := plan.Parse(src, "plan.hcl", shipped.All())
			require.Empty(t, diags)
			p, diags := f.Resolve(plan.Vars{})
			require.Empty(t, diags)
			b, err := p.Canonical()
			require.NoError(t, err)
			again, err := plan.Decode(b, shipped.All())
			require.NoError(t, err)
			require.Equal(t, p, again)
			golden(t, "testdata/good/"+name+".json", strings.ReplaceAll(string(b), "},{", "},\n{")+"\n"+prediction(p))
		})
	}
}

// prediction is a plan's prediction as text.
func prediction(p *plan.Plan) string {
	var b strings.Builder
	line := func(name string, l plan.Load) {
		fmt.Fprintf(&b, "%s: ops %s requests %s setup %d/%d duration %s sessions %d connections %d memory %d\n", name,
			known(l.Ops), known(l.Requests), l.SetupOps, l.SetupRequests, known(l.Duration), l.Sessions, l.Connections, l.Memory)
	}
	phases, all := p.Predict()
	for _, ph := range phases {
		line(ph.Name, ph)
	}
	line("total", all)
	return b.String()
}

func known[T any](v *T) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprint(*v)
}
