package judge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// filling is the result of a populate on a Redis server that takes 300 bytes an item, 1 MB without any, and its table of keys, of which it has two while
// it moves its entries. It is probed every 250 items, and so is its process.
func filling(had, items float64, fields ...string) *run.Phase {
	p := testPlan()
	p.Observes = []*plan.Observe{{Name: "server", Kind: plan.ObserveServer, Target: p.Targets[0].Name}}
	for _, name := range fields {
		p.Observes[0].Fields = append(p.Observes[0].Fields, plan.Field{Name: name})
	}
	p.Observes = append(p.Observes, &plan.Observe{Name: "process", Kind: plan.ObserveProcess, Target: p.Targets[0].Name, Fields: []plan.Field{{Name: "rss_bytes"}, {Name: "cgroup_bytes"}}})
	at := func(n float64) *run.Probe {
		full := math.Exp2(math.Ceil(math.Log2(max(n, 4))))
		table := 8 * full
		if n < 0.8*full {
			table += 8 * full / 2
		}
		all := map[string]float64{"used_memory": 1e6 + 300*n + table, "used_memory_rss": 2e6 + 310*n, "db0_keys": n, "evicted_keys": 0}
		told := map[string]float64{}
		for _, name := range fields {
			told[name] = all[name]
		}
		return &run.Probe{At: n, Value: told}
	}
	takes := func(n float64) *run.Probe {
		if items < 5000 { // a small server is in loadgen's control group
			return &run.Probe{At: n, Value: map[string]float64{"rss_bytes": 2e6 + 320*n}, Missing: map[string]string{"cgroup_bytes": "loadgen is in it"}}
		}
		return &run.Probe{At: n, Value: map[string]float64{"rss_bytes": 2e6 + 320*n, "cgroup_bytes": 3e6 + 330*n}}
	}
	o, process := &Observation{}, &Observation{}
	o.Begin(at(had))
	process.Begin(takes(had))
	for n := had + 250; n < items; n += 250 {
		o.Add(at(n))
		process.Add(takes(n))
	}
	o.End(at(items))
	process.End(takes(items))
	ph := closedPhase()
	ph.Target, ph.Closed, ph.Populate = p.Targets[0].Name, nil, &plan.Clients{}
	return NewPhase(p, ph, Measured{Endpoints: endpoints[:1], Load: openLoad(1000, 0), Observed: map[string]*Observation{"server": o, "process": process}})
}

// TestWhatAnItemTakes: the slope is that of the items alone, however many there are.
func TestWhatAnItemTakes(t *testing.T) {
	for items, table := range map[float64]float64{20_000: 8 * 32768, 100_000: 8 * 131072} {
		all := filling(0, items, "used_memory", "used_memory_rss", "db0_keys", "evicted_keys").Observe
		seen := all["server"]
		m := seen["used_memory"]
		require.InDelta(t, 300, *m.PerItem, 1e-6)
		require.InDelta(t, 0, *m.PerItemCI95, 1e-6)
		require.InDelta(t, 1e6, *m.Fixed, 1e-3)
		require.InDelta(t, table, *m.KeyTable, 0)
		rss := seen["used_memory_rss"]
		require.InDelta(t, 310, *rss.PerItem, 1e-6)
		require.Nil(t, rss.KeyTable)
		require.Nil(t, seen["db0_keys"].PerItem)
		require.InDelta(t, 320, *all["process"]["rss_bytes"].PerItem, 1e-6)
		require.InDelta(t, 330, *all["process"]["cgroup_bytes"].PerItem, 1e-6)
	}
}

// TestNothingAboutItemsWithoutAnEmptyStore: the reason says why, and what to write.
func TestNothingAboutItemsWithoutAnEmptyStore(t *testing.T) {
	for why, p := range map[string]*run.Phase{
		"the store was not empty: it held 500 items: fill a new one, or remove them before the phase, by a clear or in the store itself":    filling(500, 20_000, "used_memory", "db0_keys"),
		"whether the store was empty is not known: observe its number of items, too (db*_keys)":                                             filling(0, 20_000, "used_memory"),
		"4 usable probes while the store filled, of 5 needed: write a shorter every, populate { sessions = 1, pipeline = 1 }, or more keys": filling(0, 2000, "used_memory", "db0_keys"),
	} {
		require.Nil(t, p.Observe["server"]["used_memory"].PerItem)
		require.Equal(t, why, p.Nulls["observe.server.used_memory.per_item"])
	}
	small := filling(0, 2000, "used_memory", "db0_keys")
	require.Equal(t, "loadgen is in it", small.Nulls["observe.process.cgroup_bytes.per_item"])
	require.NotNil(t, small.Observe["process"]["rss_bytes"].PerItem)
}
