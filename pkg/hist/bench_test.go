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

// BenchmarkRecord compares what one op costs: three latencies and a counter here, three latencies there. The same for ops that ended
// alike, such as those that one write sent and one read answered, counted together.
func BenchmarkRecord(b *testing.B) {
	values := latencies(1<<12, 1)
	b.Run("impl=hist/values=1", func(b *testing.B) {
		var h Hist
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			h.Record(values[i&(1<<12-1)])
			i++
		}
	})
	b.Run("impl=hist/values=3", func(b *testing.B) {
		var h [3]Hist
		var ended uint64
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			v := values[i&(1<<12-1)]
			h[0].Record(v >> 4)
			h[1].Record(v)
			h[2].Record(v + v>>4)
			ended++
			i++
		}
		require.Equal(b, ended, h[2].Count())
	})
	b.Run("impl=hist/values=3/times=16", func(b *testing.B) {
		var h [3]Hist
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			v := values[i&(1<<12-1)]
			h[0].RecordN(v>>4, 16)
			h[1].RecordN(v, 16)
			h[2].RecordN(v+v>>4, 16)
			i++
		}
	})
	b.Run("impl=hdr/values=3/times=16", func(b *testing.B) {
		h := [3]*hdrhistogram.Histogram{peer(), peer(), peer()}
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			v := values[i&(1<<12-1)]
			_ = h[0].RecordValues(v>>4, 16)
			_ = h[1].RecordValues(v, 16)
			_ = h[2].RecordValues(v+v>>4, 16)
			i++
		}
	})
	b.Run("impl=hdr/values=3", func(b *testing.B) {
		h := [3]*hdrhistogram.Histogram{peer(), peer(), peer()}
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			v := values[i&(1<<12-1)]
			_ = h[0].RecordValue(v >> 4)
			_ = h[1].RecordValue(v)
			_ = h[2].RecordValue(v + v>>4)
			i++
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
