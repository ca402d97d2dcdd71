package command_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestYCSB runs YCSB's workloads against Redis, in a short form: their mixes, that all reads find their record, and what the server counted and
// holds afterwards.
func TestYCSB(t *testing.T) {
	t.Parallel()
	const records = 2000
	for workload, reads := range map[string]float64{"a": 0.5, "b": 0.95, "c": 1, "d": 0.95, "f": 0.5} {
		for _, pick := range []string{"", "zipf(0.99, ycsb)"} {
			if pick != "" && workload != "b" {
				continue
			}
			t.Run(workload+pick, func(t *testing.T) {
				t.Parallel()
				server := servertest.StartRedis(t)
				args := []string{"-var", nodes(server.Addr), "-var", "records=" + strconv.Itoa(records), "-var", "sessions=4", "-var", "duration=1s"}
				if pick != "" {
					args = append(args, "-var", "pick="+pick)
				}
				r := beginExample(t, "ycsb-"+workload+".hcl", args...).result(60 * time.Second)
				require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
				require.True(t, r.Verdict.Validity != run.Invalid || starved(r) && crowded(r), "%v", r.Verdict.Reasons)
				get, put := r.Phase["run"].Op["get"], r.Phase["run"].Op["put"]
				gets, puts := float64(get.OK), 0.0
				require.InDelta(t, 1, *get.HitRatio, 0, "all records are there")
				if put != nil {
					puts = float64(put.OK)
				}
				if workload == "f" {
					change := r.Phase["run"].Scenario["read-modify-write"]
					require.EqualValues(t, puts, change.OK)
					gets -= float64(change.OK) // the others
				}
				all := gets + puts
				require.Positive(t, all)
				require.InDelta(t, reads, gets/all, 5*math.Sqrt(reads*(1-reads)/all))
				served := countCalls(t, server.Addr)
				require.EqualValues(t, get.Due, served["get"])
				require.EqualValues(t, records+puts, served["put"])
				holds := float64(records)
				if workload == "d" {
					holds += puts // each inserted a record
				}
				require.Equal(t, strconv.Itoa(int(holds)), strings.TrimSpace(ask(t, server.Addr, "DBSIZE")))
				require.Equal(t, "1000", strings.TrimSpace(ask(t, server.Addr, "STRLEN", "key:000000000007")))
			})
		}
	}
}
