package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

func TestShareOfBound(t *testing.T) {
	log := func(sync string, size int, speed float64) *worker.Log {
		l := &worker.Log{Log: localfile.Log{SyncUsed: sync}, EntryBytes: size, Bound: "raw"}
		if speed > 0 {
			l.BytesPerSecond = &speed
		}
		return l
	}
	l := log("msync", 100, 300)
	require.Empty(t, shareOf(l, log("msync", 100, 400)))
	require.InDelta(t, 0.75, *l.BoundShare, 1e-9)
	l = log("fdatasync", 100, 300)
	require.Empty(t, shareOf(l, log("o_direct", 100, 400)), "the same promise")
	require.InDelta(t, 0.75, *l.BoundShare, 1e-9)
	for _, c := range []struct {
		of, bound *worker.Log
		why       string
	}{
		{log("msync", 100, 300), nil, "phase raw was not run"},
		{log("msync", 100, 300), log("clwb", 100, 400), "sync is msync, and clwb in phase raw"},
		{log("msync", 100, 300), log("o_dsync", 100, 400), "sync is msync, and o_dsync in phase raw"},
		{log("msync", 100, 300), log("msync", 101, 400), "entries are of 100 bytes, and of 101 bytes in phase raw"},
		{log("msync", 100, 0), log("msync", 100, 400), "there is no rate of entries"},
		{log("msync", 100, 300), log("msync", 100, 0), "there is no rate of entries"},
		{&worker.Log{}, nil, "the plan names no bound"},
	} {
		require.Equal(t, c.why, shareOf(c.of, c.bound).Text)
		require.Nil(t, c.of.BoundShare)
	}
}
