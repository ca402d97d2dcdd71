package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
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

// Bytes of a device that others use just before or just after the load are not the log's.
func TestNeighboursOfADevice(t *testing.T) {
	bytes, busy := 4797.0*1000, worker.Beside{Seconds: 1, Bytes: 800_000}
	for why, d := range map[string]worker.Device{
		"": {After: worker.Beside{Seconds: 1, Bytes: 4000}, Writer: "cron (process 3)"},
		"others use sda: 800 kB/s written in the 1.00 s before the load, and 480 kB/s written during it":                            {Before: busy},
		"others use sda: 800 kB/s written in the 1.00 s after the load, and 480 kB/s written during it; dd (process 17) wrote most": {After: busy, Writer: "dd (process 17)"},
	} {
		d.Name, d.Seconds, d.Bytes, d.NoFlushes = "sda", 10, &bytes, "not counted"
		p := &phase{Phase: &run.Phase{Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}}}
		p.device(&worker.Log{Devices: []worker.Device{d}}, 1000)
		require.Equal(t, why, p.Nulls["device.bytes_per_op"])
		require.Equal(t, why == "", p.Device.BytesPerOp != nil)
	}
}
