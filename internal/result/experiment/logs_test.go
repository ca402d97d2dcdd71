package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// TestLogsAreSaidOnce for all runs that count: each place and durability, each caveat, and one sum.
func TestLogsAreSaidOnce(t *testing.T) {
	x := run.NewExperiment("x")
	x.Variants = []run.Variant{{Name: "a"}, {Name: "b"}}
	logged := func(id, variant, asked, sync string, durable bool, proof *localfile.Proof) *run.Run {
		x.Runs = append(x.Runs, run.ExperimentRun{ID: id, Variant: variant, Stopped: run.StopFinished})
		r := &run.Run{Phase: map[string]*run.Phase{"p": {}, "q": {}}, PhaseOrder: []string{"p", "q"}}
		r.ID, r.Variant = id, variant
		r.Phase["p"].Log = &worker.Log{Log: localfile.Log{SyncAsked: asked, SyncUsed: sync, FileSystem: "ext4 on /dev/vda", Durable: durable, Caveats: []string{"a cache"}, Bytes: 1}, Proof: proof}
		return r
	}
	runs := []*run.Run{
		logged("1", "a", "msync", "msync", true, &localfile.Proof{Acknowledged: 5, Verified: 5}),
		logged("2", "a", "auto", "msync", true, &localfile.Proof{Acknowledged: 7, Verified: 6}),
		logged("3", "b", "clwb", "clwb", false, nil),
	}
	failed := logged("4", "b", "none", "none", false, nil)
	x.Runs[3].Stopped = run.StopFailed
	require.Equal(t, []string{
		"sync msync used on ext4 on /dev/vda", "a cache", "sync msync used where auto was asked, on ext4 on /dev/vda",
		"sync clwb used on ext4 on /dev/vda, NOT durable",
		"verified 11/12 entries that must be there, by another process; nothing in 1 of 3 phases",
	}, newComparer(x, append(runs, failed)).logs())
	require.Equal(t, "verified 5/5 entries that must be there, by another process", newComparer(x, runs[:1]).logs()[2], "all of them are proven")
	require.Empty(t, newComparer(x, nil).logs())
	runs[0].PhaseOrder = []string{"gone", "p", "q"}
	require.Len(t, newComparer(x, runs[:1]).logs(), 3, "a phase that it does not have")
}
