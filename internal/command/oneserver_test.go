package command_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestOneServerUnderSeveralNames: it is no replica of itself, without replication that is a doubt, and its counters count once.
func TestOneServerUnderSeveralNames(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	addr := servertest.Redis(t, "--unixsocket", socket)
	src := fmt.Sprintf(`plan "one" {}
target "c" {
	driver    = "redis"
	endpoints = [%q, "unix://%s"]
	replication {
		n = 2
		w = 2
		r = 1
	}
}`+hundredD+`
observe "s" {
	server {
		target = target.c
		fields = ["total_commands_processed"]
	}
}
phase "p" {
	target  = target.c
	dataset = dataset.d
	ops     = { put = 1 }
	closed { iterations = 500 }
}
`, addr, socket)
	r := begin(t, src).result(time.Minute)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "are one server, which replication would count as 2 replicas: write each server once")
	require.Equal(t, "0", ask(t, addr, "DBSIZE"), "it was not loaded")

	from, to := strings.Index(src, "\treplication"), strings.Index(src, "dataset \"d\"")
	r = begin(t, src[:from]+"}\n"+src[to:]).result(time.Minute)
	p := r.Phase["p"]
	i := 0
	for i < len(p.Reasons) && p.Reasons[i].Code != "same_server" {
		i++
	}
	require.Less(t, i, len(p.Reasons), "%v", p.Reasons)
	require.Equal(t, run.Suspect, p.Reasons[i].Validity)
	require.Equal(t, addr, r.Environment.Servers["c"][addr]["address"])
	require.Less(t, *p.Observe["s"]["total_commands_processed"].Delta, 600.0, "of 500 puts")
}
