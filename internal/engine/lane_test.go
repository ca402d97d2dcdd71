package engine

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Each endpoint has a row in the ledger, behind those of the targets before. Nodes that have joined share one.
func TestRowsOfALane(t *testing.T) {
	x := &side{first: 3, endpoints: make([]sockets.Endpoint, 2)}
	la := &lane{side: x}
	require.Equal(t, []int{3, 4}, []int{la.row(0), la.row(1)})
	x.cluster = newCluster(x, nil)
	require.Equal(t, []int{3, 4, 5, 5, 5}, []int{la.row(0), la.row(1), la.row(2), la.row(3), la.row(9)})
}

// The connections of a loop are numbered through its wires, in each by session and endpoint.
func TestWhereAConnectionLeads(t *testing.T) {
	l := &loop{lanes: []*lane{{tr: new(timed), side: new(side)}}}
	type end struct {
		x  *side
		at int
	}
	var want []end
	for _, places := range []int{2, 3} {
		la := &lane{side: new(side)}
		la.tr = &wire{lane: la, base: int32(len(want)), places: places, conns: make([]*wireConn, 2*places)}
		l.lanes = append(l.lanes, la)
		for i := range 2 * places {
			want = append(want, end{la.side, i % places})
		}
	}
	for token, to := range want {
		x, at := l.leads(int32(token))
		require.Same(t, to.x, x, "%d", token)
		require.Equal(t, to.at, at, "%d", token)
	}
	require.Panics(t, func() { l.leads(int32(len(want))) })
}

// An error says at which endpoint it was, and of which target if there are several. The addresses of a connection are left out.
func TestBlame(t *testing.T) {
	la := &lane{l: new(loop), side: &side{target: &plan.Target{Name: "cache"}}}
	end := sockets.NewEndpoint("n1", "10.0.0.1:6379")
	reset := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 40001}, Addr: &net.TCPAddr{Port: 6379}, Err: unix.ECONNRESET}
	for lanes, prefix := range []string{"", "", "cache at ", "cache at "} {
		la.l.lanes = make([]*lane, lanes)
		require.Equal(t, "-"+prefix+"n1 (10.0.0.1:6379): gone", string(la.blame([]byte("-"), &end, errors.New("gone"))))
		require.Equal(t, prefix+"n1 (10.0.0.1:6379): read: connection reset by peer", string(la.blame(nil, &end, fmt.Errorf("read: %w", reset))))
	}
	require.EqualError(t, la.named(unix.ECONNREFUSED), `target "cache": connection refused`)
}

// Each step has the program that its target and phase ask for. Batches are for timed steps.
func TestProgramsOfSteps(t *testing.T) {
	for _, tt := range []struct {
		target, values, phase string
		kind                  worker.StepKind
		want                  string
		checked               bool
	}{
		{"", "size = 100", "", worker.Load, "*op.Plain", false},
		{"", "size = 100\n checked = true", "", worker.Load, "*op.Plain", true},
		{"", "size = 100", "batch = 2", worker.Load, "*op.batch", false},
		{"", "size = 100", "batch = 2", worker.Populate, "*op.Plain", false},
		{nwr321, "size = 100\n checked = true", "", worker.Load, "*op.Quorum", true},
		{"cluster = true", "size = 100", "", worker.Load, "*op.Cluster", false},
	} {
		b := newBench(t, redisPlanOf(t, 3, tt.values, tt.target, "ops = { get = 1 }\n"+tt.phase+"\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.l.acks, b.l.opTimeout, b.l.checked = true, 5, !tt.checked
		b.g.program(&b.l.lane, tt.kind)
		require.Equal(t, tt.want, fmt.Sprintf("%T", b.l.programs.Program), "%+v", tt)
		require.Equal(t, tt.checked, b.l.checked, "%+v", tt)
		replicated := tt.target == nwr321
		require.Equal(t, replicated, b.l.acks)
		if replicated {
			require.EqualValues(t, 300*time.Millisecond, b.l.opTimeout)
		} else {
			require.Zero(t, b.l.opTimeout, "%+v", tt)
		}
	}
}

// surveyed is a placement that counts how often a key is looked up.
type surveyed struct {
	op.Placement
	asked int
}

func (s *surveyed) Home(key []byte) int {
	s.asked++
	return s.Placement.Home(key)
}

// Where a key lives is looked up once, if its index stands for no other key.
func TestPlacesOfKeysAreRemembered(t *testing.T) {
	for scope, want := range map[string]int{"shared": 1, "session": 3} {
		b := newBench(t, parsePlan(t, fmt.Sprintf(`
			target "t" {
				driver    = "redis"
				endpoints = ["127.0.0.1:7001", "127.0.0.1:7002"]
			}
			dataset "d" {
				keys {
					count = 10
					scope = %q
				}
				values { size = 100 }
			}
			phase "load" {
				target  = target.t
				dataset = dataset.d
				ops     = { put = 1 }
				closed { iterations = 1 }
			}`, scope)), "load", 0)
		places := &surveyed{Placement: b.g.placement}
		b.g.placement = places
		b.g.program(&b.l.lane, worker.Load)
		for range 3 {
			b.l.programs.Start(nil, &op.Op{Verb: driver.Put, Index: 9, Key: []byte("key")})
		}
		require.Equal(t, want, places.asked, scope)
	}
}
