package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// storm starts the given number of workers at once, as if each were on its own machine: it enrols with the token, and joins. It returns how long it
// took to admit them all.
func storm(t testing.TB, workers int) time.Duration {
	dir := filepath.Join(t.TempDir(), "fleet")
	place, err := identity.Means{Dir: dir}.ListenAt("127.0.0.1:0")
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	server, err := Listen(Config{Place: place, Run: "r", Version: "v1", Timing: DefaultTiming(), Logger: quiet})
	require.NoError(t, err)
	defer server.Close()
	tokens, err := identity.OpenTokens(dir)
	require.NoError(t, err)
	token, err := tokens.Create(time.Minute, workers)
	require.NoError(t, err)
	configs := make([]JoinConfig, workers)
	homes := memory(t)
	for i := range configs {
		name := fmt.Sprintf("w%04d", i)
		place, err := identity.Means{Dir: filepath.Join(homes, fmt.Sprint(i)), Token: token, Name: name}.JoinAt(server.Addr())
		require.NoError(t, err)
		configs[i] = JoinConfig{
			Place: place, Name: name, Version: "v1", Once: true, Logger: quiet,
			New: func() Local { return &simulated{} },
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	began := time.Now()
	for _, cfg := range configs {
		all.Go(func() {
			if err := Join(ctx, cfg); err != nil {
				t.Error(err)
			}
		})
	}
	members, err := server.Wait(ctx, workers)
	took := time.Since(began)
	require.NoError(t, err)
	require.Len(t, members, workers)
	list, err := tokens.List()
	require.NoError(t, err)
	require.GreaterOrEqual(t, list[0].Uses, 0)
	return took
}

// memory returns a directory in memory, where there is one: the workers of a storm do not share a disk.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "storm")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// TestManyEnrolAtOnce lets in whom the token is for.
func TestManyEnrolAtOnce(t *testing.T) { storm(t, 20) }

// BenchmarkJoinStorm measures how long it takes until 1,000 workers have enrolled with a token and joined. They share this process' processors with
// the coordinator.
func BenchmarkJoinStorm(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(storm(b, 1000).Seconds(), "join-s")
		b.ReportMetric(0, "ns/op") // the rest is preparation
	}
}
