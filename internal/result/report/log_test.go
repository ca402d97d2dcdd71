package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// TestMarkdownSaysWhatALogPromised with its figures, as a terminal does.
func TestMarkdownSaysWhatALogPromised(t *testing.T) {
	r := run.New(run.Header{Plan: "p"}, machine.Environment{})
	r.PhaseOrder = []string{"fill"}
	r.Phase["fill"] = &run.Phase{Log: &worker.Log{
		Log: localfile.Log{
			Layout: "append", SyncAsked: "auto", SyncUsed: "fdatasync", FileSystem: "tmpfs", Caveats: []string{"tmpfs lives in memory"}, Clear: "inside", Prealloc: "zero",
			Files: 2, FileBytes: 1 << 20, Bytes: 2000, GroupCommit: "at once", Batches: []localfile.Batch{{Entries: 1, Syncs: 1}, {Entries: 2, Syncs: 2}, {Entries: 8, Syncs: 1}},
			AtRisk: &localfile.AtRisk{EntriesMax: 2000, EntriesMean: 1000.5, BytesMax: 3000, BytesMean: 1500, SecondsMax: 0.5, LastSyncSeconds: 0.002},
		},
		Threads: []measure.Thread{{Sessions: 1}},
		Proof:   &localfile.Proof{Acknowledged: 20, Verified: 19},
	}, Device: &run.Device{BytesPerOp: new(5120.0), Amplification: new(2.5)}, Nulls: map[string]string{"device.flushes_per_op": "sda is never flushed"}}
	var b strings.Builder
	require.NoError(t, Markdown(&b, []timeline.Source{{Run: r}}))
	_, logs, _ := strings.Cut(b.String(), "|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
	require.Equal(t, `
| phase | | |
|---|---|---|
| fill | log | append, when full: inside, sync auto asked, fdatasync used by group commit at once, NOT durable, 2 files of 1 MiB, prealloc zero, on tmpfs |
| fill | written | 2.00 kB of entries, 0 resets |
| fill | device | 5.12 kB an op, 2.50 times the entries, flushes are not known: sda is never flushed |
| fill | syncs | 25 % with 1 entry, 50 % with 2, 25 % with 5 to 8 |
| fill | at risk | acknowledged and not durable: up to 2,000 entries, 3.00 kB, for 500 ms, on average 1000.5 entries, 1.50 kB, the last sync took 2.00 ms |
| fill | verified | 19/20 entries that must be there, by another process |
| fill | caveat | tmpfs lives in memory |
`, logs)
}

// TestServiceHasTwoParts if it is known for how long ops waited for a sync.
func TestServiceHasTwoParts(t *testing.T) {
	p, r, s := samplePlan(), run.New(header, environment), simulate(4).closed(driver.Put, 3, 1000)
	for range 10_000 {
		s.totals.Split(driver.Put, 120*µs, 100*µs)
	}
	r.Add("put", judge.NewPhase(p, p.Phases[0], judge.Measured{Endpoints: endpoints(4), Load: s.totals, Generators: []measure.Generator{event}}))
	var b strings.Builder
	require.NoError(t, Text(&b, r, Options{}))
	require.Regexp(t, `service +.*\n +write .* 20\.0 .*\n +sync .* 100\.0 .*\n +lag`, b.String())
}
