package tables

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingSaysAReasonOnce for figures that are null for the same reason, whatever their paths.
func TestMissingSaysAReasonOnce(t *testing.T) {
	require.Equal(t, []string{"– a drift; a order; b drift: 7 ops; at least 100 are needed", "– b order: op.put.growth.order is null: nothing shown"},
		Missing([]Missed{
			{"a drift", "op.put.growth.drift is null: 7 ops; at least 100 are needed", "7 ops; at least 100 are needed"},
			{"a order", "op.put.growth.order is null: 7 ops; at least 100 are needed", "7 ops; at least 100 are needed"},
			{"b drift", "op.put.growth.drift is null: 7 ops; at least 100 are needed", "7 ops; at least 100 are needed"},
			{"b order", "op.put.growth.order is null: nothing shown", "nothing shown"},
		}))
}
