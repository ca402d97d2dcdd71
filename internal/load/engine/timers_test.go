package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTimersFireInOrder sets, fires and drops timers in any order, and sorts a list of them beside it.
func TestTimersFireInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts timers
		var want []timer
		now := int64(0)
		for seq := uint64(1); seq < 200; {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				n := 0
				for _, x := range want {
					if x.kind == reconnect {
						n += int(x.n)
					}
				}
				want = slices.DeleteFunc(want, func(x timer) bool { return x.kind == reconnect })
				require.Equal(t, n, ts.drop(reconnect))
			case 1, 2, 3, 4:
				if len(want) == 0 {
					require.EqualValues(t, never, ts.next())
					break
				}
				require.Equal(t, want[0].at, ts.next())
				require.Equal(t, want[0], ts.pop())
				now, want = max(now, want[0].at), want[1:]
			default:
				x := timer{
					at: now + rapid.SampledFrom([]int64{0, 10, 10, 10, 50}).Draw(t, "delay"), seq: seq,
					n: int32(seq), kind: rapid.SampledFrom([]timerKind{startSlots, reconnect}).Draw(t, "kind"),
				}
				seq++
				ts.set(x.at, x.kind, x.arg, x.n)
				want = append(want, x)
				slices.SortFunc(want, func(a, b timer) int {
					if earlierTimer(a, b) {
						return -1
					}
					return 1
				})
			}
		}
	})
}

// Timers that are set in the order in which they fire stand in a line, those for the same time and those after the line has fired among them. Only
// others cost more.
func TestTimersInOrderStandInALine(t *testing.T) {
	var ts timers
	for _, at := range []int64{10, 10, 20} {
		ts.set(at, reconnect, 0, 1)
	}
	require.Empty(t, ts.heap)
	for range 3 {
		ts.pop()
	}
	ts.set(15, reconnect, 0, 1)
	require.Empty(t, ts.heap)
	ts.set(14, reconnect, 0, 1)
	require.Len(t, ts.heap, 1)
}

// A full line is used again once half of it has fired. Before, it grows: to move most of it for each timer would take long.
func TestRoomInTheLineOfTimers(t *testing.T) {
	for fired, again := range map[int]bool{0: false, 3: false, 4: true, 8: true} {
		ts := timers{line: make([]timer, 0, 8)}
		for at := range int64(8) {
			ts.set(at, reconnect, 0, 1)
		}
		for range fired {
			ts.pop()
		}
		ts.set(8, reconnect, 0, 1)
		require.Equal(t, again, cap(ts.line) == 8, "%d have fired", fired)
		require.Len(t, ts.line[ts.done:], 9-fired)
		for at := fired; at <= 8; at++ {
			require.EqualValues(t, at, ts.pop().at)
		}
	}
	ts := timers{line: make([]timer, 0, 8)}
	ts.set(1, reconnect, 0, 1)
	ts.set(2, reconnect, 0, 1)
	ts.pop()
	ts.set(3, reconnect, 0, 1)
	require.Equal(t, 1, ts.done, "a line that has room is not moved")
}
