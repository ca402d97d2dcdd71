package measure

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// field is a number, a histogram or a row of bins of a Totals.
type field struct {
	name  string
	count func(t *Totals)
	bins  bool // an Account does not hold them
	grows bool // it takes memory of its own, in an op
}

// counted lists everything that a Totals of one verb, one scenario and one endpoint counts.
func counted() (all []field) {
	shape := func() *Totals {
		t := NewTotals(testOrigin, 1)
		t.of(driver.Put)
		t.scenario(0)
		t.Compared()
		t.Linked()
		return t
	}
	var walk func(name string, at func(*Totals) reflect.Value)
	walk = func(name string, at func(*Totals) reflect.Value) {
		if name == "Totals.rest.Origin" || strings.HasSuffix(name, ".Keys.Bins") || strings.HasSuffix(name, ".Keys.Turns") {
			return // the first is not a count, and bins of keys hold nothing that their outcomes do not
		}
		v := at(shape())
		switch reflect.New(v.Type()).Elem().Interface().(type) {
		case hist.Hist:
			grows := !strings.Contains(name, "Versions") && !strings.Contains(name, "Links")
			all = append(all, field{name: name, grows: grows, count: func(t *Totals) { at(t).Addr().Interface().(*hist.Hist).Record(12_345) }})
			return
		case *Bins:
			grows := strings.Contains(name, "Ops") || strings.Contains(name, "Scenarios")
			all = append(all, field{name: name, bins: true, grows: grows, count: func(t *Totals) {
				b := new(Bins)
				b.AddN(3*binWidth, 1)
				at(t).Set(reflect.ValueOf(b))
			}})
			return
		case Errors, Span:
			return // their fields represent them
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(name+"."+v.Type().Field(i).Name, func(t *Totals) reflect.Value { return at(t).Field(i) })
			}
		case reflect.Array, reflect.Slice:
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", name, i), func(t *Totals) reflect.Value { return at(t).Index(i) })
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(name, func(t *Totals) reflect.Value { return at(t).Elem() })
			}
		case reflect.Uint64:
			all = append(all, field{name: name, count: func(t *Totals) { at(t).SetUint(3) }})
		case reflect.Int64:
			all = append(all, field{name: name, count: func(t *Totals) { at(t).SetInt(3) }})
		default:
			panic("a field of another kind: " + name)
		}
	}
	walk("Totals", func(t *Totals) reflect.Value {
		if t.Ops[driver.Put] == nil {
			t.of(driver.Put)
			t.scenario(0)
			t.Compared()
			t.Linked()
		}
		return reflect.ValueOf(t).Elem()
	})
	for k := 1; k <= 3; k++ {
		put, scenario := func(t *Totals) *Op { return t.of(driver.Put) }, func(t *Totals) *Op { return t.scenario(0) }
		for name, of := range map[string]func(*Totals) *Op{"put": put, "scenario": scenario, "step": func(t *Totals) *Op { return t.step(Step{0, 1}) }} {
			all = append(
				all,
				field{name: fmt.Sprintf("ack %d of a %s", k, name), grows: true, count: func(t *Totals) { o := of(t); lengthen(&o.Acks, k); o.Acks[k-1].Record(5) }},
				field{name: fmt.Sprintf("service of kind %d of a %s", k, name), grows: true, count: func(t *Totals) { of(t).kind(k).Service.Record(5) }},
				field{name: fmt.Sprintf("response of kind %d of a %s", k, name), grows: true, count: func(t *Totals) { of(t).kind(k).Response.Record(5) }},
			)
		}
	}
	return append(
		all,
		field{name: "Split.Write", grows: true, count: func(t *Totals) { made(&t.of(driver.Put).Split).Write.Record(500) }},
		field{name: "Split.Sync", grows: true, count: func(t *Totals) { made(&t.of(driver.Put).Split).Sync.Record(500) }},
		field{name: "Growth", grows: true, count: func(t *Totals) { t.Grow(&Sample{Verb: driver.Put, End: 5}, 1) }},
		field{name: "Growth of what failed", count: func(t *Totals) { t.Grow(&Sample{Verb: driver.Put, Outcome: driver.Error}, 2) }},
		field{name: "Growth of a scenario", grows: true, count: func(t *Totals) { t.GrowScenario(0, &Sample{End: 5}, 1) }},
		field{name: "Growth of a scenario that failed", count: func(t *Totals) { t.GrowScenario(0, &Sample{Outcome: driver.Error}, 2) }},
		field{name: "Steps", grows: true, count: func(t *Totals) { t.AddStep(Step{0, 2}) }},
		field{name: "Stages", grows: true, count: func(t *Totals) { opAt(&t.of(driver.Put).Steps, 2).Due++ }},
		field{name: "Errors", count: func(t *Totals) { t.Errors.Add([]byte("ERR")) }},
		field{name: "Away", count: func(t *Totals) { t.AddAway(0, 7) }},
		field{name: "Span", count: func(t *Totals) { t.Span.Session(1, 2) }},
	)
}

// TestEveryFieldIsCarried counts one thing at a time: no other field stands in for it when it is encoded, merged, compared or reset, and what takes
// memory counts in what a Joiner holds.
func TestEveryFieldIsCarried(t *testing.T) {
	nothing := bytesOf(t, NewTotals(testOrigin, 1))
	held := func(totals *Totals) int {
		j := NewJoiner(2, 0)
		j.Add(0, 1, false, totals)
		return j.Held()
	}
	seen := map[string]*Account{"nothing": accountOf(NewTotals(testOrigin, 1))}
	for _, f := range counted() {
		t.Run(f.name, func(t *testing.T) {
			one := NewTotals(testOrigin, 1)
			f.count(one)
			b := bytesOf(t, one)
			require.NotEqual(t, nothing, b, "encoded")
			var decoded Totals
			rest, err := decoded.Decode(b)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, b, bytesOf(t, &decoded), "decoded")
			require.Equal(t, b, bytesOf(t, merged(NewTotals(testOrigin, 1), one)), "merged")
			require.NotEqual(t, nothing, bytesOf(t, merged(one, one)), "merged again")
			if f.grows {
				room, more := NewTotals(testOrigin, 1), NewTotals(testOrigin, 1)
				for _, t := range []*Totals{room, more} {
					t.AddDue(driver.Put)
					t.AddScenario(0)
					t.AddStep(Step{0, 1})
				}
				f.count(more)
				require.Greater(t, held(more), held(room), "held")
			}
			if !f.bins {
				mine := accountOf(one)
				for name, other := range seen {
					require.False(t, mine.Equal(other), "accounted for as %s", name)
				}
				seen[f.name] = mine
			}
			one.Reset()
			require.Equal(t, nothing, bytesOf(t, one), "reset")
		})
	}
}
