package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loadgen/loadgen/pkg/driver"
)

// endedOps returns ops as a cache on a network gives them, spread over a second of a step.
func endedOps(n int) []Sample {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]Sample, n)
	for i := range out {
		due := testOrigin + int64(i)*1e9/int64(n)
		start := due + int64(10_000*r.ExpFloat64())
		out[i] = Sample{
			Verb: driver.Verb(i & 1), Due: due, Start: start, End: start + int64(300_000*math.Exp(r.NormFloat64()*0.6)),
		}
	}
	return out
}

func second(n int) *Totals {
	t := NewTotals(testOrigin, 4)
	for _, s := range endedOps(n) {
		t.AddDue(s.Verb)
		t.Record(&s)
		*t.Request(int(s.End&3), s.Verb) = Requests{Sent: 1000, Answered: 1000}
	}
	return t
}

// BenchmarkOp is all that an op costs the recorder.
func BenchmarkOp(b *testing.B) {
	const n = 1 << 12
	all := endedOps(n)
	t := second(n)
	key := []byte("key:000000000042")
	i := 0
	b.Run("part=record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.Record(&all[i&(n-1)])
			i++
		}
	})
	b.Run("part=all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := &all[i&(n-1)]
			t.AddDue(s.Verb)
			t.Mix(OpDigest(uint32(i), uint64(i), s.Verb, key, 200))
			t.AddInFlight(s.Verb, 1)
			r := t.Request(i&3, s.Verb)
			r.Sent++
			r.Answered++
			t.AddBytes(s.Verb, 210, 40)
			t.AddInFlight(s.Verb, -1)
			t.Record(s)
			i++
		}
	})
	b.Run("part=digest", func(b *testing.B) {
		for b.Loop() {
			t.Mix(OpDigest(uint32(i), uint64(i), driver.Put, key, 200))
			i++
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	total, part := second(100_000), second(1000)
	b.ReportAllocs()
	for b.Loop() {
		total.Merge(part)
	}
}

func BenchmarkEncode(b *testing.B) {
	t := second(1000)
	buf := bytesOf(b, t)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = t.AppendBinary(buf[:0])
	}
	b.ReportMetric(float64(len(buf)), "bytes")
}

func BenchmarkDecode(b *testing.B) {
	buf := bytesOf(b, second(1000))
	var t Totals
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReset(b *testing.B) {
	t := second(1000)
	b.ReportAllocs()
	for b.Loop() {
		t.Reset()
	}
}
