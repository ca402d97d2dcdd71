package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/plan"
)

// limited is the part of a plan's phase that a worker has with so many of its sessions.
func limited(p *plan.Plan, sessions, endpoints int) *group {
	return &group{plan: p, phase: p.Phase("load"), sessions: sessions, side: side{target: p.Target("t"), driver: null.Driver{}, clients: 1, endpoints: make([]sockets.Endpoint, endpoints)}}
}

// Sessions of a driver without a transport open nothing, however many there are.
func TestSessionsWithoutConnectionsOpenNoFiles(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\n closed { iterations = 1 }")
	wired := limited(p, 1<<31, 1)
	wired.driver = redis.Driver{}
	require.ErrorContains(t, wired.checkLimits(1), "open files")
	err := limited(p, 1<<31, 1).checkLimits(1)
	require.ErrorContains(t, err, "memory")
	require.NotContains(t, err.Error(), "open files")
}

// Each session's connections take files, of which the limit leaves some for the process itself. Without connections, no limit is too low.
func TestFilesThatSessionsOpen(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\n closed {\n sessions = 100\n iterations = 1\n }")
	g := limited(p, 100, 1)
	require.NoError(t, g.checkFiles(0, 1))
	require.NoError(t, g.checkFiles(2, 10_000))
	require.ErrorContains(t, g.checkFiles(2, 150), "200 connections need about ")
	require.ErrorContains(t, g.checkFiles(1, 50), "100 connections need about ")
	require.NoError(t, g.checkFiles(1, math.MaxUint64), "there is no limit")
}

// Memory is for all clients of a session: at each endpoint as many.
func TestMemoryThatClientsNeed(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\n closed { iterations = 1 }")
	of := func(clients int) int64 { return p.Memory(p.Phase("load"), 1, map[string]int{"t": clients}) }
	all := int(available() / (of(1) - of(0))) // clients, of which one session's take all memory that there is
	g := limited(p, 1, 2)
	g.clients = all
	require.ErrorContains(t, g.checkLimits(1), "memory")
	g.clients = all / 8
	require.NoError(t, g.checkLimits(1))
}

func TestRatesThatNoLoopCanSend(t *testing.T) {
	open := nullPlan(t, 1, "", "ops = { get = 1 }\n open {\n rate = \"50M/s\"\n duration = \"1s\"\n sessions = 16\n }")
	require.EqualError(t, limited(open, 16, 1).checkRate(1), "50000000 ops a second are more than one event loop can send: use at most 10000000 on a worker, or 5 times as many workers")
	require.EqualError(t, limited(open, 8, 1).checkRate(2), "25000000 ops a second are more than 2 event loops can send: use at most 20000000 on a worker, or 2 times as many workers")
	require.NoError(t, limited(open, 3, 1).checkRate(1), "its part is 9,375,000/s")
	require.NoError(t, limited(open, 0, 1).checkRate(0), "a worker without sessions")
	most := nullPlan(t, 1, "", "ops = { get = 1 }\n open {\n rate = \"10M/s\"\n duration = \"1s\"\n sessions = 1\n }")
	require.NoError(t, limited(most, 1, 1).checkRate(1), "as much as a loop can send")

	stages := nullPlan(t, 1, "", "ops = { get = 1 }\n stages {\n stage {\n rate = \"20M/s\"\n duration = \"1s\"\n }\n stage {\n rate = 5\n duration = \"1s\"\n }\n }")
	require.ErrorContains(t, limited(stages, 16, 1).checkRate(1), "20000000 ops a second")
	search := nullPlan(t, 1, "", "ops = { get = 1 }\n search {\n from = \"11M/s\"\n to = \"90M/s\"\n slo { response_p99 = \"5ms\" }\n }")
	require.ErrorContains(t, limited(search, 16, 1).checkRate(1), "11000000 ops a second")
	closed := nullPlan(t, 1, "", "ops = { get = 1 }\n closed { iterations = 1 }")
	require.NoError(t, limited(closed, 1, 1).checkRate(1))
}
