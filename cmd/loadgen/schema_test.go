package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

var (
	// documented is a row of the tables in docs/result.md: a path and its type.
	documented  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+?) \\|")
	placeholder = regexp.MustCompile(`^[A-Z]+$`)
	// elsewhere is what only runs have that go wrong: workers on other machines are lost, entries of a log are not there.
	elsewhere = regexp.MustCompile(`^losses\[\]|\.proof\.wrong\[\]$`)
)

// briefSearch finds 2,000 a second, roughly: two sessions that wait 1 ms for each answer.
const briefSearch = `
plan "search" {}
target "t" {
	driver  = "null"
	latency = "1ms"
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
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
		slo { response_p50 = "20ms" }
	}
}`

// briefLog appends to a log in memory's file system or another.
const briefLog = `
plan "log" {}
target "wal" { driver = "log" }
dataset "d" {
	keys { count = 1 }
	values { size = 100 }
}
phase "write" {
	target  = target.wal
	dataset = dataset.d
	ops     = { append = 1 }
	closed { iterations = 2000 }
}`

// TestResultHasEveryDocumentedPath runs four plans, a closed one with replication, setup and asserts, an open one, a search and a log, and
// looks up each path of docs/result.md in what --out wrote. A path that one of them cannot have is in another.
func TestResultHasEveryDocumentedPath(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "result.md"))
	require.NoError(t, err)
	ofRun, rest, found := strings.Cut(string(page), "\n## An experiment\n")
	require.True(t, found)
	ofExperiment, ofComparison, found := strings.Cut(rest, "\n## A comparison\n")
	require.True(t, found)

	closed := beginFile(t, hydra, "--once", "--label", "kind=closed")
	closed.clean(30 * time.Second)
	dying := beginTarget(t)
	open := begin(t, openPlan, "-var", nodes(dying.addr), "-var", "duration=2s")
	open.underWay()
	dying.kill()
	open.result(30 * time.Second)
	search := begin(t, briefSearch)
	search.result(30 * time.Second)
	logs := begin(t, briefLog, "--log-root", t.TempDir())
	logs.clean(30 * time.Second)
	requirePaths(t, ofRun, 150, decode(t, closed.out), decode(t, open.out), decode(t, search.out), decode(t, logs.out))

	compared := begin(t, briefExperiment+briefTable+"\nassert \"two\" { that = phase.load.op.get.rate > 1500 }", "--label", "kind=compared")
	require.Equal(t, run.ExitAssert, compared.wait(30*time.Second), "%s%s", &compared.stdout, &compared.stderr)
	requirePaths(t, ofExperiment, 60, decode(t, compared.out))

	b, err := os.ReadFile(compared.out)
	require.NoError(t, err)
	var x run.Experiment
	require.NoError(t, json.Unmarshal(b, &x))
	other := slices.IndexFunc(x.Runs, func(r run.ExperimentRun) bool { return r.Variant != x.Runs[0].Variant })
	sides := start(t, command(t, "runs", "compare", x.Runs[0].ID, x.Runs[other].ID, "--runs", compared.runs, "--format", "json"))
	require.Zero(t, sides.wait(30*time.Second), &sides.stderr)
	var tree any
	require.NoError(t, json.Unmarshal([]byte(sides.stdout.String()), &tree))
	requirePaths(t, ofComparison, 30, tree, decode(t, compared.out)) // what both have is of one form
}

// requirePaths looks up each path of a page in one of the trees. There are at least so many.
func requirePaths(t *testing.T, page string, least int, trees ...any) {
	t.Helper()
	rows := documented.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(rows), least)
	for _, row := range rows {
		path, kind := row[1], row[2]
		if elsewhere.MatchString(path) {
			continue
		}
		var found []any
		for _, tree := range trees {
			found = append(found, find(tree, steps(path))...)
		}
		require.NotEmpty(t, found, path)
		for _, v := range found {
			requireKind(t, path, kind, v)
		}
	}
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

// find returns all that stands at a path.
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

// requireKind checks a value against the type that the page gives for its path.
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
		require.Fail(t, "a type that the page does not explain", "%s: %s", path, kind)
	}
}
