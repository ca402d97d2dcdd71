package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/engine"
	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestDeployedConfigurationIsValid(t *testing.T) {
	out := servertest.Promtool(t, "check", "config", filepath.Join("..", "..", "deploy", "prometheus.yml"))
	require.Contains(t, out, "SUCCESS")
}

// livePlan runs for 18 s on targets that answer by themselves: a closed phase with a setup, then an open one, replicated, in which some
// ops miss and some requests fail.
const livePlan = `
plan "live" {}
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
dataset "pools" {
  keys {
    count = 10
    scope = "session"
  }
  values { size = 100 }
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
  open {
    rate     = "600/s"
    duration = "17s"
    sessions = 12
    pipeline = 4
    ramp     = "1s"
  }
}
`

// discarded keeps no snapshot.
type discarded struct{}

func (discarded) Append(string, []byte) error { return nil }
func (discarded) Sync() error                 { return nil }

// fleet is a coordinator and its three workers, each with a page of its own.
type fleet struct {
	plan        *plan.Plan
	coordinator *prom.Collector
	feed        *prom.Feed
	workers     [3]*prom.Collector
	members     []coord.Member
}

const liveID = "2026-11-20T12-00-00Z-live"

// newFleet serves the pages of a fleet and returns it with the address of the coordinator's.
func newFleet(t *testing.T) (*fleet, string) {
	t.Helper()
	f := &fleet{plan: parse(t, livePlan), coordinator: prom.New()}
	f.feed = prom.NewFeed(f.coordinator, liveID, f.plan)
	var targets []prom.Target
	for i := range f.workers {
		name := "w" + strconv.Itoa(i)
		own := prom.New()
		f.workers[i] = own
		targets = append(targets, prom.Target{Worker: name, Address: serve(t, own, nil)})
		worker := engine.New(engine.Config{Drivers: drivers.All(), Loops: 1, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { worker.Close() })
		reported := prom.Watch(worker, func(a run.Assignment) *prom.Feed { // in the worker's process, as it were
			p, err := plan.Decode(a.Plan, drivers.All())
			require.NoError(t, err)
			return prom.NewFeed(own, a.RunID, p)
		})
		f.members = append(f.members, coord.Member{
			Name: name, Worker: prom.Watch(reported, func(run.Assignment) *prom.Feed { return f.feed }),
		})
	}
	return f, serve(t, f.coordinator, func() []prom.Target { return targets })
}

// run carries the plan out and has the pages say so.
func (f *fleet) run(t *testing.T) *run.Run {
	canonical, err := f.plan.Canonical()
	require.NoError(t, err)
	soFar := run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: run.None}
	result := coord.Run(t.Context(), coord.Config{
		Header: run.Header{ID: liveID, Plan: f.plan.Name, PlanDigest: plan.Digest(canonical)},
		Plan:   f.plan, Canonical: canonical, Workers: f.members, Store: discarded{}, Logger: slog.New(slog.DiscardHandler),
		Progress: func(u run.Update) {
			var workers []prom.Worker
			for i, m := range f.members {
				workers = append(workers, prom.Worker{Name: m.Name, Up: true, ClockOffset: float64(i), CPUSeconds: u.Elapsed.Seconds()})
			}
			f.feed.Status(workers, soFar)
		},
	})
	f.feed.End(result.Verdict)
	return result
}

// scraped returns once all pages have been scraped as they were last set.
func (f *fleet) scraped(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, c := range append(f.workers[:], f.coordinator) {
		require.NoError(t, c.AwaitScrape(ctx))
	}
}

// TestAgainstPrometheus has a real Prometheus, with the configuration in deploy, scrape a run of three workers. While it goes on, every
// expression of every dashboard returns data. In the end, what was stored of the workers adds up to what was stored of the
// coordinator, and that is equal to the result.
func TestAgainstPrometheus(t *testing.T) {
	t.Parallel()
	f, address := newFleet(t)
	db := database{t, servertest.Prometheus(t, deployed(t, address))}

	done := make(chan *run.Run, 1)
	go func() { done <- f.run(t) }()
	select {
	case <-time.After(17 * time.Second): // the open phase has two more
	case result := <-done:
		require.Fail(t, "the run ended early", "%v", result.Verdict)
	}
	require.Len(t, db.query(`up{job="loadgen-workers",instance=~"w[012]"} == 1`), 3, "discovery names the workers")
	t.Run("dashboards", func(t *testing.T) { testDashboards(t, db) })

	result := <-done
	require.Equal(t, run.Complete, result.Verdict.Completeness, result.Verdict.Reasons)
	f.scraped(t)
	db.await(`loadgen_run_active{job="loadgen"}`, 0)
	var due uint64
	for _, o := range result.Phase["mixed"].Op {
		due += o.Due
	}
	require.Greater(t, due, uint64(8000))
	db.await(`sum(loadgen_ops_due_total{job="loadgen-workers",phase="mixed"})`, float64(due))
	t.Run("workers sum to the coordinator", func(t *testing.T) { testSums(t, db) })
	t.Run("counters are the result", func(t *testing.T) { testCounters(t, db, result) })
}

// deployed writes the configuration in deploy with another address of the coordinator, and returns its path.
func deployed(t *testing.T, coordinator string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus.yml"))
	require.NoError(t, err)
	_, config, _ := strings.Cut(string(b), "\nscrape_configs:")
	require.Equal(t, 2, strings.Count(config, "127.0.0.1:9464"))
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "127.0.0.1:9464", coordinator)), 0o644))
	return path
}

// database is a Prometheus that is queried.
type database struct {
	t    *testing.T
	addr string
}

// series is an element of an answer: it has a value or a histogram.
type series struct {
	Metric    map[string]string  `json:"metric"`
	Value     [2]json.RawMessage `json:"value"`
	Histogram *[2]json.RawMessage
}

// query returns what an expression yields now.
func (db database) query(expr string) []series {
	db.t.Helper()
	response, err := http.Get("http://" + db.addr + "/api/v1/query?" + url.Values{"query": {expr}}.Encode())
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
	require.Equal(db.t, "vector", answer.Data.ResultType, expr)
	return answer.Data.Result
}

// await returns once an expression yields a single number: a page that has been scraped is stored a moment later.
func (db database) await(expr string, want float64) {
	db.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		result := db.query(expr)
		require.Len(db.t, result, 1, expr)
		got := number(db.t, result[0])
		if got == want {
			return
		}
		require.True(db.t, time.Now().Before(deadline), "%s is %v, and never came to be %v", expr, got, want)
		time.Sleep(50 * time.Millisecond)
	}
}

// number returns the value of a series.
func number(t *testing.T, s series) float64 {
	t.Helper()
	var text string
	require.NoError(t, json.Unmarshal(s.Value[1], &text), "%v has no number", s.Metric)
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

// bucketsOf returns the native histogram of a series: [boundary rule, left, right, count] for each bucket.
func bucketsOf(t *testing.T, s series) (h struct {
	Count, Sum string
	Buckets    [][4]any
},
) {
	t.Helper()
	require.NotNil(t, s.Histogram, "%v is no native histogram", s.Metric)
	require.NoError(t, json.Unmarshal(s.Histogram[1], &h))
	return h
}

// testDashboards runs the expressions of all dashboards, and those behind their variables.
func testDashboards(t *testing.T, db database) {
	db.t = t
	variables := strings.NewReplacer("$__rate_interval", "4s", "$__range", "15s", "$run", liveID, "$job", "loadgen")
	expressions := 0
	for name, expr := range dashboards(t) {
		for _, e := range expr {
			e, label := labelled(variables.Replace(e))
			require.NotContains(t, e, "$", name)
			result := db.query(e)
			require.NotEmpty(t, result, "%s: %s", name, e)
			for _, s := range result {
				if label != "" {
					require.Contains(t, s.Metric, label, e)
				}
				if s.Histogram != nil {
					require.NotEmpty(t, bucketsOf(t, s).Buckets, e)
				} else {
					require.False(t, number(t, s) != number(t, s), "%s: %s of %v is not a number", name, e, s.Metric)
				}
			}
			expressions++
		}
	}
	require.Greater(t, expressions, 30)
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// labelled returns the selector behind a variable's query and the label whose values it lists; other expressions as they are.
func labelled(expr string) (selector, label string) {
	if m := labelValues.FindStringSubmatch(expr); m != nil {
		return m[1], m[2]
	}
	return expr, ""
}

// dashboards returns the expressions of each dashboard in grafana.
func dashboards(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	fsys := os.DirFS(filepath.Join("..", "..", "grafana", "dashboards"))
	names, err := fs.Glob(fsys, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		var board any
		require.NoError(t, json.Unmarshal(b, &board), name)
		all[name] = expressionsIn(board)
		require.NotEmpty(t, all[name], name)
	}
	return all
}

// expressionsIn returns what stands under "expr", and under "definition", which is a variable's query, anywhere in a document.
func expressionsIn(node any) (found []string) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if text, ok := value.(string); ok && (key == "expr" || key == "definition") {
				found = append(found, text)
			}
			found = append(found, expressionsIn(value)...)
		}
	case []any:
		for _, value := range node {
			found = append(found, expressionsIn(value)...)
		}
	}
	return found
}

// testSums compares histograms bucket by bucket and counters by value.
func testSums(t *testing.T, db database) {
	db.t = t
	for name, by := range map[string]string{
		"loadgen_response_seconds": "phase, op, class", "loadgen_service_seconds": "phase, op, class",
		"loadgen_lag_seconds": "phase, op", "loadgen_ack_seconds": "phase, op, k",
	} {
		sum := fmt.Sprintf(`sum by (%s) (%s{job="%%[1]s"})`, by, name)
		filled := sum + " and histogram_count(" + sum + ") > 0"
		whole, parts := db.byLabels(fmt.Sprintf(filled, "loadgen")), db.byLabels(fmt.Sprintf(filled, "loadgen-workers"))
		require.Len(t, parts, len(whole))
		for labels, s := range whole {
			a, b := bucketsOf(t, s), bucketsOf(t, parts[labels])
			require.NotEmpty(t, a.Buckets, name)
			require.Equal(t, a.Count, b.Count, "%s%s", name, labels)
			require.Equal(t, a.Buckets, b.Buckets, "%s%s", name, labels)
		}
	}
	for name, by := range map[string]string{
		"loadgen_ops_total": "phase, op, outcome", "loadgen_ops_due_total": "phase, op", "loadgen_requests_total": "phase, op, result",
	} {
		sum := fmt.Sprintf(`sum by (%s) (%s{job="%%s"})`, by, name)
		whole, parts := db.byLabels(fmt.Sprintf(sum, "loadgen")), db.byLabels(fmt.Sprintf(sum, "loadgen-workers"))
		require.Len(t, parts, len(whole))
		for labels, s := range whole {
			require.Equal(t, number(t, s), number(t, parts[labels]), "%s%s", name, labels)
		}
	}
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

// testCounters compares what was stored of the coordinator with the result.
func testCounters(t *testing.T, db database, result *run.Run) {
	db.t = t
	equal := func(want uint64, metric, labels string) {
		t.Helper()
		stored := db.query(metric + `{job="loadgen",` + labels + `}`)
		require.Len(t, stored, 1, "%s %s", metric, labels)
		require.EqualValues(t, want, number(t, stored[0]), "%s %s", metric, labels)
	}
	for name, ph := range result.Phase {
		for verb, o := range ph.Op {
			at := fmt.Sprintf(`phase=%q,op=%q`, name, verb)
			equal(o.Due, "loadgen_ops_due_total", at)
			equal(o.BytesIn, "loadgen_received_bytes_total", at)
			equal(o.BytesOut, "loadgen_sent_bytes_total", at)
			for outcome, n := range map[string]uint64{
				"ok": o.OK, "miss": o.Miss, "conflict": o.Conflict, "quorum_failed": o.QuorumFailed,
				"timeout": o.Timeout, "error": o.Error, "shed": o.Shed,
			} {
				equal(n, "loadgen_ops_total", at+fmt.Sprintf(`,outcome=%q`, outcome))
			}
		}
		answered := map[string]uint64{}
		for _, r := range ph.Requests {
			answered[r.Endpoint] += r.Answered
		}
		for i, endpoint := range ph.Target.Endpoints {
			equal(answered[endpoint], "loadgen_endpoint_requests_total", fmt.Sprintf(`phase=%q,endpoint="n%d",result="answered"`, name, i))
		}
	}
	equal(result.Phase["warm"].Setup.Op["put"].Due, "loadgen_setup_ops_due_total", `phase="warm"`)
}
