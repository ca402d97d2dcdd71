package coord_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// logger is a worker whose log files have been read back; its final report counts where nothing is to replace it.
type logger struct {
	*fakeWorker
	gone     bool // before it has said what became of its files
	stopped  bool // on its own machine
	unproven string
}

func (w *logger) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	final, err := w.fakeWorker.Run(ctx, at, sink)
	if w.gone {
		return worker.Final{}, &worker.Loss{Worker: "w1", Why: "it is gone"}
	}
	final.Stopped = w.stopped
	final.Log = &worker.Log{Log: localfile.Log{SyncUsed: "msync", Durable: true, Forces: 1}, Unproven: w.unproven}
	if w.unproven == "" {
		final.Log.Proof = &localfile.Proof{Acknowledged: 1, Verified: 1, Recovered: 1}
	}
	return final, err
}

// Nobody reads back what a lost worker has written. That the others' files are as they should be says nothing about it.
func TestLostWorkersLogIsNotVerified(t *testing.T) {
	const text = `
plan "test" {}
target "t" {
	driver = "log"
	sync   = "msync"
}
dataset "d" {
	keys { count = 10 }
	values { size = 64 }
}
phase "p" {
	target  = target.t
	dataset = dataset.d
	ops     = { append = 1 }
	closed {
		sessions   = 2
		iterations = 1
	}
}`
	for _, tt := range []struct {
		first, second logger
		why           string // "": all is verified
	}{
		{logger{}, logger{}, ""},
		{logger{}, logger{gone: true}, "worker w1 was lost"},
		{logger{gone: true}, logger{gone: true}, "worker w0 was lost, worker w1 was lost"},
		{logger{}, logger{stopped: true}, ""},
		{logger{}, logger{stopped: true, unproven: "the worker was stopped"}, "the worker was stopped"},
	} {
		a, b := newFake(), newFake()
		a.count, b.count = appended, appended
		cfg := configOf(t, text, local, a, b)
		tt.first.fakeWorker, tt.second.fakeWorker = a, b
		cfg.Workers[0].Worker, cfg.Workers[1].Worker = &tt.first, &tt.second
		p := coord.Run(context.Background(), cfg).Phase["p"]
		require.NotNil(t, p.Log)
		require.Equal(t, !tt.first.gone, p.Log.Durable)
		require.Equal(t, !tt.second.gone, p.Log.ForcesPerOp != nil, "a lost worker's forces are not known, though its ops are")
		var said []string
		for _, r := range p.Reasons {
			said = append(said, r.Text)
		}
		if tt.why == "" {
			require.NotNil(t, p.Log.Proof)
			require.NotContains(t, strings.Join(said, "; "), "not verified")
			continue
		}
		require.Nil(t, p.Log.Proof)
		require.Equal(t, tt.why, p.Log.Unproven)
		require.Contains(t, said, "what was written was not verified: "+tt.why)
		require.Equal(t, run.Invalid, p.Validity)
	}
}
