package pmlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each option of a log must have a valid value.
func TestOptionsOfLogs(t *testing.T) {
	for _, o := range forms() {
		_, err := o.check()
		require.NoError(t, err, o.name())
	}
	for says, o := range map[string]AppendOptions{
		`padding 16`:                      {Padding: 16},
		`padding -8`:                      {Padding: -8},
		`order "loose": want`:             {Order: "loose"},
		`commit by "name": want`:          {Commit: "name"},
		`with order relaxed`:              {Order: Relaxed, Commit: ByLength},
		`with order grouped`:              {Order: Grouped, Commit: ByLength},
		`commit by length with padding 8`: {Padding: 8, Commit: ByLength},
	} {
		_, err := o.check()
		require.ErrorContains(t, err, says)
	}
	for _, padding := range []int{8, 63, 65, 128, 512} {
		_, err := ArrayOptions{Slots: 1, Capacity: 1, Padding: padding}.check()
		require.ErrorContains(t, err, "want 64 or 256", "%d", padding)
	}
	for _, o := range []ArrayOptions{{Slots: 1, Capacity: 1}, {Slots: 1, Capacity: maxPayload, Padding: 256}} {
		_, err := o.check()
		require.NoError(t, err)
	}
	_, err := ArrayOptions{Slots: 1, Capacity: maxPayload + 1}.check()
	require.Error(t, err)
}
