package command_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// clusterKeys is how many keys clusterPlan has: few enough that each is asked for many times a second.
const clusterKeys = 500

func clusterKey(i int) string { return fmt.Sprintf("key:%012d", i) }

// clusterPlan puts every key, loads them for a while, and finally reads every one.
const clusterPlan = `
plan "cluster" {}
variable "endpoints" { type = list(string) }
variable "executor" { default = "event loop" }
variable "duration" { default = "1s" }
target "cache" {
	driver    = "redis"
	endpoints = var.endpoints
	executor  = var.executor
	cluster   = true
}
dataset "items" {
	keys { count = 500 }
	values {
		size    = 64
		checked = true
	}
}
dataset "walk" {
	keys {
		pick  = "sequence"
		count = 500
	}
	values {
		size    = 64
		checked = true
	}
}` + fillCache + `
phase "mixed" {
	target  = target.cache
	dataset = dataset.items
	ops     = { put = 1, get = 1 }
	max_bad = 1
	closed {
		sessions = 8
		pipeline = 2
		duration = var.duration
		think    = "10ms"
	}
}
phase "read" {
	target      = target.cache
	dataset     = dataset.walk
	ops         = { get = 1 }
	expect_hits = 1
	max_bad     = 0
	closed { sessions = 8 }
}
`

// redirects sums up those of a phase.
func redirects(p *run.Phase) (moved, ask uint64) {
	for _, row := range p.Requests {
		moved += row.Moved
		ask += row.Ask
	}
	return moved, ask
}

// requireAll checks that the last phase found every key, with one of loadgen's values.
func requireAll(t *testing.T, r *run.Run) {
	t.Helper()
	read := r.Phase["read"]
	require.NotNil(t, read, "%+v", r.Verdict)
	require.EqualValues(t, clusterKeys, read.Op["get"].OK, "%+v", read.Op["get"])
	require.Zero(t, read.Foreign)
	require.Zero(t, r.Phase["mixed"].Foreign)
}

// requireNoErrors checks that every op of the load went well.
func requireNoErrors(t *testing.T, r *run.Run) {
	t.Helper()
	for verb, o := range r.Phase["mixed"].Op {
		require.Equal(t, o.Due, o.OK, "%s: %+v %+v", verb, o, r.Phase["mixed"].Errors)
		require.Positive(t, o.OK)
	}
}

// requireTurnedAway checks that every op of the load ended ok, except those that a server refused because it found the cluster down. Redis 7.0 may do
// so for a moment when a replica takes over: a master that hears that the slots' old owner is now a replica, before it hears who owns them, finds
// them unassigned.
func requireTurnedAway(t *testing.T, r *run.Run) {
	t.Helper()
	var failed, down uint64
	for verb, o := range r.Phase["mixed"].Op {
		require.Equal(t, o.Due, o.OK+o.Error, "%s: %+v %+v", verb, o, r.Phase["mixed"].Errors)
		require.Positive(t, o.OK)
		failed += o.Error
	}
	for _, e := range r.Phase["mixed"].Errors {
		require.Contains(t, []string{"CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served"}, e.Text)
		down += e.Count
	}
	require.Equal(t, failed, down)
}

// turned counts what a server carried out and what it sent elsewhere instead.
func turned(t *testing.T, addr string) (calls, rejected int) {
	t.Helper()
	for line := range strings.Lines(ask(t, addr, "INFO", "commandstats")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "cmdstat_get" {
			continue
		}
		for field := range strings.SplitSeq(rest, ",") {
			key, value, _ := strings.Cut(field, "=")
			n, _ := strconv.Atoi(value) // some are no whole numbers
			switch key {
			case "calls":
				calls = n
			case "rejected_calls":
				rejected = n
			}
		}
	}
	return calls, rejected
}

// requireCounted compares the gets that servers have counted since a CONFIG RESETSTAT with loadgen's.
func requireCounted(t *testing.T, r *run.Run, servers []*servertest.Server) {
	t.Helper()
	for _, s := range servers {
		var sum run.Requests
		for _, p := range r.Phase {
			for _, row := range p.Requests {
				if row.Endpoint == s.Addr && row.Verb == "get" {
					sum.Answered += row.Answered
					sum.Moved += row.Moved
					sum.Ask += row.Ask
				}
			}
		}
		calls, rejected := turned(t, s.Addr)
		require.EqualValues(t, sum.Answered, calls, s.Addr)
		require.EqualValues(t, sum.Moved+sum.Ask, rejected, s.Addr)
	}
}

func resetCounters(t *testing.T, servers []*servertest.Server) {
	t.Helper()
	for _, s := range servers {
		require.Equal(t, "OK", ask(t, s.Addr, "CONFIG", "RESETSTAT"))
	}
}

// TestRedisCluster loads three masters with a replica each. The plan names one of them.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	servers := servertest.RedisCluster(t, 3, 1, "--cluster-node-timeout", "5000")
	masters := servers[:3]
	seed := nodes(servers[1].Addr)

	t.Run("calm", func(t *testing.T) {
		resetCounters(t, servers)
		r := begin(t, clusterPlan, "-var", seed).whole()
		requireNoErrors(t, r)
		requireAll(t, r)
		moved, ask := redirects(r.Phase["mixed"])
		require.Zero(t, moved+ask)
		requireCounted(t, r, servers)
		mixed := r.Phase["mixed"]
		require.Equal(t, "slots", mixed.Target.Placement)
		require.Len(t, mixed.Target.Endpoints, 6)
		total := mixed.Op["get"].Due + mixed.Op["put"].Due
		share := make([]float64, 3)
		for i := range clusterKeys {
			share[op.SlotOf([]byte(clusterKey(i)))*3/op.NumSlots] += 1.0 / clusterKeys
		}
		for i, s := range masters {
			var sent uint64
			for _, row := range mixed.Requests {
				if row.Endpoint == s.Addr {
					sent += row.Sent
				}
			}
			chance := 5 * math.Sqrt(share[i]*(1-share[i])*float64(total)) // five standard deviations of a binomial count
			require.InDelta(t, share[i]*float64(total), sent, chance, "a third of the slots each")
		}
	})

	t.Run("slots move", func(t *testing.T) {
		resetCounters(t, servers)
		l := begin(t, clusterPlan, "-var", seed, "-var", "duration=10s")
		l.underWay()
		newMigration(t, masters[0], masters[2], masters[1]).moveSome(20, 0)
		r := l.whole()
		requireNoErrors(t, r)
		requireAll(t, r)
		requireCounted(t, r, servers)
		moved, ask := redirects(r.Phase["mixed"])
		t.Logf("%d moved, %d ask", moved, ask)
		require.Positive(t, moved)
		require.Positive(t, ask)
		require.Less(t, moved, uint64(1000), "a slot that has moved is known to have after a few redirects")
		moved, ask = redirects(r.Phase["read"])
		require.Zero(t, moved+ask, "the map is read at the beginning of a phase, from a master")
	})

	t.Run("a replica takes over in peace", func(t *testing.T) {
		replica := servers[slices.IndexFunc(servers, func(s *servertest.Server) bool { return replicaOf(t, s) == masters[1].Addr })]
		l := begin(t, clusterPlan, "-var", seed, "-var", "duration=10s", "-var", "executor=blocking")
		l.underWay()
		require.Equal(t, "OK", ask(t, replica.Addr, "CLUSTER", "FAILOVER"))
		l.until(func() bool { return replicaOf(t, replica) == "" })
		r := l.whole()
		requireTurnedAway(t, r)
		requireAll(t, r)
		moved, _ := redirects(r.Phase["mixed"])
		require.Positive(t, moved)
		sent := map[string]uint64{}
		for _, row := range r.Phase["mixed"].Requests {
			sent[row.Endpoint] += row.Sent
		}
		require.Positive(t, sent[masters[1].Addr], "before")
		require.Positive(t, sent[replica.Addr], "after")
	})

	t.Run("a master dies", func(t *testing.T) {
		victim := masters[2]
		var others []*servertest.Server
		for _, s := range servers {
			require.Equal(t, "OK", ask(t, s.Addr, "CONFIG", "SET", "cluster-node-timeout", "1000"))
			if s != victim {
				others = append(others, s)
			}
		}
		heir := servers[slices.IndexFunc(servers, func(s *servertest.Server) bool { return replicaOf(t, s) == victim.Addr })]
		l := begin(t, clusterPlan, "-var", seed, "-var", "duration=20s")
		l.underWay()
		began := time.Now()
		victim.Kill()
		require.Eventually(t, func() bool {
			return replicaOf(t, heir) == "" && !slices.ContainsFunc(others, func(s *servertest.Server) bool {
				return !strings.Contains(ask(t, s.Addr, "CLUSTER", "INFO"), "cluster_state:ok")
			})
		}, time.Minute, 20*time.Millisecond)
		down := time.Since(began)
		r := l.result(60 * time.Second)
		requireAll(t, r)
		mixed := r.Phase["mixed"]
		first, last := 0.0, 0.0
		for _, row := range mixed.Series {
			if row.Bad > 0 {
				if first == 0 {
					first = row.T
				}
				last = row.T
			}
		}
		t.Logf("down for %v; ops went wrong in seconds %v to %v", down, first, last)
		require.Positive(t, first, "the fault was felt")
		require.Less(t, last, mixed.Series[len(mixed.Series)-1].T, "the load recovered: the map is read anew")
		var sent uint64
		for _, row := range mixed.Requests {
			if row.Endpoint == heir.Addr {
				sent += row.Answered
			}
		}
		require.Positive(t, sent, "the promoted replica was found")
	})
}

// replicaOf returns the master of a server; "" when it is one.
func replicaOf(t *testing.T, s *servertest.Server) string {
	t.Helper()
	info := ask(t, s.Addr, "INFO", "replication")
	if !strings.Contains(info, "role:slave") {
		return ""
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut(info, name+":")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	return field("master_host") + ":" + field("master_port")
}

// migration moves slots from one master to another, as redis-cli does.
type migration struct {
	t               *testing.T
	from, to, other *link
	source, target  string   // their ids
	host, port      string   // of to
	auth            []string // that it wants from a node which sends it a key
	moved           int
}

func newMigration(t *testing.T, from, to, other *servertest.Server) *migration {
	t.Helper()
	m := &migration{t: t, from: dial(t, from.Addr), to: dial(t, to.Addr), other: dial(t, other.Addr)}
	m.meet(to.Addr)
	return m
}

// meet asks who the two are. addr is where the second takes keys.
func (m *migration) meet(addr string) {
	m.t.Helper()
	m.source, m.target = m.from.ask("CLUSTER", "MYID"), m.to.ask("CLUSTER", "MYID")
	m.host, m.port, _ = strings.Cut(addr, ":")
}

// moveSome moves some slots of the first third, which the first of three masters has, each with one key in it, counting up from the given key. It
// returns the next key.
func (m *migration) moveSome(n, from int) int {
	m.t.Helper()
	for upTo := m.moved + n; m.moved < upTo; from++ {
		if slot := op.SlotOf([]byte(clusterKey(from))); slot < op.NumSlots/3 {
			m.move(slot, clusterKey(from))
		}
	}
	return from
}

// sentOn counts the requests that the first master redirected because it was moving their slot.
func (m *migration) sentOn() (n int) {
	m.t.Helper()
	if _, rest, found := strings.Cut(m.from.ask("INFO", "errorstats"), "errorstat_ASK:count="); found {
		_, err := fmt.Sscan(rest, &n)
		require.NoError(m.t, err)
	}
	return n
}

// move moves a slot. Some time passes between the move of its key and its own, during which the key may be requested; the first slot's key is.
func (m *migration) move(slot int, key string) {
	m.t.Helper()
	number, before := strconv.Itoa(slot), m.sentOn()
	require.Equal(m.t, "OK", m.to.ask("CLUSTER", "SETSLOT", number, "IMPORTING", m.source))
	require.Equal(m.t, "OK", m.from.ask("CLUSTER", "SETSLOT", number, "MIGRATING", m.target))
	require.Equal(m.t, "OK", m.from.ask(append([]string{"MIGRATE", m.host, m.port, key, "0", "5000"}, m.auth...)...))
	if m.moved == 0 {
		require.Eventually(m.t, func() bool { return m.sentOn() > before }, time.Minute, 5*time.Millisecond)
	} else {
		time.Sleep(20 * time.Millisecond)
	}
	for _, l := range []*link{m.to, m.from, m.other} { // each master is told; replicas hear of it later
		require.Equal(m.t, "OK", l.ask("CLUSTER", "SETSLOT", number, "NODE", m.target))
	}
	m.moved++
}

// joinedLater is the endpoint of requests to nodes that were not there when a phase began.
const joinedLater = "joined later"

// TestNodeJoinsCluster has nodes join a cluster while it is loaded, and gives them slots.
func TestNodeJoinsCluster(t *testing.T) {
	t.Parallel()
	servers := servertest.RedisCluster(t, 3, 0, "--cluster-node-timeout", "5000")
	first := 0 // key whose slot has not moved yet
	for _, executor := range []string{"event loop", "blocking"} {
		joins := servertest.RedisNode(t)
		t.Run(executor, func(t *testing.T) {
			resetCounters(t, servers)
			l := begin(t, clusterPlan, "-var", nodes(servers[1].Addr), "-var", "duration=15s", "-var", "executor="+executor)
			l.underWay()
			meet(t, servers, joins)
			first = newMigration(t, servers[0], joins, servers[1]).moveSome(10, first)
			r := l.whole()
			requireNoErrors(t, r)
			requireAll(t, r)
			requireCounted(t, r, servers)
			mixed, read := r.Phase["mixed"], r.Phase["read"]
			require.Len(t, mixed.Target.Endpoints, len(servers))
			require.Len(t, read.Target.Endpoints, len(servers)+1)
			later, known := answered(mixed, joinedLater), answered(read, joins.Addr)
			require.Positive(t, later)
			require.Positive(t, known)
			calls, _ := turned(t, joins.Addr)
			require.EqualValues(t, later+known, calls)
			require.False(t, slices.ContainsFunc(read.Requests, func(row run.Requests) bool { return row.Endpoint == joinedLater }), "nothing was sent there")
		})
		servers = append(servers, joins)
	}
}

// answered counts the gets of a phase that an endpoint has answered.
func answered(p *run.Phase, endpoint string) uint64 {
	for _, row := range p.Requests {
		if row.Endpoint == endpoint && row.Verb == "get" {
			return row.Answered
		}
	}
	return 0
}

// meet has a node join a cluster, and waits until all nodes have heard. The node meets each of them: by gossip alone, the last one hears of it only
// after up to half of their timeout.
func meet(t *testing.T, others []*servertest.Server, joins *servertest.Server) {
	t.Helper()
	node := dial(t, joins.Addr)
	for _, s := range others {
		introduce(t, dial(t, s.Addr), node, "127.0.0.1", port(s.Addr))
	}
	id := ask(t, joins.Addr, "CLUSTER", "MYID")
	require.Eventually(t, func() bool {
		for _, s := range others {
			if !strings.Contains(ask(t, s.Addr, "CLUSTER", "NODES"), id) {
				return false
			}
		}
		return strings.Contains(ask(t, joins.Addr, "CLUSTER", "INFO"), "cluster_state:ok")
	}, time.Minute, 20*time.Millisecond)
}

// introduce has a node meet another, at a host and port.
func introduce(t *testing.T, other, node *link, host, port string) {
	t.Helper()
	_, rest, found := strings.Cut(other.ask("CLUSTER", "NODES"), ":"+port+"@")
	require.True(t, found)
	bus, _, _ := strings.Cut(rest[:strings.IndexByte(rest, ' ')], ",")
	require.Equal(t, "OK", node.ask("CLUSTER", "MEET", host, port, bus))
}

func port(addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	return port
}

// TestClusterWithPartsAway begins loads on a cluster with something missing.
func TestClusterWithPartsAway(t *testing.T) {
	t.Parallel()
	servers := servertest.RedisCluster(t, 3, 1, "--cluster-node-timeout", "5000")
	seed := nodes(servers[0].Addr)
	victim := slices.IndexFunc(servers, func(s *servertest.Server) bool { return replicaOf(t, s) == servers[1].Addr })
	servers[victim].Kill()

	t.Run("a replica", func(t *testing.T) {
		r := begin(t, clusterPlan, "-var", seed, "-var", "duration=100ms").whole()
		requireNoErrors(t, r)
		requireAll(t, r)
		require.Contains(t, r.Phase["mixed"].Target.Endpoints, servers[victim].Addr)
		require.NotContains(t, r.Environment.Servers["cache"], servers[victim].Addr)
		require.Equal(t, "cluster", r.Environment.Servers["cache"][servers[1].Addr]["redis_mode"])
	})
	t.Run("a slot", func(t *testing.T) {
		require.Equal(t, "OK", ask(t, servers[0].Addr, "CLUSTER", "DELSLOTS", "7"))
		r := begin(t, clusterPlan, "-var", seed).result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "1 of 16384 slots of the cluster have no node: see redis-cli --cluster check 127.0.0.1:")
		require.Equal(t, "OK", ask(t, servers[0].Addr, "CLUSTER", "ADDSLOTS", "7"))
	})
	t.Run("a master", func(t *testing.T) {
		servers[1].Kill()
		r := begin(t, clusterPlan, "-var", nodes(servers[1].Addr, servers[0].Addr)).result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "("+servers[1].Addr+"): ")
		require.Contains(t, r.Verdict.Reasons[0], "connection refused")
	})
	t.Run("all that are named", func(t *testing.T) {
		r := begin(t, clusterPlan, "-var", nodes(servers[1].Addr, servertest.Redis(t))).result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "connection refused")
		require.Contains(t, r.Verdict.Reasons[0], "the server is in no cluster: leave cluster out of the target")
	})
}
