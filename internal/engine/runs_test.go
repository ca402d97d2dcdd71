package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Requests join the newest entry of the queue if that has the same verb and due time, and has not left.
func TestRequestsThatJoinARun(t *testing.T) {
	for name, tt := range map[string]struct {
		fresh int
		verb  driver.Verb
		due   int64
		joins bool
	}{
		"alike":               {1, driver.Get, 7, true},
		"alike and the third": {2, driver.Get, 7, true},
		"after it has left":   {0, driver.Get, 7, false},
		"another verb":        {2, driver.Put, 7, false},
		"due at another time": {2, driver.Get, 8, false},
	} {
		c := new(wireConn)
		c.joinRun(driver.Put, 1, 7)
		c.joinRun(driver.Get, 2, 7)
		c.fresh = tt.fresh
		c.joinRun(tt.verb, 4, tt.due)
		entries, n, fresh := 3, 4, tt.fresh+1
		if tt.joins {
			entries, n, fresh = 2, 6, tt.fresh
		}
		require.Equal(t, [4]int{entries, n, fresh, 7}, [4]int{c.queue.len(), int(c.queue.at(entries - 1).n), c.fresh, c.queue.owed}, name)
	}
}

// newRunBench is a loop with one session whose plain ops go out in runs. Its connections take so many requests.
func newRunBench(t *testing.T, endpoints, room int, phase string) (*bench, *runs) {
	t.Helper()
	b := newBench(t, redisPlan(t, endpoints, "", phase), "load", 0)
	b.equip(worker.Load)
	b.l.feed = restful{}
	r := b.l.way.(*runs)
	r.w.limit = room
	return b, r
}

// A run is of ops with the same verb and endpoint, and of no more than the connection has room for. If it has none, they are refused together.
func TestWhatGoesIntoARun(t *testing.T) {
	for _, tt := range []struct {
		ops        string // each by its verb and endpoint
		from, room int
		want       int
	}{
		{"g0", 0, 9, 1},
		{"g0 g0 g0", 0, 9, 3},
		{"g0 g0 g0", 2, 9, 1},
		{"g0 g0 p0", 0, 9, 2},
		{"p0 p0 g0", 0, 9, 2},
		{"g0 g0 g1", 0, 9, 2},
		{"g1 g0 g0 p0", 1, 9, 2},
		{"g0 p0 g0", 0, 9, 1},
		{"g0 g0 g0", 0, 1, 1},
		{"g0 g0 g0", 0, 2, 2},
		{"g0 g0 g0", 0, 3, 3},
		{"p1 p1 g0 g0 g0 g0 g0 g0", 2, 5, 5},
		{"g0", 0, 0, 1},
		{"g0 g0 p0", 0, 0, 2},
		{"p1 g0 g0 g1", 1, 0, 2},
	} {
		b, r := newRunBench(t, 2, tt.room, "ops = { get = 1, put = 1 }\nclosed { iterations = 1 }")
		ops := strings.Fields(tt.ops)
		for i := range r.ops { // beyond these are ops of earlier times
			r.ops[i], r.homes[i] = op.Op{Verb: driver.Get, Key: []byte("key:000000000001")}, 0
			if i < len(ops) && ops[i][0] == 'p' {
				r.ops[i].Verb, r.ops[i].Value = driver.Put, driver.Value{Size: 100}
			}
			if i < len(ops) {
				r.homes[i] = int(ops[i][1] - '0')
			}
		}
		verb, endpoint := r.ops[tt.from].Verb, r.homes[tt.from]
		require.Equal(t, tt.want, r.send(b.l.sessions[0], tt.from, len(ops), 3, 5), "%+v", tt)
		want, failed := measure.Requests{Sent: uint64(tt.want)}, 0
		if tt.room == 0 {
			want, failed = measure.Requests{Refused: uint64(tt.want)}, tt.want
		}
		require.Equal(t, want, *b.l.rec.Request(endpoint, verb), "%+v", tt)
		require.EqualValues(t, tt.want, b.l.rec.Ops[verb].Due, "%+v", tt)
		require.EqualValues(t, failed, b.l.rec.Ops[verb].Outcomes[driver.Error], "%+v", tt)
		require.Equal(t, tt.want-failed, r.w.conns[endpoint].queue.owed, "%+v", tt)
		require.Equal(t, tt.want-failed, b.l.running, "%+v", tt)
	}
}

// As many ops begin as are to, or as the stream has left. Those that are alike are laid out together if their connection has room for all; others are
// drawn one by one, and refused once there is no room. A stream that has ended begins nothing.
func TestHowManyOpsBegin(t *testing.T) {
	for _, ops := range []string{"get = 1", "put = 1", "get = 1, put = 1"} {
		for _, tt := range []struct{ n, left, room int }{
			{1, 900, 900},
			{drawn - 1, 900, 900},
			{drawn, 900, 900},
			{drawn + 1, 900, 900},
			{2 * drawn, 900, 900},
			{sheetSize, 900, 900},
			{sheetSize + 1, 900, 900},
			{3*sheetSize + 1, 900, 900},
			{10, 10, 900},
			{10, 9, 900},
			{10, 1, 900},
			{drawn + 5, drawn, 900},
			{drawn + 5, drawn + 1, 900},
			{sheetSize + 5, sheetSize, 900},
			{sheetSize + 5, sheetSize + 1, 900},
			{10, 900, 11},
			{10, 900, 10},
			{10, 900, 9},
		} {
			b, r := newRunBench(t, 1, tt.room, fmt.Sprintf("ops = { %s }\nclosed { iterations = %d }", ops, tt.left))
			s, begun := b.l.sessions[0], min(tt.n, tt.left)
			c := r.w.conn(s, 0)
			sent := min(begun, tt.room)
			require.Equal(t, begun, r.start(s, &s.stream, tt.n, 3, 5), "%s: %+v", ops, tt)
			require.Equal(t, tt.room >= tt.n && !strings.Contains(ops, ","), r.ops[0].Key == nil, "%s: %+v", ops, tt)
			var of measure.Requests
			var due, in uint64
			for v, o := range b.l.rec.Ops {
				if o != nil {
					due, in = due+o.Due, in+o.In
				}
				of.Sent, of.Refused = of.Sent+b.l.rec.Requests[v].Sent, of.Refused+b.l.rec.Requests[v].Refused
			}
			require.Equal(t, measure.Requests{Sent: uint64(sent), Refused: uint64(begun - sent)}, of, "%s: %+v", ops, tt)
			require.Equal(t, [2]uint64{uint64(begun), 0}, [2]uint64{due, in}, "%s: %+v", ops, tt)
			require.Equal(t, [2]int{sent, sent}, [2]int{c.queue.owed, b.l.running}, "%s: %+v", ops, tt)
			if begun < tt.left {
				continue
			}
			entries := c.queue.len()
			require.Zero(t, r.start(s, &s.stream, tt.n, 4, 6), "%s: %+v", ops, tt)
			require.Equal(t, [2]int{entries, sent}, [2]int{c.queue.len(), c.queue.owed}, "%s: %+v", ops, tt)
			require.EqualValues(t, 5, s.out, "it began nothing since")
		}
	}
}

// In flight are ops whose replies are awaited, without those that timed out, and ops whose requests were taken back.
func TestRunsInFlight(t *testing.T) {
	c := new(wireConn)
	for i, n := range []int32{1, 2, 4, 8} {
		c.queue.push(pending{n: n, verb: [2]driver.Verb{driver.Get, driver.Put}[i%2]})
	}
	c.queue.dead = 1
	w := &wire{conns: []*wireConn{c, new(wireConn)}}
	w.recalled[driver.Get] = 16
	var ops [driver.NumVerbs]int64
	(&runs{bulk: bulk{w: w}}).census(&ops, nil)
	require.Equal(t, [driver.NumVerbs]int64{driver.Get: 4 + 16, driver.Put: 2 + 8}, ops)
}
