package command_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
)

// pageAddress matches what a process says when it serves metrics.
var pageAddress = regexp.MustCompile(`metrics at http://(\S+)/metrics`)

// page returns the address of the metrics that a process serves.
func (p *process) page() string {
	p.t.Helper()
	var match []string
	p.until(func() bool {
		match = pageAddress.FindStringSubmatch(p.stderr.String())
		return match != nil
	})
	return match[1]
}

// fetch returns what a page says; it is no longer there once its process ends.
func fetch(address, path string) (string, error) {
	client := http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = errors.New(reply.Status)
	}
	return string(b), err
}

// lastPage fetches a page until its process ends, and returns the last one.
func (l *load) lastPage() string {
	l.t.Helper()
	address := l.page()
	var last string
	require.Eventually(l.t, func() bool {
		page, err := fetch(address, "/metrics")
		if err == nil {
			last = page
		}
		return err != nil
	}, 2*time.Minute, 50*time.Millisecond)
	require.Contains(l.t, last, "\nloadgen_run_active{")
	return last
}

// TestMetricsOfARun scrapes a run until it ends: the last page counts what the result counts.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "-var", "duration=6s", "--http", "127.0.0.1:0")
	page := l.lastPage()
	r := l.whole()
	require.Contains(t, page, fmt.Sprintf("loadgen_ops_total{op=\"get\",outcome=\"ok\",phase=\"gets\",run=%q} %d\n", r.ID, r.Phase["gets"].Op["get"].OK))
	require.Contains(t, page, fmt.Sprintf("loadgen_ops_total{op=\"put\",outcome=\"ok\",phase=\"fill\",run=%q} 100\n", r.ID))
	require.Contains(t, page, fmt.Sprintf("loadgen_worker_up{run=%q,worker=\"local\"} 1\n", r.ID))
	require.Contains(t, page, fmt.Sprintf("loadgen_run_active{run=%q} 0\n", r.ID))
}

// TestMetricsOfACappedRun scrapes an experiment whose run is ended by its cap, as planned: it was not aborted.
func TestMetricsOfACappedRun(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
experiment {
	repeat = 1
	order  = "sequential"
	cap    = "1500ms"
	variant "long" { duration = "1m" }
	variant "short" { duration = "50ms" }
}`, "--http", "127.0.0.1:0")
	page := l.lastPage()
	x := l.experiment(60 * time.Second)
	i := slices.IndexFunc(x.Runs, func(r run.ExperimentRun) bool { return r.Variant == "long" })
	require.Contains(t, page, fmt.Sprintf("loadgen_run_completeness{run=%q} 0\n", x.Runs[i].ID))
	require.Contains(t, page, fmt.Sprintf("loadgen_run_active{run=%q} 0\n", x.Runs[i].ID))
}

// samplesOf returns the samples of a page by their names and labels.
func samplesOf(t *testing.T, page string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "loadgen_") {
			at := strings.LastIndexByte(line, ' ')
			value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			require.NoError(t, err, line)
			all[line[:at]] = value
		}
	}
	return all
}

// counted matches metrics that add up over workers without rounding: counters and buckets.
var counted = regexp.MustCompile(`^loadgen_[a-z]+\w*_(total|bucket|count)\{`)

// TestPagesOfAFleet compares the pages of three workers, which discovery lists, with that of their coordinator, and the number of series
// on them with what plan check says. After the run, the workers' pages stay.
func TestPagesOfAFleet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(closedPlan), 0o600))
	tm := invite(t, 3, func(args ...string) *load { return beginFile(t, path, args...) }, "-var", "duration=6s", "--http", "127.0.0.1:0")
	none, err := fetch(tm.page(), "/sd")
	require.NoError(t, err)
	require.Equal(t, "[]\n", none, "nobody has come")
	for range 3 {
		tm.join(tm.addr, "--http", "127.0.0.1:0", "--once=false")
	}
	tm.underWay()
	list, err := fetch(tm.page(), "/sd")
	require.NoError(t, err)
	sum := map[string]float64{}
	for i, w := range tm.workers {
		require.Contains(t, list, fmt.Sprintf(`{"targets":[%q],"labels":{"__meta_loadgen_worker":"w%d"}}`, w.page(), i+1))
		ok, err := fetch(w.page(), "/healthz")
		require.NoError(t, err)
		require.Equal(t, "ok\n", ok)
	}
	whole := samplesOf(t, tm.lastPage())
	r := tm.whole()

	var parts int
	for _, w := range tm.workers {
		var part map[string]float64
		require.Eventually(t, func() bool {
			page, err := fetch(w.page(), "/metrics")
			require.NoError(t, err)
			part = samplesOf(t, page)
			return part[fmt.Sprintf("loadgen_run_active{run=%q}", r.ID)] == 0
		}, 60*time.Second, 10*time.Millisecond, "it ends with the run")
		for name, n := range part {
			sum[name] += n
		}
		parts = len(part)
	}
	compared := 0
	for name, n := range whole {
		if counted.MatchString(name) && !strings.HasPrefix(name, "loadgen_worker_") {
			require.Equal(t, n, sum[name], name)
			compared++
		}
	}
	require.Greater(t, compared, 100)
	require.EqualValues(t, r.Phase["gets"].Op["get"].OK, sum[fmt.Sprintf("loadgen_ops_total{op=\"get\",outcome=\"ok\",phase=\"gets\",run=%q}", r.ID)])
	for i := range tm.workers {
		of := fmt.Sprintf("{run=%q,worker=\"w%d\"}", r.ID, i+1)
		require.EqualValues(t, 1, whole["loadgen_worker_up"+of])
		require.Positive(t, whole["loadgen_worker_cpu_seconds_total"+of])
		require.Positive(t, whole["loadgen_worker_clock_uncertainty_seconds"+of])
		require.Contains(t, whole, "loadgen_worker_last_seen_seconds"+of)
	}

	check := start(t, command(t, "plan", "check", path))
	require.Zero(t, check.wait(60*time.Second))
	require.Contains(t, check.stdout.String(), fmt.Sprintf(
		"%d series on the coordinator's page and 5 more for each worker; %d on a worker's own page.\n", len(whole)-3*5, parts))
}

// TestPageBeyondTheLoopback: metrics, the live page and its stream are served to visitors who prove who they are.
func TestPageBeyondTheLoopback(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(canary+canary+"\n"), 0o600))
	l := begin(t, closedPlan, "-var", "duration=6s", "--http", "0.0.0.0:0", "--http-token-file", token)
	port := securePage.FindStringSubmatch(eventually(t, l.process, securePage))[1]
	require.Contains(t, l.stderr.String(), "a browser takes https://")
	require.NotContains(t, l.stderr.String(), canary)
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for path, begins := range map[string]string{"/metrics": "# HELP loadgen_", "/": "<!doctype html>", "/stream": "retry: "} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+path, nil)
		require.NoError(t, err)
		for given, code := range map[string]int{"": 401, canary: 401, canary + canary: 200} {
			request.Header.Set("Authorization", "Bearer "+given)
			reply, err := client.Do(request)
			require.NoError(t, err)
			page, err := io.ReadAll(io.LimitReader(reply.Body, int64(len(begins)))) // all of the stream would be as long as the run
			require.NoError(t, err)
			require.NoError(t, reply.Body.Close())
			require.Equal(t, code, reply.StatusCode, path)
			require.Equal(t, code == 200, string(page) == begins, path)
		}
	}
	client.CloseIdleConnections()
	l.clean(60 * time.Second)
}

// securePage matches what a process says when it serves metrics beyond the loopback.
var securePage = regexp.MustCompile(`metrics at https://\S+:(\d+)/metrics\n`)

// eventually waits for a process to say something that matches, and returns it.
func eventually(t *testing.T, p *process, looked *regexp.Regexp) string {
	t.Helper()
	p.until(func() bool { return looked.MatchString(p.stderr.String()) })
	return p.stderr.String()
}

// TestMetricsFlagsAreChecked before any load.
func TestMetricsFlagsAreChecked(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(short, []byte("hunter2\n"), 0o600))
	for says, args := range map[string][]string{
		"a token of 7 bytes can be guessed":           {"--http", "0.0.0.0:0", "--http-token-file", short},
		"is on the loopback, where the page":          {"--http", "127.0.0.1:0", "--http-cert", "x", "--http-key", "y"},
		"belong together: give both":                  {"--http", "0.0.0.0:0", "--http-key", "y"},
		"write an address of this machine instead of": {"--http", "metrics.example:0"},
	} {
		w := start(t, command(t, append([]string{"worker", "--join", "127.0.0.1:1"}, args...)...))
		require.Equal(t, exit.Failed, w.wait(60*time.Second))
		require.Contains(t, w.stderr.String(), says)
		l := begin(t, closedPlan, args...)
		r := l.result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], says)
		require.Empty(t, r.PhaseOrder)
	}
	w := start(t, command(t, "worker", "--http-name", "x"))
	require.Equal(t, 2, w.wait(60*time.Second))
	require.Contains(t, w.stderr.String(), "add --http HOST:PORT")
}
