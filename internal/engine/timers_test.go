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
