package prom_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// board is what the tests check in a dashboard.
type board struct {
	UID        string
	Tags       []string
	Links      []struct{ Type, URL string }
	Templating struct {
		List []struct{ Name any }
	}
	Annotations struct{ List []struct{ Expr string } }
	Panels      []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr, LegendFormat, RawSQL string }

		Description string
		Type        string
		FieldConfig struct {
			Defaults  struct{ Unit string }
			Overrides []struct{ Matcher struct{ ID, Options string } }
		}
	}
}

// TestDashboardsAreLaidOut: panels of different titles stand side by side without gaps, with queries of different names. Each axis has a unit, and limits
// are lines of another kind.
func TestDashboardsAreLaidOut(t *testing.T) {
	for name, text := range grafana(t, "dashboards/*.json") {
		b := read(t, text)
		taken, bottom := map[[2]int]string{}, 0
		ids, titles := map[int]bool{}, map[string]bool{}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: panel %q", name, p.Title)
			require.False(t, ids[p.ID], at)
			require.False(t, titles[p.Title], at)
			ids[p.ID], titles[p.Title] = true, true
			g := p.GridPos
			bottom = max(bottom, g.Y+g.H)
			require.Positive(t, g.H*g.W, at)
			require.LessOrEqual(t, g.X+g.W, 24, at) // columns of Grafana's grid
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					require.Empty(t, taken[[2]int{x, y}], "%s lies over another", at)
					taken[[2]int{x, y}] = p.Title
				}
			}
			require.NotEmpty(t, p.Targets, at)
			refs := map[string]bool{}
			for _, q := range p.Targets {
				require.False(t, refs[q.RefID], at)
				refs[q.RefID] = true
			}
			if p.Type == "timeseries" {
				require.NotEmpty(t, p.FieldConfig.Defaults.Unit, at)
			}
			limits := p.FieldConfig.Overrides
			require.Len(t, limits, strings.Count(fmt.Sprint(p.Targets), "loadgen_assert_limit{")-strings.Count(p.Title, "Limits of asserts"), at)
			for _, o := range limits {
				require.Equal(t, "byFrameRefID", o.Matcher.ID, at)
				require.True(t, refs[o.Matcher.Options], at)
			}
		}
		require.NotEmpty(t, ids, name)
		require.Len(t, taken, 24*bottom, "%s has gaps", name)
	}
}

var (
	variableIn = regexp.MustCompile(`\$\{?(\w+)`)
	labelIn    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// TestDashboardsReferToWhatThereIs: variables are declared or Grafana's own, labels in legends come from the query. Each panel says how to read it, and
// each dashboard leads to the others and, if it is about one run, to its live page.
func TestDashboardsReferToWhatThereIs(t *testing.T) {
	shown := map[string]bool{}
	for name, text := range grafana(t, "dashboards/*.json") {
		b := read(t, text)
		known := []string{"__rate_interval", "__interval", "__range", "__timeFilter"}
		for _, v := range b.Templating.List {
			known = append(known, v.Name.(string))
		}
		for _, match := range variableIn.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, known, match[1], name)
		}
		require.Contains(t, b.Tags, "loadgen", name)
		require.Equal(t, "dashboards", b.Links[0].Type, name)
		if name != "experiments.json" {
			require.Subset(t, known, []string{"datasource", "job", "run", "page"}, name)
			require.Equal(t, "$page", b.Links[1].URL, name)
			require.Len(t, b.Annotations.List, 5, name)
		}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: panel %q", name, p.Title)
			shown[p.Title] = true
			require.Regexp(t, `^[A-Z].+\.$`, p.Description, at)
			for _, q := range p.Targets {
				if q.RawSQL != "" {
					require.Contains(t, q.RawSQL, "plan IN (${plan:sqlstring}) AND $__timeFilter(", at)
					continue
				}
				require.Regexp(t, `\{job(="\$job"|!?="loadgen-workers"),run="\$run"`, q.Expr, at)
				for _, match := range labelIn.FindAllStringSubmatch(q.LegendFormat, -1) {
					require.Contains(t, labelsOf(q.Expr), match[1], "%s: %s", at, q.Expr)
				}
			}
		}
	}
	for _, title := range []string{"Offered and sustained", "Response and service", "Response", "Outcomes", "k-th acks", "Steps", "Workers", "Observations", "Hit ratio", "Findings"} {
		require.True(t, shown[title], title)
	}
}

// labelsOf returns the labels of an expression's result: those of its grouping, otherwise those of the metric.
func labelsOf(expr string) []string {
	if by := grouping.FindStringSubmatch(expr); by != nil {
		return strings.Split(by[1], ", ")
	}
	return []string{"run"}
}

// TestGrafanaFindsThem compares what Grafana is told to read at its start with what is there.
func TestGrafanaFindsThem(t *testing.T) {
	sources := grafana(t, "provisioning/datasources/*.yml")
	require.Len(t, sources, 2)
	require.Contains(t, string(sources["postgres.yml"]), "\n    type: grafana-postgresql-datasource\n")
	config, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "prometheus.yml"))
	require.NoError(t, err)
	interval := regexp.MustCompile(`(?m)^  scrape_interval: (\S+)`).FindSubmatch(config)
	require.NotNil(t, interval)
	require.YAMLEq(t, fmt.Sprintf(`{"apiVersion": 1, "datasources": [{
		"name": "Prometheus", "uid": "loadgen-prometheus", "type": "prometheus", "access": "proxy", "url": "http://127.0.0.1:9090", "isDefault": true,
		"jsonData": {"timeInterval": %q, "httpMethod": "POST"}
	}]}`, interval[1]), string(sources["prometheus.yml"]))

	boards := grafana(t, "provisioning/dashboards/*.yml")
	require.Len(t, boards, 1)
	require.YAMLEq(t, `{"apiVersion": 1, "providers": [{
		"name": "loadgen", "folder": "loadgen", "type": "file", "disableDeletion": true, "options": {"path": "/var/lib/grafana/dashboards"}
	}]}`, string(boards["loadgen.yml"]))
}

func read(t *testing.T, text []byte) (b board) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

// grafana returns the files in grafana that match a pattern, by name.
func grafana(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	fsys := os.DirFS(filepath.Join("..", "..", "..", "grafana"))
	names, err := fs.Glob(fsys, pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	all := map[string][]byte{}
	for _, name := range names {
		all[filepath.Base(name)], err = fs.ReadFile(fsys, name)
		require.NoError(t, err)
	}
	return all
}
