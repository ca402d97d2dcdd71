package prom_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// board is what the tests check in a dashboard, besides the form of each field.
type board struct {
	Templating struct {
		List []struct{ Name, Type, Query, Definition any }
	}
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr, LegendFormat string }

		FieldConfig struct {
			Overrides []struct {
				Matcher struct{ Options string }
			}
		}
	}
}

// TestDashboardsAreLaidOut: panels stand side by side, with queries of different names.
func TestDashboardsAreLaidOut(t *testing.T) {
	for name, text := range grafana(t, "dashboards/*.json") {
		b := read(t, text)
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: panel %q", name, p.Title)
			require.False(t, ids[p.ID], at)
			ids[p.ID] = true
			g := p.GridPos
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
		}
		require.NotEmpty(t, ids, name)
	}
}

// forms says what may occur where in a dashboard: Grafana silently ignores fields that it does not know, and values that it does not accept there.
// Paths in a panel begin with its type.
var forms = []struct{ path, value string }{
	{`(title|uid|refresh|time\.(from|to)|timepicker\.refresh_intervals\[\]|tags\[\])`, `\S.*`},
	{`(schemaVersion|version)`, `[1-9]\d*`},
	{`graphTooltip`, `[012]`},
	{`editable`, `true|false`},
	{`templating\.list\[\]\.(name|label)`, `\w+`},
	{`templating\.list\[\]\.type`, `datasource|custom|query`},
	{`templating\.list\[\]\.(hide|refresh|sort)`, `[0-8]`},
	{`templating\.list\[\]\.(query|definition|query\.query|query\.refId|(current|options\[\])\.(text|value))`, `\S.*`},
	{`templating\.list\[\]\.query\.qryType`, `1`}, // label_values
	{`templating\.list\[\]\.options\[\]\.selected`, `true|false`},
	{`(.*\.)?datasource\.type`, `prometheus`},
	{`(.*\.)?datasource\.uid`, `\$\{datasource\}`},
	{`[a-z-]+\.type`, `stat|timeseries|heatmap|state-timeline`},
	{`[a-z-]+\.(title|description)`, `\S.*`},
	{`[a-z-]+\.(id|gridPos\.[xywh])`, `\d+`},
	{`[a-z-]+\.targets\[\]\.(expr|legendFormat)`, `\S.*`},
	{`[a-z-]+\.targets\[\]\.refId`, `[A-Z]`},
	{`heatmap\.targets\[\]\.format`, `heatmap`},
	{`heatmap\.targets\[\]\.legendFormat`, ``},
	{`stat\.targets\[\]\.instant`, `true`},
	{`timeseries\.fieldConfig\.defaults\.unit`, units},
	{`timeseries\.fieldConfig\.defaults\.custom\.fillOpacity`, `\d+`},
	{`(timeseries|heatmap)\.fieldConfig\.defaults\.custom\.scaleDistribution\.type`, `linear|log`},
	{`timeseries\.fieldConfig\.defaults\.custom\.scaleDistribution\.log`, `2|10`},
	{`timeseries\.fieldConfig\.defaults\.custom\.stacking\.mode`, `normal`},
	{`[a-z-]+\.fieldConfig\.overrides\[\]\.matcher\.id`, `byName`},
	{`[a-z-]+\.fieldConfig\.overrides\[\]\.matcher\.options`, `\S.*`},
	{`[a-z-]+\.fieldConfig\.overrides\[\]\.properties\[\]\.id`, `unit|mappings|custom\.axisPlacement`},
	{`timeseries\.fieldConfig\.overrides\[\]\.properties\[\]\.value`, units + `|right`},
	{`[a-z-]+\.fieldConfig\.(defaults\.mappings|overrides\[\]\.properties\[\]\.value)\[\]\.type`, `value`},
	{`[a-z-]+\.fieldConfig\.(defaults\.mappings|overrides\[\]\.properties\[\]\.value)\[\]\.options\.\d\.index`, `\d`},
	{`[a-z-]+\.fieldConfig\.(defaults\.mappings|overrides\[\]\.properties\[\]\.value)\[\]\.options\.\d\.text`, `.+`},
	{`[a-z-]+\.fieldConfig\.(defaults\.mappings|overrides\[\]\.properties\[\]\.value)\[\]\.options\.\d\.color`, `(dark-)?(green|orange|red|blue)|text|transparent`},
	{`stat\.options\.colorMode`, `none|value|background`},
	{`stat\.options\.graphMode`, `none|area`},
	{`stat\.options\.justifyMode`, `auto|center`},
	{`stat\.options\.textMode`, `auto|value|value_and_name|name|none`},
	{`stat\.options\.orientation`, `auto|horizontal|vertical`},
	{`stat\.options\.reduceOptions\.calcs\[\]`, `lastNotNull`},
	{`stat\.options\.reduceOptions\.fields`, ``},
	{`stat\.options\.reduceOptions\.values`, `false`},
	{`(timeseries|state-timeline)\.options\.legend\.showLegend`, `true|false`},
	{`timeseries\.options\.legend\.displayMode`, `list|table`},
	{`timeseries\.options\.legend\.placement`, `bottom|right`},
	{`(timeseries|state-timeline)\.options\.tooltip\.mode`, `single|multi|none`},
	{`timeseries\.options\.tooltip\.sort`, `none|asc|desc`},
	{`state-timeline\.fieldConfig\.defaults\.custom\.(fillOpacity|lineWidth)`, `\d+`},
	{`state-timeline\.options\.mergeValues`, `true|false`},
	{`state-timeline\.options\.rowHeight`, `0\.\d+|1`},
	{`state-timeline\.options\.showValue`, `auto|always|never`},
	{`heatmap\.options\.calculate`, `false`}, // the buckets exist already
	{`heatmap\.options\.cellGap`, `\d`},
	{`heatmap\.options\.cellValues\.unit`, units},
	{`heatmap\.options\.color\.mode`, `scheme|opacity`},
	{`heatmap\.options\.color\.scale`, `exponential|linear`},
	{`heatmap\.options\.color\.(fill|scheme)`, `[\w-]+`},
	{`heatmap\.options\.color\.(exponent|steps)`, `[\d.]+`},
	{`heatmap\.options\.color\.reverse`, `true|false`},
	{`heatmap\.options\.exemplars\.color`, `rgba\(.*\)`},
	{`heatmap\.options\.filterValues\.le`, `1e-09`},
	{`heatmap\.options\.(legend|tooltip)\.show`, `true|false`},
	{`heatmap\.options\.tooltip\.yHistogram`, `true|false`},
	{`heatmap\.options\.rowsFrame\.layout`, `auto`},
	{`heatmap\.options\.showValue`, `auto|always|never`},
	{`heatmap\.options\.yAxis\.axisPlacement`, `left|right`},
	{`heatmap\.options\.yAxis\.unit`, units},
}

// units are Grafana's units that fit what is shown.
const units = `s|ops|reqps|short|binBps`

// TestDashboardsAreInGrafanasForm checks each value of each field.
func TestDashboardsAreInGrafanasForm(t *testing.T) {
	for name, text := range grafana(t, "dashboards/*.json") {
		var whole map[string]any
		require.NoError(t, json.Unmarshal(text, &whole), name)
		for _, p := range whole["panels"].([]any) {
			p := p.(map[string]any)
			for _, field := range []string{"id", "type", "title", "description", "gridPos", "datasource", "targets", "fieldConfig", "options"} {
				require.Contains(t, p, field, "%s: panel %v", name, p["title"])
			}
			requireForm(t, fmt.Sprintf("%s: panel %v", name, p["title"]), p["type"].(string), p)
		}
		delete(whole, "panels")
		for _, field := range []string{"uid", "title", "schemaVersion", "templating"} {
			require.Contains(t, whole, field, name)
		}
		requireForm(t, name, "", whole)
	}
}

// requireForm checks what is at a path of a document and below it.
func requireForm(t *testing.T, name, path string, node any) {
	t.Helper()
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			requireForm(t, name, strings.TrimPrefix(path+"."+key, "."), value)
		}
	case []any:
		for _, value := range node {
			requireForm(t, name, path+"[]", value)
		}
	default:
		value := fmt.Sprint(node)
		require.True(t, slices.ContainsFunc(forms, func(f struct{ path, value string }) bool {
			return regexp.MustCompile(`^(`+f.path+`)$`).MatchString(path) && regexp.MustCompile(`^(`+f.value+`)$`).MatchString(value)
		}), "%s: %s is %q", name, path, value)
	}
}

var (
	variableIn = regexp.MustCompile(`\$\{?(\w+)`)
	labelIn    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// TestDashboardsReferToWhatThereIs: variables are declared or Grafana's own, labels in legends come from the query, and overrides are for names in
// the legend.
func TestDashboardsReferToWhatThereIs(t *testing.T) {
	shown := map[string]bool{}
	for name, text := range grafana(t, "dashboards/*.json") {
		b := read(t, text)
		known := []string{"__rate_interval", "__range"}
		for _, v := range b.Templating.List {
			known = append(known, v.Name.(string))
		}
		require.Subset(t, known, []string{"datasource", "job", "run"}, name)
		for _, match := range variableIn.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, known, match[1], name)
		}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: panel %q", name, p.Title)
			shown[p.Title] = true
			var legends []string
			for _, q := range p.Targets {
				legends = append(legends, q.LegendFormat)
				require.Contains(t, q.Expr, `{job="$job",run="$run"`, at)
				for _, match := range labelIn.FindAllStringSubmatch(q.LegendFormat, -1) {
					require.Contains(t, labelsOf(q.Expr), match[1], "%s: %s", at, q.Expr)
				}
			}
			for _, o := range p.FieldConfig.Overrides {
				require.Contains(t, legends, o.Matcher.Options, at)
			}
		}
	}
	for _, title := range []string{"Offered and sustained", "Response and service", "Response", "Outcomes", "k-th acks", "Steps", "Workers", "Observations", "Verdict"} {
		require.True(t, shown[title], title)
	}
}

// labelsOf returns the labels of an expression's result: those of its grouping, otherwise those of the metric.
func labelsOf(expr string) []string {
	if by := grouping.FindStringSubmatch(expr); by != nil {
		return strings.Split(by[1], ", ")
	}
	if strings.HasPrefix(expr, "loadgen_worker_") {
		return []string{"run", "worker"}
	}
	return []string{"run"}
}

// TestGrafanaFindsThem compares what Grafana is told to read at its start with what is there.
func TestGrafanaFindsThem(t *testing.T) {
	sources := grafana(t, "provisioning/datasources/*.yml")
	require.Len(t, sources, 1)
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
