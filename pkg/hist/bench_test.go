package hist

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
)

// latencies returns log-normal values around 300 µs, as a cache on a network gives.
func latencies(n int, seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(300_000 * math.Exp(r.NormFloat64()*0.6))
	}
	return out
}

// peer is HdrHistogram over the same range with about the same error: 3 digits are 0.1 %, 2 are 1 %.
func peer() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(math.MaxInt64/2), 2) }

// op is what is recorded for one op: its lag, its service time, and both together.
type op struct{ lag, service, response int64 }

func ops(n int) []op {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]op, n)
	for i, service := range latencies(n, 1) {
		lag := int64(10_000 * r.ExpFloat64())
		out[i] = op{lag, service, lag + service}
	}
	return out
}

// BenchmarkRecord compares the cost of one op: three latencies and a counter here, three latencies there; and the same for 16 ops that ended alike,
// such as those sent in one write and answered in one read. They are recorded by the hundred, so that the loop around them is little of ns/each.
func BenchmarkRecord(b *testing.B) {
	all := ops(1 << 9) // no more than fit the L1 cache beside the buckets
	run := func(name string, record func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				record()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/each")
		})
	}
	var one Hist
	run("impl=hist/values=1", func() {
		for _, o := range all {
			one.Record(o.service)
		}
	})
	var h [3]Hist
	var ended uint64
	run("impl=hist/values=3", func() {
		for _, o := range all {
			Record3(&h[0], &h[1], &h[2], o.lag, o.service, o.response)
			ended++
		}
	})
	run("impl=hist/values=3/times=16", func() {
		for _, o := range all {
			h[0].RecordN(o.lag, 16)
			h[1].RecordN(o.service, 16)
			h[2].RecordN(o.response, 16)
			ended += 16
		}
	})
	require.Equal(b, ended, h[2].Count())
	p := [3]*hdrhistogram.Histogram{peer(), peer(), peer()}
	run("impl=hdr/values=3", func() {
		for _, o := range all {
			_ = p[0].RecordValue(o.lag)
			_ = p[1].RecordValue(o.service)
			_ = p[2].RecordValue(o.response)
		}
	})
	run("impl=hdr/values=3/times=16", func() {
		for _, o := range all {
			_ = p[0].RecordValues(o.lag, 16)
			_ = p[1].RecordValues(o.service, 16)
			_ = p[2].RecordValues(o.response, 16)
		}
	})
}

func filled(n int, seed uint64) *Hist { return of(latencies(n, seed)...) }

func filledPeer(b *testing.B, n int, seed uint64) *hdrhistogram.Histogram {
	h := peer()
	for _, v := range latencies(n, seed) {
		require.NoError(b, h.RecordValue(v))
	}
	return h
}

// BenchmarkMerge merges an interval of a second into a total.
func BenchmarkMerge(b *testing.B) {
	b.Run("impl=hist", func(b *testing.B) {
		total, part := filled(100_000, 1), filled(1000, 2)
		b.ReportAllocs()
		for b.Loop() {
			total.Merge(part)
		}
	})
	b.Run("impl=hdr", func(b *testing.B) {
		total, part := filledPeer(b, 100_000, 1), filledPeer(b, 1000, 2)
		b.ReportAllocs()
		for b.Loop() {
			total.Merge(part)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	b.Run("impl=hist", func(b *testing.B) {
		h := filled(1000, 1)
		buf := bytesOf(b, h)
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = h.AppendBinary(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "bytes")
	})
	b.Run("impl=hdr", func(b *testing.B) {
		h := filledPeer(b, 1000, 1)
		b.ReportAllocs()
		size := 0
		for b.Loop() {
			buf, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			if err != nil {
				b.Fatal(err)
			}
			size = len(buf)
		}
		b.ReportMetric(float64(size), "bytes")
	})
}

func BenchmarkDecode(b *testing.B) {
	buf := bytesOf(b, filled(1000, 1))
	var h Hist
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuantile(b *testing.B) {
	h := filled(100_000, 1)
	b.ReportAllocs()
	for b.Loop() {
		h.Quantile(0.99)
	}
}
