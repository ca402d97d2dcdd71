package command_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// board is what a dashboard asks Prometheus, or a database.
type board struct {
	Panels     []panel
	Templating struct {
		List []struct{ Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr, TextFormat string }
	}
}

type panel struct {
	Title, Type, Description string

	Targets []target
}

type target struct{ Expr, LegendFormat, RawSQL string }

// dashboards returns the dashboards in grafana, by the names of their files.
func dashboards(t *testing.T) map[string]board {
	t.Helper()
	all := map[string]board{}
	fsys := os.DirFS(filepath.Join("..", "..", "grafana", "dashboards"))
	names, err := fs.Glob(fsys, "*.json")
	require.NoError(t, err)
	require.Len(t, names, 4)
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		var b board
		require.NoError(t, json.Unmarshal(text, &b), name)
		all[name] = b
	}
	return all
}

// variables returns the queries of variables.
func (b *board) variables() (queries []string) {
	for _, v := range b.Templating.List {
		if v.Type == "query" {
			queries = append(queries, v.Definition)
		}
	}
	return queries
}

// statements returns the queries of a database.
func (b *board) statements() (statements []string) {
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			if q.RawSQL != "" {
				statements = append(statements, q.RawSQL)
			}
		}
	}
	for _, v := range b.variables() {
		if strings.HasPrefix(v, "SELECT ") {
			statements = append(statements, v)
		}
	}
	return statements
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	labelIn     = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// variablesOf replaces variables as Grafana does when it shows a run.
func variablesOf(id, job string) *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", "4s", "$__interval", "1s", "$__range", "15s", "$run", id, "$job", job)
}

// testDashboards runs the expressions of all dashboards, those of their variables and their annotations, on what was scraped from the coordinator and
// the workers of a run that goes on in its last phase.
func testDashboards(t *testing.T, db database, id string) {
	db.t = t
	for _, job := range []string{"loadgen", "loadgen-workers"} {
		variables := variablesOf(id, job)
		expressions := 0
		for name, b := range dashboards(t) {
			for _, p := range b.Panels {
				for _, q := range p.Targets {
					if q.Expr != "" && p.Title != ofLogs {
						requireLines(t, &p, q.LegendFormat, db.drawn(variables.Replace(q.Expr)))
						expressions++
					}
				}
			}
			for _, v := range b.variables() {
				if list := labelValues.FindStringSubmatch(variables.Replace(v)); list != nil {
					require.Contains(t, db.drawn(list[1])[0].Metric, list[2], v)
					expressions++
				}
			}
			if len(b.Annotations.List) > 0 {
				marks := db.marks(t, &b, variables)
				require.Contains(t, marks["Phase"], "mixed", name)
				require.Equal(t, []string{"mixed: fault"}, marks["Event"], name)
				require.Len(t, slices.Concat(marks["Valid"], marks["Suspect"], marks["Invalid"]), 2, "%s: %v: fill and warm", name, marks)
				expressions += len(b.Annotations.List)
			}
		}
		t.Logf("%s: %d expressions", job, expressions)
		require.Greater(t, expressions, 90, job)
	}
}

// ofLogs is the panel that only loads of logs have figures for.
const ofLogs = "Write and sync"

// testLogs compares what that panel shows of a phase, which is over, with the result.
func testLogs(t *testing.T, db database, result *run.Run) {
	o, variables := result.Phase["log"].Op["append"], strings.NewReplacer("$__rate_interval", "10m", "$run", result.ID, "$job", "loadgen")
	want := map[string][]*run.Latency{"write append": {o.Write}, "sync append": {o.Sync}}
	b := dashboards(t)["run.json"]
	p := &b.Panels[slices.IndexFunc(b.Panels, func(p panel) bool { return p.Title == ofLogs })]
	for _, q := range p.Targets {
		require.Len(t, db.drawn(variables.Replace(q.Expr)), 1, q.Expr)
		if quantileOf.MatchString(q.Expr) {
			for line := range db.requireTimes(p, &q, variables.Replace(rateIn.ReplaceAllString(q.Expr, "$1")), want) {
				delete(want, line)
			}
		}
	}
	require.Empty(t, want)
}

// testLost awaits that the dashboard of the workers shows the one that has left the run, and that the alert on it is about to fire.
func testLost(t *testing.T, db database, id, worker string) {
	db.t = t
	b := dashboards(t)["fleet.json"]
	at := slices.IndexFunc(b.Panels, func(p panel) bool { return p.Title == "Lost" })
	db.await(variablesOf(id, "loadgen").Replace(b.Panels[at].Targets[0].Expr), 1)
	db.await(fmt.Sprintf("max(ALERTS{alertname=\"LoadgenWorkerLost\",run=%q,worker=%q})", id, worker), 1)
}

// drawn returns what an expression yields once that can be drawn: a rate takes two samples, and the load may have stood still for lack of a processor.
func (db database) drawn(expr string) (result []series) {
	db.t.Helper()
	require.NotContains(db.t, expr, "$")
	unknown := func(s series) bool { return s.Histogram == nil && math.IsNaN(valueOf(db.t, s)) }
	deadline := time.Now().Add(time.Minute)
	for result = db.query(expr); len(result) == 0 || slices.ContainsFunc(result, unknown); result = db.query(expr) {
		require.True(db.t, time.Now().Before(deadline), "%s is %v", expr, result)
		time.Sleep(50 * time.Millisecond)
	}
	return result
}

// requireLines returns the series of a panel by the names that its legend gives them, which must differ. A heatmap takes histograms, and other panels
// numbers.
func requireLines(t *testing.T, p *panel, legend string, result []series) map[string]series {
	t.Helper()
	all := map[string]series{}
	for _, s := range result {
		name := named(t, legend, s)
		require.NotContains(t, all, name, "%s: %s", p.Title, legend)
		all[name] = s
		if p.Type == "heatmap" {
			require.NotEmpty(t, bucketsOf(t, s).Buckets, p.Title)
		} else {
			require.False(t, math.IsNaN(valueOf(t, s)), "%s: %s is not a number", p.Title, name)
		}
	}
	return all
}

// named replaces the labels in a legend, all of which a series must have.
func named(t *testing.T, legend string, s series) string {
	t.Helper()
	return labelIn.ReplaceAllStringFunc(legend, func(label string) string {
		label = strings.Trim(label, "{}")
		require.Contains(t, s.Metric, label, legend)
		return s.Metric[label]
	})
}

// marks returns what the annotations of a dashboard have marked at any time, by name.
func (db database) marks(t *testing.T, b *board, variables *strings.Replacer) map[string][]string {
	t.Helper()
	marked := map[string][]string{}
	for _, a := range b.Annotations.List {
		for _, s := range db.query("max_over_time((" + variables.Replace(a.Expr) + ")[10m:1s]) > 0") { // as Grafana does: 0 is no mark
			marked[a.Name] = append(marked[a.Name], named(t, a.TextFormat, s))
		}
	}
	return marked
}

// shown is what panels show of a whole run, by "file: panel" and then by line: numbers, and the latencies that a line's quantile is of.
type shown struct {
	numbers map[string]map[string]float64
	times   map[string]map[string][]*run.Latency
}

// add adds to the number of a line. It may be NaN: the result does not know it.
func (s *shown) add(panel, line string, n float64) {
	if s.numbers[panel] == nil {
		s.numbers[panel] = map[string]float64{}
	}
	s.numbers[panel][line] += n
}

// time adds to the latencies of a line. Without any, the result does not know them.
func (s *shown) time(panel, line string, parts ...*run.Latency) {
	if s.times[panel] == nil {
		s.times[panel] = map[string][]*run.Latency{}
	}
	s.times[panel][line] = append(s.times[panel][line], parts...)
}

// good returns the latencies of the ops that ended ok or miss.
func good(f *run.Figures) (response, service []*run.Latency) {
	ok, miss := &f.Latency.OK, &f.Latency.Miss
	return []*run.Latency{&ok.Response, &miss.Response}, []*run.Latency{&ok.Service, &miss.Service}
}

// shownOf returns what panels show of a result of livePlan: the table of panels and figures.
func shownOf(r *run.Run) *shown {
	s := &shown{map[string]map[string]float64{}, map[string]map[string][]*run.Latency{}}
	s.add("run.json: Run", "run", 0)
	s.add("run.json: Complete", "completeness", float64(slices.Index([]run.Completeness{run.Complete, run.Degraded, run.Aborted}, r.Verdict.Completeness)))
	s.add("run.json: Valid", "validity", float64(slices.Index([]run.Validity{run.Valid, run.Suspect, run.Invalid}, r.Verdict.Validity)))
	for panel, limits := range map[string]map[string]float64{
		"run.json: Offered and sustained": {"limit: rate": 1},
		"run.json: Response and service":  {"limit: response": 10},
		"run.json: Steps":                 {"limit: step": 9},
		"run.json: Lag":                   {"limit: lag": 8},
		"run.json: k-th acks":             {"limit: acks": 7},
		"run.json: Bad ops":               {"limit: errors": 0.6},
		"fleet.json: Lag":                 {"limit: lag": 8},
		"target.json: Response":           {"limit: response": 10},
		"target.json: Observations":       {"limit: files": 5000, "limit: memory": 16 << 10, "limit: items": 300},
		"target.json: Hit ratio":          {"limit: hits": 0.001},
		"target.json: Evictions":          {"limit: evictions": 4000},
		"target.json: Memory":             {"limit: memory": 16 << 10},
		"target.json: Items":              {"limit: items": 300},
		"target.json: Memory of an item":  {"limit: item": 250},
	} {
		for line, limit := range limits {
			s.add(panel, line, limit)
		}
	}
	s.add("fleet.json: Lost", "workers", 0) // the run is over
	for name, ph := range r.Phase {
		s.phase(name, ph)
	}
	last := r.Phase["mixed"].Observe
	for name, fields := range last {
		for field, o := range fields {
			s.add("target.json: Observations", name+" "+field, *o.Last)
		}
	}
	of := func(field string) float64 { return *last["node"][field].Last }
	s.add("target.json: Hit ratio", "node", of("keyspace_hits")/(of("keyspace_hits")+of("keyspace_misses")))
	s.add("target.json: Evictions", "node evicted_keys", of("evicted_keys"))
	s.add("target.json: Memory", "node used_memory", of("used_memory"))
	s.add("target.json: Memory", "node maxmemory", of("maxmemory"))
	s.add("target.json: Items", "node", of("db0_keys"))
	s.add("target.json: Memory of an item", "node", of("used_memory")/of("db0_keys"))
	return s
}

// phase adds what panels show of a phase.
func (s *shown) phase(name string, ph *run.Phase) {
	s.add("run.json: Phases", name, 0)
	for _, e := range slices.Collect(maps.Keys(ph.Event)) {
		s.add("target.json: Events", name+" "+e, 0)
	}
	s.add("fleet.json: Losses", "reconnects", float64(ph.Reconnects))
	s.add("fleet.json: Losses", "late replies", float64(ph.LateReplies))
	s.add("fleet.json: Losses", "foreign values", float64(ph.Foreign))
	for _, e := range ph.Errors {
		s.add("fleet.json: Losses", "errors", float64(e.Count))
	}
	s.add("fleet.json: Stalls", "stalls per second", float64(ph.Stalls))
	longest := s.numbers["fleet.json: Stalls"]["longest, in seconds"]
	s.add("fleet.json: Stalls", "longest, in seconds", max(ph.MaxStallSeconds-longest, 0))
	var all, bad, hits, gets float64
	for verb, o := range ph.Op {
		for _, part := range partsOf(ph, verb) {
			s.add("run.json: Offered and sustained", "due "+name+" "+verb, float64(part.Due))
			s.add("run.json: Offered and sustained", "ok "+name+" "+verb, float64(part.OK))
			s.add("run.json: In flight", "ops "+verb, float64(part.InFlight))
			s.add("target.json: Load", "due "+name, float64(part.Due))
			s.add("target.json: Load", "ok "+name, float64(part.OK))
			for outcome, n := range outcomesOf(&part.Ledger) {
				s.add("run.json: Outcomes", verb+" "+outcome, float64(n))
				s.add("fleet.json: Shares", "", float64(n))
				all += float64(n)
			}
			bad += float64(part.Conflict + part.QuorumFailed + part.Timeout + part.Error + part.Shed)
			if verb == "get" {
				hits, gets = hits+float64(part.OK), gets+float64(part.OK+part.Miss)
			}
			response, service := good(part)
			for _, p := range []string{"p50 ", "p99 "} {
				s.time("run.json: Response and service", "response "+p+verb, response...)
				s.time("run.json: Response and service", "service "+p+verb, service...)
			}
			s.time("run.json: Response, all of it", "", response...)
			s.time("target.json: Response", verb, response...)
			s.time("run.json: Lag", verb, &part.Lag)
			s.time("fleet.json: Lag", verb, &part.Lag)
			s.time("fleet.json: Lag, all of it", "", &part.Lag)
		}
		in, out := math.NaN(), math.NaN()
		if o != nil {
			in = float64(o.BytesIn)
			for k := range o.Acks {
				s.time("run.json: k-th acks", fmt.Sprintf("%s k=%d", verb, k+1), &o.Acks[k])
			}
		} else {
			for k := range 3 {
				s.time("run.json: k-th acks", fmt.Sprintf("%s k=%d", verb, k+1))
			}
		}
		if o != nil && o.BytesOut != nil {
			out = float64(*o.BytesOut)
		}
		s.add("target.json: Bytes", "received "+verb, in)
		s.add("target.json: Bytes", "sent "+verb, out)
	}
	s.add("run.json: Bad ops", name, bad/all)
	if gets > 0 {
		s.add("target.json: Hit ratio", "gets of "+name, hits/gets)
	}
	for scenario, f := range ph.Scenario {
		s.add("run.json: Offered and sustained", "ok "+name+" scenario "+scenario, float64(f.OK))
		response, _ := good(&f.Figures)
		s.time("run.json: Response and service", "response p99 scenario "+scenario, response...)
		for step, f := range f.Step {
			response, _ := good(&f.Figures)
			s.time("run.json: Steps", fmt.Sprintf("%s %s at %s", scenario, step, f.Target), response...)
			for outcome, n := range outcomesOf(&f.Ledger) {
				s.add("run.json: Outcomes of steps", strings.Join([]string{scenario, step, outcome}, " "), float64(n))
			}
		}
	}
	for _, target := range append(ph.Others, ph.Target) {
		for i, endpoint := range target.Endpoints {
			at := fmt.Sprintf("%s n%d", target.Name, i)
			s.add("target.json: Connections away", at, 0)
			for _, away := range ph.Away {
				if away.Target == target.Name && away.Endpoint == endpoint {
					s.add("target.json: Connections away", at, away.Seconds)
				}
			}
			for _, q := range ph.Requests {
				if q.Target == target.Name && q.Endpoint == endpoint {
					s.add("run.json: In flight", "requests "+q.Target+" "+q.Verb, float64(q.InFlight))
					s.add("target.json: Requests by endpoint", at+" answered", float64(q.Answered+q.Moved+q.Ask))
					s.add("target.json: Requests by endpoint", at+" failed", float64(q.Timeout+q.Error+q.Refused))
				}
			}
		}
	}
	if c := ph.Cache; c != nil {
		s.add("target.json: Hit ratio", "caches of "+name, *c.HitRatio)
		s.add("target.json: Evictions", "caches of "+name, float64(c.Evictions))
		s.add("target.json: Loads", "loads per second, "+name, float64(c.Loads))
		s.add("target.json: Loads", "under way, "+name, c.LoadSeconds)
		s.add("target.json: Memory", "caches of "+name, float64(c.Bytes))
		s.add("target.json: Items", "caches of "+name, float64(c.Entries))
		s.add("target.json: Memory of an item", "caches of "+name, float64(c.Bytes)/float64(c.Entries))
	}
}

// uncounted are the panels whose figures no result has: how things were from moment to moment.
var uncounted = []string{
	"run.json: Asserts", "run.json: Limits of asserts", "fleet.json: Take part", "fleet.json: Workers", "fleet.json: Last seen", "fleet.json: Busy",
	"fleet.json: Skew of clocks", "fleet.json: Uncertainty of clocks", "target.json: Observations, how fast",
}

var (
	rateIn     = regexp.MustCompile(`rate\((loadgen_\w+\{[^}]*\})\[\$__rate_interval\]\)`)
	selectorIn = regexp.MustCompile(`loadgen_\w+\{[^}]*\}\[?`)
	quantileOf = regexp.MustCompile(`^histogram_quantile\(0\.(\d+), (.*)\)$`)
)

// totals turns an expression over time into the same of what was stored last: of counters, which begin at 0, what they have counted in all.
func totals(expr string) string {
	return selectorIn.ReplaceAllStringFunc(rateIn.ReplaceAllString(expr, "$1"), func(selector string) string {
		if strings.HasSuffix(selector, "[") {
			return selector
		}
		return "last_over_time(" + selector + "[10m])"
	})
}

// testPanels compares what the panels show of the whole run with the result: counts and ratios exactly, and quantiles as far as buckets allow. Each line
// that a panel has is one of the result, and the other way round.
func testPanels(t *testing.T, db database, result *run.Run) {
	db.t = t
	want := shownOf(result)
	variables := variablesOf(result.ID, "loadgen")
	scrapes := db.ask("matrix", variables.Replace(`loadgen_run_active{job="$job",run="$run"}[10m]`))[0].Values
	last := db
	last.at = string(scrapes[len(scrapes)-1][0])
	for file, b := range dashboards(t) {
		for _, p := range b.Panels {
			name := file + ": " + p.Title
			if file == "experiments.json" || slices.Contains(uncounted, name) {
				continue
			}
			numbers, times := map[string]float64{}, map[string]bool{}
			for _, q := range p.Targets {
				if p.Type == "heatmap" || quantileOf.MatchString(q.Expr) {
					for line := range last.requireTimes(&p, &q, variables.Replace(rateIn.ReplaceAllString(q.Expr, "$1")), want.times[name]) {
						times[line] = true
					}
					continue
				}
				for line, s := range requireLines(t, &p, q.LegendFormat, db.query(variables.Replace(totals(q.Expr)))) {
					numbers[line] = valueOf(t, s)
				}
			}
			requireNumbers(t, name, want.numbers[name], numbers)
			for line := range want.times[name] {
				require.True(t, times[line], "%s: %s is missing", name, line)
			}
		}
		marks := db.marks(t, &b, variables)
		for phase, ph := range result.Phase {
			if len(b.Annotations.List) > 0 {
				require.Contains(t, slices.Concat(marks["Valid"], marks["Suspect"], marks["Invalid"]), fmt.Sprintf("%s is %s", phase, ph.Validity), file)
			}
		}
	}
}

// requireNumbers compares the lines of a panel with the result. Lines at 0 may be missing, as in the panels of outcomes.
func requireNumbers(t *testing.T, panel string, want, got map[string]float64) {
	t.Helper()
	if whole, ok := want[""]; ok { // by worker, which the result does not say
		sum := 0.0
		for _, n := range got {
			sum += n
		}
		require.Equal(t, whole, sum, panel)
		return
	}
	for line := range got {
		require.Contains(t, want, line, panel)
	}
	for line, n := range want {
		if math.IsNaN(n) {
			continue
		}
		require.InDelta(t, n, got[line], 1e-12*math.Abs(n), "%s: %s", panel, line) // a ratio's last bit
	}
}

// width is by how much more than a sample the quantile of native buckets and that of a result may be: one bucket of each.
const width = 1.0219 * 1.0079

// requireTimes compares the histograms behind a query with the latencies of the result: their counts exactly, and that a quantile is one of a mixture of
// these latencies, which lies between theirs. It returns the lines.
func (db database) requireTimes(p *panel, q *target, expr string, want map[string][]*run.Latency) map[string]series {
	db.t.Helper()
	inner, quantile := expr, ""
	if m := quantileOf.FindStringSubmatch(expr); m != nil {
		quantile, inner = ("p" + m[1] + "0")[:3], m[2] // 0.5 is p50
	}
	require.Contains(db.t, q.LegendFormat+p.Description, quantile, p.Title)
	lines := requireLines(db.t, p, q.LegendFormat, db.query(expr))
	counts := requireLines(db.t, &panel{Title: p.Title}, q.LegendFormat, db.query("histogram_count("+inner+")"))
	for line, s := range lines {
		require.Contains(db.t, want, line, p.Title)
		if len(want[line]) == 0 {
			continue
		}
		count, low, high := 0.0, math.Inf(1), 0.0
		for _, l := range want[line] {
			if l.Count == 0 {
				continue
			}
			count += float64(l.Count)
			least, most := l.Min, l.Max
			if v := l.Quantile(quantile); quantile != "" && v != nil {
				most = v
				if l.Failed == 0 { // else v is one of all ops, those that failed the slowest
					least = v
				}
			}
			low = min(low, *least)
			if most != nil {
				high = max(high, *most)
			} else {
				high = math.Inf(1)
			}
		}
		require.Equal(db.t, count, valueOf(db.t, counts[line]), "%s: %s", p.Title, line)
		if quantile != "" {
			require.GreaterOrEqual(db.t, valueOf(db.t, s), low/width, "%s: %s", p.Title, line)
			require.LessOrEqual(db.t, valueOf(db.t, s), high*width, "%s: %s", p.Title, line)
		}
	}
	return lines
}
