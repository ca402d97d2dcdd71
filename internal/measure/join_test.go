package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestJoiner has sources hand over at boundaries of their own choice, in any order: what comes out covers the step without gap or
// overlap, adds up to what went in, and holds for each stretch what all sources had sealed by its end.
func TestJoiner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const begin, seconds = int64(5), 6
		sources := rapid.IntRange(1, 4).Draw(t, "sources")
		j := NewJoiner(sources, begin)
		type handed struct {
			upTo int64
			n    uint64
		}
		all := make([][]handed, sources)
		for i := range all {
			for s := range seconds {
				last := s == seconds-1
				if last || rapid.Bool().Draw(t, "sealed") {
					all[i] = append(all[i], handed{begin + int64(s+1)*10 + int64(i)*int64(b2i(last)), rapid.Uint64Range(0, 9).Draw(t, "n")})
				}
			}
		}
		var went, came uint64
		at, finals := begin, 0
		next := make([]int, sources)
		for {
			var open []int
			for i := range all {
				if next[i] < len(all[i]) {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				break
			}
			i := rapid.SampledFrom(open).Draw(t, "source")
			h := all[i][next[i]]
			next[i]++
			part := NewTotals(begin, 1)
			for range h.n {
				part.AddDue(driver.Get)
			}
			went += h.n
			joint, ok := j.Add(i, h.upTo, next[i] == len(all[i]), part)
			if !ok {
				continue
			}
			require.Equal(t, at, joint.From)
			require.Greater(t, joint.To, joint.From)
			at = joint.To
			if joint.Final {
				finals++
			}
			if o := joint.Delta.Ops[driver.Get]; o != nil {
				came += o.Due
			}
			var sealed uint64
			for i := range all {
				for _, h := range all[i][:next[i]] {
					if h.upTo <= at {
						sealed += h.n
					}
				}
			}
			require.Equal(t, sealed, came)
		}
		require.Equal(t, went, came)
		require.Equal(t, 1, finals)
	})
}

// TestJoinerKeepsFarBoundariesInOrder has a source hand over at boundaries that are further apart than an int64 can say.
func TestJoinerKeepsFarBoundariesInOrder(t *testing.T) {
	const early, late = math.MinInt64 + 20, math.MaxInt64
	j := NewJoiner(2, math.MinInt64)
	for _, upTo := range []int64{early, late} {
		part := NewTotals(1, 1)
		part.AddDue(driver.Get)
		_, ok := j.Add(0, upTo, upTo == late, part)
		require.False(t, ok)
	}
	joint, ok := j.Add(1, early, false, NewTotals(1, 1))
	require.True(t, ok)
	require.EqualValues(t, 1, joint.Delta.Ops[driver.Get].Due)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestJoinerGrowsNotWithTime joins what two sources count for hours: after the first intervals it allocates nothing more.
func TestJoinerGrowsNotWithTime(t *testing.T) {
	j, part, at := NewJoiner(2, 0), NewTotals(0, 2), int64(0)
	var last Interval
	var whole bool
	second := func() {
		at += 1e9
		for source := range 2 {
			part.Reset()
			part.AddDue(driver.Get)
			part.Record(&Sample{Verb: driver.Get, Outcome: driver.OK, Due: at, Start: at + 10, End: at + 5000})
			last, whole = j.Add(source, at, false, part)
		}
	}
	second()
	second()
	require.Zero(t, testing.AllocsPerRun(100, second))
	require.True(t, whole)
	get := last.Delta.Ops[driver.Get]
	require.EqualValues(t, 2, get.Due)
	require.EqualValues(t, 2, get.Response[ClassOK].Count())
	require.EqualValues(t, 2, get.Bins[driver.OK].Total())
	require.Len(t, last.Delta.Requests, 2*driver.NumVerbs)
}
