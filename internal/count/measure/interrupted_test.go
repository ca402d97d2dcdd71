package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInterruptedAdds(t *testing.T) {
	a := Interrupted{Times: 1, Seconds: 0.5, MaxSeconds: 0.5, OthersSeconds: 0.25}
	b := Interrupted{Times: 4, Seconds: 0.75, MaxSeconds: 0.25, OthersSeconds: 0.5}
	sum := func(all ...Interrupted) (s Interrupted) {
		for i := range all {
			s.Add(&all[i])
		}
		return s
	}
	require.Equal(t, Interrupted{Times: 5, Seconds: 1.25, MaxSeconds: 0.5, OthersSeconds: 0.75}, sum(a, b))
	require.Equal(t, sum(a, b), sum(b, a))
	require.Equal(t, sum(sum(a, b), a), sum(a, sum(b, a)))
	require.Equal(t, a, sum(a, Interrupted{}))
	require.Equal(t, 20*time.Millisecond, LongGap, "as docs/truth.md has it")
}
