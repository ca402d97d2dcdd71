package rpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/result/run"
)

// TestRowsPerSecondThoughAWorkerIsSilent: one of three workers falls silent and comes back, or is lost, early or after the load. Progress goes on
// each second. Once everything is known, the series has a row for each second, and together they add up to the ledger.
func TestRowsPerSecondThoughAWorkerIsSilent(t *testing.T) {
	silences := map[string]struct {
		from, to time.Duration
		lost     bool
	}{
		"suspected and back": {4500 * time.Millisecond, 11 * time.Second, false},
		"late":               {4500 * time.Millisecond, 7 * time.Second, false},
		"lost":               {5500 * time.Millisecond, time.Hour, true},
		"lost last":          {15500 * time.Millisecond, time.Hour, true},
	}
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, f *fleet) {
				cfg := config(t, `duration = "20s"`, f.members())
				f.nodes[1].after(silence.from, cut)
				f.nodes[1].after(silence.to, mend)
				updates := show(&cfg)
				r := coord.Run(context.Background(), cfg)
				require.NoError(t, r.CheckValid())
				require.Equal(t, silence.lost, len(r.Losses) > 0)
				requireAccounted(t, f, r)
				requireRows(t, r, 20)
				requireEachSecond(t, *updates, "w2", silence.from, min(silence.to, silence.from+10*time.Second))
			})
		})
	}
}

// requireRows checks that the series of the load has a row for each second, and that they hold all that ended in it.
func requireRows(t *testing.T, r *run.Run, seconds int) {
	t.Helper()
	p := r.Phase["load"]
	require.GreaterOrEqual(t, len(p.Series), seconds)
	var ok, due uint64
	at := 0.0
	for _, row := range p.Series {
		require.LessOrEqual(t, row.T-at, 1.0001, "the row that ends at %v s", row.T)
		at, ok, due = row.T, ok+row.OK, due+row.Due
	}
	require.Equal(t, p.Op["put"].OK, ok)
	require.Equal(t, p.Op["put"].Due, due)
}

// told is an update and when it came.
type told struct {
	run.Update
	at time.Time
}

// show has a run's progress kept.
func show(cfg *coord.Config) *[]told {
	var all []told
	cfg.Progress = func(u run.Update) { all = append(all, told{u, time.Now()}) }
	return &all
}

// requireEachSecond checks that progress came each second and never went back, although a worker was silent between two times after the start.
func requireEachSecond(t *testing.T, updates []told, worker string, from, to time.Duration) {
	t.Helper()
	var missed int
	for i, u := range updates {
		if i > 0 && u.Doing == "" {
			before := updates[i-1]
			require.LessOrEqual(t, u.at.Sub(before.at), 2100*time.Millisecond, "after %v", before.Elapsed)
			require.True(t, u.Final || u.Elapsed > before.Elapsed, "from %v to %v", before.Elapsed, u.Elapsed)
			require.GreaterOrEqual(t, u.Done, before.Done)
		}
		if slices.Equal(u.Awaited, []string{worker}) {
			missed++
			require.Greater(t, u.Elapsed, from)
			if u.Elapsed < 20*time.Second {
				require.InDelta(t, 80, u.Achieved, 4, "that of the two others, at %v", u.Elapsed)
				require.Positive(t, u.P99)
			}
		}
	}
	require.GreaterOrEqual(t, missed, int((to-from)/time.Second)-3)
}
