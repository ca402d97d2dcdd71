package op_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A program that remembers where keys live asks the same endpoints as one that does not, also for keys beyond those that it was told of.
func TestMemoIsThePlacement(t *testing.T) {
	for _, c := range []struct {
		name  string
		place op.Placement
	}{
		{"ketama on 1", op.NewRing(names(1))},
		{"ketama on 2", op.NewRing(names(2))},
		{"ketama on 3", op.NewRing(names(3))},
		{"ketama on 5", op.NewRing(names(5))},
		{"rendezvous on 1", op.NewRendezvous(names(1))},
		{"rendezvous on 2", op.NewRendezvous(names(2))},
		{"rendezvous on 5", op.NewRendezvous(names(5))},
	} {
		name, place := c.name, c.place
		n := min(3, place.Endpoints())
		cfg := op.NWR{N: n, W: n, R: (n + 1) / 2, GetsAskR: true, AtRandom: true, Seed: 1}
		plain, asking := op.NewPlain(place, false), op.NewNWR(cfg, place)
		keeping := op.NewPlain(place, false)
		keeping.Remember(50)
		cfg.Keys = 50
		memory := op.NewNWR(cfg, place)
		var sent uint64
		for range 3 {
			for i := range uint64(70) {
				o := op.Op{Verb: driver.Verb(sent % 3), N: sent, Index: i, Key: fmt.Appendf(nil, "key:%012d", i)}
				sent++
				require.Equal(t, place.Home(o.Key), plain.Home(&o), "%s, key %d", name, i)
				require.Equal(t, plain.Home(&o), keeping.Home(&o), "%s, key %d", name, i)
				require.Equal(t, asking.Start(nil, &o), memory.Start(nil, &o), "%s, key %d", name, i)
			}
		}
	}
}
