package comparison

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Values are formatted for people: absent or empty ones as one sign, times of a plan with their unit.
func TestValuesInPlainText(t *testing.T) {
	for _, c := range []struct {
		path, json, want string
	}{
		{"a", `null`, "–"},
		{"a", `""`, "–"},
		{"a", `[]`, "–"},
		{"a", `"text"`, "text"},
		{"a", `5`, "5"},
		{"a", `0.10`, "0.10"},
		{"a", `123456789012345678901`, "123456789012345678901"},
		{"a_ns", `1500000000`, "1.5s"},
		{"a_ns", `1.5`, "1.5"},
		{"a_ns", `"1500"`, "1500"},
		{"a", `true`, "true"},
		{"a", `false`, "false"},
		{"a", `[1,"b",{"c":2}]`, `[1,"b",{"c":2}]`},
		{"a", `{}`, "{}"},
	} {
		require.Equal(t, c.want, plainly(c.path, tree([]byte(c.json))), "%s %s", c.path, c.json)
	}
	require.Equal(t, "–", plainly("a", tree([]byte("{"))), "no JSON")
}

// Lists of named objects are compared by name, whatever else they hold; any other list as a whole.
func TestWhichListsAreComparedByName(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want []Difference // by their paths and values
	}{
		"the same":             {`{"l":[{"name":"x","n":1}]}`, `{"l":[{"name":"x","n":1}]}`, nil},
		"another value":        {`{"l":[{"name":"x","n":1}]}`, `{"l":[{"name":"x","n":2}]}`, []Difference{{Path: "l.x.n", Values: []string{"1", "2"}}}},
		"ops have names, too":  {`{"l":[{"op":"get","n":1}]}`, `{"l":[{"op":"get","n":2}]}`, []Difference{{Path: "l.get.n", Values: []string{"1", "2"}}}},
		"another order":        {`{"l":[{"name":"x"},{"name":"y"}]}`, `{"l":[{"name":"y"},{"name":"x"}]}`, []Difference{{Path: "l", Values: []string{"x, y", "y, x"}}}},
		"one less":             {`{"l":[{"name":"x","n":1},{"name":"y","n":2}]}`, `{"l":[{"name":"x","n":1}]}`, []Difference{{Path: "l", Values: []string{"x, y", "x"}}}},
		"none":                 {`{"l":[{"name":"x"}]}`, `{"l":null}`, []Difference{{Path: "l", Values: []string{"x", ""}}}},
		"nothing at all":       {`{"l":[{"name":"x"}]}`, `{}`, []Difference{{Path: "l", Values: []string{"x", ""}}}},
		"empty, and nothing":   {`{"l":[]}`, `{"l":null}`, nil},
		"empty, and not there": {`{"l":[],"m":null}`, `{}`, nil},
		"without a name":       {`{"l":[{"n":1}]}`, `{"l":[{"n":2}]}`, []Difference{{Path: "l", Values: []string{`[{"n":1}]`, `[{"n":2}]`}}}},
		"one without a name":   {`{"l":[{"name":"x"},{"n":1}]}`, `{"l":[{"name":"x"},{"n":2}]}`, []Difference{{Path: "l", Values: []string{`[{"name":"x"},{"n":1}]`, `[{"name":"x"},{"n":2}]`}}}},
		"numbers":              {`{"l":[1,2]}`, `{"l":[1,3]}`, []Difference{{Path: "l", Values: []string{"[1,2]", "[1,3]"}}}},
		"a list, and a number": {`{"l":[{"name":"x"}]}`, `{"l":3}`, []Difference{{Path: "l", Values: []string{`[{"name":"x"}]`, "3"}}}},
		"a number, and a list": {`{"l":3}`, `{"l":[{"name":"x"}]}`, []Difference{{Path: "l", Values: []string{"3", `[{"name":"x"}]`}}}},
		"an object, a number":  {`{"l":{"n":1}}`, `{"l":3}`, []Difference{{Path: "l", Values: []string{`{"n":1}`, "3"}}}},
		"an object, nothing":   {`{"l":{"n":1,"z":0}}`, `{}`, []Difference{{Path: "l.n", Values: []string{"1", "–"}}}},
		"where it was written": {`{"l":{"file":"a","line":1}}`, `{"l":{"file":"b","line":2}}`, nil},
	} {
		d := differ{of: "plan", first: 1}
		d.walk("", []any{tree([]byte(c.a)), tree([]byte(c.b))})
		for i := range c.want {
			c.want[i].Of = "plan"
		}
		require.Equal(t, c.want, d.found, name)
	}
}

// A run's surroundings are its environment without the reasons for nulls, what its servers report except their processes, and what made it.
func TestWhatSurroundsARun(t *testing.T) {
	r := run.New(run.Header{Loadgen: "v3"}, machine.Environment{})
	r.Environment.Kernel = "6.1"
	r.Environment.Nulls = map[string]string{"cpu": "not told"}
	r.Environment.Servers = map[string]map[string]map[string]string{"t": {
		"a": {"version": "8", "process_id": "1", "mode": "alone"}, "b": {"version": "7", "process_id": "2", "mode": "alone"},
	}}
	r.Workers = []string{"w1", "w2"}
	r.Phase["p"] = &run.Phase{}
	r.Phase["p"].Generator.Executor, r.Phase["p"].Generator.Loops = "event loop", 3
	all := surroundings(r).(map[string]any)
	require.NotContains(t, all, "nulls")
	require.Equal(t, "6.1", all["kernel"])
	require.Equal(t, "v3", all["loadgen"])
	require.Equal(t, json.Number("2"), all["workers"])
	require.Equal(t, map[string]any{"p": "event loop, 3 loops"}, all["generator"])
	require.Equal(t, map[string]any{"t": map[string]any{"version": "7, 8", "mode": "alone"}}, all["servers"])
}

// Runs of a side have the end that they recorded: a cap that they had is unknown.
func TestRunsOfASide(t *testing.T) {
	one := run.New(run.Header{ID: "1"}, machine.Environment{})
	one.Conclude(run.Complete)
	two := run.New(run.Header{ID: "2"}, machine.Environment{})
	two.Conclude(run.Aborted)
	s := side("A", []Kept{{Run: one}, {Run: two}})
	require.Equal(t, Side{Name: "A", Runs: []run.ExperimentRun{one.Ended(), two.Ended()}}, s)
	require.Equal(t, []run.Stop{run.StopFinished, run.StopAborted}, []run.Stop{s.Runs[0].Stopped, s.Runs[1].Stopped})
	require.Equal(t, Side{Name: "B", Runs: []run.ExperimentRun{}}, side("B", nil))
}
