package command_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

const longID = "20260102T030405Z-long-0000"

// longPlan is a load of some hours.
const longPlan = `
plan "long" {}
variable "hours" { type = number }
target "t" {
	driver    = "null"
	endpoints = ["a"]
	executor  = "blocking" # which waits in a way that virtual time sees
	latency   = "1ms"
}
dataset "d" {
	keys { count = 1000 }
	values { size = 32 }
}
phase "long" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	open {
		rate     = "2/s"
		arrivals = "poisson"
		duration = "${var.hours}h"
	}
}
`

// kept keeps the snapshots of a run, and looks at the memory in use after the first hour and before the end.
type kept struct {
	*rundir.Dir
	hours            int
	appended, synced int
	early, late      uint64 // bytes
}

func (d *kept) Append(worker string, snapshot []byte) error {
	switch d.appended++; d.appended {
	case 3600:
		d.early = inUse()
	case d.hours*3600 - 10:
		d.late = inUse()
	}
	return d.Dir.Append(worker, snapshot)
}

// Sync skips most of the disk's syncs, which would take longer than everything else.
func (d *kept) Sync() error {
	if d.synced++; d.synced%600 == 0 {
		return d.Dir.Sync()
	}
	return nil
}

// inUse returns the bytes that are reachable.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// runHours carries the plan out in virtual time and returns what it has kept.
func runHours(t *testing.T, hours int, root string) (d *kept) {
	t.Helper()
	file, diags := plan.Parse([]byte(longPlan), "long.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{Flags: []string{"hours=" + strconv.Itoa(hours)}})
	require.Empty(t, diags)
	canonical, err := p.Canonical()
	require.NoError(t, err)
	dir, err := rundir.Create(root, longID, canonical)
	require.NoError(t, err)
	d = &kept{Dir: dir, hours: hours}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // which the engine leaves behind
	servertest.Bubble(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		local := engine.New(engine.Config{Drivers: drivers.All(), Loops: 1, Spin: -1, Sleep: time.Sleep, Logger: log})
		defer local.Close()
		r := coord.Run(context.Background(), coord.Config{
			Header:      run.Header{ID: longID, Plan: "long", PlanDigest: plan.Digest(canonical), StartedAt: time.Now().UTC(), Loadgen: "devel"},
			Environment: machine.Environment{Servers: map[string]map[string]map[string]string{}},
			Plan:        p, Canonical: canonical, Workers: []worker.Member{{Name: "local", Worker: local}}, Store: d, Logger: log, Drain: make(chan struct{}),
		})
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		require.InDelta(t, hours*3600*2, r.Phase["long"].Op["get"].OK, 1000)
		require.NoError(t, dir.Finish(r))
	})
	return d
}

// TestLongRun runs two hours and a day in virtual time, through engine, coordinator and run directory: what is kept on disk grows with the time, and
// memory does not. Result and page are small.
func TestLongRun(t *testing.T) {
	t.Run("2h", func(t *testing.T) { testLongRun(t, 2) })
	t.Run("24h", func(t *testing.T) {
		servertest.OnDemand(t, "chaos", "takes a minute")
		testLongRun(t, 24)
	})
}

func testLongRun(t *testing.T, hours int) {
	root := t.TempDir()
	d := runHours(t, hours, root)
	t.Logf("%d snapshots; %d bytes in use after an hour, %d at the end", d.appended, d.early, d.late)
	require.GreaterOrEqual(t, d.appended, hours*3600)
	require.Less(t, float64(d.late), 1.1*float64(d.early))
	page := filepath.Join(root, "page.html")
	began := time.Now()
	reported := start(t, command(t, "report", "--runs", root, "-o", page))
	require.Zero(t, reported.wait(5*time.Minute), "%s", &reported.stderr)
	t.Logf("page after %v", time.Since(began))
	require.Less(t, sizeOf(t, page), int64(5e6))
	require.Less(t, sizeOf(t, filepath.Join(d.Path(), "result.json")), int64(2e6))
	require.Greater(t, sizeOf(t, filepath.Join(d.Path(), "snapshots.log")), int64(hours*3600*100))
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%s: %d bytes", filepath.Base(path), info.Size())
	return info.Size()
}
