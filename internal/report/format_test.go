package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

func TestFormat(t *testing.T) {
	tests := []struct{ got, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(-1234567), "-1,234,567"},
		{count(-999), "-999"},
		{whole(0), "0"},
		{whole(1.234), "1.23"},
		{whole(99.96), "100"},
		{whole(83213.6), "83,214"},
		{si(0), "0"},
		{si(9.996), "10.0"},
		{si(99.96), "100"},
		{si(999.6), "1.00k"},
		{si(83_214), "83.2k"},
		{si(1e9), "1.00G"},
		{si(5e15), "5000T"},
		{size(uint64(999)), "999 B"},
		{size(int64(1000)), "1.00 kB"},
		{size(uint64(2_311_000)), "2.31 MB"},
		{blocks(0), "0 B"},
		{blocks(200), "200 B"},
		{blocks(4096), "4 KiB"},
		{blocks(3 << 20), "3 MiB"},
		{blocks(1801), "1.80 kB"},
		{plural(1, "node"), "1 node"},
		{plural(0, "node"), "0 nodes"},
		{plural(1000, "node"), "1,000 nodes"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.got)
	}
}

func TestFlow(t *testing.T) {
	require.Equal(t, []string{""}, Wrap("", 10))
	require.Equal(t, []string{"one two", "three"}, Wrap(" one  two\nthree ", 9))
	require.Equal(t, []string{"µµµµ µµµµ"}, Wrap("µµµµ µµµµ", 9))
	require.Equal(t, []string{"unbreakable", "x"}, Wrap("unbreakable x", 5))
	require.Equal(t, []string{"took", "1.90 s;", "10 % of", "it"}, Wrap("took 1.90 s; 10 % of it", 7))
	require.Equal(t, []string{"1 MB out ·", "2 MB in"}, flow([]string{"1 MB out", "2 MB in"}, " · ", 12))
}

// A row's unit is that of its median; where the maximum would not fit it is a larger one.
func TestUnitOf(t *testing.T) {
	for _, tt := range []struct {
		p50, max float64
		unit     string
		text     string // of p50
	}{
		{0, 0, "µs", "0.0"},
		{120e-6, 999e-6, "µs", "120.0"},
		{120e-6, 0.9999, "µs", "120.0"},
		{120e-6, 10, "ms", "0.120"},
		{1e-3, 2e-3, "ms", "1.000"},
		{1e-3, 10, "ms", "1.000"},
		{1e-3, 10_000, "s", "0.001"},
		{1, 2, "s", "1.000"},
	} {
		u := unitOf(run.Latency{Min: &tt.p50, P50: &tt.p50, Max: &tt.max})
		require.Equal(t, tt.unit, u.name)
		require.Equal(t, tt.text, u.text(tt.p50))
		require.Less(t, columns(u.text(tt.max)), cell)
	}
}

// What a phase was asked to do, in words.
func TestLoadOf(t *testing.T) {
	for _, tt := range []struct {
		ph   run.Phase
		want string
	}{
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Shape{Sessions: 1, Pipeline: 1, Iterations: 5, DurationSeconds: 60}},
			"closed, 1 session, 5 ops each, at most 1m 0s",
		},
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Shape{Sessions: 2, Pipeline: 16, DurationSeconds: 30, RampSeconds: 1, ThinkSeconds: 0.01}},
			"closed, 2 sessions × 16 in flight, 30.0 s, ramp 1.00 s, think 10.0 ms",
		},
		{
			run.Phase{Kind: "load", Model: "closed", Load: run.Shape{Sessions: 2, Pipeline: 1}},
			"closed, 2 sessions, every key once",
		},
		{
			run.Phase{Kind: "load", Model: "open", Load: run.Shape{Rate: 20000, Arrivals: "constant", DurationSeconds: 30, Sessions: 16, Pipeline: 4, InFlight: 64, OnFull: "wait"}},
			"open, 20,000/s constant, 30.0 s, 16 sessions × 4 in flight, at most 64 in flight, more wait",
		},
		{run.Phase{Kind: "clear", Model: "closed", Seconds: 1, Load: run.Shape{Sessions: 4, Pipeline: 2}}, "clear, 4 sessions × 2 in flight"},
	} {
		require.Equal(t, tt.want, loadOf(&tt.ph))
	}
}

// TestDatasetOf says nothing of keys where the layout of a log has no use for them.
func TestDatasetOf(t *testing.T) {
	ph := &run.Phase{}
	ph.Dataset.Name, ph.Dataset.Keys, ph.Dataset.Pick, ph.Dataset.Scope, ph.Dataset.ValueBytes = "d", 100, "uniform", "shared", 1024
	require.Equal(t, "d: 100 keys shared, uniform, values of 1 KiB", datasetOf(ph))
	for layout, want := range map[string]string{
		"append": "d: values of 1 KiB", "channel": "d: values of 1 KiB", "raw": "d: values of 1 KiB", "array": "d: 100 slots shared, uniform, values of 1 KiB",
	} {
		ph.Log = &run.Log{Log: localfile.Log{Layout: layout}}
		require.Equal(t, want, datasetOf(ph), layout)
	}
}

func TestTargetOf(t *testing.T) {
	ph := func(fanout, from string, op string) *run.Phase {
		p := &run.Phase{Op: map[string]*run.Op{op: {}}}
		p.Target.Name, p.Target.Driver, p.Target.Endpoints = "space", "redis", endpoints(3)
		p.Target.Replication = &run.Replication{Coordinate: "client", N: 3, W: 2, R: 2, ReadFanout: fanout, ReadFrom: from}
		return p
	}
	const head = "space: redis, 3 endpoints, N=3 W=2 R=2 by the client"
	require.Equal(t, head, targetOf(ph("n", "", "put")))
	require.Equal(t, head+", a get asks 3 nodes", targetOf(ph("n", "", "get")))
	require.Equal(t, head+", a get asks 2 nodes", targetOf(ph("r", "first", "get")))
	require.Equal(t, head+", a get asks 2 nodes at random", targetOf(ph("r", "random", "get")))
}
