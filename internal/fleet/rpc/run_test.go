package rpc_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestFleetEqualsOneProcess runs a plan on an engine in this process and on fleets of several sizes, in virtual time: what was done and how
// long it took is the same to the byte.
func TestFleetEqualsOneProcess(t *testing.T) {
	var want, wantSeries string
	servertest.Bubble(t, func(t *testing.T) {
		m := newMill()
		e := newEngine(m, nil)
		r := coord.Run(context.Background(), config(t, "iterations = 100", []worker.Member{{Name: "local", Worker: e}}))
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		got, _ := m.seen()
		require.Equal(t, 600, got)
		want = comparable(t, r, false)
	})
	for _, n := range []int{1, 7} {
		virtual(t, n, func(t *testing.T, f *fleet) {
			r := coord.Run(context.Background(), config(t, "iterations = 100", f.members()))
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			require.Equal(t, 600, f.got())
			require.Equal(t, want, comparable(t, r, false))
			if wantSeries == "" {
				wantSeries = comparable(t, r, true)
			}
			require.Equal(t, wantSeries, comparable(t, r, true))
			for _, w := range r.Fleet {
				require.Equal(t, "here", w.Host)
			}
		})
	}
}

// comparable is the part of a result that does not depend on where it was made. The series depends on when in a second of the run clock the load
// begins, which is later with remote workers, who must hear of it first. The reasons depend on the machine that runs the test.
func comparable(t *testing.T, r *run.Run, series bool) string {
	t.Helper()
	p := r.Phase["load"]
	parts := []any{p.Op, p.Requests, p.Digest, p.Seconds}
	if series {
		parts = append(parts, p.Series)
	}
	b, err := json.Marshal(parts)
	require.NoError(t, err)
	return string(b)
}
