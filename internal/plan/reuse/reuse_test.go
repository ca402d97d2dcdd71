package reuse

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrder compares an order with a list of keys, the oldest first, on random uses and drops.
func TestOrder(t *testing.T) {
	for room := range 6 {
		random := rand.New(rand.NewPCG(uint64(room), 1))
		o, list := newOrder(), []uint64{}
		for range 3000 {
			key := random.Uint64N(8)
			at := slices.Index(list, key)
			if at >= 0 {
				list = slices.Delete(list, at, at+1)
			}
			switch random.IntN(40) {
			case 0:
				o = newOrder()
				list = list[:0]
			case 1, 2:
				o.take(key)
			default:
				require.Equal(t, at >= 0, o.use(key, room))
				list = append(list, key)
				list = list[max(0, len(list)-room):]
			}
			require.Len(t, o.at, len(list))
		}
	}
}
