package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// spanPlan reads a value from one target and writes two into another, which is one span. Its number of ops is known.
const spanPlan = `
plan "span" {}
target "source" {
	timeout = "30s" # a server that is slow for once has still carried out what it says
	%s
}
target "copy" {
	timeout = "30s"
	%s
}
dataset "items" {
	keys { count = 200 }
	values { size = 100 }
}
dataset "copies" {
	keys {
		count  = 200
		format = "copy:%%012d"
	}
	values { size = 50 }
}
phase "fill" {
	target  = target.source
	dataset = dataset.items
	populate {}
}
phase "move" {
	target      = target.source
	dataset     = dataset.items
	expect_hits = 1
	max_bad     = 0
	scenario "copy" {
		step "get" { as = "read" }
		step "put" {
			as      = "write"
			target  = target.copy
			dataset = dataset.copies
			key     = "same"
			think   = "2ms"
			times   = 2
		}
	}
	closed {
		sessions   = 6
		pipeline   = 2
		iterations = 100
	}
}
`

// store is a target of a span: how to write it in a plan, where it is, and how often its servers have carried out a verb.
type store struct {
	body      string
	endpoints []string
	count     func(endpoint, verb string) uint64
}

// redisStore is Redis servers that a plan says more about.
func redisStore(t *testing.T, addrs []string, more string) store {
	return store{
		fmt.Sprintf("driver = \"redis\"\nendpoints = %s\n%s", strings.TrimPrefix(nodes(addrs...), "endpoints="), more), addrs,
		func(endpoint, verb string) uint64 { return countCalls(t, endpoint)[verb] },
	}
}

func oneRedis(t *testing.T) store { return redisStore(t, addresses(cluster(t, 1)), "") }

func clusterStore(t *testing.T) store {
	return redisStore(t, addresses(servertest.RedisCluster(t, 3, 0)), "cluster = true")
}

func copiesStore(t *testing.T) store {
	return redisStore(t, addresses(cluster(t, 4)), "replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 2\n timeout = \"30s\"\n}")
}

func webStore(t *testing.T) store {
	s := servertest.Nginx(t, 0, nil)
	method := map[string]string{"get": "GET ", "put": "PUT ", "delete": "DELETE "}
	return store{fmt.Sprintf("driver = \"web\"\nendpoints = [%q]", s.Addr), []string{s.Addr}, func(_, verb string) (n uint64) {
		for status, times := range s.Counts(0) {
			if strings.HasPrefix(status, method[verb]) {
				n += uint64(times)
			}
		}
		return n
	}}
}

func postgresStore(t *testing.T) store {
	d := newDatabase(t)
	return store{
		fmt.Sprintf("driver = \"postgres\"\nendpoints = [%q]\nuser = \"loadgen\"\ndatabase = \"postgres\"\npassword = secret(\"PG\")", d.place),
		[]string{d.place},
		func(_, verb string) (n uint64) {
			calls := d.ask("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE starts_with(query, '/* loadgen " + verb + " */')")
			_, err := fmt.Sscan(calls[0], &n)
			require.NoError(t, err)
			return n
		},
	}
}

// requireStores waits until the servers of both targets have counted as many requests as the ledger, by target, endpoint and verb: some servers count
// only after they have answered.
func requireStores(t *testing.T, r *run.Run, stores map[string]store, before map[string]uint64) {
	t.Helper()
	sent := map[string]uint64{}
	for _, p := range r.Phase {
		for _, row := range p.Requests {
			require.Contains(t, stores[row.Target].endpoints, row.Endpoint)
			require.Equal(t, row.Sent, row.Answered+row.Moved, "%+v", row)
			sent[row.Target+" "+row.Endpoint+" "+row.Verb] += row.Answered
		}
	}
	var after map[string]uint64
	require.Eventually(t, func() bool {
		after = countStores(stores)
		for place, n := range before {
			after[place] -= n
		}
		for place, n := range after {
			if n != sent[place] {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "%v is what was sent", sent)
	for place := range sent {
		require.Contains(t, after, place)
	}
}

// countStores returns how often each server has carried out each verb.
func countStores(stores map[string]store) map[string]uint64 {
	counts := map[string]uint64{}
	for name, s := range stores {
		for _, endpoint := range s.endpoints {
			for _, verb := range []string{"get", "put", "delete"} {
				counts[name+" "+endpoint+" "+verb] = s.count(endpoint, verb)
			}
		}
	}
	return counts
}

// requireSpan compares the time of a scenario with the sum of its steps, each as often as it is carried out, and of the think times between them.
func requireSpan(t *testing.T, s *run.Scenario, think time.Duration) {
	t.Helper()
	sum := think.Seconds()
	for _, step := range s.Step {
		require.NotNil(t, step.Response.Mean)
		sum += *step.Response.Mean * float64(step.Times)
	}
	require.InDelta(t, sum, *s.Response.Mean, max(sum/100, 20e-6))
}

// TestTargetsCountOneSpan runs scenarios over two targets of several kinds. Each takes as long as its steps together, and the servers of both have
// carried out as many requests as the ledger says.
func TestTargetsCountOneSpan(t *testing.T) {
	for _, tt := range []struct {
		name         string
		source, copy func(t *testing.T) store
		executor     string
		puts         uint64 // that one write amounts to
	}{
		{"two servers", oneRedis, oneRedis, "event loop", 1},
		{"into a cluster", oneRedis, clusterStore, "event loop", 1},
		{"out of a cluster", clusterStore, oneRedis, "event loop", 1},
		{"into three copies", oneRedis, copiesStore, "event loop", 3},
		{"into a web server", oneRedis, webStore, "blocking", 1},
		{"out of a web server", webStore, oneRedis, "blocking", 1},
		{"into a database", oneRedis, postgresStore, "event loop", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stores := map[string]store{"source": tt.source(t), "copy": tt.copy(t)}
			plan := fmt.Sprintf(spanPlan, stores["source"].body, stores["copy"].body)
			before := countStores(stores)
			r := begin(t, plan).whole()
			requireStores(t, r, stores, before)

			p := r.Phase["move"]
			require.Equal(t, tt.executor, p.Generator.Executor)
			require.Equal(t, []string{"source", "copy"}, []string{p.Target.Name, p.Others[0].Name})
			s := p.Scenario["copy"]
			require.EqualValues(t, 600, s.OK)
			require.EqualValues(t, 600, s.Step["read"].OK)
			require.EqualValues(t, 1200, s.Step["write"].OK)
			require.Equal(t, []string{"source", "copy"}, []string{s.Step["read"].Target, s.Step["write"].Target})
			requireSpan(t, s, 4*time.Millisecond)
			var puts uint64
			for _, row := range p.Requests {
				if row.Verb == "put" {
					puts += row.Answered
				}
			}
			require.Equal(t, 1200*tt.puts, puts)
		})
	}
}

// TestTargetsCountAlikeOnAnyWorkers runs the same plan in one process with 1, 2 and 4 event loops, and with one and three workers. The ledgers are
// equal, to the request at each endpoint.
func TestTargetsCountAlikeOnAnyWorkers(t *testing.T) {
	t.Parallel()
	stores := map[string]store{"source": oneRedis(t), "copy": redisStore(t, addresses(cluster(t, 3)), "")}
	plan := fmt.Sprintf(spanPlan, stores["source"].body, stores["copy"].body)
	ledger := func(begin func() *load) string {
		before := countStores(stores)
		r := begin().whole()
		requireStores(t, r, stores, before)
		p := r.Phase["move"]
		return fmt.Sprint(p.Digest, p.Scenario["copy"].Ledger, p.Requests)
	}
	want := ledger(func() *load { return begin(t, plan, "--loops", "1") })
	for _, loops := range []string{"2", "4"} {
		require.Equal(t, want, ledger(func() *load { return begin(t, plan, "--loops", loops) }), "%s loops", loops)
	}
	for _, n := range []int{1, 3} {
		team := func() *load {
			return beginTeam(t, n, func(args ...string) *load { return begin(t, plan, args...) }).load
		}
		require.Equal(t, want, ledger(team), "%d workers", n)
	}
}

// TestTargetsOutliveEachOther kills one of two targets in mid-run. Requests in flight to it are lost, later ones are refused, and those to the other
// target go on. Both ledgers balance, and that of the surviving target matches its own counts.
func TestTargetsOutliveEachOther(t *testing.T) {
	t.Parallel()
	source, victim := oneRedis(t), servertest.StartRedis(t)
	plan := fmt.Sprintf(spanPlan, source.body, redisStore(t, []string{victim.Addr}, "").body)
	plan = strings.NewReplacer("iterations = 100", `duration = "8s"`, "max_bad     = 0", "max_bad = 1", "2ms", "5ms").Replace(plan)
	l := begin(t, plan)
	l.until(func() bool { return countCalls(t, victim.Addr)["put"] > 200 })
	victim.Kill()
	r := l.whole()
	p := r.Phase["move"]
	s, read, write := p.Scenario["copy"], p.Scenario["copy"].Step["read"], p.Scenario["copy"].Step["write"]
	require.Equal(t, read.Due, read.OK)
	require.Positive(t, write.OK)
	require.Equal(t, run.Causes{Lost: write.Causes.Lost, Refused: write.Error - write.Causes.Lost}, write.Causes)
	require.Positive(t, write.Causes.Lost+write.Causes.Refused)
	require.Equal(t, write.Causes, s.Causes, "a step that fails ends its scenario, for the same reason")
	for verb, row := range sums(r)[source.endpoints[0]] {
		require.Equal(t, source.count(source.endpoints[0], verb), row.Answered)
	}
	for _, row := range p.Requests {
		if row.Target != "source" {
			require.Equal(t, []string{"copy", victim.Addr, "put"}, []string{row.Target, row.Endpoint, row.Verb})
			require.Equal(t, write.Causes.Lost, row.Error)
			require.Equal(t, write.Causes.Refused, row.Refused)
			require.Equal(t, row.Sent, row.Answered+row.Error)
		}
	}
	require.NotEmpty(t, p.Errors)
	for _, e := range p.Errors {
		require.Contains(t, e.Text, "copy at n0 ("+victim.Addr+"): ")
	}
}
