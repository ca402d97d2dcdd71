package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

func TestDeployedConfigurationIsValid(t *testing.T) {
	t.Parallel()
	out := servertest.Promtool(t, "check", "config", filepath.Join("..", "..", "deploy", "prometheus.yml"))
	require.Contains(t, out, "SUCCESS")
	require.Contains(t, out, "1 rule files found")
	servertest.Promtool(t, "test", "rules", filepath.Join("..", "..", "deploy", "rules_test.yml"))
}

// livePlan runs until interrupted, since Prometheus takes time to find the workers: it fills a node that has not enough memory, then comes a closed
// phase with a setup, then an open, replicated one, in which some ops miss and some requests fail, with a scenario over all targets.
const livePlan = `
plan "live" {}
variable "node" { default = [] }
target "clean" {
  driver    = "null"
  endpoints = ["a"]
  latency   = "1ms"
}
target "noisy" {
  driver    = "null"
  endpoints = ["a", "b", "c"]
  latency   = "1ms"
  spread    = "exponential"

  miss_every  = 10
  error_every = 7
  replication {
    coordinate = "client"
    n          = 3
    w          = 2
    r          = 2
  }
}
target "node" {
  driver    = "redis"
  endpoints = var.node
}
target "kept" {
  source = target.node
  cache { memory = "3KiB" }
}
dataset "pools" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = 100 }
}
dataset "items" {
  keys { count = 200 }
  values {
    size    = 100
    checked = true
  }
}
observe "disk" {
  directory { path = "." }
}
observe "node" {
  server {
    target = target.node
    fields = ["used_memory", "maxmemory", "keyspace_hits", "keyspace_misses", "evicted_keys", "db0_keys"]
  }
}
assert "rate" { that = phase.mixed.op.put.rate > rate("1/s") }
assert "response" { that = phase.mixed.scenario["change"].response.p99 < duration("10s") }
assert "step" { that = phase.mixed.scenario.change.step.elsewhere.response.p99 < duration("9s") }
assert "lag" { that = duration("8s") > phase.mixed.op.put.lag.p99 }
assert "acks" { that = phase.mixed.op.put.acks[1].p99 < duration("7s") }
assert "errors" { that = (phase.mixed.op.put.error + phase.mixed.op.put.timeout) / phase.mixed.op.put.due < percent("60%") }
assert "hits" { that = phase.mixed.cache.hit_ratio > percent("0.1%") }
assert "files" { that = phase.mixed.observe.disk.files.last < 5000 }
assert "evictions" { that = phase.mixed.observe.node.evicted_keys.rate < 4000 }
assert "memory" { that = phase.mixed.observe.node.used_memory.max <= size("16KiB") }
assert "items" { that = phase.mixed.observe.node.db0_keys.last < 300 }
assert "item" { that = phase.fill.observe.node.used_memory.per_item < size("250B") }
phase "fill" {
  target  = target.node
  dataset = dataset.items
  populate {}
}
phase "warm" {
  target  = target.clean
  dataset = dataset.pools
  ops     = { get = 1 }
  setup { ops = { put = 1 } }
  closed {
    sessions = 6
    duration = "2s"
  }
}
phase "mixed" {
  target  = target.noisy
  dataset = dataset.pools
  ops     = { get = 3, put = 1 }
  scenario "change" {
    step "get" {}
    step "put" { key = "same" }
    step "get" {
      target = target.clean
      as     = "elsewhere"
    }
    step "get" {
      target  = target.kept
      dataset = dataset.items
      as      = "cached"
    }
  }
  open {
    rate     = "600/s"
    duration = "20m"
    sessions = 12
    pipeline = 4
    ramp     = "1s"
  }
  event "fault" {
    at   = "1s"
    do   = "hook"
    hook = hook.fault
  }
}
`

// TestAgainstPrometheus has a real Prometheus, configured as in deploy, scrape a run of three worker processes and their coordinator. During the run,
// every expression of every dashboard returns data, and the live page shows all that happens. In the end, what was stored from the workers adds up to what
// was stored from the coordinator, which equals the result, and so do the dashboards' panels.
func TestAgainstPrometheus(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--memory", "16KiB")
	tm := invite(t, 3, func(args ...string) *load { return begin(t, livePlan, args...) },
		"-var", fmt.Sprintf("node=[%q]", node.addr), "--http", "127.0.0.1:0", "--allow-exec", "fault=true")
	db := database{t: t, addr: servertest.Prometheus(t, deployed(t, tm.page()))}
	for range 3 {
		tm.join(tm.addr, "--http", "127.0.0.1:0")
	}
	db.await(`count(count_over_time(loadgen_run_active{job="loadgen-workers",instance=~"w[123]"}[1m]) >= 4)`, 3) // discovery names them
	db.await(`count(sum_over_time(loadgen_phase_active{job="loadgen",phase="mixed"}[1m]) >= 4)`, 1)
	db.await(`count(sum_over_time(loadgen_event{job="loadgen",event="fault"}[1m]) > 0)`, 1)
	id := db.drawn(`loadgen_run_active{job="loadgen"} == 1`)[0].Metric["run"]
	t.Run("dashboards", func(t *testing.T) { testDashboards(t, db, id) })
	t.Run("queries of the docs", func(t *testing.T) { testQueries(t, db) })
	t.Run("rules", func(t *testing.T) { testRules(t, db, id) })
	page := watching(t, tm.page())
	page.until(">fault</text>")
	for _, words := range []string{`<section id="r1-p1">`, "scenario change, elsewhere", "disk, observed", `<th scope="row">w3</th><td>up</td>`, `>pass</span></th><td><b>files</b>`} {
		require.True(t, strings.Contains(page.page(), words), words)
	}

	tm.workers[2].signal(syscall.SIGTERM)
	t.Run("lost", func(t *testing.T) { testLost(t, db, id, "w3") })
	tm.signal(syscall.SIGINT)
	result := tm.result(60 * time.Second)
	require.Equal(t, run.Aborted, result.Verdict.Completeness, result.Verdict.Reasons)
	require.Len(t, result.Losses, 1)
	for _, w := range tm.workers {
		require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
	}
	require.Equal(t, id, result.ID)
	var due uint64
	for verb := range result.Phase["mixed"].Op {
		due += dueOf(result.Phase["mixed"], verb)
	}
	require.Positive(t, due)
	db.await(`sum(last_over_time(loadgen_ops_due_total{job="loadgen-workers",phase="mixed"}[10m]))`, float64(due))
	db.await(`sum(last_over_time(loadgen_ops_due_total{job="loadgen",phase="mixed"}[1m]))`, float64(due))
	db.await(`max(last_over_time(loadgen_run_active[1m]))`, 0)
	t.Run("workers sum to the coordinator", func(t *testing.T) { testSums(t, db) })
	t.Run("counters are the result", func(t *testing.T) { testCounters(t, db, result) })
	setup := db.query(`last_over_time(loadgen_setup_ops_due_total{job="loadgen",phase="warm"}[1m])`)
	require.EqualValues(t, result.Phase["warm"].Setup.Op["put"].Due, valueOf(t, setup[0]))
	t.Run("panels are the result", func(t *testing.T) { testPanels(t, db, result) })
}

// pushedPlan has appends to a log, and ops of all outcomes on a target that needs no server.
const pushedPlan = `
plan "pushed" {}
target "wal" {
  driver    = "log"
  file_size = "64KiB"
  group_commit {}
}
target "noisy" {
  driver      = "null"
  endpoints   = ["a", "b"]
  latency     = "1ms"
  spread      = "exponential"
  miss_every  = 10
  error_every = 7
}
dataset "pools" {
  keys { count = 10 }
  values { size = 100 }
}
assert "durable" { that = phase.log.op.append.sync.mean < duration("10s") }
phase "log" {
  target  = target.wal
  dataset = dataset.pools
  ops     = { append = 1 }
  closed {
    sessions   = 2
    iterations = 50
  }
}
phase "load" {
  target  = target.noisy
  dataset = dataset.pools
  ops     = { get = 3, put = 1 }
  open {
    rate     = "500/s"
    duration = "20m"
  }
}
`

// TestPushedToPrometheus writes a run to a Prometheus that scrapes nothing and is gone for a while: in the end it has the result's counts.
func TestPushedToPrometheus(t *testing.T) {
	t.Parallel()
	receiver, again := servertest.RemoteWrite(t)
	db := database{t: t, addr: receiver.Addr}
	l := begin(t, pushedPlan, "--remote-write", "http://"+receiver.Addr+"/api/v1/write", "--http", "127.0.0.1:0", "--linger", "10m")
	db.await(`count(sum(loadgen_ops_total{job="loadgen"}) > 0)`, 1)
	receiver.Kill()
	l.until(func() bool { return strings.Contains(l.stderr.String(), "does not accept the figures: ") })
	again()
	l.until(func() bool { return strings.Contains(l.stderr.String(), "accepts figures again") })
	l.signal(syscall.SIGINT)
	l.told("the report stays on the live page")
	require.Contains(t, l.stderr.String(), "the last one did, with all counts", "the last push does not wait for --linger")
	l.signal(syscall.SIGINT)
	result := l.result(time.Minute)
	testCounters(t, db, result)
	testLogs(t, db, result)
	load := result.Phase["load"]
	for verb, o := range load.Op {
		stored := db.query(fmt.Sprintf(`sum(histogram_count(loadgen_response_seconds{run=%q,op=%q}))`, result.ID, verb))
		require.Len(t, stored, 1)
		require.EqualValues(t, o.OK+o.Miss+o.Error, valueOf(t, stored[0]), verb)
	}
	require.EqualValues(t, 0, valueOf(t, db.drawn("loadgen_run_active")[0]))
	require.EqualValues(t, 2, valueOf(t, db.drawn("loadgen_run_completeness")[0]))
}

// TestTheWalkInTheDocs types what docs/watching.md has its reader type, at other ports, and sees what it says one sees.
func TestTheWalkInTheDocs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "watching.md"))
	require.NoError(t, err)
	_, walk, _ := strings.Cut(string(b), "\n## A walk")
	walk, _, _ = strings.Cut(walk, "\n## ")
	var typed [][]string
	for _, line := range regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(walk, -1) {
		typed = append(typed, strings.Fields(line[1]))
	}
	require.Len(t, typed, 5)
	require.Equal(t, []string{"loadgen", "coordinator", "run"}, typed[0][:3])
	require.Contains(t, typed[0], "127.0.0.1:9464")
	tm := &team{load: beginFile(t, filepath.Join("..", "..", typed[0][3]), append(typed[0][4:], "--http", "127.0.0.1:0")...)} // the last one counts
	config := deployed(t, tm.page())
	head, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Contains(t, string(head), "#   "+strings.Join(typed[1], " ")+"\n")
	db := database{t: t, addr: servertest.Prometheus(t, config)}
	db.await(`count(up{job="loadgen"} == 1)`, 1)
	for _, worker := range typed[2:] {
		require.Equal(t, "loadgen", worker[0])
		tm.workers = append(tm.workers, start(t, tm.command(worker[1:]...)))
	}

	page := watching(t, tm.page())
	page.until(">kill</text>")
	tm.told("the report stays on the live page")
	queries := regexp.MustCompile("(?m)^\\| `(.+?)` \\|").FindAllStringSubmatch(walk, -1)
	require.Len(t, queries, 3)
	for _, q := range queries {
		db.await(fmt.Sprintf("count(max_over_time((%s)[5m:1s]) > 0)", q[1]), 1)
	}
	tm.signal(syscall.SIGINT)
	r := tm.result(time.Minute)
	require.Len(t, r.Fleet, 3)
	require.NotNil(t, r.Phase["outage"].Op["put"].Acks[1].P99)
}

// deployed writes the configuration in deploy with another address of the coordinator, and returns its path.
func deployed(t *testing.T, coordinator string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus.yml"))
	require.NoError(t, err)
	_, config, _ := strings.Cut(string(b), "\nscrape_configs:")
	require.Equal(t, 2, strings.Count(config, "127.0.0.1:9464"))
	rules, err := filepath.Abs(filepath.Join("..", "..", "deploy", "rules.yml"))
	require.NoError(t, err)
	text := strings.NewReplacer("127.0.0.1:9464", coordinator, "[rules.yml]", "["+rules+"]").Replace(string(b))
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// database is a Prometheus that is queried.
type database struct {
	t    *testing.T
	addr string
	at   string // when it is asked about, in seconds since 1970; "": now
}

// series is an element of an answer: it has a value or a histogram, or several.
type series struct {
	Metric     map[string]string    `json:"metric"`
	Value      [2]json.RawMessage   `json:"value"`
	Values     [][2]json.RawMessage `json:"values"`
	Histogram  *[2]json.RawMessage  `json:"histogram"`
	Histograms [][2]json.RawMessage `json:"histograms"`
}

// query returns what an expression yields now.
func (db database) query(expr string) []series {
	db.t.Helper()
	return db.ask("vector", expr)
}

// ask returns the answer of a type to an expression.
func (db database) ask(kind, expr string) []series {
	db.t.Helper()
	question := url.Values{"query": {expr}}
	if db.at != "" {
		question.Set("time", db.at)
	}
	response, err := http.Get("http://" + db.addr + "/api/v1/query?" + question.Encode())
	require.NoError(db.t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     []series
		}
	}
	require.NoError(db.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(db.t, "success", answer.Status, "%s: %s", expr, answer.Error)
	require.Equal(db.t, kind, answer.Data.ResultType, expr)
	return answer.Data.Result
}

// await returns once an expression yields a single number: it takes time until pages are found, scraped and stored.
func (db database) await(expr string, want float64) {
	db.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		result := db.query(expr)
		if len(result) == 1 && valueOf(db.t, result[0]) == want {
			return
		}
		require.True(db.t, time.Now().Before(deadline), "%s is %v, and never came to be %v", expr, result, want)
		time.Sleep(50 * time.Millisecond)
	}
}

// valueOf returns the value of a series.
func valueOf(t *testing.T, s series) float64 {
	t.Helper()
	var text string
	require.NoError(t, json.Unmarshal(s.Value[1], &text), "%v has no number", s.Metric)
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

// stored is a native histogram as Prometheus tells it.
type stored struct {
	Count, Sum string
	Buckets    [][4]any // boundary rule, left, right, count
}

// bucketsOf returns the native histogram of a series, the last one if there are several.
func bucketsOf(t *testing.T, s series) (h stored) {
	t.Helper()
	if n := len(s.Histograms); n > 0 {
		s.Histogram = &s.Histograms[n-1]
	}
	require.NotNil(t, s.Histogram, "%v is no native histogram", s.Metric)
	require.NoError(t, json.Unmarshal(s.Histogram[1], &h))
	return h
}

// testQueries runs the query that explain gives for each metric: it yields data if the metric has any.
func testQueries(t *testing.T, db database) {
	db.t = t
	answered := 0
	for _, m := range prom.Metrics() {
		there := len(db.query(fmt.Sprintf("last_over_time(%s{job=\"loadgen\"}[10s])", m.Name))) > 0
		require.Eventually(t, func() bool { return there == (len(db.query(m.Query())) > 0) }, time.Minute, time.Millisecond, m.Query())
		if there {
			answered++
		}
	}
	require.Greater(t, answered, 30)
}

var recorded = regexp.MustCompile(`(?m)^ +- record: (\S+)$`)

// testRules checks that each recording rule has recorded something from native histograms and counters, for the run and not again for its workers.
func testRules(t *testing.T, db database, id string) {
	db.t = t
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "rules.yml"))
	require.NoError(t, err)
	names := recorded.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		result := db.query(fmt.Sprintf("%s{run=%q,phase=\"mixed\"} >= 0", name[1], id))
		require.NotEmpty(t, result, name[1])
		for _, s := range result {
			require.NotContains(t, s.Metric, "instance", name[1])
		}
	}
	require.Len(t, db.query(fmt.Sprintf("loadgen:ops_due:rate10s{run=%q,phase=\"mixed\"}", id)), 1)
}

// testSums compares the last values stored from the workers with those from the coordinator: histograms bucket by bucket, and counters. All of these
// processes have ended, and so have their series.
func testSums(t *testing.T, db database) {
	db.t = t
	for _, name := range []string{"loadgen_response_seconds", "loadgen_service_seconds", "loadgen_lag_seconds", "loadgen_ack_seconds", "loadgen_scenario_response_seconds", "loadgen_step_response_seconds"} {
		whole, parts := db.buckets(name, "loadgen"), db.buckets(name, "loadgen-workers")
		require.Greater(t, len(whole), 20, name)
		require.Equal(t, whole, parts, name)
	}
	for name, by := range map[string]string{
		"loadgen_ops_total": "phase, op, outcome", "loadgen_ops_due_total": "phase, op", "loadgen_requests_total": "phase, target, op, result",
		"loadgen_scenarios_total": "phase, scenario, outcome", "loadgen_scenarios_due_total": "phase, scenario",
		"loadgen_steps_total": "phase, scenario, step, target, outcome", "loadgen_steps_due_total": "phase, scenario, step, target",
	} {
		sum := fmt.Sprintf(`sum by (%s) (last_over_time(%s{job="%%s"}[10m]))`, by, name)
		whole, parts := db.byLabels(fmt.Sprintf(sum, "loadgen")), db.byLabels(fmt.Sprintf(sum, "loadgen-workers"))
		require.Len(t, parts, len(whole))
		for labels, s := range whole {
			require.Equal(t, valueOf(t, s), valueOf(t, parts[labels]), "%s%s", name, labels)
		}
	}
}

// buckets adds up what a job's histograms of a name count last, by bucket.
func (db database) buckets(name, job string) map[string]uint64 {
	db.t.Helper()
	all := map[string]uint64{}
	for _, s := range db.ask("matrix", fmt.Sprintf(`%s{job=%q}[10m]`, name, job)) {
		labels := fmt.Sprint(s.Metric["phase"], s.Metric["op"], s.Metric["scenario"], s.Metric["step"], s.Metric["class"], s.Metric["k"])
		count := func(of string, n any) {
			number, err := strconv.ParseUint(fmt.Sprint(n), 10, 64)
			require.NoError(db.t, err, "%s %s", name, labels)
			all[labels+" "+of] += number
		}
		h := bucketsOf(db.t, s)
		count("all", h.Count)
		for _, b := range h.Buckets {
			count(fmt.Sprint(b[1], " to ", b[2]), b[3])
		}
	}
	return all
}

// byLabels returns what an expression yields, which is not nothing, by its labels.
func (db database) byLabels(expr string) map[string]series {
	db.t.Helper()
	all := map[string]series{}
	for _, s := range db.query(expr) {
		all[fmt.Sprint(s.Metric)] = s // maps print in the order of their keys
	}
	require.NotEmpty(db.t, all, expr)
	return all
}

// partsOf returns the figures of a verb's ops in a phase: those of all its steps if they went to several targets.
func partsOf(ph *run.Phase, verb string) (parts []*run.Figures) {
	if o := ph.Op[verb]; o != nil {
		return []*run.Figures{&o.Figures}
	}
	for _, s := range ph.Scenario {
		for _, step := range s.Step {
			if step.Op == verb {
				parts = append(parts, &step.Figures)
			}
		}
	}
	return parts
}

// dueOf is how many ops of a verb were due in a phase.
func dueOf(ph *run.Phase, verb string) (due uint64) {
	for _, part := range partsOf(ph, verb) {
		due += part.Due
	}
	return due
}

// outcomesOf returns how ops ended.
func outcomesOf(l *run.Ledger) map[string]uint64 {
	return map[string]uint64{
		"ok": l.OK, "miss": l.Miss, "conflict": l.Conflict, "quorum_failed": l.QuorumFailed, "timeout": l.Timeout, "error": l.Error, "shed": l.Shed,
	}
}

// testCounters compares what was stored of the coordinator with the result.
func testCounters(t *testing.T, db database, result *run.Run) {
	db.t = t
	equal := func(want uint64, metric, labels string) {
		t.Helper()
		stored := db.query(`last_over_time(` + metric + `{job="loadgen",` + labels + `}[1m])`)
		require.Len(t, stored, 1, "%s %s", metric, labels)
		require.EqualValues(t, want, valueOf(t, stored[0]), "%s %s", metric, labels)
	}
	for name, ph := range result.Phase {
		for verb, o := range ph.Op {
			at := fmt.Sprintf(`phase=%q,op=%q`, name, verb)
			equal(dueOf(ph, verb), "loadgen_ops_due_total", at)
			if o == nil {
				continue
			}
			equal(o.BytesIn, "loadgen_received_bytes_total", at)
			if o.BytesOut == nil {
				require.Contains(t, ph.Nulls, "op."+verb+".bytes_out", "the null driver has a client of its own, which does not count them")
			} else {
				equal(*o.BytesOut, "loadgen_sent_bytes_total", at)
			}
			for outcome, n := range outcomesOf(&o.Ledger) {
				equal(n, "loadgen_ops_total", at+fmt.Sprintf(`,outcome=%q`, outcome))
			}
		}
		for scenario, s := range ph.Scenario {
			at := fmt.Sprintf(`phase=%q,scenario=%q`, name, scenario)
			equal(s.Due, "loadgen_scenarios_due_total", at)
			equal(s.OK, "loadgen_scenarios_total", at+`,outcome="ok"`)
			equal(s.Miss, "loadgen_scenarios_total", at+`,outcome="miss"`)
			equal(s.QuorumFailed, "loadgen_scenarios_total", at+`,outcome="quorum_failed"`)
			for name, step := range s.Step {
				at := fmt.Sprintf(`%s,step=%q,target=%q`, at, name, step.Target)
				equal(step.Due, "loadgen_steps_due_total", at)
				equal(step.OK, "loadgen_steps_total", at+`,outcome="ok"`)
			}
		}
		answered := map[[2]string]uint64{}
		for _, r := range ph.Requests {
			answered[[2]string{r.Target, r.Endpoint}] += r.Answered
		}
		for _, target := range append(ph.Others, ph.Target) {
			for i, endpoint := range target.Endpoints {
				equal(answered[[2]string{target.Name, endpoint}], "loadgen_endpoint_requests_total", fmt.Sprintf(`phase=%q,target=%q,endpoint="n%d",result="answered"`, name, target.Name, i))
			}
		}
	}
}
