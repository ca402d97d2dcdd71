package judge

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestRecordedCounts goes through counts recorded from real servers: of neighbours, resets, restarts, lost connections, evictions and moved slots, only
// the load of absent keys is named.
func TestRecordedCounts(t *testing.T) {
	file, err := os.Open("testdata/deltas.csv")
	require.NoError(t, err)
	defer file.Close()
	in := csv.NewReader(file)
	in.Comment = '#'
	rows, err := in.ReadAll()
	require.NoError(t, err)
	counters := map[string][3]string{
		"redis":     {"cmdstat_get_calls", "keyspace_misses", "cmdstat_getbit_calls"},
		"memcached": {"cmd_get", "get_misses", ""},
		"nginx":     {"requests", "", ""},
		"postgres":  {"statements_get_calls", "", ""},
	}
	for _, row := range rows[1:] {
		server, name, other := strings.Fields(row[0])[0], row[1], row[10]
		if strings.Contains(name, "put") || strings.Contains(name, "batch") || strings.HasPrefix(name, "pg_stat_database") {
			continue
		}
		t.Run(server+" "+name, func(t *testing.T) {
			n := func(i int) uint64 { v, _ := strconv.ParseUint(row[i], 10, 64); return v }
			target := &plan.Target{Name: "t", Driver: map[string]string{"nginx": "web"}[server], Endpoints: []string{"e"}}
			if target.Driver == "" {
				target.Driver = server
			}
			verb, counter, op := driver.Get.String(), counters[server][0], driver.Get
			if strings.Contains(name, "GETBIT") {
				target.Ops = []*plan.Op{{Name: "bit", Wording: form.Wording{Command: "GETBIT", Reads: true}}}
				verb, counter = "bit", counters[server][2]
			}
			whole := &plan.Plan{Targets: []*plan.Target{target}, Observes: []*plan.Observe{{Name: "status", Kind: plan.ObserveServer, Target: "t"}}}
			if verb == "bit" {
				op, _ = whole.Words().Verb(verb)
			}
			load := &measure.Totals{}
			load.Ops[op] = &measure.Op{}
			load.Ops[op].Outcomes[driver.OK], load.Ops[op].Outcomes[driver.Miss] = n(5), n(6)
			was := map[string]float64{counter: 1000, counters[server][1]: 0, "total_connections_received": 100, "total_commands_processed": 5, "cmdstat_migrate_calls": 0}
			is := map[string]float64{
				counter: float64(1000 + n(7)), counters[server][1]: float64(n(9)), "total_connections_received": 101, "total_commands_processed": float64(7 + n(7)), "cmdstat_migrate_calls": 0,
			}
			delete(was, "")
			delete(is, "")
			identity := map[string]string{"instance": "1"}
			switch {
			case strings.Contains(other, "fell"):
				is["total_connections_received"], identity = 1, map[string]string{"instance": strconv.Itoa(len(name) % 2)}
			case strings.Contains(other, "MIGRATE"):
				is["cmdstat_migrate_calls"] = 6
			}
			seen := &Observation{}
			seen.Begin(&run.Probe{Value: was, Is: map[string]string{"instance": "1"}})
			seen.End(&run.Probe{Value: is, Is: identity})
			p := &phase{words: whole.Words(), Phase: &run.Phase{Target: run.Target{Name: "t", Endpoints: target.Endpoints}}}
			p.Requests = []run.Requests{{Target: "t", Endpoint: "e", Verb: verb, Requests: measure.Requests{Sent: n(2), Answered: n(3)}}}
			m := Measured{Observed: map[string]*Observation{lookName("t", "e"): seen, "status": seen}}
			p.counts = &counts{Measured: m, plan: whole, phase: &plan.Phase{Batch: 1}}
			p.recount(whole, p.counts.phase, &m, load)
			d := doubts{}
			p.judgeWitnesses(&d, true)
			require.Len(t, p.Counted, 1)
			if strings.Contains(other, "THE LIE") {
				require.Len(t, d, 1)
				require.Equal(t, "19,796 of 20,000 GETBIT asked for absent keys, says the server: put them first, by a setup or a phase with populate {}, or say expect_hits = 0", d[0].Text)
				return
			}
			require.Empty(t, d)
			require.Equal(t, strings.Contains(other, "fell"), strings.HasPrefix(p.Counted[0].Said, "once: "), p.Counted[0].Said)
		})
	}
}
