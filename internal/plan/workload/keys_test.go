package workload

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestPoolsWrapRoundTheTwelveDigits(t *testing.T) {
	k := keySpace{count: 10, perSession: true, origin: numbers - 25, wrap: numbers}
	k.format, _ = parseKeyFormat("%d")
	var got []string
	for session := range 4 {
		for index := range uint64(10) {
			got = append(got, string(k.appendKey(nil, k.pool(session), index)))
		}
	}
	require.Equal(t, "999999999975", got[0])
	require.Equal(t, []string{"999999999999", "0", "1"}, got[24:27])
	require.Equal(t, "14", got[39])
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), 40)
}

func TestPoolsOfDatasetsAndSeedsLieApart(t *testing.T) {
	first := map[string]bool{}
	for seed := range uint64(30) {
		for _, name := range []string{"items", "item", "one", "two", "a", "b"} {
			p := onePlan(keys("uniform", "session", 50), withSetup(closed("load", 10, 1)))
			p.Seed, p.Datasets[0].Name, p.Phases[0].Dataset = seed, name, name
			for _, key := range drainAll(t, source(t, p, 0, Setup)) {
				require.False(t, first[key])
				require.Greater(t, key, "key:5", "pools lie in the upper half")
				first[key] = true
			}
		}
	}
}

func TestShareDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Uint64().Draw(t, "count")
		parts := rapid.IntRange(1, math.MaxInt).Draw(t, "parts")
		i := rapid.IntRange(0, parts).Draw(t, "i")
		want := new(big.Int).SetUint64(count)
		want.Mul(want, big.NewInt(int64(i))).Div(want, big.NewInt(int64(parts)))
		require.Equal(t, want.Uint64(), share(count, i, parts))
	})
}

// TestRecordsGrowWithEachPut of a session: gets between them change nothing, other sessions have other records, and a step begins anew.
func TestRecordsGrowWithEachPut(t *testing.T) {
	p := onePlan(keys("uniform", "session", 1), closed("load", 2, 40))
	p.Phases[0].Ops = []plan.Weight{{Op: "get", Weight: 1}, {Op: "put", Weight: 1}}
	v := &p.Datasets[0].Values
	v.Fill, v.Checked = "text", false
	v.Record, v.Elements = map[string]string{"members": "grow(uuid)", "title": "lorem(4)"}, 40
	type parent struct {
		Members []string
		Title   string
	}
	var lasts []parent
	for range 2 {
		s := source(t, p, 0, Load)
		for i := range 2 {
			stream, last := s.Stream(i), parent{}
			puts := 0
			var o op.Op
			for stream.Next(&o) {
				if o.Verb != driver.Put {
					continue
				}
				puts++
				var got parent
				b := o.Value.AppendTo(nil)
				require.Len(t, b, o.Value.Size)
				require.NoError(t, json.Unmarshal(b, &got))
				require.Len(t, got.Members, puts)
				require.Equal(t, last.Members, append([]string(nil), got.Members[:puts-1]...))
				last = got
			}
			require.Greater(t, puts, 10)
			lasts = append(lasts, last)
		}
	}
	require.Equal(t, lasts[:2], lasts[2:])
	require.NotEqual(t, lasts[0], lasts[1])
}
