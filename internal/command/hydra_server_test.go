package command_test

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/cachenode"
)

// serversPlan loads servers that copy by themselves, the last phase with pauses in which they close its connections.
const serversPlan = `
plan "servers" {}` + anyEndpoints + `
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

// TestServersOfASpace names one of three servers: the phase loads all that it lists, each with the keys of its part of the ring.
func TestServersOfASpace(t *testing.T) {
	t.Parallel()
	var all []string
	var servers []*cachenode.Node
	for range 3 {
		n, err := cachenode.New(cachenode.Config{Listen: "127.0.0.1:0", Protocol: "hydra", Memory: 64 << 20, Space: cachenode.Space{N: 1, W: 1, R: 1, Wait: 5 * time.Millisecond}})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- n.Serve(context.Background()) }()
		t.Cleanup(func() {
			n.Close()
			require.NoError(t, <-served)
		})
		servers, all = append(servers, n), append(all, n.Addr().String())
	}
	for _, n := range servers {
		n.Join(all)
	}
	text := strings.NewReplacer("n          = 3", "n          = 1", "w          = 2", "w          = 1", `ready     = "10s"`, `cluster = true`).Replace(serversPlan)
	text, _, _ = strings.Cut(text, `phase "delete"`)
	l := begin(t, text, "-var", nodes(all[1]))
	ph := l.whole().Phase["work"]
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Compare(netip.MustParseAddrPort(a).Port(), netip.MustParseAddrPort(b).Port())
	})
	require.Equal(t, all, ph.Target.Endpoints)
	require.Equal(t, "servers", ph.Target.Placement)
	require.EqualValues(t, 2000, ph.Op["put"].OK+ph.Op["get"].OK, "where the put went, the get goes")
	asked := slices.DeleteFunc(slices.Clone(ph.Requests), func(q run.Requests) bool { return q.Sent == 0 })
	require.Greater(t, len(asked), 1, "the ports decide on each node's part of the keys, and a part may be too small for one")
	text = strings.Replace(text, "cluster = true", `ready = "100ms"`, 1)
	r := begin(t, text, "-var", nodes(all[1])).result(time.Minute)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "write cluster = true")
}

// TestServersThatCopyOtherwise: the plan expects N = 3, and the server says 1.
func TestServersThatCopyOtherwise(t *testing.T) {
	t.Parallel()
	server := beginTarget(t, "--protocol", "hydra", "--n", "1", "--w", "1")
	r := begin(t, serversPlan, "-var", nodes(server.addr)).result(time.Minute)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "the server says n = 1, and the plan expects 3: start it with that, or write what it has in replication")

	// The plan expects what the server has. What was sent is what the server has counted; gets beside them are of its lists.
	counted := strings.NewReplacer("n          = 3", "n          = 1", "w          = 2", "w          = 1").Replace(serversPlan)
	counted, _, _ = strings.Cut(counted, `phase "pauses"`)
	r = begin(t, counted, "-var", nodes(server.addr)).whole()
	sent := map[string]uint64{}
	for _, ph := range r.Phase {
		all := ph.Requests
		if ph.Setup != nil {
			all = append(all, ph.Setup.Requests...)
		}
		for _, to := range all {
			sent[to.Verb] += to.Sent
		}
	}
	got := server.summary()
	require.Equal(t, []uint64{sent["put"], sent["delete"], 0}, []uint64{got["set"], got["del"], got["other"]})
	require.Greater(t, got["get"], sent["get"])
}

// TestAServerThatComesBackEmpty kills one of two servers that do not copy. Until its keys are put again, gets of them are stale.
func TestAServerThatComesBackEmpty(t *testing.T) {
	t.Parallel()
	r := begin(t, `
plan "outage" {}
target "space" {
	driver    = "hydra"
	placement = "ketama" # shares of keys that are much alike
	builtin {
		nodes = 2
		wait  = "20ms"
	}
	replication {
		coordinate = "server"
		n          = 1
		w          = 1
		r          = 1
	}
}
dataset "d" {
	keys {
		count   = 100
		writers = "one"
	}
	values { size = 200 }
}
dataset "others" {
	keys {
		count   = 20
		writers = "one"
		format  = "other-%d"
	}
	values { size = 200 }
}
phase "before" {
	target      = target.space
	dataset     = dataset.others
	ops         = { put = 1, get = 1 }
	expect_hits = 0
	staleness {}
	closed {
		sessions   = 4
		iterations = 100
	}
}
phase "both" {
	target      = target.space
	dataset     = dataset.d
	ops         = { put = 1, get = 1 }
	expect_hits = 0
	max_bad     = 1
	staleness {}
	closed {
		sessions = 4
		duration = "3s"
		think    = "1ms"
	}
	event "gone" {
		at   = "500ms"
		do   = "kill"
		node = 1
		for  = "500ms"
	}
}
`).whole()
	require.Positive(t, r.Phase["before"].Staleness.Gets)
	require.Zero(t, r.Phase["before"].Staleness.Stale, "all requests for a key go to one server")
	both := r.Phase["both"]
	require.Empty(t, both.Event["gone"].Failed)
	require.GreaterOrEqual(t, *both.Event["gone"].UndoneSeconds, *both.Event["gone"].HappenedSeconds+0.5)
	put := both.Op["put"]
	require.Positive(t, put.Causes.Lost+put.Causes.Refused)
	require.Positive(t, both.Staleness.Stale)
	require.Positive(t, both.Staleness.Gets-both.Staleness.Stale)
}
