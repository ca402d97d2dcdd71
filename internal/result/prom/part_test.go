package prom_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
)

// ofProcess matches lines about the worker's process, which differ in each test.
var ofProcess = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?process_.*\n`)

// partPage is a worker's page without the facts about its process.
func partPage(t testing.TB, c *prom.Collector) string {
	t.Helper()
	return ofProcess.ReplaceAllString(page(t, c), "")
}

func TestPartPage(t *testing.T) {
	c := prom.NewPart()
	c.Set(sampleView(parse(t, samplePlan), 3))
	got := partPage(t, c)
	path := filepath.Join("testdata", "worker.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	whole := page(t, c)
	problems, err := promlint.New(strings.NewReader(whole)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"} {
		require.Regexp(t, `(?m)^`+name+` [0-9.]*[1-9]`, whole)
	}
}

// TestAPartIsThePageOfTheWhole: a worker's page equals what the coordinator's would show with that worker alone, except for what the worker does not
// know.
func TestAPartIsThePageOfTheWhole(t *testing.T) {
	part := prom.NewPart()
	part.Set(sampleView(parse(t, samplePlan), 3))
	unknown := regexp.MustCompile(`loadgen_(run_(completeness|validity|assertions)|worker_|event|assert|observed)`)
	var known []string
	for line := range strings.Lines(page(t, sampleCollector(t, 3))) {
		if !unknown.MatchString(line) {
			known = append(known, line)
		}
	}
	require.Equal(t, known, slices.Collect(strings.Lines(partPage(t, part))))
}

func TestAPartHasNoDiscovery(t *testing.T) {
	require.Equal(t, 404, get(t, prom.NewPart(), "/sd", "").StatusCode)
	require.Equal(t, 200, get(t, prom.NewPart(), "/healthz", "").StatusCode)
}

// TestAPartIsActiveUntilTheRunEnds: a worker that waits for the next run shows what it counted in the last.
func TestAPartIsActiveUntilTheRunEnds(t *testing.T) {
	c := prom.NewPart()
	require.Empty(t, partPage(t, c))
	feed := prom.NewFeed(c, "r", parse(t, samplePlan))
	require.Contains(t, page(t, c), "loadgen_run_active{run=\"r\"} 1\n")
	feed.End(run.Verdict{}, nil)
	require.Contains(t, page(t, c), "loadgen_run_active{run=\"r\"} 0\n")
}

// TestBytesThatNobodyCountsAreAbsent: a client sends requests without reporting their bytes.
func TestBytesThatNobodyCountsAreAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		sent, out uint64
		files     bool
		shown     bool
	}{
		"not counted":    {sent: 9},
		"counted":        {sent: 9, out: 700, shown: true},
		"nothing sent":   {shown: true},
		"reads of files": {sent: 9, files: true, shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := prom.NewView("r", parse(t, samplePlan))
			ph := &v.Phases[0]
			ph.Files, ph.Load = tt.files, measure.NewTotals(1, 1)
			verb := ph.Verbs[0]
			ph.Load.AddBytes(verb, 0, int(tt.out))
			ph.Load.Request(0, verb).Sent = tt.sent
			c := prom.NewPart()
			c.Set(v)
			line := fmt.Sprintf("loadgen_sent_bytes_total{op=%q,phase=%q,run=\"r\"} %d\n", verb, ph.Name, tt.out)
			require.Equal(t, tt.shown, strings.Contains(page(t, c), line))
		})
	}
}
