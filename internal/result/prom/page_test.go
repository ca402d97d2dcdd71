package prom_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/pkg/driver"
)

var update = flag.Bool("update", false, "rewrite testdata/metrics.golden")

const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// get fetches a page of c as a local client does.
func get(t testing.TB, c *prom.Collector, path, accept string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9464"+path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	prom.Handler(c).ServeHTTP(w, r)
	return w.Result()
}

func page(t testing.TB, c *prom.Collector) string {
	t.Helper()
	response := get(t, c, "/metrics", "text/plain")
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(b))
	return string(b)
}

// gather returns the families of c by name. The registry is pedantic: it compares what is collected with what is described.
func gather(t testing.TB, c *prom.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	list, err := registry.Gather()
	require.NoError(t, err)
	families := map[string]*dto.MetricFamily{}
	for _, f := range list {
		families[f.GetName()] = f
	}
	return families
}

func TestPage(t *testing.T) {
	c := sampleCollector(t, 3)
	got := page(t, c)
	path := filepath.Join("testdata", "metrics.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	require.Equal(t, got, page(t, c), "a page is a function of the view")

	problems, err := promlint.New(strings.NewReader(got)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestPageBeforeARun(t *testing.T) {
	require.Empty(t, page(t, with(worker.Status{Name: "a"})))
}

func TestEveryFormat(t *testing.T) {
	c := sampleCollector(t, 3)
	for _, test := range []struct{ accept, kind, contains string }{
		{"text/plain", "text/plain", `loadgen_run_active{run="2026-11-20T12-00-00Z-sample"} 1` + "\n"},
		{"application/openmetrics-text", "application/openmetrics-text", "# EOF\n"},
		{protobuf, "application/vnd.google.protobuf", "loadgen_response_seconds"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			response := get(t, c, "/metrics", test.accept)
			b, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(response.Header.Get("Content-Type"), test.kind), response.Header)
			require.True(t, bytes.Contains(b, []byte(test.contains)))
		})
	}
}

// TestHistogramsAreBothKinds checks what a scraper of native histograms gets.
func TestHistogramsAreBothKinds(t *testing.T) {
	c := sampleCollector(t, 3)
	families := gather(t, c)
	for name, classic := range map[string]int{
		"loadgen_response_seconds": 6, "loadgen_service_seconds": 6, "loadgen_lag_seconds": 6, "loadgen_write_seconds": 6, "loadgen_sync_seconds": 6, "loadgen_ack_seconds": 0, "loadgen_scenario_response_seconds": 6,
	} {
		require.NotEmpty(t, families[name].GetMetric(), name)
		for _, m := range families[name].GetMetric() {
			require.NotEmpty(t, m.GetHistogram().GetPositiveSpan(), name)
			require.EqualValues(t, 5, m.GetHistogram().GetSchema(), name)
			require.Len(t, m.GetHistogram().GetBucket(), classic, name)
		}
	}
}

// value returns the value of the only metric of a family whose labels contain the given ones, as name=value.
func value(t testing.TB, f *dto.MetricFamily, labels ...string) float64 {
	t.Helper()
	var found []float64
	for _, m := range f.GetMetric() {
		have := map[string]bool{}
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && have[l]
		}
		if all {
			found = append(found, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	require.Len(t, found, 1, "%s %v", f.GetName(), labels)
	return found[0]
}

// TestCountersAreTheLedgers compares raw values with the totals they were made from.
func TestCountersAreTheLedgers(t *testing.T) {
	v := sampleView(parse(t, samplePlan), 3)
	c := with(worker.Status{Name: "a", Up: true}, worker.Status{Name: "c"})
	c.Set(v)
	families := gather(t, c)
	for _, ph := range v.Phases {
		for at, target := range ph.Targets {
			for _, verb := range target.Verbs {
				labels := []string{"phase=" + ph.Name, "target=" + target.Name, "op=" + verb.String()}
				var sum measure.Requests
				for e := range target.Rows {
					r := ph.Load.Request(at*ph.Targets[0].Rows+e, verb)
					sum.Answered += r.Answered
					sum.Timeout += r.Timeout
					sum.Error += r.Error
					sum.Refused += r.Refused
					sum.InFlight += r.InFlight
				}
				for result, n := range map[string]uint64{"answered": sum.Answered, "timeout": sum.Timeout, "error": sum.Error, "refused": sum.Refused} {
					require.EqualValues(t, n, value(t, families["loadgen_requests_total"], append(labels, "result="+result)...))
				}
				require.EqualValues(t, sum.InFlight, value(t, families["loadgen_requests_in_flight"], labels...))
			}
		}
		for _, verb := range ph.Verbs {
			o := ph.Load.Ops[verb]
			labels := []string{"phase=" + ph.Name, "op=" + verb.String()}
			require.EqualValues(t, o.Due, value(t, families["loadgen_ops_due_total"], labels...))
			require.EqualValues(t, o.InFlight, value(t, families["loadgen_ops_in_flight"], labels...))
			require.EqualValues(t, o.In, value(t, families["loadgen_received_bytes_total"], labels...))
			require.EqualValues(t, o.Out, value(t, families["loadgen_sent_bytes_total"], labels...))
			for i, n := range o.Outcomes {
				outcome := "outcome=" + driver.Outcome(i).String()
				require.EqualValues(t, n, value(t, families["loadgen_ops_total"], append(labels, outcome)...))
			}
		}
	}
	for i, name := range []string{"get", "change"} {
		o, labels := v.Phase("chains").Load.Scenarios[i], []string{"phase=chains", "scenario=" + name}
		require.EqualValues(t, 1+driver.NumOutcomes, value(t, families["loadgen_scenarios_due_total"], labels...))
		require.EqualValues(t, 1, value(t, families["loadgen_scenarios_in_flight"], labels...))
		for i, n := range o.Outcomes {
			require.EqualValues(t, n, value(t, families["loadgen_scenarios_total"], append(labels, "outcome="+driver.Outcome(i).String())...))
		}
	}
	step := v.Phase("across").Load.Scenarios[0].Steps[1]
	labels := []string{"phase=across", "scenario=copy", "step=put", "target=space"}
	require.EqualValues(t, step.Due, value(t, families["loadgen_steps_due_total"], labels...))
	require.EqualValues(t, step.InFlight, value(t, families["loadgen_steps_in_flight"], labels...))
	require.EqualValues(t, step.Outcomes[driver.OK], value(t, families["loadgen_steps_total"], append(labels, "outcome=ok")...))
	require.EqualValues(t, 2, step.Due)
	for e := range 4 {
		r := v.Phase("get").Load.Request(e, driver.Get)
		at := []string{"phase=get", "endpoint=n" + strconv.Itoa(e)}
		require.EqualValues(t, r.Answered, value(t, families["loadgen_endpoint_requests_total"], append(at, "result=answered")...))
		failed := r.Timeout + r.Error + r.Refused
		require.EqualValues(t, failed, value(t, families["loadgen_endpoint_requests_total"], append(at, "result=failed")...))
	}
	require.EqualValues(t, 100, value(t, families["loadgen_setup_ops_due_total"]))
	require.EqualValues(t, 1, value(t, families["loadgen_setup_ops_total"], "outcome=shed"))
	require.EqualValues(t, 1, value(t, families["loadgen_phase_active"], "phase=mixed"))
	require.EqualValues(t, 0, value(t, families["loadgen_phase_active"], "phase=get"))
	require.EqualValues(t, 2000, value(t, families["loadgen_phase_offered_ops_per_second"], "phase=mixed"))
	require.EqualValues(t, 0, value(t, families["loadgen_worker_up"], "worker=c"))
	require.EqualValues(t, 1, value(t, families["loadgen_run_validity"]))
}

// TestWorkersSumToTheCoordinator splits a phase between two pages and compares every counter and bucket with those of the whole.
func TestWorkersSumToTheCoordinator(t *testing.T) {
	p := parse(t, samplePlan)
	show := func(load *measure.Totals) map[string]*dto.MetricFamily {
		v := prom.NewView("r", p)
		v.Phase("get").Load, v.Phase("chains").Load = load, load
		c := with()
		c.Set(v)
		return gather(t, c)
	}
	verbs := []driver.Verb{driver.Get}
	a, b := counted(verbs, 3, 4, 3), counted(verbs, 5, 4, 3)
	two := prom.NewView("r", p).Phases[2].Plan.Scenarios
	chained(a, two)
	chained(b, two[:1])
	whole := &measure.Totals{}
	whole.Merge(a)
	whole.Merge(b)
	fa, fb, all := show(a), show(b), show(whole)
	compared := 0
	for name, f := range all {
		for i, m := range f.GetMetric() {
			ma, mb := fa[name].GetMetric()[i], fb[name].GetMetric()[i]
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				require.Equal(t, m.GetCounter().GetValue(), ma.GetCounter().GetValue()+mb.GetCounter().GetValue(), name)
			case dto.MetricType_HISTOGRAM:
				sum := buckets(ma.GetHistogram())
				for bound, n := range buckets(mb.GetHistogram()) {
					sum[bound] += n
				}
				require.Equal(t, buckets(m.GetHistogram()), sum, name)
				compared += len(sum)
			}
		}
	}
	require.Greater(t, compared, 50)
}

// buckets returns the counts of h by kind and index.
func buckets(h *dto.Histogram) map[[2]int32]int64 {
	counts := map[[2]int32]int64{}
	if n := h.GetZeroCount(); n > 0 {
		counts[[2]int32{0, 0}] = int64(n)
	}
	index, at, count := int32(0), 0, int64(0)
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[at]
			counts[[2]int32{1, index}] = count
			at++
			index++
		}
	}
	for i, b := range h.GetBucket() {
		counts[[2]int32{2, int32(i)}] = int64(b.GetCumulativeCount())
	}
	return counts
}

// TestAPageCostsTheSameWhateverItCounted: nothing is done per op.
func TestAPageCostsTheSameWhateverItCounted(t *testing.T) {
	p := parse(t, samplePlan)
	cost := func(times int) float64 {
		v := sampleView(p, 1)
		load, once := &measure.Totals{}, counted(v.Phase("mixed").Verbs, 1, 1, 0)
		for range times {
			load.Merge(once)
		}
		v.Phase("mixed").Load = load
		c := with()
		return testing.AllocsPerRun(20, func() {
			c.Set(v)
			ch := make(chan prometheus.Metric, 2000)
			c.Collect(ch)
		})
	}
	require.InDelta(t, cost(1), cost(100), 1)
}

func BenchmarkPage(b *testing.B) {
	c := sampleCollector(b, 60)
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9464/metrics", nil)
	h := prom.Handler(c)
	for _, format := range []string{"text/plain", protobuf} {
		name, _, _ := strings.Cut(format, ";")
		b.Run("format="+strings.ReplaceAll(name, "/", "-"), func(b *testing.B) {
			r.Header.Set("Accept", format)
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				b.ReportMetric(float64(w.Body.Len()), "B/page")
			}
		})
	}
}

func TestAwaitScrape(t *testing.T) {
	p := parse(t, samplePlan)
	c := with()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	require.NoError(t, c.AwaitScrape(soon()), "there is nothing to scrape")
	c.Set(sampleView(p, 1))
	require.NoError(t, c.AwaitScrape(soon()), "nobody scrapes")
	page(t, c)
	require.NoError(t, c.AwaitScrape(soon()), "the latest view has been scraped")
	c.Set(sampleView(p, 2))
	require.ErrorIs(t, c.AwaitScrape(soon()), context.DeadlineExceeded)

	var scrape sync.WaitGroup
	scrape.Go(func() { page(t, c) })
	require.NoError(t, c.AwaitScrape(t.Context()))
	scrape.Wait()
}

// TestSetWhileScraped is for the race detector: the caller keeps changing its view while pages are made.
func TestSetWhileScraped(t *testing.T) {
	p := parse(t, samplePlan)
	c := with()
	v := sampleView(p, 1)
	var scrapes sync.WaitGroup
	for range 2 {
		scrapes.Go(func() {
			for range 8 {
				page(t, c)
			}
		})
	}
	for i := range 50 {
		v.Phase("mixed").Offered = float64(i)
		c.Set(v)
	}
	scrapes.Wait()
	require.Contains(t, page(t, c), "} 49\n")
}

// TestAViewIsTheCallersAgain: the caller may change it for the next time while this one is shown.
func TestAViewIsTheCallersAgain(t *testing.T) {
	v := sampleView(parse(t, samplePlan), 1)
	c := with()
	c.Set(v)
	before := page(t, c)
	v.Phases[0].Name = "changed"
	require.Equal(t, before, page(t, c))
}

func TestAWorkersNameIsMendedToUTF8(t *testing.T) {
	c := with(worker.Status{Name: "a\xffb"})
	c.Set(prom.NewView("r", parse(t, samplePlan)))
	require.Contains(t, page(t, c), `worker="a�b"`)
}
