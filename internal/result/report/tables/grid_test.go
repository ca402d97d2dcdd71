package tables

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingSaysAReasonOnce for figures that are null for the same reason, whatever their paths.
func TestMissingSaysAReasonOnce(t *testing.T) {
	require.Equal(t, []string{"– a drift; a order; b drift: 7 ops; it takes 100", "– b order: op.put.growth.order is null: nothing shown"},
		Missing([]Missed{
			{"a drift", "op.put.growth.drift is null: 7 ops; it takes 100", "7 ops; it takes 100"},
			{"a order", "op.put.growth.order is null: 7 ops; it takes 100", "7 ops; it takes 100"},
			{"b drift", "op.put.growth.drift is null: 7 ops; it takes 100", "7 ops; it takes 100"},
			{"b order", "op.put.growth.order is null: nothing shown", "nothing shown"},
		}))
}
