package workload

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// filedValues returns a dataset whose values are a file of n lines of different lengths, and these values.
func filedValues(t testing.TB, n int, pick string, checked bool) (plan.Values, *keyfile.Set) {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d:%s\n", i, hex.EncodeToString([]byte(strings.Repeat("x", i%90))))
	}
	from := keyfile.Source{Form: keyfile.Lines, Values: true}
	f, err := keyfile.Check(strings.NewReader(b.String()), from)
	require.NoError(t, err)
	set, _, err := keyfile.Read(strings.NewReader(b.String()), from, f.Count, f.Bytes)
	require.NoError(t, err)
	v := plan.Values{
		Size: f.Largest, Checked: checked,
		File: &plan.ValueFile{EntryFile: plan.EntryFile{Path: "values.txt", Form: "lines", Bytes: f.Bytes}, Encoding: "text", Pick: pick, Count: f.Count, Least: f.Least, Largest: f.Largest},
	}
	if checked {
		v.Size += driver.HeaderSize
	}
	return v, set
}

// lineOf checks that a value has the size that it claims, and returns its line in the file.
func lineOf(t testing.TB, v *driver.Value, set *keyfile.Set) int {
	b := v.AppendTo(nil)
	require.Len(t, b, v.Size)
	if v.Checked {
		_, ok := (&driver.Reply{Value: b}).Header()
		require.True(t, ok)
		b = b[driver.HeaderSize:]
	}
	var line int
	_, err := fmt.Sscanf(string(b), "%d:", &line)
	require.NoError(t, err)
	require.Equal(t, string(set.Append(nil, uint64(line))), string(b))
	return line
}

// Every value is a line of the file, and all lines are equally likely.
func TestValuesOfAFile(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for _, batch := range []int{1, 3} {
			v, set := filedValues(t, 100, "random", checked)
			p := sized(v)
			p.Phases[0].Batch = batch
			s, err := New(p, p.Phases[0], Step{Kind: "load", Files: map[string]Files{p.Phases[0].Dataset: {Values: set}}})
			require.NoError(t, err)
			st := s.Stream(1)
			counts := make([]float64, 100)
			even := make([]float64, 100)
			var o op.Op
			for range 20_000 {
				next(t, &st, &o)
				require.Len(t, o.Key, len("key:000000000000"))
				if o.Verb == driver.Put {
					counts[lineOf(t, &o.Value, set)]++
					for i := 1; i < len(o.Batch); i++ {
						counts[lineOf(t, &o.Batch[i].Value, set)]++
					}
				}
			}
			for i := range even {
				even[i] = 0.01
			}
			requireChiSquared(t, counts, even, "values")
			require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }))
		}
	}
}

// With as many keys as values, each key has its own value, independent of stream and time. With more keys, values repeat from the first.
func TestEachKeyHasItsValue(t *testing.T) {
	v, set := filedValues(t, 40, "key", false)
	p := sized(v)
	p.Phases = append(p.Phases, &plan.Phase{Name: "fill", Dataset: "data", Ops: ops(0, 1), Populate: &plan.Clients{Sessions: 7, Pipeline: 1}})
	p.Phases[0].Scenarios = []plan.Scenario{{Name: "change", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get"}, {Op: "put", Key: "same"}}}}
	puts := 0
	check := func(o *op.Op) {
		if o.Verb == driver.Put {
			require.EqualValues(t, o.Index%40, lineOf(t, &o.Value, set))
			puts++
		}
	}
	for i, kind := range []Kind{Load, Populate} {
		s, err := New(p, p.Phases[i], Step{Kind: kind, Files: map[string]Files{p.Phases[i].Dataset: {Values: set}}})
		require.NoError(t, err)
		for i := range s.Streams() {
			st := s.Stream(i)
			steps := make([]op.Op, 2)
			for range 300 {
				if kind == Load {
					st.NextScenario(steps)
					check(&steps[1])
				} else if st.Next(&steps[0]) {
					check(&steps[0])
				}
			}
		}
	}
	require.Equal(t, 3*300+100, puts)
}

func TestValuesThatAreMissing(t *testing.T) {
	v, _ := filedValues(t, 40, "key", false)
	_, others := filedValues(t, 39, "key", false)
	p := sized(v)
	for _, set := range []*keyfile.Set{nil, others} {
		_, err := New(p, p.Phases[0], Step{Kind: "load", Files: map[string]Files{p.Phases[0].Dataset: {Values: set}}})
		require.ErrorContains(t, err, "the 40 values of values.txt are not at hand")
	}
}
