package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

var (
	placeholder = regexp.MustCompile(`^[A-Z]+$`)
	// elsewhere are paths that only failing runs have, and those of programs with drivers of their own: remote workers are lost, connections are away, entries of a log are missing, a pair of a gate
	// does not count, a search finds what gave out, or that it was not loadgen, an event fails or is within seconds of a lost write; and those that only real Redis and memcached
	// give.
	elsewhere = regexp.MustCompile(`^losses\[\]|^drivers\.DRIVER$|\.away\[\]|\.proof\.wrong\[\]$|\.EVENT\.failed$|\.search\.(cause|evidence|low|high|noise)$|\.one_sided$|\.verify\.examples\[\]\.event$|\.FIELD\.(per_item|per_item_ci95|fixed|key_table)$|^gates?(\[\])?\.why\[\]$`)
)

// briefCache reads 100 values through a cache that has room for some.
const briefCache = `
plan "cached" {}
target "rows" {
  driver = "redis"
  builtin { nodes = 1 }
}
target "cached" {
  source = target.rows
  cache {
    scope  = "shared"
    memory = "4KiB"
  }
}` + hundredItems + `
phase "fill" {
  target  = target.rows
  dataset = dataset.items
  populate {}
}
phase "read" {
  target  = target.cached
  dataset = dataset.items
  ops     = { get = 1 }
  closed {
    sessions   = 2
    iterations = 300
  }
  event "late" {
    at     = "1h"
    do     = "kill"
    target = target.rows
    node   = 0
  }
}
`

// briefWriters loses a node with what was put into it.
const briefWriters = `
plan "writers" {}
target "rows" {
  driver = "redis"
  builtin { nodes = 1 }
}
dataset "items" {
  keys {
    count   = 1000
    writers = "one"
  }
  values { size = 100 }
}
phase "fill" {
  target  = target.rows
  dataset = dataset.items
  populate { sessions = 2 }
}
phase "change" {
  target  = target.rows
  dataset = dataset.items
  ops     = { get = 9, put = 1 }
  closed {
    sessions   = 2
    iterations = 200
    think      = "2ms"
  }
  staleness {}
  event "lost" {
    at     = "100ms"
    do     = "restart"
    target = target.rows
    node   = 0
  }
}
phase "verify" {
  target  = target.rows
  dataset = dataset.items
  verify {}
}
`

// briefSearch finds 2,000 a second, roughly: two sessions that wait 1 ms for each answer.
const briefSearch = `
plan "search" {
	quantiles = [0.5, 0.98]
}
target "t" {
	driver  = "null"
	latency = "1ms"
}` + tenSmall + `
observe "directory" {
	directory { path = "." }
}
observe "nobody" {
	process { pid = 4194304 }
}
phase "search" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	search {
		from          = "500/s"
		sessions      = 2
		step_duration = "200ms"
		precision     = "100%"
		budget        = "4s"
		slo { response_p50 = "20ms" }
	}
}`

// unsynced makes a log force nothing, so that its tests do not depend on the speed of a disk.
const unsynced = `sync   = "none"`

// briefLog appends to a log, on an in-memory file system or another.
const briefLog = `
plan "log" {}
target "wal" {
	driver = "log"
	` + unsynced + `
}
dataset "d" {
	keys { count = 1 }
	values { size = 100 }
}
phase "write" {
	target  = target.wal
	dataset = dataset.d
	ops     = { append = 1 }
	closed { iterations = 2000 }
	growth { to = 3000 }
}`

// briefSyncs has sessions that share a sync, and one whose syncs come later.
const briefSyncs = `
plan "syncs" {}
target "group" {
  driver = "log"
  layout = "append"
  sync   = "fdatasync"
  group_commit {}
}
target "later" {
  driver     = "log"
  layout     = "append"
  sync       = "fdatasync"
  sync_every = 10
}
dataset "d" {
  keys { count = 1 }
  values { size = 100 }
}
phase "group" {
  target  = target.group
  dataset = dataset.d
  ops     = { append = 1 }
  closed {
    sessions   = 2
    iterations = 20
  }
}
phase "later" {
  target  = target.later
  dataset = dataset.d
  ops     = { append = 1 }
  closed { iterations = 40 }
}
assert "one op in ten waits for a sync" {
  that = phase.later.op.append.sync.count == 40 && phase.later.op.append.sync.min == 0 && phase.later.op.append.sync.max > 0
}`

// ofFiles has keys and values from files, scenarios over two targets, and a trace from which a line is left out.
const ofFiles = `
plan "files" {}
target "t" { driver = "null" }
target "other" { driver = "null" }
target "node" {
	driver = "redis"
	builtin {}
}
dataset "d" {
	keys {
		file  = "keys.csv"
		form  = "csv"
		field = "key"
	}
	values { size = 100 }
}
dataset "stored" {
	keys { count = 10 }
	values { file = "values.txt" }
}
dataset "chained" {
	keys { count = 10 }
	values { size = 100 }
}
phase "scenes" {
	target  = target.t
	dataset = dataset.d
	scenario "change" {
		step "get" {}
		step "put" {
			key    = "same"
			target = target.other
		}
	}
	stages {
		sessions = 2
		stage {
			rate     = 500
			duration = "1500ms"
		}
	}
}
phase "stored" {
	target  = target.t
	dataset = dataset.stored
	populate {}
}
phase "replay" {
	target  = target.t
	dataset = dataset.d
	open {
		sessions = 2
		trace { file = "trace.csv" }
	}
}
phase "chains" {
	target  = target.node
	dataset = dataset.chained
	closed {
		chain {}
		trace {
			file = "chains.jsonl"
			form = "mooncake"
		}
	}
}`

// beginOfFiles starts ofFiles beside its files.
func beginOfFiles(t *testing.T) *load {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plan.hcl":     ofFiles,
		"keys.csv":     "key\na\nb\n",
		"values.txt":   "one\ntwo\nthree\n",
		"chains.jsonl": `{"timestamp": 0, "input_length": 513, "hash_ids": [0, 1]}`,
		"trace.csv":    "0.01,a,1,10,1,set,0\n0.02,a,1,10,1,touch,0\n0.03,a,1,10,1,get,0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return beginFile(t, filepath.Join(dir, "plan.hcl"))
}

// TestResultHasEveryDocumentedPath runs nine plans: a closed one with replication, setup and asserts, an open one, a search, a log, one with files,
// one with a cache, one that loses writes, one that renews connections, and experiments. It looks up each listed path in what --out wrote. A path that one of them
// cannot have is in another.
func TestResultHasEveryDocumentedPath(t *testing.T) {
	t.Parallel()
	ofRun, ofExperiment, ofComparison := metric.Paths()

	closed := beginFile(t, hydra, "--once", "--label", "kind=closed", "-var", "iterations=200")
	closed.result(60 * time.Second)
	dying := beginTarget(t)
	open := begin(t, strings.Replace(openPlan, "ops ", "on_miss = \"put\"\n\tops ", 1), "-var", nodes(dying.addr), "-var", "duration=6s")
	open.underWay()
	dying.kill()
	open.result(60 * time.Second)
	search := begin(t, briefSearch)
	search.result(60 * time.Second)
	logs := begin(t, briefLog, "--log-root", t.TempDir())
	logs.result(60 * time.Second)
	syncs := begin(t, briefSyncs, "--log-root", t.TempDir())
	syncs.result(60 * time.Second)
	files := beginOfFiles(t)
	files.result(60 * time.Second)
	cached := begin(t, briefCache)
	require.Empty(t, cached.result(60 * time.Second).Phase["read"].Notes) // hits in a cache bring no bytes
	writers := begin(t, briefWriters)
	writers.whole()
	pages := httptest.NewServer(http.NotFoundHandler())
	defer pages.Close()
	renewed := begin(t, briefRenewals, "-var", "page="+pages.Listener.Addr().String())
	renewed.result(60 * time.Second)

	missing := strings.NewReplacer(
		"latency = var.latency", "latency = var.latency\n miss_every = 7",
		"{ get = 1 }", "{ get = 3, put = 1 }", // which of them miss differs between repetitions
		"repeat = 3", "repeat = 4\n compare = [\"rate\", \"hit_ratio\"]\n matters = \"2%\"",
		"miss.response.p50", "miss.response.p999", // which so few misses do not have
		"expected \"elsewhere\"", "column \"times\" {\n value = phase.load.op.get.rate\n ratio = \"baseline\"\n }\n expected \"elsewhere\"",
	).Replace(briefExperiment + briefTable)
	compared := begin(t, missing+"\nassert \"two\" { that = phase.load.op.get.rate > 1500 }", "--label", "kind=compared")
	require.Contains(t, []int{exit.Assert, exit.Invalid}, compared.wait(60*time.Second), "%s%s", &compared.stdout, &compared.stderr)
	appended := begin(t, briefLog+"\nvariable \"n\" { default = 1 }\nexperiment {\n repeat = 2\n baseline = \"a\"\n variant \"a\" { n = 1 }\n variant \"b\" { n = 2 }\n variant \"c\" { n = 3 }\n when = var.n < 3\n}", "--log-root", t.TempDir())
	appended.wait(60 * time.Second)
	gated := begin(t, briefGate, "--budget", "1s")
	require.Equal(t, exit.Undecided, gated.wait(60*time.Second), "%s%s", &gated.stdout, &gated.stderr)
	ofVariants, err := filepath.Glob(filepath.Join(gated.runs, "*-1-*", "result.json"))
	require.NoError(t, err)
	require.NotEmpty(t, ofVariants)
	requirePaths(t, ofRun, 150, decode(t, closed.out), decode(t, open.out), decode(t, search.out), decode(t, logs.out), decode(t, files.out), decode(t, cached.out),
		decode(t, writers.out), decode(t, syncs.out), decode(t, renewed.out), decode(t, ofVariants[0]))
	requirePaths(t, ofExperiment, 60, decode(t, compared.out), decode(t, appended.out), decode(t, gated.out))

	b, err := os.ReadFile(compared.out)
	require.NoError(t, err)
	var x run.Experiment
	require.NoError(t, json.Unmarshal(b, &x))
	other := slices.IndexFunc(x.Runs, func(r run.ExperimentRun) bool { return r.Variant != x.Runs[0].Variant })
	sides := start(t, command(t, "runs", "compare", x.Runs[0].ID, x.Runs[other].ID, "--runs", compared.runs, "--format", "json", "--worse", "3%"))
	require.Contains(t, []int{exit.Undecided, exit.Invalid}, sides.wait(60*time.Second), &sides.stderr)
	var tree any
	require.NoError(t, json.Unmarshal([]byte(sides.stdout.String()), &tree))
	requirePaths(t, ofComparison, 25, tree, decode(t, compared.out)) // what both have is of one form
}

// briefRenewals renews connections, and looks into replies.
const briefRenewals = `
plan "renewals" {}
variable "page" { default = "" }
target "t" {
	driver = "redis"
	builtin {}
}
target "pages" {
	driver    = "web"
	endpoints = [var.page]
	op "page" {
		request {
			method = "GET"
			path   = "/"
		}
		expect {
			ok     = [404]
			absent = ["header X"]
		}
	}
}
dataset "d" {
	keys { count = 10 }
	values { size = "32B" }
}
phase "puts" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 2
		iterations = 200
		reconnect { ops = 10 }
	}
}
phase "pages" {
	target  = target.pages
	dataset = dataset.d
	ops     = { page = 1 }
	closed {
		sessions   = 2
		iterations = 20
	}
}`

// briefGate is an experiment with a gate.
const briefGate = `
plan "gate" {}
variable "sessions" { default = 1 }
target "t" {
	driver = "redis"
	builtin {}
}
dataset "d" {
	keys { count = 10 }
	values { size = "32B" }
}
phase "load" {
	target      = target.t
	dataset     = dataset.d
	ops         = { get = 1 }
	expect_hits = 0
	closed {
		sessions   = var.sessions
		iterations = 200
	}
}
experiment {
	gate {
		metric = "response.p50"
		worse  = "3%"
	}
	variant "one" { sessions = 1 }
	variant "two" { sessions = 2 }
}`

// requirePaths looks up each path in any of the trees, and requires a minimum number of paths.
func requirePaths(t *testing.T, listed []metric.Path, least int, trees ...any) {
	t.Helper()
	require.Greater(t, len(listed), least)
	var missing []string
	for _, p := range listed {
		path, kind := p.Path, p.Type
		if elsewhere.MatchString(path) || strings.HasPrefix(p.Says, "in older results: ") {
			continue
		}
		var found []any
		for _, tree := range trees {
			found = append(found, find(tree, steps(path))...)
		}
		if found == nil {
			missing = append(missing, path)
		}
		for _, v := range found {
			requireKind(t, path, kind, v)
		}
	}
	require.Empty(t, missing, "documented, and in no result")
}

func decode(t *testing.T, path string) any {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(b, &tree))
	return tree
}

// steps takes a path apart: phase.NAME.requests[].sent is phase, *, requests, *, sent.
func steps(path string) []string {
	var list []string
	for _, step := range strings.Split(strings.ReplaceAll(path, "[]", ".NAME"), ".") {
		if placeholder.MatchString(step) {
			step = "*"
		}
		list = append(list, step)
	}
	return list
}

// find returns everything at a path.
func find(v any, steps []string) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	var found []any
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if steps[0] == "*" || steps[0] == key {
				found = append(found, find(inner, steps[1:])...)
			}
		}
	case []any:
		for _, inner := range v {
			if steps[0] == "*" {
				found = append(found, find(inner, steps[1:])...)
			}
		}
	}
	return found
}

// requireKind checks a value against the type that is listed for its path.
func requireKind(t *testing.T, path, kind string, v any) {
	t.Helper()
	if v == nil {
		require.Regexp(t, `null|^as `, kind, path)
		return
	}
	switch {
	case strings.HasPrefix(kind, "integer"):
		f, ok := v.(float64)
		require.True(t, ok, path)
		require.InDelta(t, f, float64(int64(f)), 0, path)
	case strings.HasPrefix(kind, "number"):
		require.IsType(t, 0.0, v, path)
	case strings.HasPrefix(kind, "string"):
		require.IsType(t, "", v, path)
	case strings.HasPrefix(kind, "boolean"):
		require.IsType(t, false, v, path)
	case strings.HasPrefix(kind, "object"), strings.HasPrefix(kind, "as "):
		require.IsType(t, map[string]any{}, v, path)
	default:
		require.Fail(t, "a type that is not explained", "%s: %s", path, kind)
	}
}
