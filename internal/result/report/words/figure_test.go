package words

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigures(t *testing.T) {
	for path, want := range map[string]string{
		"seconds":                                   "from the start to the verdict.",
		"phase.load.op.get.response.p90":            "90 % took no longer.",
		`phase["put-warm"].op.get.service.p90`:      "90 % took no longer.",
		"phase.load.op.get.acks[1].p90":             "90 % took no longer.",
		"phase.load.op.get.latency.miss.service.sd": "standard deviation, exact.",
		"phase.NAME.total.response.max":             "greatest, exact.",
	} {
		e, ok := Figure(path)
		require.True(t, ok, path)
		require.Equal(t, want, e.Means, path)
	}
	for _, path := range []string{"", "nosuch", "phase.load.op.get.response.nosuch", "phase.load.op.get.p99.p99"} {
		_, ok := Figure(path)
		require.False(t, ok, path)
	}
}
