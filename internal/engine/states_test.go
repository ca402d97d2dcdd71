package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// States are made when none is free, and each of them is used before more are made.
func TestStatesAreMadeWhenNoneIsFree(t *testing.T) {
	l := new(loop)
	for round := range int32(3) {
		var taken []*opState
		for slot := range int32(minStates) {
			st := l.take()
			require.Equal(t, round*minStates+slot, st.Slot)
			require.Same(t, st, l.slab[st.Slot])
			taken = append(taken, st)
		}
		require.Len(t, l.slab, int(round+1)*minStates)
		require.Equal(t, int(round+1)*minStates, l.used)
		l.release(taken[7])
		require.Same(t, taken[7], l.take())
	}
}

// An op is in flight until its outcome is known, and its keys until all its requests have ended.
func TestOpsInFlight(t *testing.T) {
	l := new(loop)
	var ended []*opState
	for _, tt := range []struct {
		verb        driver.Verb
		keys        int
		done, ended bool
	}{
		{driver.Get, 0, false, false},
		{driver.Put, 0, false, false},
		{driver.Put, 3, false, false},
		{driver.Put, 4, true, false},
		{driver.Put, 5, true, true},
		{driver.Put, 6, false, true},
	} {
		st := l.take()
		st.Verb, st.keys, st.done = tt.verb, tt.keys, tt.done
		if tt.ended {
			ended = append(ended, st)
		}
	}
	for _, st := range ended {
		l.release(st)
	}
	var ops, keys, wantOps, wantKeys [driver.NumVerbs]int64
	wantOps[driver.Get], wantOps[driver.Put], wantKeys[driver.Put] = 1, 2, 3+4
	l.countStates(&ops, &keys)
	require.Equal(t, wantOps, ops)
	require.Equal(t, wantKeys, keys)
}

// Ops have numbers from 1, of which sessions take turns. There may be just one.
func TestNumbersOfOps(t *testing.T) {
	for sessions, iterations := range map[int]int{1: 6, 2: 3, 3: 2} {
		p := nullPlan(t, 1, "", fmt.Sprintf("ops = { put = 1 }\ngrowth {}\nclosed {\n sessions = %d\n iterations = %d\n}", sessions, iterations))
		totals, _ := execute(t, Config{Loops: 1}, p, &virtualClock{})
		growth := totals.Ops[driver.Put].Growth
		require.NotNil(t, growth, "%d sessions", sessions)
		require.Len(t, growth.Bins, 6, "%d sessions", sessions)
		for i := range growth.Bins {
			require.EqualValues(t, 1, growth.Bins[i].Ended(), "%d sessions: op %d", sessions, i+1)
		}
	}
}
