package op_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A program that keeps where keys live asks the same endpoints as one that does not, also of keys beyond those it was told of.
func TestMemoIsThePlacement(t *testing.T) {
	for name, place := range map[string]op.Placement{"ketama": op.NewRing(names(5)), "rendezvous": op.NewRendezvous(names(5))} {
		cfg := op.NWR{N: 3, W: 2, R: 2, ReadFanout: "r", ReadFrom: "random", Seed: 1}
		plain, asking := op.NewPlain(place, false), op.NewNWR(cfg, place)
		keeping := op.NewPlain(place, false)
		keeping.Remember(50)
		cfg.Keys = 50
		memory := op.NewNWR(cfg, place)
		var n uint64
		for range 3 {
			for i := range uint64(70) {
				o := op.Op{Verb: driver.Verb(n % 3), N: n, Index: i, Key: fmt.Appendf(nil, "key:%012d", i)}
				n++
				require.Equal(t, plain.Home(&o), keeping.Home(&o), "%s, key %d", name, i)
				require.Equal(t, asking.Start(nil, &o), memory.Start(nil, &o), "%s, key %d", name, i)
			}
		}
	}
}
