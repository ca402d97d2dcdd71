package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/exit"
	"github.com/loadgen/loadgen/internal/result/run"
)

// serversPlan loads servers that copy by themselves, the last phase with pauses in which they close its connections.
const serversPlan = `
plan "servers" {}
variable "endpoints" {
	type    = list(string)
	default = []
}
target "space" {
	driver    = "hydra"
	endpoints = var.endpoints
	ready     = "10s"
	builtin {
		nodes = 4
		wait  = "9s" # all are there, however slow the machine
	}
	replication {
		coordinate = "server"
		n          = 3
		w          = 2
		r          = 1
	}
}
dataset "d" {
	keys {
		count = 20
		scope = "session"
	}
	values { size = 200 }
}
dataset "others" {
	keys {
		count  = 3
		scope  = "session"
		format = "other-%d"
	}
	values { size = 200 }
}
phase "work" {
	target  = target.space
	dataset = dataset.d
	ops     = { put = 1, get = 1 }
	setup { ops = { put = 1 } }
	closed {
		sessions   = 4
		iterations = 500
	}
}
phase "delete" {
	target  = target.space
	dataset = dataset.d
	ops     = { delete = 1 }
	closed {
		sessions   = 4
		iterations = 10
	}
}
phase "pauses" {
	target  = target.space
	dataset = dataset.others
	ops     = { get = 1 }
	setup { ops = { put = 1 } }
	closed {
		sessions   = 2
		iterations = 2
		think      = "4500ms"
	}
}
`

// TestServersThatCopy: with versions kept and connections remade, nothing fails on built-in nodes, and the result has what they say of themselves.
func TestServersThatCopy(t *testing.T) {
	t.Parallel()
	r := begin(t, serversPlan).result(time.Minute)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Len(t, r.Environment.Servers["space"], 4)
	for endpoint, said := range r.Environment.Servers["space"] {
		require.Subset(t, said, map[string]string{"server": "hydra", "n": "3", "w": "2", "r": "1"}, endpoint)
	}
	for _, name := range []string{"delete", "pauses"} {
		for verb, o := range r.Phase[name].Op {
			require.Equal(t, o.Due, o.OK, "%s of %s", verb, name)
		}
	}
	work := r.Phase["work"]
	require.Equal(t, &run.Replication{Coordinate: "server", N: 3, W: 2, R: 1}, work.Target.Replication)
	require.EqualValues(t, 2000, work.Op["put"].OK+work.Op["get"].OK, "of keys that were put before")
	require.Zero(t, r.Phase["pauses"].Reconnects, "connections that were closed while they were idle")
}

// TestServersThatCopyOtherwise: the plan expects N = 3, and the server says 1.
func TestServersThatCopyOtherwise(t *testing.T) {
	t.Parallel()
	server := beginTarget(t, "--protocol", "hydra", "--n", "1", "--w", "1")
	r := begin(t, serversPlan, "-var", nodes(server.addr)).result(time.Minute)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "the server says n = 1, and the plan expects 3: start it with that, or write what it has in replication")
}
