package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// Two remote workers share a trace: a real server gets each of its ops once, and each worker has half of the sessions.
func TestTraceIsDividedBetweenRemoteWorkers(t *testing.T) {
	t.Parallel()
	addr, dir := servertest.Redis(t), filepath.Join("..", "..", "plans")
	begin := func(args ...string) *load {
		return beginFile(t, filepath.Join(dir, "trace.hcl"), append(args, "-var", "speed=4", "-var", nodes(addr))...)
	}
	before := countCalls(t, addr)
	tm := invite(t, 2, begin)
	tm.join(tm.addr, "--files", dir)
	tm.join(tm.addr, "--files", dir)
	r := tm.result(60 * time.Second)
	served := countCalls(t, addr)
	replay := r.Phase["replay"]
	var ended uint64
	for verb, o := range replay.Op {
		require.Equal(t, o.Due, o.OK+o.Miss, verb)
		require.Equal(t, served[verb]-before[verb], o.OK+o.Miss, verb)
		ended += o.OK + o.Miss
	}
	require.EqualValues(t, replay.Trace.Lines, ended)
	require.Len(t, r.Fleet, 2)
	for _, w := range r.Fleet {
		require.Equal(t, 8, w.Sessions, w.Name)
	}
}

// rerunPlan has sessions replay a trace without times: once, over and over for a while, and with a fixed number of lines per session.
const rerunPlan = `plan "rerun" {}
variable "endpoints" { type = list(string) }` + redisT + tenSmall + fillD + `
phase "once" {
	target  = target.t
	dataset = dataset.d
	closed {
		trace {
			file = "ops.csv"
			form = "csv"
		}
		sessions = 8
		pipeline = 16
	}
}
phase "bounded" {
	target  = target.t
	dataset = dataset.d
	closed {
		trace {
			file = "ops.csv"
			form = "csv"
			loop = true
		}
		sessions   = 8
		iterations = 1000
	}
}
phase "timed" {
	target  = target.t
	dataset = dataset.d
	closed {
		trace {
			file = "ops.csv"
			form = "csv"
			loop = true
		}
		sessions = 8
		duration = "500ms"
	}
}
`

// Sessions of two workers send a real server the lines of a file without times: each once, and those of one key in order, as the server's hits and
// its final content show. Repeated over and over, they end at their bounds.
func TestSessionsReplayATrace(t *testing.T) {
	t.Parallel()
	addr, dir := servertest.Redis(t), t.TempDir()
	var b strings.Builder
	b.WriteString("key,op,size\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "user:%[1]d,set,%[2]d\nuser:%[1]d,get,\nuser:%[1]d,delete,\nuser:%[1]d,get,\nuser:%[1]d,set,%[3]d\n", i%60, i, i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ops.csv"), []byte(b.String()), 0o600))
	digests := map[string]bool{}
	for _, workers := range []int{1, 2} {
		before := countCalls(t, addr)
		tm := invite(t, workers, func(args ...string) *load {
			return begin(t, rerunPlan, append(args, "--files", dir, "-var", nodes(addr))...)
		})
		for range workers {
			tm.join(tm.addr, "--files", dir)
		}
		r := tm.result(60 * time.Second)
		served, ended := countCalls(t, addr), calls{}
		for name, ph := range r.Phase {
			require.NotContains(t, fmt.Sprint(ph.Reasons), "expect_hits", "what populate has put is not asked for")
			for verb, o := range ph.Op {
				require.Equal(t, o.Due, o.OK+o.Miss, "%s %s", name, verb)
				ended[verb] += o.OK + o.Miss
			}
		}
		for verb, n := range ended {
			require.Equal(t, served[verb]-before[verb], n, verb)
		}
		once := r.Phase["once"].Op
		require.EqualValues(t, 6000, once["put"].OK)
		require.EqualValues(t, 3000, once["delete"].OK, "each after the put of its key")
		require.EqualValues(t, 3000, once["get"].OK, "one after the put")
		require.EqualValues(t, 3000, once["get"].Miss, "the other after the delete")
		var bounded uint64
		for _, o := range r.Phase["bounded"].Op {
			bounded += o.Due
		}
		require.EqualValues(t, 8000, bounded)
		require.Greater(t, r.Phase["timed"].Op["get"].OK, uint64(0))
		digests[r.Phase["once"].Digest+r.Phase["bounded"].Digest] = true
	}
	require.Len(t, digests, 1, "any number of workers asks for the same")
}
