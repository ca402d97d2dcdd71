package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

// op is an op that is identified by its number.
func op(i int) *DrawnOp {
	return &DrawnOp{Due: int64(i), Start: int64(i) + 1, End: int64(i) + 3, In: 10, Out: Unknown, Code: 200, Verb: driver.Get, Outcome: driver.OK}
}

// drawn returns what a draw of numbered ops has taken, when told in groups of up to together.
func drawn(most, from, to int, seed, part uint64, together int) *Samples {
	d, s := NewDraw(most, seed, part), &Samples{}
	sizes := rand.New(rand.NewPCG(seed, part))
	for from < to {
		n := min(1+sizes.IntN(together), to-from)
		if !d.Passes(uint64(n)) {
			d.Enter(op(from), nil, uint64(n))
		}
		from += n
	}
	s.Add(d.most, d.Taken())
	return s
}

func formOf(s *Samples) string {
	var f form
	f.samples(s)
	return string(f.out)
}

// TestEveryOpHasTheSameChance draws 20 of 1,000 ops, 3,000 times, by four loops with unequal shares that are joined in a different order each time.
// Each op is expected 60 times. The sum of squares is compared with chi-squared with 999 degrees of freedom, which exceeds 1,195 once in 100,000
// tries.
func TestEveryOpHasTheSameChance(t *testing.T) {
	const ops, most, tries = 1000, 20, 3000
	cuts := []int{0, 10, 15, 400, ops}
	var count [ops]int
	for try := range tries {
		s := &Samples{}
		for _, i := range rand.New(rand.NewPCG(9, uint64(try))).Perm(len(cuts) - 1) {
			s.Merge(drawn(most, cuts[i], cuts[i+1], uint64(try), uint64(i), 1))
		}
		kept := s.Ops()
		require.Len(t, kept, most)
		for i := range kept {
			count[kept[i].Due]++
		}
	}
	sum, expected := 0.0, float64(most*tries)/ops
	for _, n := range count {
		sum += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	sum /= 1 - float64(most)/ops // of draws without replacement
	require.Less(t, sum, 1195.0)
	require.Greater(t, sum, 810.0)
}

// TestGroupsAreFair tells ops in groups that ended alike: each op counts as one.
func TestGroupsAreFair(t *testing.T) {
	const most, tries, small, large = 10, 1000, 1, 9
	ones := 0
	for try := range uint64(tries) {
		d, s := NewDraw(most, try, 1), &Samples{}
		for range 50 {
			d.Enter(&DrawnOp{Code: 1}, nil, small)
			d.Enter(&DrawnOp{Code: 2}, nil, large)
		}
		s.Add(most, d.Taken())
		for _, o := range s.Ops() {
			if o.Code == 1 {
				ones++
			}
		}
	}
	share, sigma := float64(ones)/(most*tries), math.Sqrt(0.1*0.9/(most*tries))
	require.InDelta(t, 0.1, share, 5*sigma)
}

// TestMergeIsExact merges parts in any order and grouping: the result is that of one set of all ranks.
func TestMergeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 30).Draw(t, "most")
		var parts []*Samples
		all := &Samples{}
		for i := range rapid.IntRange(1, 6).Draw(t, "parts") {
			p := drawn(most, 1000*i, 1000*i+rapid.IntRange(0, 200).Draw(t, "ops"), 7, uint64(i), 5)
			all.most = max(all.most, most)
			all.ops = append(all.ops, p.ops...)
			parts = append(parts, p)
		}
		want := formOf(all)
		joined := func(order []*Samples) *Samples {
			s := &Samples{}
			for _, p := range order {
				s.Merge(p)
			}
			return s
		}
		require.Equal(t, want, formOf(joined(rapid.Permutation(parts).Draw(t, "order"))))
		cut := rapid.IntRange(0, len(parts)).Draw(t, "cut")
		s := joined(parts[:cut])
		s.Merge(joined(parts[cut:]))
		require.Equal(t, want, formOf(s))
		s.Merge(&Samples{})
		require.Equal(t, want, formOf(s))
	})
}

// TestDrawIsSeeded, and takes few more than it keeps: n·(1 + ln(N/n)).
func TestDrawIsSeeded(t *testing.T) {
	require.Equal(t, formOf(drawn(100, 0, 100_000, 5, 1, 4)), formOf(drawn(100, 0, 100_000, 5, 1, 4)))
	require.NotEqual(t, formOf(drawn(100, 0, 100_000, 5, 1, 4)), formOf(drawn(100, 0, 100_000, 6, 1, 4)))
	require.NotEqual(t, formOf(drawn(100, 0, 100_000, 5, 1, 4)), formOf(drawn(100, 0, 100_000, 5, 2, 4)))
	d := NewDraw(100, 1, 1)
	for i := range 1_000_000 {
		if !d.Passes(1) {
			d.Enter(op(i), nil, 1)
		}
	}
	taken := d.Taken()
	require.InDelta(t, 100*(1+math.Log(10_000)), len(taken), 200)
	var ranks []uint64
	for _, o := range taken { // each is among the smallest so far
		at, _ := slices.BinarySearch(ranks, o.rank)
		require.Less(t, at, 100)
		ranks = slices.Insert(ranks, at, o.rank)
	}
	require.Len(t, drawn(100, 0, 60, 1, 1, 7).Ops(), 60, "all of a few")
}

// TestSetIsBounded however much is added.
func TestSetIsBounded(t *testing.T) {
	s := &Samples{}
	for i := range 1000 {
		s.Merge(drawn(10, 0, 10, 1, uint64(i), 1))
		require.Less(t, len(s.ops), 20)
	}
}

// Taken ops are handed over once.
func TestTakenOpsAreHandedOverOnce(t *testing.T) {
	d := NewDraw(10, 1, 1)
	d.Enter(op(1), nil, 1)
	require.Len(t, d.Taken(), 1)
	require.Empty(t, d.Taken())
	d.Enter(op(2), nil, 1)
	require.Len(t, d.Taken(), 1)
}

// Ops told together are skipped and taken as they would be one by one.
func TestADrawTakesTheSameOfGroups(t *testing.T) {
	const ops, together = 5000, 10
	of := func(each uint64) (taken []int64) {
		d := NewDraw(5, 1, 1)
		for i := uint64(0); i < ops; i += each {
			d.Enter(&DrawnOp{Due: int64(i / together)}, nil, each)
		}
		for _, op := range d.Taken() {
			taken = append(taken, op.Due)
		}
		return taken
	}
	require.Equal(t, of(1), of(together))
	require.Equal(t, of(1), of(2))
}

// Ops are ordered by start, and by end if the start is the same.
func TestSamplesAreInTheOrderOfTheirStarts(t *testing.T) {
	var s Samples
	for _, o := range []DrawnOp{{Start: 2, End: 3}, {Start: 1, End: 9}, {Start: 2, End: 2}, {Start: 1, End: 8}} {
		s.Add(4, []DrawnOp{o})
	}
	var starts, ends []int64
	for _, o := range s.Ops() {
		starts, ends = append(starts, o.Start), append(ends, o.End)
	}
	require.Equal(t, []int64{1, 1, 2, 2}, starts)
	require.Equal(t, []int64{8, 9, 2, 3}, ends)
}

func TestErrorsAreCleaned(t *testing.T) {
	d := NewDraw(10, 1, 1)
	for _, text := range []string{"status 503", "a\x1b[31mb\n", "\xff\xfe", strings.Repeat("ä", 100), strings.Repeat("x", 1000)} {
		d.Enter(&DrawnOp{Due: 9, Start: 5, End: 1, Outcome: driver.Error}, []byte(text), 1)
	}
	ops := d.Taken()
	require.Equal(t, []string{"status 503", "a?[31mb?", "??", strings.Repeat("ä", 40), strings.Repeat("x", 80)},
		[]string{ops[0].Error, ops[1].Error, ops[2].Error, ops[3].Error, ops[4].Error})
	require.Equal(t, []int64{9, 9, 9}, []int64{ops[0].Due, ops[0].Start, ops[0].End}, "no time runs backwards")
}

func decode(b string) (*Samples, error) {
	s, r := &Samples{}, reading([]byte(b))
	r.samples(s)
	if r.Err == nil && len(r.Rest) > 0 {
		r.Fail("%d bytes after it", len(r.Rest))
	}
	return s, r.Err
}

func TestBinary(t *testing.T) {
	d := NewDraw(50, 1, 1)
	for i := range 40 {
		o := op(i * 1_000_000_007)
		o.Verb, o.Outcome, o.In, o.Out, o.Code = driver.Verb(i%driver.NumVerbs), driver.Outcome(i%5), int64(i-1), int64(1<<i), i*1000
		d.Enter(o, fmt.Append(nil, strings.Repeat("e", i)), 1)
	}
	s := &Samples{}
	s.Add(50, d.Taken())
	want := formOf(s)
	got, err := decode(want)
	require.NoError(t, err)
	require.Equal(t, s.Ops(), got.Ops())
	for cut := range len(want) {
		_, err := decode(want[:cut])
		require.Error(t, err)
	}
}

func samplesOf(most int, ops ...DrawnOp) *Samples {
	s := &Samples{}
	s.Add(most, ops)
	return s
}

func TestFormsThatCannotBe(t *testing.T) {
	one := func(change func(o *DrawnOp)) string {
		o := *op(5)
		change(&o)
		return formOf(samplesOf(5, o))
	}
	ascending := formOf(drawn(5, 0, 2, 1, 1, 1))
	at := 2
	size := (len(ascending) - at) / 2
	for want, b := range map[string]string{
		"3 samples of at most 2":               "\x02\x03" + strings.Repeat("\x00", 3*leastBytes),
		"0 samples of at most 0":               "\x00\x00" + strings.Repeat("\x00", leastBytes),
		"want some of at most 100000":          formOf(samplesOf(MostSamples+1, *op(1))),
		"0 samples":                            formOf(samplesOf(5)),
		"it ends early: 2 samples in 20 bytes": "\x05\x02" + strings.Repeat("\x00", 20),
		"ended as 6":                           one(func(o *DrawnOp) { o.Outcome = driver.Shed }),
		"a sample of verb":                     one(func(o *DrawnOp) { o.Verb = driver.Verb(driver.NumVerbs) }),
		"with the code 65536":                  one(func(o *DrawnOp) { o.Code = 65536 }),
		"too long or not printable":            one(func(o *DrawnOp) { o.Error = "a\n" }),
		"too long or not":                      one(func(o *DrawnOp) { o.Error = strings.Repeat("x", 81) }),
		"ends beyond 2^63":                     one(func(o *DrawnOp) { o.End = -5 }),
		"samples out of order":                 ascending[:at] + ascending[at+size:] + ascending[at:at+size],
	} {
		_, err := decode(b)
		require.ErrorContains(t, err, want)
	}
}

// Extreme but possible values are read as written.
func TestFormsThatJustCanBe(t *testing.T) {
	for name, change := range map[string]func(o *DrawnOp){
		"the largest code":    func(o *DrawnOp) { o.Code = math.MaxUint16 },
		"the most bytes in":   func(o *DrawnOp) { o.In = math.MaxInt64 - 1 },
		"the most bytes out":  func(o *DrawnOp) { o.Out = math.MaxInt64 - 1 },
		"the longest error":   func(o *DrawnOp) { o.Error = strings.Repeat("x", maxSampleText) },
		"the last verb":       func(o *DrawnOp) { o.Verb = driver.Verb(driver.NumVerbs - 1) },
		"the last that ended": func(o *DrawnOp) { o.Outcome = driver.Shed - 1 },
		"the last moment":     func(o *DrawnOp) { o.Due, o.Start, o.End = math.MinInt64, 0, math.MaxInt64 },
	} {
		o := *op(5)
		change(&o)
		was := samplesOf(5, o)
		got, err := decode(formOf(was))
		require.NoError(t, err, name)
		require.Equal(t, was, got, name)
	}
	_, err := decode(formOf(samplesOf(MostSamples, *op(1))))
	require.NoError(t, err)
	for _, b := range []string{ // bytes that AppendBinary makes for no op
		"\x05\x01" + strings.Repeat("\x00", 8) + "\x00\x00\x00\x00\x00" + "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01" + "\x00\x00\x00",
		"\x05\x01" + strings.Repeat("\x00", 8) + "\x00\x00\x00\x00\x00" + "\x00" + "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01" + "\x00\x00",
	} {
		_, err := decode(b)
		require.ErrorContains(t, err, "bytes with the code 0")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(formOf(drawn(10, 0, 100, 1, 1, 3))))
	f.Add([]byte("\x05\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, r := &Samples{}, reading(b)
		r.samples(s)
		if r.Err != nil {
			require.True(t, s.Empty())
			return
		}
		got, err := decode(formOf(s))
		require.NoError(t, err)
		require.Equal(t, s.Ops(), got.Ops())
	})
}
