package metric_test

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

var update = flag.Bool("update", false, "rewrite docs/result.md")

// apart lists the objects below a phase whose numbers are in no list of metrics, with what shows them instead.
var apart = map[string]string{
	"warmup": "a sentence about the phase", "steady": "a sentence about the phase", "target": "what was asked for", "other_targets": "what was asked for",
	"dataset": "what was asked for", "load": "what was asked for", "trace": "what was asked for", "log": "tables of logs", "requests": "a table by endpoint",
	"away": "a table by endpoint", "event": "sentences about events", "setup": "its ops are not timed", "finer": "charts of short loads", "steps": "numbers of steps",
	"generator": "a sentence about the generator", "errors": "a list of texts", "observe": "tables of observations", "probes": "charts of observations",
	"levels": "a table of levels", "search": "a sentence about the search", "scenario": "ops, by step", "op": "ops", "series": "rows",
	"total.growth": "each op has its own", "verify.examples": "sentences about lost writes",
	"op.growth": "sentences about growth", "op.acks": "each is a latency", "op.kind": "two latencies each",
}

// numbers lists the paths of the numbers below a type, without those that are apart.
func numbers(t reflect.Type, path, within string) (paths []string) {
	if path != "" && apart[within+path] != "" {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "quantiles" { // each is one that the plan names
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			if f.Anonymous {
				at = path
			}
			paths = append(paths, numbers(f.Type, at, within)...)
		}
	case reflect.Map, reflect.Slice:
		return numbers(t.Elem(), path+"[]", within)
	case reflect.String, reflect.Bool:
	default:
		paths = append(paths, path)
	}
	return paths
}

// Each number of an op, a phase and a second is in a list of metrics, and nothing else is: what is not listed is in no table and no database.
func TestNumbersAreListed(t *testing.T) {
	for _, c := range []struct {
		what    string
		numbers []string
		metrics []string
	}{
		{"op", numbers(reflect.TypeFor[run.Op](), "", "op."), names(metric.Op())},
		{"phase", numbers(reflect.TypeFor[run.Phase](), "", ""), names(metric.Phase())},
		{"series", slices.DeleteFunc(numbers(reflect.TypeFor[run.Row](), "", "series."), func(path string) bool { return path == "t" }), names(metric.Row())},
	} {
		slices.Sort(c.numbers)
		slices.Sort(c.metrics)
		require.Equal(t, c.numbers, c.metrics, c.what)
	}
}

func names[T any](metrics []metric.Of[T]) (all []string) {
	for _, m := range metrics {
		all = append(all, m.Name)
	}
	return all
}

// The rows of docs/result.md about metrics have the list's units and sentences; -update rewrites them.
func TestMetricsDocumented(t *testing.T) {
	const file = "../../../docs/result.md"
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(page)
	for path, m := range rows() {
		row := regexp.MustCompile("(?m)^(\\| `" + regexp.QuoteMeta(path) + "` \\|[^|]*\\|)[^|]*\\|.*$")
		if row.MatchString(text) { // several latencies have the rows of the first
			text = row.ReplaceAllString(text, "${1} "+m[0]+" | "+strings.ReplaceAll(m[1], "$", "$$")+" |")
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	require.True(t, text == string(page), "docs/result.md is out of date: rewrite it with -update, and read the diff")
}

// rows returns units and sentences of metrics by path.
func rows() map[string][2]string {
	all := map[string][2]string{}
	for _, m := range metric.Op() {
		all["phase.NAME.op.VERB."+m.Name] = [2]string{m.Unit, m.Says}
	}
	for _, m := range metric.Phase() {
		all["phase.NAME."+m.Name] = [2]string{m.Unit, m.Says}
	}
	for _, m := range metric.Row() {
		all["phase.NAME.series[]."+m.Name] = [2]string{m.Unit, m.Says}
	}
	return all
}
