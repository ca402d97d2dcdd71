package capture

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
)

// TestProfilesOfKnownLoads draws traces of twenty loads, and finds of each what it was.
func TestProfilesOfKnownLoads(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i, skew := range []float64{0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1, 1.05, 1.1, 1.2, 1.3, 1.5, 0.99} {
		keys := 500 * (1 + i%4)
		requests, gets := 12*keys, 0.1*float64(1+i%8)
		if i == 19 {
			requests = keys
		}
		sums := make([]float64, keys)
		for k := range sums {
			sums[k] = math.Pow(float64(k+1), -skew)
			if k > 0 {
				sums[k] += sums[k-1]
			}
		}
		var b bytes.Buffer
		w, err := trace.NewWriter(&b, trace.Header{Names: []string{"other"}, Clients: 1})
		require.NoError(t, err)
		at, gotten, put, bytesPut := 0.0, 0.0, 0.0, 0.0
		for range requests {
			gap := 1e6
			if i%2 == 0 {
				gap *= random.ExpFloat64()
			}
			at += gap
			k, _ := slices.BinarySearch(sums, random.Float64()*sums[keys-1])
			key := fmt.Sprint("key:", k)
			switch x := random.Float64(); {
			case x < gets:
				gotten++
				err = w.Write(int64(at), 0, 0, redis.AppendCommand(nil, "GET", key))
			case x < 0.95:
				size := 10 + random.IntN(100*(1+i))
				put, bytesPut = put+1, bytesPut+float64(size)
				err = w.Write(int64(at), 0, 0, redis.AppendCommand(redis.AppendCommand(nil, "SELECT", "3"), "SET", key, string(make([]byte, size))))
			default:
				err = w.Write(int64(at), 0, 0, redis.AppendCommand(nil, "HSET", key, "field", fmt.Sprint("v", gap)))
			}
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		p, err := NewProfile(&b)
		require.NoError(t, err)
		shares := map[string]float64{}
		for _, o := range p.Ops {
			shares[o.Words[0]] = float64(o.Count) / float64(p.Requests)
		}
		require.InDelta(t, gotten/float64(requests), shares["GET"], 0.01)
		require.InDelta(t, put/float64(requests), shares["SET"], 0.01)
		n, sum := 0.0, 0.0
		for size, often := range p.Sizes {
			n, sum = n+float64(often), sum+float64(often)*float64(size)
		}
		require.LessOrEqual(t, len(p.Sizes), 100)
		require.InEpsilon(t, bytesPut/put, sum/n, 0.02)
		require.Equal(t, i%2 == 1, p.Constant)
		require.InEpsilon(t, 1000, p.Rate, 0.05)
		if i == 19 {
			require.True(t, p.Few)
			continue
		}
		require.False(t, p.Few)
		require.InDelta(t, skew, p.Skew, 0.05)
	}
}
