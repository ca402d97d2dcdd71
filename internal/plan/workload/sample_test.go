package workload

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/compress"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Text repeats, so that many values shrink more than one does; values with a compressibility shrink by as much, however many there are. All differ.
func TestSamplesShrink(t *testing.T) {
	none, half := 0.0, 0.5
	for _, c := range []struct {
		size        int
		compresses  *float64
		least, most float64
	}{
		{36, nil, 0.2, 0.7}, {1 << 10, nil, 0, 0.1}, {1 << 20, nil, 0, 0.1}, {1 << 10, &none, 0.99, 1.01}, {1 << 10, &half, 0.5, 0.55},
	} {
		p := onePlan(keys("uniform", "shared", 1<<30), &plan.Phase{
			Name: "load", Ops: []plan.Weight{{Op: "put", Weight: 1}}, Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}},
		})
		p.Datasets[0].Values = plan.Values{Size: c.size, Compressibility: c.compresses}
		values, err := Sample(p, p.Phases[0], 2<<20)
		require.NoError(t, err)
		require.Len(t, values, 2<<20)
		seen := map[string]bool{}
		for at := 0; at < len(values); at += c.size {
			seen[string(values[at:min(at+c.size, len(values))])] = true
		}
		require.Len(t, seen, (len(values)+c.size-1)/c.size)
		share := compress.Share(values)
		require.True(t, c.least <= share && share <= c.most, "%d bytes: %.3f", c.size, share)
	}
}
