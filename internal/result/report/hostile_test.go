package report

import (
	"bytes"
	"encoding/csv"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/servertest"
)

// everyText replaces all the texts of a value, including names of maps.
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

// hostile returns a run, an experiment and a comparison in which one text replaces all others.
func hostile(t *testing.T, text string) (timeline.Source, timeline.Source, []*comparison.Result) {
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

// obeyed are texts that a terminal or a browser would obey.
var obeyed = []string{"\x1b]0;x\a", "a\r\x9b2J", "a\u202eb", "a\u2066b", "a\u200fb", "a\u2028b", "a\u0085b"}

// A terminal obeys nothing in an untrusted result, in whatever field it is, and Markdown gets no elements from it.
func TestNoTextOfAResultIsObeyed(t *testing.T) {
	for i, text := range append(slices.Clone(corpus), obeyed...) {
		if !servertest.Whole() && i%4 > 0 {
			continue
		}
		r, study, results := hostile(t, text)
		var b, md bytes.Buffer
		require.NoError(t, Text(&b, r.Run, Options{}))
		require.NoError(t, Experiment(&b, study.Study.Experiment, Options{}))
		require.NoError(t, Comparison(&b, results, Options{}))
		require.NoError(t, List(&b, []run.Summary{{Header: r.Run.Header, Unfinished: text}, {Header: r.Run.Header, Verdict: r.Run.Verdict}}))
		require.NoError(t, Markdown(&md, []timeline.Source{r, study}))
		require.NoError(t, ComparisonMarkdown(&md, results))
		for _, shown := range []string{b.String(), md.String()} {
			require.False(t, strings.ContainsFunc(shown, quantity.Obeyed), "%q", text)
		}
		require.NotRegexp(t, `<`, md.String(), text)
	}
}

// A page has none of a result's texts unescaped, in whatever field they are, and none changes the writing direction.
func TestPageEscapesEveryField(t *testing.T) {
	for i, text := range append(slices.Clone(corpus), obeyed...) {
		if !servertest.Whole() && i%4 > 0 {
			continue // one goroutine does it all
		}
		r, study, _ := hostile(t, text)
		r.Plan = []byte(`{"description":"` + text + `"}`)
		for _, s := range []timeline.Source{r, study} {
			page := pageOf(t, s)
			if strings.ContainsAny(text, `<"'`) {
				require.NotContains(t, page, text)
			}
			require.False(t, strings.ContainsFunc(page, quantity.Obeyed), "%q", text)
			require.NotRegexp(t, `&#x?0*(8206|8207|82[39][0-9]|200[ef]|202[89a-e]|206[6-9]);|\\u20[026]`, page, "nor by another name")
		}
	}
}

// No name in a result becomes a formula in a spreadsheet, and figures stay figures.
func TestCSVHasNoFormulas(t *testing.T) {
	for _, text := range append([]string{"=cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1+1)", "\t=1+1", "\r=1+1", "\n=1", "\"=1+1"}, obeyed...) {
		r := nasty(text)
		r.Run.Variant, r.Run.Phase[text].Series = text, slices.Repeat(r.Run.Phase[text].Series, 1)
		require.NotEmpty(t, r.Run.Phase[text].Series)
		under := -0.5
		r.Run.Phase[text].Series[0].Response.P99 = &under
		r.Run.Phase[text].Series[0].InFlight = -1
		var b bytes.Buffer
		require.NoError(t, CSV(&b, []timeline.Source{r}))
		lines, err := csv.NewReader(&b).ReadAll()
		require.NoError(t, err)
		for _, line := range lines {
			for i, cell := range line {
				require.False(t, strings.ContainsFunc(cell, quantity.Obeyed), "%q", cell)
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					require.NotRegexp(t, "^[=+@\t\r\n-]", cell, "column %s of %q", lines[0][i], text)
				}
			}
		}
		require.Equal(t, "-1", lines[1][slices.Index(lines[0], "in_flight")])
		require.Equal(t, "-0.5", lines[1][slices.Index(lines[0], "response_p99")])
	}
}
