package pmlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a recovery reports for each layout: for a new log, five writes, five writes with the last or the last but one torn, and a closed log.
func TestWhatARecoveryCounts(t *testing.T) {
	corrupt := "corrupt"
	for _, k := range kinds() {
		var want []any
		switch o := k.name; {
		case k.holds != nil: // made with a hole
			continue
		case k.slots > 0: // two slots were written, and of a torn one the value before is there
			want = []any{Recovery{}, Recovery{Records: 2}, Recovery{Records: 2, Torn: 1}, Recovery{Records: 2, Torn: 1}, Recovery{Clean: true, Records: 2}}
		case k.length && k.group: // a recovery reads no piece
			want = []any{Recovery{}, Recovery{}, Recovery{}, Recovery{}, Recovery{Clean: true}}
		case k.length: // only the last piece is read, and none that was durable before its entry
			want = []any{Recovery{}, Recovery{}, Recovery{}, Recovery{}, Recovery{Clean: true}}
			if o == fmt.Sprintf("channel/force=%d", oneForce) {
				want[2] = Recovery{Torn: 1}
			}
		case k.beside:
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, Recovery{Records: 4, Walked: 4, Torn: 1}, Recovery{Records: 4, Walked: 4, Torn: 1, Holes: 1}, Recovery{Clean: true, Records: 5}}
		case strings.Contains(o, "commit=length"): // the word that commits a record is there
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, corrupt, corrupt, Recovery{Clean: true, Records: 5}}
		default:
			want = []any{Recovery{}, Recovery{Records: 5, Walked: 5}, Recovery{Records: 4, Walked: 4, Torn: 1}, corrupt, Recovery{Clean: true, Records: 5}}
		}
		for i, images := range ended(t, k) {
			regions, _ := over(k, &refusals{}, images)
			s, err := k.open(regions)
			if want[i] == corrupt {
				require.ErrorIs(t, err, ErrCorrupt, "%s, image %d", k.name, i)
				continue
			}
			require.NoError(t, err, "%s, image %d", k.name, i)
			require.Equal(t, want[i], s.recovered(), "%s, image %d", k.name, i)
		}
	}
}
