package page

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// A counter does not fall to 0 at the end because the last probe came right after another one.
func TestStretchesOfACounter(t *testing.T) {
	how := &run.Probes{}
	text := `{"series": [{"t": -0.01, "value": {"n": 0}}, {"t": 1, "value": {"n": 101}}, {"t": 2, "value": {"n": 201}}, {"t": 2.03, "value": {"n": 201}}]}`
	require.NoError(t, json.Unmarshal([]byte(text), how))
	require.Equal(t, []stretch{{0, 1, 100}, {1, 2, 100}}, stretchesOf(how, "n", true))
	require.Equal(t, []stretch{{0, 0, 0}, {0, 1, 101}, {1, 2, 201}, {2, 2.03, 201}}, stretchesOf(how, "n", false))
}
