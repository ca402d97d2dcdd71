package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestJoiner: sources hand over at boundaries of their own choice, in any order. The result covers the step without gap or overlap, adds up to the
// input, and has in each interval what all sources had sealed by its end.
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
			j.Add(i, h.upTo, next[i] == len(all[i]), part)
			for joint, ok := j.Next(); ok; joint, ok = j.Next() {
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
				inside := map[int64]bool{} // boundaries in the interval, and whether a source has counted across
				for i := range all {
					for _, h := range all[i][:next[i]] {
						if h.upTo <= at {
							sealed += h.n
						}
						if joint.From < h.upTo && h.upTo < at {
							inside[h.upTo] = false
						}
					}
				}
				require.Equal(t, sealed, came)
				for i := range all {
					from := begin
					for _, h := range all[i][:next[i]] {
						for b := range inside {
							inside[b] = inside[b] || from < b && b < h.upTo
						}
						from = h.upTo
					}
				}
				for b, across := range inside {
					require.True(t, across, "%d was no reason to go on to %d", b, at)
				}
			}
		}
		require.Equal(t, went, came)
		require.Equal(t, 1, finals)
	})
}

// TestJoinerKeepsFarBoundariesInOrder: a source hands over at boundaries whose distance overflows an int64.
func TestJoinerKeepsFarBoundariesInOrder(t *testing.T) {
	const early, late = math.MinInt64 + 20, math.MaxInt64
	j := NewJoiner(2, math.MinInt64)
	for _, upTo := range []int64{early, late} {
		part := NewTotals(1, 1)
		part.AddDue(driver.Get)
		j.Add(0, upTo, upTo == late, part)
		_, ok := j.Next()
		require.False(t, ok)
	}
	j.Add(1, early, false, NewTotals(1, 1))
	joint, ok := j.Next()
	require.True(t, ok)
	require.EqualValues(t, 1, joint.Delta.Ops[driver.Get].Due)
}

// seconds hands over a source's seconds one by one, with n gets in the n-th.
func seconds(j *Joiner, source, from, to int) {
	for s := from; s < to; s++ {
		part := NewTotals(0, 1)
		part.AddDueN(driver.Get, uint64(s+1))
		j.Add(source, int64(s+1)*1e9, false, part)
	}
}

// rows returns what the Joiner has, as it returns it: the end of each interval in seconds, and the gets in it.
func rows(j *Joiner) (list [][2]int) {
	for i, ok := j.Next(); ok; i, ok = j.Next() {
		gets := 0
		if o := i.Delta.Ops[driver.Get]; o != nil {
			gets = int(o.Due)
		}
		list = append(list, [2]int{int(i.To / 1e9), gets})
	}
	return list
}

// TestSecondsThatWaitedForASourceComeOneByOne: one of two sources falls silent, and then finishes, catches up second by second, or hands over
// everything it counted as one.
func TestSecondsThatWaitedForASourceComeOneByOne(t *testing.T) {
	wait := func() *Joiner {
		j := NewJoiner(2, 0)
		seconds(j, 0, 0, 5)
		seconds(j, 1, 0, 1)
		require.Equal(t, [][2]int{{1, 2}}, rows(j))
		ahead, ok := j.Ahead(3e9)
		require.True(t, ok)
		require.EqualValues(t, 2e9, ahead.From)
		require.EqualValues(t, 3, ahead.Delta.Ops[driver.Get].Due)
		_, ok = j.Ahead(1e9)
		require.False(t, ok, "it was returned")
		return j
	}
	t.Run("finished", func(t *testing.T) {
		j := wait()
		j.Add(1, 1e9, true, &Totals{})
		require.Equal(t, [][2]int{{2, 2}, {3, 3}, {4, 4}, {5, 5}}, rows(j))
	})
	t.Run("caught up", func(t *testing.T) {
		j := wait()
		seconds(j, 1, 1, 5)
		require.Equal(t, [][2]int{{2, 4}, {3, 6}, {4, 8}, {5, 10}}, rows(j))
	})
	t.Run("in one", func(t *testing.T) {
		j := wait()
		part := NewTotals(0, 1)
		part.AddDueN(driver.Get, 100)
		j.Add(1, 4e9, false, part)
		require.Equal(t, [][2]int{{4, 2 + 3 + 4 + 100}}, rows(j), "nobody knows what is of which second")
	})
	t.Run("finished last", func(t *testing.T) {
		j := wait()
		j.Add(0, 5.5e9, true, &Totals{})
		j.Add(1, 1e9, true, &Totals{})
		require.Equal(t, [][2]int{{2, 2}, {3, 3}, {4, 4}, {5, 5}, {5, 0}}, rows(j))
		_, ok := j.Next()
		require.False(t, ok)
	})
}

// TestJoinerKeepsNoMoreThanItMay: one source is silent for an hour.
func TestJoinerKeepsNoMoreThanItMay(t *testing.T) {
	j := NewJoiner(2, 0)
	seconds(j, 0, 0, 3600)
	j.Add(1, 1e9, true, &Totals{})
	sum, at, all := 0, 0, rows(j)
	require.LessOrEqual(t, len(all), mostWaiting)
	require.Greater(t, len(all), mostWaiting/4)
	for _, row := range all {
		require.Greater(t, row[0], at)
		at, sum = row[0], sum+row[1]
	}
	require.Equal(t, 3600, at)
	require.Equal(t, 3600*3601/2, sum)
}

// What is counted at a boundary that was already returned comes with the next interval, or with the last one if there is no next.
func TestWhatComesLateIsReturnedWithTheNext(t *testing.T) {
	one := NewTotals(0, 1)
	one.AddDue(driver.Put)
	for _, last := range []bool{false, true} {
		j := NewJoiner(2, 0)
		next := func(from, to int64, due uint64) {
			t.Helper()
			i, ok := j.Next()
			require.True(t, ok)
			require.Equal(t, []int64{from, to}, []int64{i.From, i.To})
			require.Equal(t, due, i.Delta.Ops[driver.Put].Due)
			require.Equal(t, last && to == 10 && from == 10, i.Final)
		}
		j.Add(0, 10, false, one)
		j.Add(1, 10, false, one)
		next(0, 10, 2)
		j.Add(0, 10, last, one)
		_, ok := j.Next()
		require.False(t, ok, "more may come")
		if last {
			j.Add(1, 10, true, one)
			next(10, 10, 2)
			continue
		}
		j.Add(1, 20, false, one)
		_, ok = j.Next()
		require.False(t, ok)
		j.Add(0, 20, false, one)
		next(10, 20, 3)
	}
}

// Ahead returns each waiting interval, and no other.
func TestAheadIsOfTheIntervalsThatWait(t *testing.T) {
	j := NewJoiner(2, 0)
	for _, to := range []int64{10, 20} {
		j.Add(0, to, false, NewTotals(0, 1))
	}
	for to, want := range map[int64]bool{0: false, 10: true, 15: false, 20: true, 30: false} {
		i, ok := j.Ahead(to)
		require.Equal(t, want, ok, "%d", to)
		if want {
			require.Equal(t, to, i.To)
		}
	}
}

// A source whose time runs backwards stays where it is.
func TestASourceDoesNotGoBack(t *testing.T) {
	one := NewTotals(0, 1)
	one.AddDue(driver.Put)
	j := NewJoiner(2, 0)
	j.Add(0, 10, false, one)
	j.Add(0, 5, false, one)
	j.Add(1, 10, false, one)
	i, ok := j.Next()
	require.True(t, ok)
	require.Equal(t, []int64{0, 10}, []int64{i.From, i.To})
	require.EqualValues(t, 3, i.Delta.Ops[driver.Put].Due)
}

// TestJoinerKeepsNoMoreBytesThanItMay: one source is silent while the other counts ever slower ops. Waiting intervals are joined until they fit, and
// add up to the same.
func TestJoinerKeepsNoMoreBytesThanItMay(t *testing.T) {
	j := NewJoiner(2, 0)
	j.Most = 256 << 10
	for s := range 60 {
		part := NewTotals(0, 1)
		part.AddDue(driver.Put)
		part.Record(&Sample{Verb: driver.Put, End: 1 << s})
		j.Add(0, int64(s+1)*1e9, false, part)
		require.LessOrEqual(t, j.Held(), j.Most)
	}
	j.Add(1, 1e9, true, &Totals{})
	sum, at, n := uint64(0), int64(0), 0
	for i, ok := j.Next(); ok; i, ok = j.Next() {
		require.Equal(t, at, i.From)
		at, sum, n = i.To, sum+i.Delta.Ops[driver.Put].Due, n+1
	}
	require.Less(t, n, 10)
	require.EqualValues(t, 60e9, at)
	require.EqualValues(t, 60, sum)
}

// If several intervals wait when all sources have finished, only the last is final.
func TestTheLastIntervalIsTheFinalOne(t *testing.T) {
	j := NewJoiner(2, 0)
	seconds(j, 0, 0, 3)
	j.Add(0, 4e9, true, &Totals{})
	j.Add(1, 1e9, true, &Totals{})
	for _, final := range []bool{false, false, false, true} {
		i, ok := j.Next()
		require.True(t, ok)
		require.Equal(t, final, i.Final, "up to %d", i.To)
	}
}

// As many intervals and bytes wait as are allowed; with one more, they are joined.
func TestWhatMayWaitIsNotJoined(t *testing.T) {
	require.Equal(t, 256<<20, NewJoiner(1, 0).Most)
	of := func(most, intervals int) (held, waited int) {
		j := NewJoiner(2, 0)
		j.Most = most
		seconds(j, 0, 0, intervals)
		held = j.Held()
		j.Add(1, 1e9, true, &Totals{})
		return held, len(rows(j))
	}
	whole, _ := of(math.MaxInt, 3)
	for _, c := range []struct{ most, intervals, want int }{{math.MaxInt, 128, 128}, {math.MaxInt, 129, 65}, {whole, 3, 3}, {whole - 1, 3, 2}} {
		_, waited := of(c.most, c.intervals)
		require.Equal(t, c.want, waited, "%+v", c)
	}
}

// TestJoinerSaysWhatHasNoRoom joins all that waits, which is still too much.
func TestJoinerSaysWhatHasNoRoom(t *testing.T) {
	j := NewJoiner(2, 0)
	j.Most = 100 << 10
	for s := range 3 {
		part := NewTotals(0, 1)
		part.Record(&Sample{Verb: driver.Verb(s), End: math.MaxInt64})
		j.Add(0, int64(s+1)*1e9, false, part)
		require.Greater(t, j.Held(), j.Most)
	}
	j.Add(1, 1e9, true, &Totals{})
	require.Equal(t, [][2]int{{3, 0}}, rows(j))
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
			j.Add(source, at, false, part)
			last, whole = j.Next()
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
