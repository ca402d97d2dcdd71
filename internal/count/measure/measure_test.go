package measure

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

func TestRecord(t *testing.T) {
	totals := NewTotals(1000, 0)
	record := func(o driver.Outcome, due, start, end int64) {
		totals.Record(&Sample{
			Verb: driver.Get, Outcome: o, Cause: 2, Due: due, Start: start, End: end,
		})
	}
	totals.AddBytes(driver.Get, 40, 21)
	totals.AddBytes(driver.Get, 0, 7)
	record(driver.OK, 1100, 1150, 1250)
	record(driver.Miss, 1100, 1100, 1101)
	record(driver.Error, 1100, 1090, 1190) // started early
	record(driver.Timeout, 1100, 1100, 1350)

	o := totals.Ops[driver.Get]
	require.Nil(t, totals.Ops[driver.Put])
	require.Equal(t, [driver.NumOutcomes]uint64{driver.OK: 1, driver.Miss: 1, driver.Timeout: 1, driver.Error: 1}, o.Outcomes)
	require.Equal(t, [NumCauses]uint64{2: 2}, o.Causes, "of bad outcomes only")
	require.EqualValues(t, 40, o.In)
	require.EqualValues(t, 28, o.Out)
	for _, c := range []struct {
		name     string
		h        *hist.Hist
		count    uint64
		min, max int64
	}{
		{"lag", &o.Lag, 4, 0, 50},
		{"service of ok", &o.Service[ClassOK], 1, 100, 100},
		{"service of miss", &o.Service[ClassMiss], 1, 1, 1},
		{"service of bad", &o.Service[ClassBad], 2, 100, 250},
		{"response of ok", &o.Response[ClassOK], 1, 150, 150},
		{"response of miss", &o.Response[ClassMiss], 1, 1, 1},
		{"response of bad", &o.Response[ClassBad], 2, 90, 250},
	} {
		require.Equal(t, c.count, c.h.Count(), c.name)
		require.Equal(t, c.min, c.h.Min(), c.name)
		require.Equal(t, c.max, c.h.Max(), c.name)
	}
	all, bad, failed := totals.Ended()
	require.Equal(t, []uint64{4, 2, 2}, []uint64{all, bad, failed})
	totals.Record(&Sample{Verb: driver.Put, Outcome: driver.Conflict})
	all, bad, failed = totals.Ended()
	require.Equal(t, []uint64{5, 3, 2}, []uint64{all, bad, failed}, "a conflict is no failure of the target's")

	n, _ := o.Bins[driver.OK].Between(0, 1<<minShift)
	require.EqualValues(t, 1, n, "bins count from the origin")
	require.Nil(t, o.Bins[driver.Conflict])

	service, response := o.ServiceAll(), o.ResponseAll()
	require.EqualValues(t, 2, service.Answered.Count(), "ok and miss")
	require.EqualValues(t, 100, service.Answered.Max())
	require.EqualValues(t, 2, response.Answered.Count())
	require.EqualValues(t, 2, response.Failed)
	require.EqualValues(t, 150, response.Answered.Max())
	require.EqualValues(t, 1, o.Service[ClassOK].Count(), "the parts are left alone")
}

func TestAcks(t *testing.T) {
	totals := NewTotals(0, 0)
	totals.Ack(driver.Put, 3, 30)
	totals.Ack(driver.Put, 1, 10)
	acks := totals.Ops[driver.Put].Acks
	require.Len(t, acks, 3)
	require.EqualValues(t, 10, acks[0].Max())
	require.Zero(t, acks[1].Count())
	require.EqualValues(t, 30, acks[2].Max())
}

func TestNoAllocationOnceUsed(t *testing.T) {
	totals, spare := sampleTotals(), sampleTotals()
	s := Sample{Verb: driver.Put, Outcome: driver.Error, Due: testOrigin, Start: testOrigin + 1000, End: testOrigin + 250_000}
	known := []byte("ERR a text that came before")
	totals.Errors.Add(known)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"AddDue", func() { totals.AddDue(driver.Put) }},
		{"Mix", func() { totals.Mix(OpDigest(1, 2, driver.Put, known, 200)) }},
		{"AddInFlight", func() { totals.AddInFlight(driver.Put, 1); totals.AddInFlight(driver.Put, -1) }},
		{"AddBytes", func() { totals.AddBytes(driver.Put, 10, 20) }},
		{"Record", func() { totals.Record(&s) }},
		{"RecordN", func() { totals.RecordN(&s, 7) }},
		{"Ack", func() { totals.Ack(driver.Put, 3, 350_000) }},
		{"Grow", func() { totals.Grow(&s, 1000); totals.Grow(&s, 900) }},
		{"Shed", func() { totals.Shed(driver.Put, 2) }},
		{"Request", func() { totals.Request(2, driver.Put).Sent++ }},
		{"Errors.Add", func() { totals.Errors.Add(known) }},
		{"Merge", func() { spare.Merge(totals) }},
		{"Reset and Record", func() { spare.Reset(); spare.Record(&s); spare.Ack(driver.Put, 3, 1) }},
	} {
		require.Zero(t, testing.AllocsPerRun(100, c.f), c.name)
	}
}

func TestOpDigest(t *testing.T) {
	base := OpDigest(1, 2, driver.Put, []byte("key:1"), 200)
	seen := map[uint64]string{base: "the op"}
	for name, d := range map[string]uint64{
		"stream":              OpDigest(2, 2, driver.Put, []byte("key:1"), 200),
		"number":              OpDigest(1, 3, driver.Put, []byte("key:1"), 200),
		"stream and number":   OpDigest(2, 1, driver.Put, []byte("key:1"), 200),
		"verb":                OpDigest(1, 2, driver.Get, []byte("key:1"), 200),
		"key":                 OpDigest(1, 2, driver.Put, []byte("key:2"), 200),
		"longer key":          OpDigest(1, 2, driver.Put, []byte("key:1\x00"), 200),
		"key of eight":        OpDigest(1, 2, driver.Put, []byte("key:1\x00\x00\x00"), 200),
		"key of nine":         OpDigest(1, 2, driver.Put, []byte("key:1\x00\x00\x00\x00"), 200),
		"end of a longer key": OpDigest(1, 2, driver.Put, []byte("key:1\x00\x00\x00\x01"), 200),
		"no key":              OpDigest(1, 2, driver.Put, nil, 200),
		"size":                OpDigest(1, 2, driver.Put, []byte("key:1"), 201),
	} {
		require.Empty(t, seen[d], "differs in %s only", name)
		seen[d] = name
	}
}

// TestDigestsArePinned: runs of different builds are compared by them. The keys begin with a, b, c and so on.
func TestDigestsArePinned(t *testing.T) {
	for n, want := range map[int]uint64{
		0:  0x51fd3464c0ed2eec,
		1:  0x8d04c325b30230f7,
		7:  0x2de8e98ef23a4c78,
		8:  0xccd033da043531be,
		9:  0x4c2cdf6d68e2a90,
		15: 0x5ddc956caf94f46f,
		16: 0x773158e5781f4c00,
		17: 0xab49353b4ff67e4c,
		24: 0xf1d05f8edf51cecb,
		31: 0x79b06eb1c33a5f29,
		32: 0xb2b6da732cae024e,
		40: 0xc5bf22da4618530d,
	} {
		key := make([]byte, n)
		for i := range key {
			key[i] = byte('a' + i)
		}
		require.Equal(t, want, OpDigest(3, 1<<40+5, driver.Put, key, 1000), "a key of %d bytes", n)
	}
}

func TestDigestOfRow(t *testing.T) {
	for _, size := range []int{1, 8, 16, 17, 40} {
		for _, stride := range []int{size, size + 20} {
			var want uint64
			row := make([]byte, 0, 50*stride)
			for i := range 50 {
				key := fmt.Appendf(nil, "%0*d", size, i%10)
				want += OpDigest(7, 1000+uint64(i), driver.Put, key, 300)
				row = append(row, fmt.Appendf(nil, "%-*s", stride, key)...)
			}
			r := Row{Stream: 7, N: 1000, Verb: driver.Put, Size: 300, Keys: row, Stride: stride, Key: size}
			require.Equal(t, want, r.Digest(50))
		}
	}
}

// TestDigestsDoNotClump adds up the digests of neighbouring ops in groups: no two sums are equal, and every bit of them is set about half of the
// time.
func TestDigestsDoNotClump(t *testing.T) {
	seen := map[uint64]bool{}
	var ones [64]int
	const groups = 20_000
	for g := range uint64(groups) {
		var sum uint64
		for i := range uint64(4) {
			n := 4*g + i
			sum += OpDigest(uint32(n%50), n/50, driver.Get, fmt.Appendf(nil, "key:%012d", n*7919%1000), 32)
		}
		require.False(t, seen[sum])
		seen[sum] = true
		for bit := range ones {
			ones[bit] += int(sum >> bit & 1)
		}
	}
	for bit, n := range ones {
		require.InDelta(t, groups/2, n, 5*math.Sqrt(groups)/2, "bit %d", bit)
	}
}

func TestRecordNIsNRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, many := NewTotals(testOrigin, testEndpoints), NewTotals(testOrigin, testEndpoints)
		for range rapid.IntRange(1, 5).Draw(t, "samples") {
			s, n := drawSample(t), rapid.Uint64Range(1, 70).Draw(t, "n")
			for range n {
				one.Record(&s)
			}
			many.RecordN(&s, n)
		}
		require.Equal(t, bytesOf(t, one), bytesOf(t, many))
	})
}

// Counters are equal if they have the same ledgers of ops and of requests, for equally many endpoints.
func TestEqualCounters(t *testing.T) {
	of := func(change func(t *Totals)) *Counters {
		all := NewTotals(testOrigin, 2)
		all.AddDue(driver.Get)
		all.Request(1, driver.Get).Sent = 1
		change(all)
		c := all.Counters()
		return &c
	}
	same := of(func(*Totals) {})
	for name, c := range map[string]struct {
		other *Counters
		want  bool
	}{
		"the same":         {of(func(*Totals) {}), true},
		"another op":       {of(func(t *Totals) { t.AddDue(driver.Get) }), false},
		"another request":  {of(func(t *Totals) { t.Request(1, driver.Get).Sent++ }), false},
		"another endpoint": {of(func(t *Totals) { t.Merge(NewTotals(0, 3)) }), false},
	} {
		require.Equal(t, c.want, same.Equal(c.other), name)
		require.Equal(t, c.want, c.other.Equal(same), name)
	}
}
