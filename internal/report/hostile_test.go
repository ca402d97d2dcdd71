package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/detail"
	"github.com/loadgen/loadgen/internal/experiment/comparison"
	"github.com/loadgen/loadgen/internal/run"
)

// everyText puts a text in place of all the texts of a value, names of maps included.
func everyText(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if !v.IsNil() {
			everyText(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				everyText(v.Field(i), text)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			everyText(v.Index(i), text)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			of := reflect.New(v.Type().Elem()).Elem()
			of.Set(v.MapIndex(key))
			everyText(of, text)
			v.SetMapIndex(key, of)
			if key.Kind() == reflect.String {
				v.SetMapIndex(reflect.ValueOf(text).Convert(key.Type()), of)
			}
		}
	}
}

// hostile returns a run, an experiment and a comparison with one text in place of all of theirs.
func hostile(t *testing.T, text string) (detail.Source, detail.Source, []*comparison.Result) {
	t.Helper()
	r := nasty(text)
	r.Run.Labels = map[string]string{"a": "b"}
	everyText(reflect.ValueOf(r.Run), text)
	study := nastyStudy(t, text)
	everyText(reflect.ValueOf(study.Study.Experiment), text)
	results := []*comparison.Result{{
		Sides:       []comparison.Side{{Runs: []run.ExperimentRun{{}}}, {Runs: []run.ExperimentRun{{}}}},
		Differences: []comparison.Difference{{Values: []string{"", ""}}}, Notes: []string{""}, Tables: study.Study.Experiment.Tables,
	}}
	everyText(reflect.ValueOf(results), text)
	return r, study, results
}

// A terminal obeys nothing of a result that somebody else has made, in whatever field it is, and Markdown has no elements of theirs.
func TestNoTextOfAResultIsObeyed(t *testing.T) {
	for _, text := range append(slices.Clone(corpus), "\x1b]0;x\a", "a\r\x9b2J", "a\u2066b", "a\u2028b") {
		r, study, results := hostile(t, text)
		var b, md bytes.Buffer
		require.NoError(t, Text(&b, r.Run, Options{}))
		require.NoError(t, Experiment(&b, study.Study.Experiment, Options{}))
		require.NoError(t, Comparison(&b, results))
		require.NoError(t, List(&b, []run.Summary{{Header: r.Run.Header, Unfinished: text}, {Header: r.Run.Header, Verdict: r.Run.Verdict}}))
		require.NoError(t, Markdown(&md, []detail.Source{r, study}))
		require.NoError(t, ComparisonMarkdown(&md, results))
		for _, shown := range []string{b.String(), md.String()} {
			require.NotRegexp(t, "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x{9f}\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown, "%q", text)
		}
		require.NotRegexp(t, `<`, md.String(), text)
	}
}

// A page has none of a result's texts as they came, in whatever field they are.
func TestPageEscapesEveryField(t *testing.T) {
	for _, text := range corpus {
		r, study, _ := hostile(t, text)
		for _, s := range []detail.Source{r, study} {
			if page := pageOf(t, s); strings.ContainsAny(text, `<"'`) {
				require.NotContains(t, page, text)
			}
		}
	}
}
