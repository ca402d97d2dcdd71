package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// observed is a run with an observation of each kind: one complete, one that lacks a field, and one without an answer.
func observed() *run.Run {
	p, r := samplePlan(), run.New(header, environment)
	p.Observes = []*plan.Observe{
		{Name: "redis", Kind: plan.ObserveServer, Fields: []plan.Field{
			{Name: "used_memory", Unit: "bytes"},
			{Name: "keyspace_hits", Counter: true},
			{Name: "used_cpu_sys", Unit: "s", Counter: true},
			{Name: "evicted_keys", Counter: true},
			{Name: "cmdstat_get_usec", Unit: "us", Counter: true},
			{Name: "mem_fragmentation_ratio"},
		}},
		{Name: "process", Kind: plan.ObserveProcess, Fields: []plan.Field{{Name: "rss_bytes", Unit: "bytes"}, {Name: "read_bytes", Unit: "bytes", Counter: true}}},
		{Name: "jvm", Kind: plan.ObservePrometheus, Fields: []plan.Field{{Name: "heap", Unit: "bytes"}}},
	}
	const denied = "another user's process: only it or root may see its I/O"
	redis, process := &judge.Observation{Of: "127.0.0.1:40115, 127.0.0.1:33211, 127.0.0.1:45001, 127.0.0.1:39873", Skipped: 2}, &judge.Observation{Of: "who listens on :40115"}
	server := func(at, n float64) *run.Probe {
		return &run.Probe{At: at, Seconds: 0.00042 * n, Value: map[string]float64{
			"used_memory": 1e6 * (10 - n), "keyspace_hits": 1e6 * n, "used_cpu_sys": n, "evicted_keys": 7, "cmdstat_get_usec": 12_345 * n,
			"mem_fragmentation_ratio": 1.5 * n,
		}}
	}
	resident := func(at, bytes float64) *run.Probe {
		return &run.Probe{At: at, Seconds: 0.0002, Value: map[string]float64{"rss_bytes": bytes}, Missing: map[string]string{"read_bytes": denied}}
	}
	redis.Begin(server(0, 1))
	redis.Add(&run.Probe{At: 1, Seconds: 1, Missing: map[string]string{"": "127.0.0.1:39873: no answer in time"}})
	redis.End(server(2, 3))
	process.Begin(resident(0, 20e6))
	process.Add(resident(1, 90e6))
	process.End(resident(2, 30e6))
	jvm := &judge.Observation{Of: "http://127.0.0.1:9100/metrics"}
	jvm.Begin(&run.Probe{Seconds: 0.001, Missing: map[string]string{"": "connection refused"}})
	jvm.End(&run.Probe{At: 2, Seconds: 0.001, Missing: map[string]string{"": "connection refused"}})
	r.Add("put", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints: endpoints(4), Load: simulate(4).closed(driver.Put, 3, 1000).totals, Generators: []measure.Generator{event},
		Observed: map[string]*judge.Observation{"redis": redis, "process": process, "jvm": jvm},
	}))
	return r
}

// Markdown has what was observed, and why something is missing.
func TestObservedMarkdown(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Markdown(&b, []timeline.Source{{Run: observed()}}))
	for _, line := range []string{
		"| phase | observed | field | |",
		"| put | redis | keyspace\\_hits | + 2,000,000 (1,000,000/s) |",
		"| put | redis | used\\_memory | 9.00 MB → 7.00 MB |",
		"| put | redis | unchanged | evicted\\_keys 7 |",
		"| put | process | rss\\_bytes | 20.0 MB → 30.0 MB, at most 90.0 MB |",
		"| put | jvm | missing | connection refused × 2 |",
	} {
		require.Contains(t, b.String(), line+"\n")
	}
}

// CSV has the value from the last probe, and nothing before the first or for what is missing.
func TestObservedCSV(t *testing.T) {
	r := observed()
	r.Phase["put"].Series = rows(3)
	var b bytes.Buffer
	require.NoError(t, CSV(&b, []timeline.Source{{Run: good()}, {Run: r}}))
	lines, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 4)
	columns := map[string][]string{}
	for i, name := range lines[0] {
		for _, line := range lines[1:] {
			columns[name] = append(columns[name], line[i])
		}
	}
	require.Equal(t, []string{"9000000", "7000000", "7000000"}, columns["redis.used_memory"])
	require.Equal(t, []string{"90000000", "30000000", "30000000"}, columns["process.rss_bytes"])
	require.Equal(t, []string{"", "", ""}, columns["process.read_bytes"])
	require.Equal(t, []string{"", "", ""}, columns["jvm.heap"])
}
