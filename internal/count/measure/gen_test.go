package measure

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	testOrigin    = int64(5e9)
	testEndpoints = 3
)

// event is one thing that the hands of a loop count. Each keeps both ledgers in balance, so any set of events is a valid part.
type event func(t *Totals)

func count(events ...event) *Totals {
	t := NewTotals(testOrigin, testEndpoints)
	for _, e := range events {
		e(t)
	}
	return t
}

func start(v driver.Verb, digest uint64) event {
	return func(t *Totals) {
		t.AddDue(v)
		t.Mix(digest)
		t.AddInFlight(v, 1)
	}
}

func end(s Sample) event {
	return func(t *Totals) {
		t.AddInFlight(s.Verb, -1)
		if s.Start-s.Due > 1e5 {
			t.Waited.Record(s.Start - s.Due)
		}
		t.AddBytes(s.Verb, int(s.End&255), 31)
		t.Record(&s)
	}
}

var (
	anyVerb    = rapid.Map(rapid.IntRange(0, driver.NumVerbs-1), func(i int) driver.Verb { return driver.Verb(i) })
	anyOutcome = rapid.Map(rapid.IntRange(0, int(driver.Shed)-1), func(i int) driver.Outcome { return driver.Outcome(i) })
	anyCause   = rapid.Map(rapid.IntRange(0, NumCauses-1), func(i int) Cause { return Cause(i) })
	// anyTime draws from all scales.
	anyTime = rapid.Custom(func(t *rapid.T) int64 {
		bits := rapid.IntRange(0, 61).Draw(t, "bits")
		return rapid.Int64Range(0, 1<<bits-1).Draw(t, "ns")
	})
	anyText = rapid.OneOf(
		rapid.SampledFrom([]string{"", "ERR", "OOM command not allowed", "a", "b", "c", "d", "e", "f", "g", "h", "i"}),
		rapid.StringN(0, 60, 200),
	)
)

func drawSample(t *rapid.T) Sample {
	due := testOrigin + anyTime.Draw(t, "due")
	start := due + rapid.Int64Range(-1000, 1e6).Draw(t, "lag")
	return Sample{
		Verb:    anyVerb.Draw(t, "verb"),
		Outcome: anyOutcome.Draw(t, "outcome"),
		Cause:   anyCause.Draw(t, "cause"),
		Kind:    uint8(max(0, rapid.IntRange(-5, MaxKinds).Draw(t, "kind"))),
		Due:     due,
		Start:   start,
		End:     start + rapid.Int64Range(0, 1e9).Draw(t, "service"),
	}
}

// grow counts every put by an ordinal, on all scales.
func grow(t *Totals, s *Sample) {
	if s.Verb == driver.Put {
		t.Grow(s, uint64(s.Due-testOrigin))
	}
}

// anyEvents draws what one thing that happens to a load counts: one event, or two that may fall into different intervals.
var anyEvents = rapid.Custom(func(t *rapid.T) []event {
	v := anyVerb.Draw(t, "verb")
	endpoint := rapid.IntRange(0, testEndpoints-1).Draw(t, "endpoint")
	n := rapid.Uint64Range(1, 1000).Draw(t, "n")
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	default:
		s := drawSample(t)
		return []event{start(s.Verb, n), func(t *Totals) {
			if n%3 == 0 {
				t.Stages = []int64{1e6, 1e12}
			}
			end(s)(t)
			t.Stages = nil
			grow(t, &s)
			if s.Outcome == driver.OK && n%2 == 0 {
				t.Split(s.Verb, s.End-s.Start, (s.End-s.Start)/3)
				t.FailCheck(s.Verb, 1+int(s.Kind))
			}
		}}
	case 8:
		i, s := rapid.IntRange(0, MaxScenarios-1).Draw(t, "scenario"), drawSample(t)
		turn, at := anyTime.Draw(t, "before"), Step{i, rapid.IntRange(0, MaxSteps-1).Draw(t, "step")}
		return []event{
			func(t *Totals) { t.AddScenario(i); t.AddScenarioInFlight(i, 1) },
			func(t *Totals) { t.AddScenarioInFlight(i, -1); t.RecordScenario(i, &s) },
			func(t *Totals) { t.AddScenario(i); t.ShedScenario(i) },
			start(s.Verb, n),
			func(t *Totals) { t.AddStep(at); t.AddStepInFlight(at, 1) },
			func(t *Totals) {
				t.AddInFlight(s.Verb, -1)
				t.AddStepInFlight(at, -1)
				t.RecordStep(at, &s, s.Due-turn)
				grow(t, &s)
			},
			func(t *Totals) { t.AddStep(at); t.ShedStep(at) },
		}
	case 0:
		return []event{start(v, n)}
	case 1:
		return []event{func(t *Totals) {
			for range n {
				t.AddDue(v)
			}
			t.Shed(v, n)
		}}
	case 2:
		k, ns := rapid.IntRange(1, 5).Draw(t, "k"), anyTime.Draw(t, "ns")
		return []event{func(t *Totals) { t.Ack(v, k, ns) }}
	case 3:
		return []event{
			func(t *Totals) { r := t.Request(endpoint, v); r.Sent++; r.InFlight++ },
			func(t *Totals) { r := t.Request(endpoint, v); r.InFlight--; r.Answered++ },
		}
	case 4:
		return []event{func(t *Totals) {
			r := t.Request(endpoint, v)
			r.Sent += 2*n + 2
			r.Timeout += n
			r.Error++
			r.Moved += n
			r.Ask++
			r.Refused += n
		}}
	case 5:
		msg := anyText.Draw(t, "text")
		return []event{func(t *Totals) { t.Errors.Add([]byte(msg)) }}
	case 6:
		first := anyTime.Draw(t, "first")
		last := first + anyTime.Draw(t, "at work")
		lost := n < 500
		return []event{func(t *Totals) {
			if t.Span.Session(first, last); lost {
				t.Span.Lose(first)
			}
		}}
	case 9:
		o, at := anyOutcome.Draw(t, "outcome"), anyTime.Draw(t, "end")
		return []event{
			func(t *Totals) { t.AddKeysDue(v, int(n)); t.AddKeysInFlight(v, int64(n)) },
			func(t *Totals) { t.AddKeysInFlight(v, -int64(n)); t.EndKeys(v, o, n, testOrigin+at/2, testOrigin+at) },
			func(t *Totals) { t.AddKeysDue(v, 3); t.ShedKeys(v, 3); t.Waste(v, 2) },
		}
	case 7:
		stall := 1 + anyTime.Draw(t, "stall")
		return []event{func(t *Totals) {
			t.Stalls++
			t.MaxStall = max(t.MaxStall, stall)
			t.Reconnects++
			t.LateReplies += n
			t.Foreign++
		}}
	case 10: // a stretch of lost time may be cut anywhere
		from := testOrigin + anyTime.Draw(t, "from")
		lasts := rapid.Int64Range(0, 1e10).Draw(t, "lasts")
		cut := from + rapid.Int64Range(0, lasts).Draw(t, "cut")
		return []event{
			func(t *Totals) { t.AddLost(int(n), from, cut) },
			func(t *Totals) { t.AddLost(int(n), cut, from+lasts) },
			func(t *Totals) { t.AddAway(endpoint, lasts) },
		}
	}
})

func drawEvents(t *rapid.T, most int) (all []event) {
	for _, e := range rapid.SliceOfN(anyEvents, 0, most).Draw(t, "events") {
		all = append(all, e...)
	}
	return all
}

func drawTotals(t *rapid.T) *Totals { return count(drawEvents(t, 12)...) }

func bytesOf(t require.TestingT, x interface {
	AppendBinary([]byte) ([]byte, error)
},
) []byte {
	b, err := x.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

func merged(parts ...*Totals) *Totals {
	sum := new(Totals)
	for _, p := range parts {
		sum.Merge(p)
	}
	return sum
}

// sampleTotals has something in every field.
func sampleTotals() *Totals {
	var events []event
	for v := range driver.NumVerbs {
		for o := range driver.Shed {
			at := testOrigin + int64(v)*1e6 + int64(o)*1e8
			s := Sample{
				Verb: driver.Verb(v), Outcome: o, Cause: Cause(int(o) % NumCauses),
				Due: at, Start: at + 1000, End: at + 250_000,
			}
			events = append(events, start(s.Verb, OpDigest(uint32(v), uint64(o), s.Verb, []byte("key:000000000001"), 200)), end(s))
		}
	}
	t := count(append(events, start(driver.Put, 7))...)
	t.AddDue(driver.Get)
	t.Shed(driver.Get, 1)
	t.AddKeysDue(driver.Get, 16)
	t.EndKeys(driver.Get, driver.OK, 13, testOrigin, testOrigin+1e6)
	t.EndKeys(driver.Get, driver.Miss, 2, testOrigin+1e6, testOrigin+3e6)
	t.AddKeysInFlight(driver.Get, 1)
	t.Ack(driver.Put, 1, 150_000)
	t.Ack(driver.Put, 3, 350_000)
	*t.Request(0, driver.Get) = Requests{Sent: 15, Answered: 6, Timeout: 2, Error: 1, Refused: 4, Moved: 3, Ask: 2, InFlight: 1}
	*t.Request(2, driver.Put) = Requests{Sent: 3, Answered: 3}
	t.AddScenario(1)
	t.RecordScenario(1, &Sample{Outcome: driver.Miss, Due: testOrigin + 10, Start: testOrigin + 20, End: testOrigin + 1e6})
	t.Span.Session(testOrigin+5, testOrigin+900)
	t.Span.Session(testOrigin+1, testOrigin+700)
	t.Span.Lose(testOrigin + 100)
	t.AddLost(2, testOrigin+100, testOrigin+1e6)
	t.AddAway(1, 5e8)
	t.Reconnects, t.LateReplies, t.Foreign, t.Stalls, t.MaxStall = 1, 2, 3, 1, 300e6
	t.Errors.Add([]byte("ERR unknown command\r\n"))
	t.Errors.Add([]byte("LOADING"))
	t.Cache = Cache{Gets: 300, Hits: 200, Misses: 100, Loads: 90, LoadTime: 5e6, MostLoads: 7, Coalesced: 10, Entries: -3, Bytes: 4096, Caches: 2}
	t.Compared().Verified = Verified{Keys: 9, Newer: 1, Unread: 2}
	t.Versions.Verified.Lose(Lost{At: testOrigin + 6e6, Key: []byte("key:000000000002"), Version: 8, Found: 7})
	t.Versions.Verified.Lose(Lost{At: testOrigin - 5e6, Key: []byte("key:000000000001"), Version: 6})
	t.Versions.Staleness = Staleness{Gets: 50, Stale: 4, Behind: [Behind]uint64{2, 1, 0, 1}, Backwards: 1}
	t.Versions.Staleness.Age.RecordN(2_000_000, 4)
	t.Happened(1, testOrigin+7e6)
	t.Happened(1, testOrigin+5e6)
	return t
}

func sampleSnapshot() *Snapshot {
	s := &Snapshot{Step: 3, SeqFirst: 17, SeqLast: 18, From: testOrigin, To: testOrigin + 2e9, Delta: *sampleTotals(), Final: true}
	s.Running.Add(&s.Delta)
	s.Running.Add(&s.Delta)
	d := NewDraw(2, 1, 1)
	d.Enter(&DrawnOp{Due: testOrigin, Start: testOrigin + 1, End: testOrigin + 5, In: 9, Out: Unknown, Code: 404, Outcome: driver.Miss}, nil, 3)
	s.Samples.Add(d.most, d.Taken())
	return s
}
