package main

import (
	"regexp"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// ptr returns a pointer to a copy, as the SDK's optional fields are.
func ptr[T any](v T) *T { return &v }

// source is the data source that a dashboard's variable names.
func source(kind string) common.DataSourceRef {
	return common.DataSourceRef{Type: ptr(kind), Uid: ptr("${datasource}")}
}

const (
	prom     = "prometheus"
	postgres = "grafana-postgresql-datasource"
)

// query is an expression of PromQL, in which {} stands for the labels of the run, and the legend of its series.
type query struct{ expr, legend string }

var (
	selector = regexp.MustCompile(`(loadgen_\w+)\{([,}])`)

	// coordinators are the metrics that only a coordinator's page has, or that a worker does not know the value of.
	coordinators = regexp.MustCompile(`^loadgen_(worker_|observed|event|assert|phase_validity|run_(completeness|validity|assertions))`)
)

// ofRun puts the labels of the run into an expression's selectors that are {} or begin with a comma. Metrics that only coordinators have are the same
// for every chosen job.
func ofRun(expr string) string {
	return selector.ReplaceAllStringFunc(expr, func(s string) string {
		name, end := s[:len(s)-2], s[len(s)-1:]
		job := `job="$job"`
		if coordinators.MatchString(name) {
			job = `job!="loadgen-workers"`
		}
		return name + "{" + job + `,run="$run"` + end
	})
}

// q returns a query in ranges of time.
func q(expr, legend string) query { return query{ofRun(expr), legend} }

// quantile returns an expression for a quantile of a native histogram at each point in time, by labels; the selector may choose some of its series.
func quantile(of, by, histogram, selector string) string {
	return "histogram_quantile(" + of + ", sum by (" + by + ") (rate(" + histogram + selector + "[$__rate_interval])))"
}

// share returns an expression for the ratio of two counters' rates, by a label, at each point in time at which the whole is above 0.
func share(part, whole, by string) string {
	return "sum by (" + by + ") (rate(" + part + "[$__rate_interval])) / (sum by (" + by + ") (rate(" + whole + "[$__rate_interval])) > 0)"
}

// good selects the ops that ended ok or miss.
const good = `{,class=~"ok|miss"}`

// asked returns a query in the form of the data source, with a name.
func asked(one query, name string, format prometheus.PromQueryFormat) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(one.expr).LegendFormat(one.legend).RefId(name).Datasource(source(prom)).Format(format)
}

// targets returns the queries of a panel, named A, B, … A panel for one moment asks for that alone.
func targets(instant bool, format prometheus.PromQueryFormat, queries []query) (list []cog.Builder[variants.Dataquery]) {
	for i, one := range queries {
		b := asked(one, string(rune('A'+i)), format)
		if instant {
			b = b.Instant()
		}
		list = append(list, b)
	}
	return list
}

// series is a panel of lines. how says how to read it.
func series(title, how, unit string, width uint32, queries ...query) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description(how).Datasource(source(prom)).Unit(unit).Height(8).Span(width).
		Targets(targets(false, prometheus.PromQueryFormatTimeSeries, queries)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
}

// logarithmic draws times, which differ by orders of magnitude.
func logarithmic() *common.ScaleDistributionConfigBuilder {
	return common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)
}

// limit draws a line at each value, below which all is well.
func limit(p *timeseries.PanelBuilder, values ...float64) *timeseries.PanelBuilder {
	return p.Thresholds(steps(values...)).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
}

// Patterns for the figures that asserts compare with constants: the path of a figure in the result, below a phase, or below an op or a scenario of a
// phase.
const (
	path    = `phase[^ */+]+[.]`
	ofAnOp  = `phase[.][^ .*/+]+[.](total|(op|scenario)[.[][^ .*/+]+)[.]`
	latency = `[.](mean|min|max|p[0-9_]+|quantiles[.].+)`
	reading = `[.](before|after|last|min|max|mean)`
)

// asserted draws the constants that asserts compare figures with, in the chart of these figures: dashed lines.
func asserted(p *timeseries.PanelBuilder, figures string) *timeseries.PanelBuilder {
	const name = "limits"
	return p.WithTarget(asked(q(`max by (assert) (loadgen_assert_limit{,figure=~"`+figures+`"})`, "limit: {{assert}}"), name, prometheus.PromQueryFormatTimeSeries)).
		OverrideByQuery(name, []dashboard.DynamicConfigValue{
			{Id: "custom.lineStyle", Value: common.LineStyle{Fill: ptr(common.LineStyleFillDash), Dash: []float64{10, 10}}},
			{Id: "custom.lineWidth", Value: 2},
			{Id: "custom.fillOpacity", Value: 0},
			{Id: "color", Value: dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: ptr("red")}},
		})
}

// steps are thresholds: green, then orange, then red, of one value red.
func steps(values ...float64) *dashboard.ThresholdsConfigBuilder {
	colors := []string{"orange", "red"}[2-len(values):]
	list := []dashboard.Threshold{{Color: "green"}}
	for i, v := range values {
		list = append(list, dashboard.Threshold{Value: ptr(v), Color: colors[i]})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(list)
}

// density is a heatmap of a native histogram, whose buckets exist already.
func density(title, how string, width uint32, expr string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Title(title).Description(how).Datasource(source(prom)).Height(8).Span(width).Calculate(false).
		Targets(targets(false, prometheus.PromQueryFormatHeatmap, []query{q(expr, "")})).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit("s").AxisPlacement(common.AxisPlacementLeft)).
		CellValues(heatmap.NewCellValuesBuilder().Unit("ops")).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Turbo").Steps(64).Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5))
}

// word is the text and color that show a value.
type word struct{ text, color string }

// words maps consecutive values, from first on, to words.
func words(first int, list ...word) []dashboard.ValueMapping {
	all := map[string]dashboard.ValueMappingResult{}
	for i, w := range list {
		all[number(first+i)] = dashboard.ValueMappingResult{Text: ptr(w.text), Color: ptr(w.color), Index: ptr(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: "value", Options: all}}}
}

// states is a panel of bars that change their color.
func states(title, how string, width uint32, mappings []dashboard.ValueMapping, queries ...query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().Title(title).Description(how).Datasource(source(prom)).Height(8).Span(width).
		Targets(targets(false, prometheus.PromQueryFormatTimeSeries, queries)).Mappings(mappings).ShowValue(common.VisibilityModeAuto).RowHeight(0.8).MergeValues(true)
}

// figure is a panel of single values, the last ones.
func figure(title, how string, width uint32, mappings []dashboard.ValueMapping, queries ...query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(how).Datasource(source(prom)).Height(4).Span(width).
		Targets(targets(true, prometheus.PromQueryFormatTimeSeries, queries)).Mappings(mappings).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeBackground).TextMode(common.BigValueTextModeValueAndName)
}

// statement is a query of SQL, which the SDK has no type for.
func statement(format, sql string) *variants.UnknownDataqueryBuilder {
	return variants.NewUnknownDataqueryBuilderFromObject(variants.UnknownDataquery{
		"refId": "A", "datasource": source(postgres), "format": format, "rawQuery": true, "editorMode": "code", "rawSql": sql,
	})
}

// rows is a table of what a statement returns.
func rows(title, how string, width uint32, sql string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Description(how).Datasource(source(postgres)).Height(9).Span(width).WithTarget(statement("table", sql))
}

// history is a panel of points over weeks: a statement returns time, metric and value.
func history(title, how, unit string, width uint32, sql string) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description(how).Datasource(source(postgres)).Unit(unit).Height(9).Span(width).
		WithTarget(statement("time_series", sql)).ShowPoints(common.VisibilityModeAlways).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
}

// board returns a dashboard without panels, with links to the others, which keep variables and time.
func board(uid, title, how string) *dashboard.DashboardBuilder {
	return dashboard.NewDashboardBuilder(title).Uid(uid).Description(how).Tags([]string{"loadgen"}).Tooltip(dashboard.DashboardCursorSyncCrosshair).Editable().
		Link(dashboard.NewDashboardLinkBuilder("loadgen").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"loadgen"}).IncludeVars(true).KeepTime(true))
}

// ofOneRun returns a dashboard of a run: its variables, its annotations, and a link to its live page.
func ofOneRun(uid, title, how string) *dashboard.DashboardBuilder {
	const list = `label_values(loadgen_run_active{job="$job"}, run)`
	b := board(uid, title, how).Refresh("5s").Time("now-5m", "now").
		Link(dashboard.NewDashboardLinkBuilder("Live page").Type(dashboard.DashboardLinkTypeLink).Url("$page").TargetBlank(true).
			Tooltip("The run's own page, at its coordinator, while the run goes on")).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type(prom)).
		WithVariable(dashboard.NewCustomVariableBuilder("job").Label("Job").Values(dashboard.StringOrMap{String: ptr("loadgen,loadgen-workers")}).
			Current(dashboard.VariableOption{Text: either("loadgen"), Value: either("loadgen")})).
		WithVariable(dashboard.NewQueryVariableBuilder("run").Label("Run").Datasource(source(prom)).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortAlphabeticalDesc).Definition(list).Query(dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": list, "refId": "run"}})).
		WithVariable(dashboard.NewTextBoxVariableBuilder("page").Label("Live page").DefaultValue(dashboard.StringOrMap{String: ptr("http://127.0.0.1:9464/")})).
		Annotation(mark("Phase", "blue", "max by (phase) ("+lately("loadgen_phase_active{}")+") == 1", "{{phase}}")).
		Annotation(mark("Event", "purple", "max by (phase, event) ("+lately("loadgen_event{}")+") == 1", "{{phase}}: {{event}}"))
	for n, v := range validity {
		b.Annotation(mark(strings.ToUpper(v.text[:1])+v.text[1:], v.color, judged(n), "{{phase}} is "+v.text))
	}
	return b
}

// mark is an annotation wherever an expression is above 0, a range where it stays so.
func mark(name, color, expr, text string) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(source(prom)).Enable(true).IconColor(color).
		Expr(ofRun(expr)).TitleFormat(name).TextFormat(text).Step("1s")
}

// lately returns an expression for the greatest value of a gauge since the previous point in time of a chart. In a chart of hours, these are minutes
// apart.
func lately(gauge string) string {
	return "max_over_time(" + gauge + "[$__interval]) or " + gauge
}

// judged returns an expression that is above 0 for some seconds after phases were found to have a validity. The run, and its series, may end with
// that.
func judged(validity int) string {
	return "max by (phase) ((last_over_time(loadgen_phase_validity{}[$__rate_interval]) == " + number(validity) +
		") + 1 unless last_over_time(loadgen_phase_validity{}[$__rate_interval] offset $__rate_interval) >= 0)"
}

func either(text string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{String: ptr(text)}
}
