package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// The bytes of a log that acknowledges before it syncs take until the last sync has ended.
func TestRateOfALogThatSyncsLater(t *testing.T) {
	load := measure.NewTotals(origin, len(endpoints))
	for i := range int64(1000) {
		record(load, measure.Sample{Verb: driver.Put, Outcome: driver.OK, Due: origin + i*ms, Start: origin + i*ms, End: origin + (i+1)*ms})
	}
	load.Span.Session(origin, origin+1000*ms)
	ph := closedPhase()
	ph.Ops[0].Op = "put"
	rate := func(risk *localfile.AtRisk) float64 {
		logs := []*worker.Log{{Log: localfile.Log{AtRisk: risk}}}
		return *NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load, Logs: logs}).Log.BytesPerSecond
	}
	require.InEpsilon(t, 1000*200, rate(nil), 1e-3)
	require.InEpsilon(t, rate(nil)/1.25, rate(&localfile.AtRisk{LastSyncSeconds: 0.25}), 1e-9)
}
