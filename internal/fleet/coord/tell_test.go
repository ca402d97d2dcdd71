package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// logPhase is a phase that loads log files.
const logPhase = `
plan "test" {}
target "t" { driver = "log" }
dataset "d" {
	keys { count = 1 }
	values { size = 100 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.d
	ops     = { append = 1 }
	closed { iterations = 1 }
}`

// said lists the messages other than figures, with their times.
func said(cfg *coord.Config) *[]string {
	all := &[]string{}
	cfg.Progress = func(u run.Update) {
		if u.Doing != "" {
			*all = append(*all, u.Phase+" "+u.Elapsed.String()+" "+u.Doing)
		}
	}
	return all
}

// TestLongWaitsAreTold if a worker takes long to create its files, and to verify them.
func TestLongWaitsAreTold(t *testing.T) {
	for text, want := range map[string][]string{
		logPhase: {
			"fill 1s its log files are being made ready", "fill 2s its log files are being made ready",
			"fill 1s its log files are being verified, and deleted unless a later phase has them",
		},
		strings.NewReplacer(`"log"`, `"null"`, "append", "put").Replace(logPhase): {"fill 1s getting ready", "fill 2s getting ready", "fill 1s ending"},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			w := newFake()
			if text == logPhase {
				w.count = appended
			}
			w.prepare = func(context.Context) { time.Sleep(2500 * time.Millisecond) }
			w.lie = func(*worker.Final) { time.Sleep(1500 * time.Millisecond) }
			cfg := configOf(t, text, local, w)
			all := said(&cfg)
			coord.Run(t.Context(), cfg)
			require.Equal(t, want, *all)
		})
	}
}

// TestDeletingIsTold within a second of Ctrl-C: the kernel takes long to free large files.
func TestDeletingIsTold(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		w := newFake()
		w.prepare = func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(2200 * time.Millisecond)
		}
		w.prepareErr = context.Canceled
		cfg := configOf(t, logPhase, local, w)
		all := said(&cfg)
		drain := make(chan struct{})
		cfg.Drain = drain
		time.AfterFunc(1500*time.Millisecond, func() { close(drain) })
		r := coord.Run(t.Context(), cfg)
		require.Equal(t, exit.Aborted, r.ExitCode)
		require.Equal(t, []string{
			"fill 1s its log files are being made ready",
			"fill 2s stopping: its log files are being deleted", "fill 3s stopping: its log files are being deleted",
		}, *all)
	})
}
