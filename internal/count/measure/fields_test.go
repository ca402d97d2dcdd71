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
}

// counted lists everything that a Totals of one verb, one scenario and one endpoint counts.
func counted() (all []field) {
	shape := func() *Totals {
		t := NewTotals(testOrigin, 1)
		t.of(driver.Put)
		t.scenario(0)
		t.Compared()
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
			all = append(all, field{name: name, count: func(t *Totals) { at(t).Addr().Interface().(*hist.Hist).Record(12_345) }})
			return
		case *Bins:
			all = append(all, field{name: name, bins: true, count: func(t *Totals) {
				b := new(Bins)
				b.Add(3 * binWidth)
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
		}
		return reflect.ValueOf(t).Elem()
	})
	return append(
		all,
		field{name: "Acks", count: func(t *Totals) { t.Ack(driver.Put, 2, 500) }},
		field{name: "Split.Write", count: func(t *Totals) { t.of(driver.Put).splits().Write.Record(500) }},
		field{name: "Split.Sync", count: func(t *Totals) { t.of(driver.Put).splits().Sync.Record(500) }},
		field{name: "Errors", count: func(t *Totals) { t.Errors.Add([]byte("ERR")) }},
		field{name: "Away", count: func(t *Totals) { t.AddAway(0, 7) }},
		field{name: "Span", count: func(t *Totals) { t.Span.Session(1, 2) }},
	)
}

// TestEveryFieldIsCarried counts one thing at a time: no other field stands in for it when it is encoded, merged, compared or reset.
func TestEveryFieldIsCarried(t *testing.T) {
	nothing := bytesOf(t, NewTotals(testOrigin, 1))
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
			if !f.bins {
				require.False(t, accountOf(one).Equal(accountOf(NewTotals(testOrigin, 1))), "accounted for")
			}
			one.Reset()
			require.Equal(t, nothing, bytesOf(t, one), "reset")
		})
	}
}
