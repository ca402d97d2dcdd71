package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
)

// TestKeysAreWhereThePlacementSays puts every key once and checks which server has it.
func TestKeysAreWhereThePlacementSays(t *testing.T) {
	names := []string{"n0", "n1", "n2"}
	for placement, place := range map[string]op.Placement{"ketama": op.NewRing(names), "rendezvous": op.NewRendezvous(names)} {
		t.Run(placement, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 3, fmt.Sprintf("placement = %q", placement), "populate {}"), "load", time.Millisecond)
			b.run(worker.Populate)
			found := 0
			for i := range names {
				for key := range b.server(i).keys {
					require.Equal(t, place.Home([]byte(key)), i, key)
					found++
				}
			}
			require.Equal(t, 100, found)
		})
	}
}
