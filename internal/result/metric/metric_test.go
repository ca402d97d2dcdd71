package metric_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

// apart lists the objects below a phase whose numbers are in no list of metrics, with what shows them instead.
var apart = map[string]string{
	"warmup": "a sentence about the phase", "steady": "a sentence about the phase", "target": "what was asked for", "other_targets": "what was asked for",
	"dataset": "what was asked for", "load": "what was asked for", "trace": "what was asked for", "log": "tables of logs", "requests": "a table by endpoint", "counted": "a line beside it",
	"away": "a table by endpoint", "event": "sentences about events", "setup": "its ops are not timed", "finer": "charts of short loads", "steps": "numbers of steps",
	"generator": "a sentence about the generator", "errors": "a list of texts", "observe": "tables of observations", "probes": "charts of observations",
	"levels": "a table of levels", "search": "a sentence about the search", "scenario": "ops, by step", "op": "ops", "series": "rows",
	"total.growth": "each op has its own", "verify.examples": "sentences about lost writes",
	"op.growth": "sentences about growth", "op.acks": "each is a latency", "op.kind": "two latencies each", "op.checks": "texts of errors",
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
