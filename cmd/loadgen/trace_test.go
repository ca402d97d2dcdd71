package main_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// Two workers elsewhere divide a trace between them: a real server is asked for each of its ops once, and each has half of the sessions.
func TestTraceIsDividedBetweenRemoteWorkers(t *testing.T) {
	addr, dir := servertest.Redis(t), filepath.Join("..", "..", "plans")
	begin := func(args ...string) *load {
		return beginFile(t, filepath.Join(dir, "trace.hcl"), append(args, "-var", "speed=4", "-var", nodes(addr))...)
	}
	before := countCalls(t, addr)
	tm := invite(t, 2, begin)
	tm.join(tm.addr, "--files", dir)
	tm.join(tm.addr, "--files", dir)
	r := tm.result(30 * time.Second)
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
