package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// ofPlans selects runs, r, of the plans and the time that are chosen.
const ofPlans = `r.plan IN (${plan:sqlstring}) AND $__timeFilter(r.started_at)`

// experiments returns the dashboard of the runs that "loadgen runs push" has written.
func experiments() *dashboard.DashboardBuilder {
	const plans = `SELECT DISTINCT plan FROM loadgen.runs ORDER BY plan`
	figureOf := func(figure string) string {
		return `SELECT r.started_at AS "time", f.phase || ' ' || f.op || coalesce(' ' || r.variant, '') AS metric, f.value
FROM loadgen.figures f
JOIN loadgen.runs r ON r.id = f.run
JOIN loadgen.phases p ON (p.run, p.phase) = (f.run, f.phase)
WHERE f.figure = '` + figure + `' AND p.validity <> 'invalid' AND ` + ofPlans + `
ORDER BY 1`
	}
	return board("loadgen-experiments", "Experiments", "Runs of weeks, from the database of loadgen runs push.").Time("now-90d", "now").
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("PostgreSQL").Type(postgres)).
		WithVariable(dashboard.NewQueryVariableBuilder("plan").Label("Plan").Datasource(source(postgres)).Refresh(dashboard.VariableRefreshOnDashboardLoad).
			Multi(true).IncludeAll(true).Definition(plans).Query(dashboard.StringOrMap{String: ptr(plans)})).
		WithPanel(history("p99 of response", "Each point is a run. A step that lasts is a regression; a single spike is an odd day. Invalid phases are left out.", "s", 12, figureOf("response.p99"))).
		WithPanel(history("Rate", "Ops per second that ended ok, run by run. If they fall while the p99 climbs, the target has lost capacity.", "ops", 12, figureOf("rate"))).
		WithPanel(rows("Findings", "What experiments have found against their baseline, newest first. The ratio lies between ratio_lo and ratio_hi with the experiment's confidence; differs says whether that is a difference.", 24,
			`SELECT x.started_at, x.plan, c.variant, c.phase, c.op, c.metric, c.ratio, c.ratio_lo, c.ratio_hi, c.differs, c.finding
FROM loadgen.comparisons c
JOIN loadgen.experiments x ON x.id = c.experiment
WHERE x.plan IN (${plan:sqlstring}) AND $__timeFilter(x.started_at)
ORDER BY x.started_at DESC, c.phase, c.op, c.metric, c.variant`)).
		WithPanel(history("Variants", "The ratio of each variant's figure to the baseline's, experiment by experiment. A variant that stays away from 1 for weeks is a result; one that moves shows that the target has changed.", "none", 8,
			`SELECT x.started_at AS "time", c.variant || ' ' || c.phase || ' ' || coalesce(c.op, '') || ' ' || c.metric AS metric, c.ratio AS value
FROM loadgen.comparisons c
JOIN loadgen.experiments x ON x.id = c.experiment
WHERE c.ratio IS NOT NULL AND x.plan IN (${plan:sqlstring}) AND $__timeFilter(x.started_at)
ORDER BY 1`)).
		WithPanel(history("Regressions by week", "In how many comparisons of a week a variant was worse than its baseline beyond chance, by figure: higher times, or lower rates and shares.", "none", 8,
			`SELECT date_trunc('week', x.started_at) AS "time", c.metric AS metric, count(*) FILTER (WHERE c.differs AND (c.unit = 's') = (c.ratio > 1)) AS value
FROM loadgen.comparisons c
JOIN loadgen.experiments x ON x.id = c.experiment
WHERE x.plan IN (${plan:sqlstring}) AND $__timeFilter(x.started_at)
GROUP BY 1, 2
ORDER BY 1`)).
		WithPanel(history("Verdicts by week", "How many runs of a week were valid, suspect or invalid. Weeks with many that were not valid say more about the machines than about the target.", "none", 8,
			`SELECT date_trunc('week', r.started_at) AS "time", r.validity AS metric, count(*) AS value
FROM loadgen.runs r
WHERE `+ofPlans+`
GROUP BY 1, 2
ORDER BY 1`)).
		WithPanel(rows("Runs", "The last 200 runs. The reasons say why a run is not complete or not valid; loadgen runs show tells the rest.", 24,
			`SELECT r.started_at, r.id, r.plan, r.variant, r.completeness, r.validity, r.assertions, r.reasons, r.loadgen, r.hostname
FROM loadgen.runs r
WHERE `+ofPlans+`
ORDER BY r.started_at DESC
LIMIT 200`))
}
