package command_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// phasesPlan fills, uses and clears a key space; a variable says which.
const phasesPlan = `
plan "phases" {}` + anyEndpoints + `
variable "do" { type = list(string) }
variable "keys" { default = 500 }

target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	builtin { nodes = 2 }
}
dataset "ordered" {
	keys {
		pick  = "sequence"
		count = var.keys
	}
	values { size = 100 }
}
dataset "skewed" {
	keys {
		pick  = "zipf(0.99)"
		count = var.keys
	}
	values { size = 100 }
}

phase "populate" {
	target  = target.t
	dataset = dataset.ordered
	when    = contains(var.do, "populate")
	populate {}
}
phase "sequence" {
	target      = target.t
	dataset     = dataset.ordered
	ops         = { get = 1 }
	when        = contains(var.do, "sequence")
	expect_hits = 1
	closed {
		sessions = 7
		pipeline = 3
	}
}
phase "zipf" {
	target      = target.t
	dataset     = dataset.skewed
	ops         = { get = 1 }
	when        = contains(var.do, "zipf")
	expect_hits = 1
	closed {
		sessions   = 4
		pipeline   = 4
		iterations = 5000
	}
}
phase "delete" {
	target  = target.t
	dataset = dataset.ordered
	ops     = { delete = 1 }
	when    = contains(var.do, "delete")
	closed { sessions = 3 }
}
phase "clear" {
	target  = target.t
	dataset = dataset.ordered
	when    = contains(var.do, "clear")
	clear {}
}
phase "empty" {
	target      = target.t
	dataset     = dataset.ordered
	ops         = { get = 1 }
	when        = contains(var.do, "empty")
	expect_hits = 0
	closed {}
}
`

// watch lists the keys of all commands with the given name that a server gets while f runs, the name in any case.
func watch(t *testing.T, addr, name string, f func()) []string {
	t.Helper()
	l := dial(t, addr)
	require.Equal(t, "OK", l.ask("MONITOR"))
	f()
	ask(t, addr, "ECHO", "the end")
	var keys []string
	for {
		line := l.line()
		if strings.Contains(line, `"the end"`) {
			return keys
		}
		words := strings.Split(line, `"`) // +TIME [DB ADDR] "NAME" "KEY" …
		if len(words) > 3 && strings.EqualFold(words[1], name) {
			keys = append(keys, words[3])
		}
	}
}

// TestPhasesDoWhatTheyAreCalled runs the phases of one key space one after the other on two Redis servers and looks at what the servers got
// and hold.
func TestPhasesDoWhatTheyAreCalled(t *testing.T) {
	t.Parallel()
	addrs := addresses(cluster(t, 2))
	const keys = 500
	do := func(t *testing.T, what string) *run.Phase {
		t.Helper()
		before := countAll(t, addrs)
		r := begin(t, phasesPlan, "-var", nodes(addrs...), "-var", `do=["`+what+`"]`).whole()
		require.Equal(t, []string{what}, r.PhaseOrder, "the others were not asked for")
		requireSent(t, r, addrs, before)
		return r.Phase[what]
	}
	held := func() int { return number(t, addrs[0], "DBSIZE") + number(t, addrs[1], "DBSIZE") }
	// Both servers at once: the second is watched during the first's watch.
	seen := func(t *testing.T, name string, f func()) []string {
		t.Helper()
		var second []string
		first := watch(t, addrs[0], name, func() { second = watch(t, addrs[1], name, f) })
		require.NotEmpty(t, first)
		require.NotEmpty(t, second)
		return slices.Sorted(slices.Values(slices.Concat(first, second)))
	}
	var all []string
	for i := range keys {
		all = append(all, key(i))
	}

	t.Run("populate puts every key once", func(t *testing.T) {
		require.Equal(t, all, seen(t, "SET", func() { require.EqualValues(t, keys, do(t, "populate").Op["put"].OK) }))
		require.Equal(t, keys, held())
	})
	t.Run("sequence gets every key once", func(t *testing.T) {
		require.Equal(t, all, seen(t, "GET", func() { require.EqualValues(t, keys, do(t, "sequence").Op["get"].OK) }))
	})
	t.Run("zipf prefers few keys", func(t *testing.T) {
		var p *run.Phase
		got := seen(t, "GET", func() { p = do(t, "zipf") })
		require.EqualValues(t, 20_000, p.Op["get"].OK)
		require.Len(t, got, 20_000)
		count := map[string]int{}
		for _, k := range got {
			count[k]++
		}
		// The first key's share is 1 / Σ i^-0.99 over 500 keys = 14.3 %, the second's 7.2 %; five standard deviations are
		// 1.3 and 0.9 %.
		falling := slices.SortedFunc(maps.Values(count), func(a, b int) int { return b - a })
		require.InDelta(t, 0.143, float64(falling[0])/20_000, 0.013)
		require.InDelta(t, 0.072, float64(falling[1])/20_000, 0.009)
		require.Greater(t, len(falling), 450)
	})
	t.Run("delete of every key once misses none", func(t *testing.T) {
		ask(t, addrs[0], "SET", "someone else's", "1")
		require.EqualValues(t, keys, do(t, "delete").Op["delete"].OK)
		require.Equal(t, 1, held())
		again := do(t, "delete").Op["delete"]
		require.EqualValues(t, keys, again.Miss)
		require.Zero(t, again.OK)
	})
	t.Run("clear deletes the keys of the dataset and no others", func(t *testing.T) {
		do(t, "populate")
		require.Equal(t, keys+1, held())
		require.EqualValues(t, keys, do(t, "clear").Op["delete"].OK)
		require.Equal(t, 1, held())
		require.Equal(t, "1", ask(t, addrs[0], "GET", "someone else's"))
		require.EqualValues(t, keys, do(t, "empty").Op["get"].Miss)
	})
}

// key is the default name of a key.
func key(i int) string { return fmt.Sprintf("key:%012d", i) }

// TestBuiltinNodesAreFilledAndFlushed runs the phases on built-in nodes: what was put is found, and after a clear, which
// sends no op there, nothing is.
func TestBuiltinNodesAreFilledAndFlushed(t *testing.T) {
	t.Parallel()
	r := begin(t, phasesPlan, "-var", `do=["populate","sequence","zipf","clear","empty"]`).clean(60 * time.Second)
	require.Equal(t, []string{"populate", "sequence", "zipf", "clear", "empty"}, r.PhaseOrder)
	require.EqualValues(t, 500, r.Phase["populate"].Op["put"].OK)
	require.EqualValues(t, 500, r.Phase["sequence"].Op["get"].OK)
	require.EqualValues(t, 20_000, r.Phase["zipf"].Op["get"].OK)
	require.Equal(t, worker.Clear, r.Phase["clear"].Kind)
	require.Zero(t, r.Phase["clear"].Op["delete"].Due)
	require.EqualValues(t, 500, r.Phase["empty"].Op["get"].Miss)
	require.NotContains(t, r.Phase, "delete")
}

// TestEvictedKeysMiss fills a node beyond its memory: as many gets hit as the node says it holds, and the phase is invalid because populated keys were
// expected to exist.
func TestEvictedKeysMiss(t *testing.T) {
	node := beginTarget(t, "--memory", "1MiB")
	l := begin(t, phasesPlan, "-var", nodes(node.addr), "-var", `do=["populate","zipf"]`, "-var", "keys=20000")
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Invalid, r.ExitCode)
	held, evicted := number(t, node.addr, "DBSIZE"), stat(t, node.addr, "evicted_keys")
	require.Equal(t, 20_000, held+evicted)
	require.Positive(t, evicted)
	get := r.Phase["zipf"].Op["get"]
	require.EqualValues(t, stat(t, node.addr, "keyspace_hits"), get.OK)
	require.EqualValues(t, stat(t, node.addr, "keyspace_misses"), get.Miss)
	require.Positive(t, get.Miss)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), "fewer than expect_hits = 100 %")
}

const millions = `
plan "millions" {}
variable "endpoints" { type = list(string) }` + redisT + `
dataset "items" {
	keys { count = 1000 }
	values { size = 100 }
}` + fillItems + `
phase "gets" {
	target  = target.t
	dataset = dataset.items
	ops     = { get = 1 }
	closed {
		sessions   = 16
		pipeline   = 16
		iterations = 62500
	}
}
`

// TestAMillionGetsAllocateNothing covers the whole process, snapshots and progress included: what little is allocated is for those. The server has
// counted every get.
func TestAMillionGetsAllocateNothing(t *testing.T) {
	t.Parallel()
	const all = 16 * 62_500
	addrs := addresses(cluster(t, 1))
	before := countAll(t, addrs)
	r := begin(t, millions, "-var", nodes(addrs[0])).whole()
	requireSent(t, r, addrs, before)
	gets := r.Phase["gets"]
	require.EqualValues(t, all, gets.Op["get"].OK)
	require.Less(t, gets.Generator.Mallocs, uint64(3000))
	require.Zero(t, gets.Generator.GCCycles)
}
