package words

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
)

// What a store uses for an item comes before what its process takes, however they are named; why nothing is known is said where it was asked for.
func TestPerItem(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	ph := &run.Phase{
		Observe: map[string]map[string]run.Observed{
			"a":     {"rss_bytes": {PerItem: f(320), PerItemCI95: f(15)}, "cgroup_bytes": {PerItem: f(330), PerItemCI95: f(20)}, "threads": {}},
			"cache": {"used_memory": {PerItem: f(304), PerItemCI95: f(0.5), KeyTable: f(262144)}, "used_memory_rss": {}},
			"other": {"used_memory": {}},
		},
		Nulls:     map[string]string{"observe.cache.used_memory_rss.per_item": "it had free memory", "observe.other.used_memory.per_item": "observe its number of items"},
		NullCodes: map[string]reason.Code{"observe.cache.used_memory_rss.per_item": reason.NotApplicable, "observe.other.used_memory.per_item": reason.NotTold},
	}
	require.Equal(t, []string{
		"304 B ± 0.50 used (cache.used_memory) and 262 kB for the table of keys",
		"330 B ± 20.0 effective (a.cgroup_bytes)",
		"320 B ± 15.0 effective (a.rss_bytes)",
		"effective (cache.used_memory_rss) not known: it had free memory",
	}, PerItem(ph))
}
