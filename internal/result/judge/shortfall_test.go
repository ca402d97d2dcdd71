package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

func TestShortfall(t *testing.T) {
	words := driver.NewWords(map[string]bool{"login": false})
	login, _ := words.Verb("login")
	did := func(v driver.Verb, outcomes ...driver.Outcome) *measure.Totals {
		t := measure.NewTotals(origin, len(endpoints))
		for _, o := range outcomes {
			record(t, measure.Sample{Verb: v, Outcome: o, Cause: measure.Cause(op.Replied), Start: origin, Due: origin, End: origin})
		}
		return t
	}
	put := func(outcomes ...driver.Outcome) *measure.Totals { return did(driver.Put, outcomes...) }
	acked := put(driver.OK, driver.OK)
	for range 2 {
		acked.Ack(driver.Put, 1, ms)
		acked.Ack(driver.Put, 2, ms)
	}
	partly := put(driver.OK, driver.OK)
	partly.Ack(driver.Put, 1, ms)
	partly.Ack(driver.Put, 1, ms)
	partly.Ack(driver.Put, 2, ms)
	refused := did(login, driver.OK, driver.Error)
	refused.Errors.Add([]byte("READONLY"))

	begun := put(driver.OK)
	begun.AddDue(driver.Put)
	begun.AddInFlight(driver.Put, 1)

	tests := []struct {
		name    string
		kind    worker.StepKind
		planned int64
		copies  int
		totals  *measure.Totals
		want    string
	}{
		{name: "nothing to do", kind: worker.Setup, copies: 3, totals: put(), want: ""},
		{name: "all that was planned", kind: worker.Populate, planned: 2, copies: 1, totals: put(driver.OK, driver.OK), want: ""},
		{
			name: "a part was never due", kind: worker.Populate, planned: 5, copies: 1, totals: put(driver.OK, driver.OK),
			want: "populate: 2 of 5 put ops were done: 3 were never begun",
		},
		{
			name: "a part was never due on all", kind: worker.Setup, planned: 4, copies: 2, totals: acked,
			want: "setup: 2 of 4 put ops were done: 2 were never begun",
		},
		{name: "one has not ended", kind: worker.Populate, copies: 1, totals: begun, want: "populate: 1 of 2 put ops were done"},
		{name: "none of one was due", kind: worker.Clear, planned: 1, copies: 1, totals: new(measure.Totals), want: "clear: 0 of 1 ops were done"},
		{name: "nothing was due", kind: worker.Clear, planned: 3, copies: 1, totals: new(measure.Totals), want: "clear: 0 of 3 ops were done"},
		{
			name: "timeouts", kind: worker.Populate, planned: 3, copies: 1, totals: put(driver.Timeout, driver.OK, driver.Timeout),
			want: "populate: 1 of 3 put ops were done: 2 timed out",
		},
		{name: "all ok", kind: worker.Populate, copies: 1, totals: put(driver.OK, driver.OK), want: ""},
		{name: "all ok everywhere", kind: worker.Setup, copies: 2, totals: acked, want: ""},
		{
			name: "an error", kind: worker.Setup, copies: 1, totals: refused,
			want: `setup: 1 of 2 login ops were done: 1 ended in an error; "READONLY" × 1`,
		},
		{
			name: "not everywhere", kind: worker.Setup, copies: 2, totals: partly,
			want: "setup: 1 of 2 put ops were done on all 2 endpoints of their key",
		},
		{
			name: "nowhere on the third", kind: worker.Setup, copies: 3, totals: acked,
			want: "setup: 0 of 2 put ops were done on all 3 endpoints of their key",
		},
		{
			name: "a clear that fell short", kind: worker.Clear, planned: 5, copies: 1, totals: put(driver.OK, driver.Miss, driver.Timeout),
			want: "clear: 2 of 5 put ops were done: 1 timed out, 2 were never begun",
		},
		{
			name: "every way to end", kind: worker.Setup, planned: 7, copies: 1,
			totals: put(driver.OK, driver.Miss, driver.Conflict, driver.QuorumFailed, driver.Timeout, driver.Error),
			want:   "setup: 1 of 7 put ops were done: 1 timed out, 1 ended in an error, 1 missed their quorum, 1 were refused as conflicts, 1 missed, 1 were never begun",
		},
		{name: "a clear may miss", kind: worker.Clear, copies: 1, totals: put(driver.OK, driver.Miss), want: ""},
		{
			name: "a populate may not", kind: worker.Populate, copies: 1, totals: put(driver.OK, driver.Miss),
			want: "populate: 1 of 2 put ops were done: 1 missed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, Shortfall(tt.kind, words, tt.planned, tt.copies, tt.totals))
		})
	}
}
