package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestSampleIsValid(t *testing.T) {
	require.NoError(t, sampleTotals().CheckValid())
	require.NoError(t, sampleSnapshot().CheckValid())
	require.NoError(t, new(Totals).CheckValid())
}

func TestCheckValidFindsEachDefect(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(t *Totals)
		want  string
	}{
		{
			"due", func(t *Totals) { t.Ops[driver.Get].Due++ },
			"get: due 8, but ok 1 + miss 1 + conflict 1 + quorum_failed 1 + timeout 1 + error 1 + shed 1 + in_flight 0 = 7",
		},
		{
			"in flight", func(t *Totals) { t.Ops[driver.Put].InFlight -= 9 },
			"put: due 7, but ok 1 + miss 1 + conflict 1 + quorum_failed 1 + timeout 1 + error 1 + shed 0 + in_flight -8 = -2",
		},
		{"shed", func(t *Totals) { t.Shed(driver.Get, 1) }, "get: due 7, but"},
		{
			"sent", func(t *Totals) { t.Request(0, driver.Get).Sent++ },
			"endpoint 0, get: sent 16, but answered 6 + moved 3 + ask 2 + timeout 2 + error 1 + in_flight 1 = 15",
		},
		{"answered", func(t *Totals) { t.Request(2, driver.Put).Answered++ }, "endpoint 2, put: sent 3, but answered 4"},
		{"request timeout", func(t *Totals) { t.Request(2, driver.Put).Timeout++ }, "endpoint 2, put: sent 3, but"},
		{"moved", func(t *Totals) { t.Request(2, driver.Put).Moved++ }, "endpoint 2, put: sent 3, but answered 3 + moved 1"},
		{"ask", func(t *Totals) { t.Request(2, driver.Put).Ask++ }, "endpoint 2, put: sent 3, but answered 3 + moved 0 + ask 1"},
		{"request error", func(t *Totals) { t.Request(2, driver.Put).Error++ }, "endpoint 2, put: sent 3, but"},
		{"request in flight", func(t *Totals) { t.Request(2, driver.Put).InFlight++ }, "endpoint 2, put: sent 3, but"},
		{"half an endpoint", func(t *Totals) { t.Requests = t.Requests[:8] }, "8 request ledgers, want a multiple of 39"},
		{"stale", func(t *Totals) { t.Compared().Staleness.Gets, t.Versions.Staleness.Stale = 1, 2 }, "2 of 1 gets stale, but"},
		{"behind", func(t *Totals) { t.Compared().Staleness.Behind[1]++ }, "gets stale, but"},
		{"ages", func(t *Totals) { t.Compared().Staleness.Age.Record(1) }, "gets stale, but"},
		{"found", func(t *Totals) { t.Compared().Verified.Lost[0].Found = 9 }, "version 8 of a key lost, but 9 found"},
		{"lost", func(t *Totals) { t.Compared().Verified.Missing += 1000 }, "keys lost,"},
		{"a cause too many", func(t *Totals) { t.Ops[driver.Put].Causes[0]++ }, "put: causes 5, but bad 4"},
		{"lag", func(t *Totals) { t.Ops[driver.Put].Lag.Record(1) }, "put: lags 7, but ended 6"},
		{"service of ok", func(t *Totals) { t.Ops[driver.Put].Service[ClassOK].Reset() }, "put: service times 0, but ok 1"},
		{"service of miss", func(t *Totals) { t.Ops[driver.Put].Service[ClassMiss].Record(1) }, "put: service times 2, but miss 1"},
		{"service of bad", func(t *Totals) { t.Ops[driver.Put].Service[ClassBad].Record(1) }, "put: service times 5, but bad 4"},
		{"response of ok", func(t *Totals) { t.Ops[driver.Put].Response[ClassOK].Record(1) }, "put: response times 2, but ok 1"},
		{"response of miss", func(t *Totals) { t.Ops[driver.Put].Response[ClassMiss].Record(1) }, "put: response times 2, but miss 1"},
		{"response of bad", func(t *Totals) { t.Ops[driver.Put].Response[ClassBad].Record(1) }, "put: response times 5, but bad 4"},
		{"no bins", func(t *Totals) { t.Ops[driver.Delete].Bins[driver.Timeout] = nil }, "delete: ends in bins 0, but timeout 1"},
		{"bins", func(t *Totals) { t.Ops[driver.Delete].Bins[driver.Miss].AddN(1, 1) }, "delete: ends in bins 2, but miss 1"},
		{
			"bins of shed", func(t *Totals) { made(&t.Ops[driver.Get].Bins[driver.Shed]).AddN(1, 1) },
			"get: ends that were shed in bins 1, but want 0",
		},
		{"turns", func(t *Totals) { t.Ops[driver.Delete].Turns[driver.Miss].AddN(1, 1) }, "delete: ends by turn in bins 2, but miss 1"},
		{"turns of keys", func(t *Totals) { t.Ops[driver.Get].Keys.Turns[driver.Miss].AddN(1, 1) }, "get: ends of keys by turn in bins 3, but miss 2"},
		{"due keys", func(t *Totals) { t.AddKeysDue(driver.Get, 1) }, "keys of get: due 17, but ok 13 + miss 2 +"},
		{"bins of keys", func(t *Totals) { t.Ops[driver.Get].Keys.Bins[driver.Miss].AddN(1, 1) }, "get: ends of keys in bins 3, but miss 2"},
		{
			"bins of shed keys", func(t *Totals) { made(&t.Ops[driver.Get].Keys.Bins[driver.Shed]).AddN(1, 1) },
			"get: ends of keys that were shed in bins 1, but want 0",
		},
		{
			"a shed sample", func(t *Totals) { t.AddDue(driver.Get); t.Record(&Sample{Outcome: driver.Shed}) },
			"get: service times 5, but bad 4",
		},
		{"a stall without length", func(t *Totals) { t.MaxStall = 0 }, "1 stalls, but the longest is 0 ns"},
		{"a length without stall", func(t *Totals) { t.Stalls = 0 }, "0 stalls, but the longest is 300000000 ns"},
		{"a negative stall", func(t *Totals) { t.MaxStall = -1 }, "1 stalls, but the longest is -1 ns"},
		{"first after last first", func(t *Totals) { t.Span.First = t.Span.LastFirst + 1 }, "do not go with last ends"},
		{"first after first last", func(t *Totals) { t.Span.FirstLast = t.Span.First - 1 }, "do not go with last ends"},
		{"last before first last", func(t *Totals) { t.Span.FirstLast = t.Span.Last + 1 }, "do not go with last ends"},
		{"last before last first", func(t *Totals) { t.Span.LastFirst = t.Span.Last + 1 }, "do not go with last ends"},
		{"out before the first", func(t *Totals) { t.Span.FirstOut = t.Span.First - 1 }, "the earliest last start of"},
		{"out after the first last", func(t *Totals) { t.Span.FirstOut = t.Span.FirstLast + 1 }, "the earliest last start of"},
		{"kinds of nothing", func(t *Totals) {
			var k Kind
			k.Service.RecordN(1, 7)
			k.Response.RecordN(1, 7)
			t.Ops[driver.Delete].Kinds = []Kind{k}
		}, "are of a kind, but "},
		{"half a part", func(t *Totals) { made(&t.Ops[driver.Put].Split).Write.Record(1) }, "put: parts of service times before a sync 1, but parts in one 0"},
		{"parts of nothing", func(t *Totals) { t.Split(driver.Put, 3, 1); t.Split(driver.Put, 3, 1) }, "put: 2 waited for a sync, but 1 ended ok"},
		{"ordinals", func(t *Totals) { t.Grow(&Sample{Verb: driver.Put}, 4) }, "put: ends by ordinal 1, but ended 6"},
		{"scenario", func(t *Totals) { t.AddScenario(1) }, "scenario 2: due 2, but"},
		{"latencies of a scenario", func(t *Totals) { t.Scenarios[1].Lag.Record(1) }, "scenario 2: lags 2, but ended 1"},
		{"step", func(t *Totals) { t.AddStep(Step{1, 0}) }, "scenario 2, step 1: due 1, but"},
		{"latencies of a step", func(t *Totals) { t.step(Step{1, 2}).Lag.Record(1) }, "scenario 2, step 3: lags 1, but ended 0"},
		{"span of none", func(t *Totals) { t.Span.Sessions = 0 }, "a span of no session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			totals := sampleTotals()
			c.plant(totals)
			require.ErrorContains(t, totals.CheckValid(), c.want)
		})
	}
}

// The earliest last start may be that of a session that started nothing more, or that ended at once.
func TestBoundsOfASpan(t *testing.T) {
	for _, out := range []int64{10, 11, 19, 20} {
		var totals Totals
		totals.Span.Busy(10, out, 20, 1)
		require.NoError(t, totals.CheckValid(), "%d", out)
	}
}

// Any count that is one too high or too low is found.
func TestCheckValidFindsAnyOutcomeTooMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		totals := drawTotals(t)
		require.NoError(t, totals.CheckValid())
		v := anyVerb.Draw(t, "verb")
		totals.of(v).Outcomes[rapid.IntRange(0, driver.NumOutcomes-1).Draw(t, "outcome")]++
		require.ErrorContains(t, totals.CheckValid(), v.String()+": due ")
	})
}

func TestCheckValidNamesEveryDefect(t *testing.T) {
	totals := sampleTotals()
	totals.AddDue(driver.Put)
	totals.Request(1, driver.Delete).Sent++
	err := totals.CheckValid()
	require.ErrorContains(t, err, "put: due 8, but")
	require.ErrorContains(t, err, "endpoint 1, delete: sent 1, but")
}
