package run

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestJudge(t *testing.T) {
	share := func(f float64) *float64 { return &f }
	every := func(n int, o driver.Outcome) func(int) driver.Outcome {
		return func(i int) driver.Outcome {
			if i%n == 0 {
				return o
			}
			return driver.OK
		}
	}
	tests := []struct {
		name     string
		phase    *plan.Phase
		edit     func(*plan.Phase, *Measured)
		load     *measure.Totals
		validity Validity
		reasons  []string
	}{
		{
			name: "good", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			validity: Valid,
		},
		{
			name: "as many bad as allowed", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(100, driver.Timeout)),
			validity: Valid,
		},
		{
			name: "too many bad", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Error)),
			edit: func(_ *plan.Phase, m *Measured) {
				for range 150 {
					m.Load.Errors.Add([]byte("OOM command not allowed"))
				}
				for range 50 {
					m.Load.Errors.Add([]byte("EOF"))
				}
			},
			validity: Invalid,
			reasons: []string{
				`get: 10 % of 2,000 ops went wrong, more than max_bad = 1 %: 200 error; caused by 200 lost connection; "OOM command not allowed" × 150; "EOF" × 50`,
			},
		},
		{
			name: "clocks that are known well enough", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Apart = 9 * time.Millisecond },
			validity: Valid,
		},
		{
			name: "clocks that are not", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Apart = 20 * time.Millisecond },
			validity: Suspect,
			reasons:  []string{"the clocks of workers may be 20.0 ms apart, which is 2 % of the plateau: for so long some may have loaded without the others"},
		},
		{
			name: "conflicts are not bad", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.Conflict)),
			validity: Valid,
		},
		{
			name: "too few hits", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: Invalid, reasons: []string{"get: 90 % were hits, fewer than expect_hits = 99 %"},
		},
		{
			name: "hits as expected", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(100, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: Valid,
		},
		{
			name: "as many hits as asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.9) },
			validity: Valid,
		},
		{
			name: "hits within chance of what was asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.925) },
			validity: Valid,
		},
		{
			name: "other hits than asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.94) },
			validity: Suspect, reasons: []string{"get: 90 % were hits where hit_ratio = 94 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "all hits as asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(1) },
			validity: Valid,
		},
		{
			name: "more hits than asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.85) },
			validity: Suspect, reasons: []string{"get: 90 % were hits where hit_ratio = 85 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "all hits where many misses were asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.9) },
			validity: Suspect, reasons: []string{"get: 100 % were hits where hit_ratio = 90 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "one miss where none was asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(2000, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(1) },
			validity: Suspect, reasons: []string{"get: 99.9 % were hits where hit_ratio = 100 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "no hit ratio", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.Conflict)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: Invalid, reasons: []string{"get: none was answered, 99 % were expected to hit"},
		},
		{
			name: "ledger", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.AddDue(driver.Get) },
			validity: Invalid,
			reasons: []string{
				"the ledgers of the load do not balance: get: due 2001, but ok 2000 + miss 0 + conflict 0 + quorum_failed 0 + " +
					"timeout 0 + error 0 + shed 0 + in_flight 0 = 2000",
			},
		},
		{
			name: "ops that no request was made for", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { *m.Load.Request(0, driver.Get) = measure.Requests{} },
			validity: Invalid, reasons: []string{"get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 0 were"},
		},
		{
			name: "quorums of too few answers", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(ph *plan.Phase, m *Measured) {
				ph.Target = "three"
				r := m.Load.Request(0, driver.Get)
				r.Sent, r.Answered = r.Sent-1, r.Answered-1
			},
			validity: Invalid, reasons: []string{"get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 1,999 were"},
		},
		{
			name: "still in flight", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Load.AddDue(driver.Get)
				m.Load.AddInFlight(driver.Get, 1)
				m.Load.Request(1, driver.Get).Sent++
				m.Load.Request(1, driver.Get).InFlight++
			},
			validity: Invalid,
			reasons: []string{
				"get: 1 ops had not ended when the phase had",
				"get at 127.0.0.1:7002: 1 requests had not ended when the phase had",
			},
		},
		{
			name: "still in flight when aborted", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Load.AddDue(driver.Get)
				m.Load.AddInFlight(driver.Get, 1)
				m.Aborted = true
			},
			validity: Valid,
		},
		{
			name: "stalled", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 2, 1234*ms },
			validity: Suspect, reasons: []string{"the generator stood still 2 times for more than 250 ms, at most 1.23 s"},
		},
		{
			name: "busy, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.93}} },
			validity: Suspect,
			reasons:  []string{"client-bound: the generator's loop was busy 93 % of the time, so the rate is its own"},
		},
		{
			name: "busy enough, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.8}} },
			validity: Valid,
		},
		{
			name: "busy, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.2}, {Busy: 0.93}} },
			validity: Invalid, reasons: []string{"client-bound: the generator's loop was busy 93 % of the time"},
		},
		{
			name: "rather busy, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.8}} },
			validity: Suspect, reasons: []string{"the generator's loop was busy 80 % of the time"},
		},
		{
			name: "garbage collection beside clients that block", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Executor: plan.Blocking, GCCycles: 7, GCPauseMaxSeconds: 0.9e-3}}
			},
			validity: Valid,
		},
		{
			name: "a long stop for it", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Executor: plan.Blocking, GCCycles: 7, GCPauseMaxSeconds: 1.1e-3}}
			},
			validity: Suspect, reasons: []string{"7 garbage collections ran in the generator while it measured"},
		},
		{
			name: "garbage collection", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{GCCycles: 1}} },
			validity: Suspect, reasons: []string{"1 garbage collection ran in the generator while it measured"},
		},
		{
			name: "without a processor, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{RunQueueWait: share(0.4)}, {RunQueueWait: share(0.1)}}
			},
			validity: Suspect,
			reasons:  []string{"the generator's loop waited 40 % of the time for a processor, which others had"},
		},
		{
			name: "without a processor, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{RunQueueWait: share(0.11)}} },
			validity: Invalid,
			reasons:  []string{"the generator's loop waited 11 % of the time for a processor, which others had"},
		},
		{
			name: "a processor as often as wanted", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{RunQueueWait: share(0.01)}} },
			validity: Valid,
		},
		{
			name: "throttled", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Throttled: &Throttled{Periods: 2, Seconds: 0.125}}, {Throttled: &Throttled{Periods: 1, Seconds: 0.125}}}
			},
			validity: Invalid, reasons: []string{"a CPU quota kept the generator from running 3 times, for 250 ms in all"},
		},
		{
			name: "the network lost some", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{TCP: &TCP{BytesSent: 100_000, BytesRetransmitted: 20, Retransmits: 1}}}
			},
			validity: Suspect, reasons: []string{"TCP sent 0.02 % of the bytes again, in 1 segment: the network lost them, or the other end was late"},
		},
		{
			name: "goroutines without a thread", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Executor: "blocking", SchedLatencyP99Seconds: 0.002}}
			},
			validity: Suspect, reasons: []string{"goroutines that could run waited for a thread: p99 2.00 ms"},
		},
		{
			name: "stood still, open", phase: openPhase(), load: lateLoad(3*ms, 300*µs),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 1, 500*ms },
			validity: Invalid,
			reasons: []string{
				"the generator stood still 1 time for more than 250 ms, at most 500 ms",
				"get: started late: p99 lag 3.00 ms",
			},
		},
		{
			name: "stood still, open, and hardly any op was late", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 1, 300*ms },
			validity: Suspect, reasons: []string{"the generator stood still 1 time for more than 250 ms, at most 300 ms"},
		},
		{
			name: "lag as a queue of that cost has it", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.6, ProductiveSeconds: 0.08}} },
			validity: Valid, // 20 µs an op: p99 wait 4.9 of them
		},
		{
			name: "lag that no queue of that cost has", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []Generator{{Busy: 0.1, ProductiveSeconds: 0.08}} },
			validity: Suspect,
			reasons: []string{
				"get: started late: p99 lag 100 µs beside a p99 service time of 300 µs; a queue of ops that take 20.0 µs would have 19.1 µs",
			},
		},
		{
			name: "a tail of single gaps, of others", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{
					{Interrupted: &measure.Interrupted{Times: 3, Seconds: 0.0625, MaxSeconds: 0.004, OthersSeconds: 0.0625}},
					{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.0625, MaxSeconds: 0.008, OthersSeconds: 0.0625}},
				}
			},
			validity: Suspect,
			reasons: []string{
				"get: one in a thousand started late: p99.9 lag 4.00 ms; the generator's loop was kept from its processor 4 times, " +
					"for 125 ms in all, at most 8.00 ms: other threads had it for 125 ms of these",
			},
		},
		{
			name: "a tail of single gaps, of a hypervisor", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.008, MaxSeconds: 0.008}}}
			},
			validity: Suspect,
			reasons: []string{
				"get: one in a thousand started late: p99.9 lag 4.00 ms; the generator's loop was kept from its processor 1 time, " +
					"for 8.00 ms in all, at most 8.00 ms: other threads had it for 0 s of these, the rest is a hypervisor's or an interrupt's",
			},
		},
		{
			name: "a tail that gaps are too short for", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []Generator{{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.001, MaxSeconds: 0.001}}}
			},
			validity: Suspect, reasons: []string{"get: one in a thousand started late: p99.9 lag 4.00 ms"},
		},
		{
			name: "a tail that is short beside that of the target", phase: openPhase(), load: tailLoad(4*ms, 50*ms),
			validity: Valid,
		},
		{
			name: "foreign values", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Foreign = 1200 },
			validity: Suspect, reasons: []string{"1,200 values read were not written by loadgen"},
		},
		{
			name: "open, good", phase: openPhase(), load: openLoad(ms, 0),
			validity: Valid,
		},
		{
			name: "open, overloaded", phase: openPhase(), load: openLoad(ms, 2*ms),
			validity: Invalid,
			reasons:  []string{"offered 1,000/s, sustained 500/s", "get: started late: p99 lag 3.96 s"},
		},
		{
			name: "open, overloaded with scenarios", phase: openPhase(), load: openLoad(ms, 2*ms),
			edit: func(ph *plan.Phase, m *Measured) {
				ph.Scenarios = []plan.Scenario{{Name: "visit", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}}}}
				m.Load.Scenarios = []*measure.Op{m.Load.Ops[driver.Get]}
			},
			validity: Invalid,
			reasons:  []string{"offered 1,000 scenarios/s, sustained 500 scenarios/s", "get: started late: p99 lag 3.96 s", "scenario visit: started late: p99 lag 3.96 s"},
		},
		{
			name: "open, not quite", phase: openPhase(), load: openLoad(ms, 1010*µs),
			validity: Invalid,
			reasons:  []string{"offered 1,000/s, sustained 990/s", "get: started late: p99 lag 39.8 ms"},
		},
		{
			name: "open, lag beside a short service time", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			validity: Suspect,
			reasons:  []string{"get: started late: p99 lag 100 µs beside a p99 service time of 300 µs"},
		},
		{
			name: "open, lag that does not matter", phase: openPhase(), load: lateLoad(40*µs, 100*µs),
			validity: Valid,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Measured{Endpoints: endpoints, Load: tt.load}
			if tt.edit != nil {
				tt.edit(tt.phase, &m)
			}
			p := NewPhase(testPlan(), tt.phase, m)
			require.Equal(t, append([]string{}, tt.reasons...), texts(p))
			require.Equal(t, tt.validity, p.Validity)
		})
	}
}

// texts are the words of a phase's reasons.
func texts(p *Phase) []string {
	all := []string{}
	for _, why := range p.Reasons {
		all = append(all, why.Text)
	}
	return all
}

// TestDoubtStandsBesideWhatItTouches looks at the figures of a closed phase whose generator was the bottleneck.
func TestDoubtStandsBesideWhatItTouches(t *testing.T) {
	p := NewPhase(testPlan(), closedPhase(), Measured{
		Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Generators: []Generator{{Busy: 0.93}},
	})
	require.Equal(t, Suspect, p.ValidityOf("op.get.rate"))
	require.Equal(t, Suspect, p.ValidityOf("op.get.rate_wall"))
	require.Equal(t, Valid, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, Valid, p.ValidityOf("op.get.ok"))
	p.Reasons = append(p.Reasons, Reason{Validity: Invalid, Touches: []string{"op.get"}})
	require.Equal(t, Invalid, p.ValidityOf("op.get.rate"), "the worst of both")
	require.Equal(t, Invalid, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, Valid, p.ValidityOf("op.getter.rate"), "paths are whole names")
}

// lateLoad is 1,000 ops a second for 4 s, each started late by lag.
func lateLoad(lag, service int64) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	for i := range int64(4000) {
		due := origin + i*ms
		record(t, measure.Sample{Verb: driver.Get, Due: due, Start: due + lag, End: due + lag + service})
	}
	t.Span.Session(origin, origin+4*int64(time.Second))
	return t
}

// tailLoad has 5,000 ops a second, of which one in 200 starts late.
func tailLoad(lag, service int64) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	for i := range int64(20_000) {
		due := origin + i*ms/5
		start := due
		if i%200 == 0 {
			start += lag
		}
		record(t, measure.Sample{Verb: driver.Get, Due: due, Start: start, End: start + service})
	}
	t.Span.Session(origin, origin+4*int64(time.Second))
	return t
}

func TestShortfall(t *testing.T) {
	put := func(outcomes ...driver.Outcome) *measure.Totals {
		t := measure.NewTotals(origin, len(endpoints))
		for _, o := range outcomes {
			record(t, measure.Sample{Verb: driver.Put, Outcome: o, Cause: measure.Cause(op.Replied), Start: origin, Due: origin, End: origin})
		}
		return t
	}
	acked := put(driver.OK, driver.OK)
	for range 2 {
		acked.Ack(driver.Put, 1, ms)
		acked.Ack(driver.Put, 2, ms)
	}
	partly := put(driver.OK, driver.OK)
	partly.Ack(driver.Put, 1, ms)
	partly.Ack(driver.Put, 1, ms)
	partly.Ack(driver.Put, 2, ms)
	refused := put(driver.OK, driver.Error)
	refused.Errors.Add([]byte("READONLY"))

	tests := []struct {
		name    string
		kind    StepKind
		planned int64
		copies  int
		totals  *measure.Totals
		want    string
	}{
		{name: "nothing to do", kind: Setup, copies: 3, totals: put(), want: ""},
		{name: "all that was planned", kind: Populate, planned: 2, copies: 1, totals: put(driver.OK, driver.OK), want: ""},
		{
			name: "a part was never due", kind: Populate, planned: 5, copies: 1, totals: put(driver.OK, driver.OK),
			want: "populate: 2 of 5 put ops were done: 3 were never begun",
		},
		{
			name: "a part was never due on all", kind: Setup, planned: 4, copies: 2, totals: acked,
			want: "setup: 2 of 4 put ops were done: 2 were never begun",
		},
		{name: "nothing was due", kind: Clear, planned: 3, copies: 1, totals: new(measure.Totals), want: "clear: 0 of 3 ops were done"},
		{
			name: "timeouts", kind: Populate, planned: 3, copies: 1, totals: put(driver.Timeout, driver.OK, driver.Timeout),
			want: "populate: 1 of 3 put ops were done: 2 timed out",
		},
		{name: "all ok", kind: Populate, copies: 1, totals: put(driver.OK, driver.OK), want: ""},
		{name: "all ok everywhere", kind: Setup, copies: 2, totals: acked, want: ""},
		{
			name: "an error", kind: Setup, copies: 1, totals: refused,
			want: `setup: 1 of 2 put ops were done: 1 ended in an error; "READONLY" × 1`,
		},
		{
			name: "not everywhere", kind: Setup, copies: 2, totals: partly,
			want: "setup: 1 of 2 put ops were done on all 2 endpoints of their key",
		},
		{
			name: "nowhere on the third", kind: Setup, copies: 3, totals: acked,
			want: "setup: 0 of 2 put ops were done on all 3 endpoints of their key",
		},
		{name: "a clear may miss", kind: Clear, copies: 1, totals: put(driver.OK, driver.Miss), want: ""},
		{
			name: "a populate may not", kind: Populate, copies: 1, totals: put(driver.OK, driver.Miss),
			want: "populate: 1 of 2 put ops were done: 1 missed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.kind.Shortfall(tt.planned, tt.copies, tt.totals))
		})
	}
}

func TestShortfallMakesInvalid(t *testing.T) {
	load := measure.NewTotals(origin, len(endpoints))
	record(load, measure.Sample{Verb: driver.Put, Outcome: driver.Timeout, Cause: measure.Cause(op.RequestTimeout)})
	populate := &plan.Phase{Name: "fill", Target: "one", Dataset: "items", Ops: []plan.Weight{{Op: "put", Weight: 1}}, Populate: &plan.Populate{Sessions: 4, Pipeline: 2}}
	p := NewPhase(testPlan(), populate, Measured{Endpoints: endpoints, Load: load})
	require.Equal(t, Invalid, p.Validity)
	require.Equal(t, []string{"populate: 0 of 200 put ops were done: 1 timed out, 199 were never begun"}, texts(p))
	require.Equal(t, "populate", p.Kind)

	ph := closedPhase()
	p = NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Setup: load})
	require.Equal(t, []string{"setup: 0 of 1 put ops were done: 1 timed out"}, texts(p))
}

func TestVerdict(t *testing.T) {
	yes, no := true, false
	pass := AssertResult{Name: "quick", That: "a < 1", OK: &yes}
	fail := AssertResult{Name: "quick", That: "a < 1", Value: "a = 2", OK: &no}
	tests := []struct {
		name         string
		completeness Completeness
		validity     Validity
		strict       bool
		asserts      []AssertResult
		assertions   Assertions
		exit         int
		reasons      []string
	}{
		{name: "good", completeness: Complete, validity: Valid, assertions: None, exit: 0},
		{name: "passed", completeness: Complete, validity: Valid, asserts: []AssertResult{pass}, assertions: Pass, exit: 0},
		{
			name: "assert failed", completeness: Complete, validity: Valid, asserts: []AssertResult{pass, fail}, assertions: Fail, exit: 1,
			reasons: []string{`assert "quick" does not hold: a < 1, with a = 2`},
		},
		{
			name: "assert not decided", completeness: Complete, validity: Valid, assertions: Fail, exit: 1,
			asserts: []AssertResult{{Name: "quick", Reason: "no plateau"}},
			reasons: []string{`assert "quick" could not be decided: no plateau`},
		},
		{name: "suspect", completeness: Complete, validity: Suspect, assertions: None, exit: 0, reasons: []string{"phase b: doubt"}},
		{name: "suspect, strict", completeness: Complete, validity: Suspect, strict: true, assertions: None, exit: 4, reasons: []string{"phase b: doubt"}},
		{
			name: "invalid before asserts", completeness: Complete, validity: Invalid, asserts: []AssertResult{fail}, assertions: Fail, exit: 4,
			reasons: []string{"phase b: doubt", `assert "quick" does not hold: a < 1, with a = 2`},
		},
		{name: "degraded before invalid", completeness: Degraded, validity: Invalid, assertions: None, exit: 3, reasons: []string{"stop", "phase b: doubt"}},
		{name: "aborted before invalid", completeness: Aborted, validity: Invalid, assertions: None, exit: 5, reasons: []string{"stop", "phase b: doubt"}},
		{
			name: "failed before all", completeness: Failed, validity: Invalid, asserts: []AssertResult{fail}, assertions: Fail, exit: 6,
			reasons: []string{"stop", "phase b: doubt", `assert "quick" does not hold: a < 1, with a = 2`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := New(Header{Strict: tt.strict}, Environment{})
			if tt.completeness == Complete {
				r.Conclude(Complete)
			} else {
				r.Conclude(tt.completeness, "stop")
			}
			r.Add("a", &Phase{Validity: Valid})
			b := &Phase{Validity: tt.validity}
			if tt.validity != Valid {
				b.Reasons = []Reason{{Validity: tt.validity, Text: "doubt"}}
			}
			r.Add("b", b)
			r.SetAsserts(tt.asserts)
			require.Equal(t, Verdict{
				Completeness: tt.completeness, Validity: tt.validity, Assertions: tt.assertions,
				Reasons: append([]string{}, tt.reasons...), Phases: map[string]Validity{"a": Valid, "b": tt.validity},
			}, r.Verdict)
			require.Equal(t, tt.exit, r.ExitCode)
			require.Panics(t, func() { r.Add("b", b) })
		})
	}
}

func TestCheckValid(t *testing.T) {
	good := func() *Run {
		r := New(Header{}, Environment{})
		r.Add("get", newPhase(closedPhase(), closedLoad(1000, ms, 0, always(driver.OK))))
		return r
	}
	require.NoError(t, good().CheckValid())
	for name, tt := range map[string]struct {
		spoil func(*Run)
		want  string
	}{
		"schema":   {func(r *Run) { r.Schema = 9 }, "result of schema 9, this loadgen reads 2"},
		"order":    {func(r *Run) { r.PhaseOrder = nil }, "phase_order does not name each phase once: []"},
		"name":     {func(r *Run) { r.PhaseOrder[0] = "put" }, `phase_order does not name each phase once: ["put"]`},
		"due":      {func(r *Run) { r.Phase["get"].Op["get"].Due++ }, `phase "get" is judged valid: get: due 2001, but 2000 ended and 0 in flight`},
		"sent":     {func(r *Run) { r.Phase["get"].Op["get"].Sent-- }, `phase "get" is judged valid: get: sent 1999, but due 2000 and shed 0`},
		"requests": {func(r *Run) { r.Phase["get"].Requests[0].Sent++ }, `phase "get" is judged valid: get at 127.0.0.1:7001: sent 2001, but 2000 ended and 0 in flight`},
		"setup": {
			func(r *Run) {
				r.Phase["get"].Setup = &ledgers{Op: map[string]*Op{"put": {Figures: Figures{Ledger: Ledger{Due: 1}}}}}
			},
			`phase "get" is judged valid: setup: put: due 1, but 0 ended and 0 in flight`,
		},
		"keys": {func(r *Run) { r.Phase["get"].Op["get"].Keys.Due++ }, `phase "get" is judged valid: get: of 2001 keys due, another number ended`},
		"requests that were not made": {
			func(r *Run) { r.Phase["get"].Requests[0].Sent, r.Phase["get"].Requests[0].Answered = 1999, 1999 },
			`phase "get" is judged valid: get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 1,999 were`,
		},
		"causes":      {func(r *Run) { r.Phase["get"].Op["get"].Causes.Lost++ }, `phase "get" is judged valid: get: 1 causes of 0 ops that went wrong`},
		"samples":     {func(r *Run) { r.Phase["get"].Op["get"].Response.Count-- }, `phase "get" is judged valid: get: response: 1,999 samples, of 2000 ok and miss`},
		"lags":        {func(r *Run) { r.Phase["get"].Op["get"].Lag.Count++ }, `phase "get" is judged valid: get: lag: 2,001 samples, of 2000 what was sent`},
		"quantiles":   {func(r *Run) { r.Phase["get"].Op["get"].Response.P50 = number(7) }, `phase "get": get: a latency whose quantiles fall from 7 to 0.001`},
		"hits":        {func(r *Run) { r.Phase["get"].Op["get"].HitRatio = number(0.5) }, `phase "get": get: hit_ratio 0.5, but 2000 of 2000 keys that were answered hit`},
		"rate":        {func(r *Run) { r.Phase["get"].Op["get"].Rate = number(2) }, `phase "get": get: a rate of 2/s, and of `},
		"stalls":      {func(r *Run) { r.Phase["get"].Stalls = 1 }, `phase "get" is judged valid: 1 stall, but the longest is 0 s`},
		"phase":       {func(r *Run) { r.Phase["get"].Validity = Suspect }, `phase "get": judged suspect, but the worst of its reasons is valid`},
		"better":      {func(r *Run) { r.Phase["get"].doubt(Suspect, nil, "why") }, `verdict: valid, but the worst phase is suspect`},
		"worse":       {func(r *Run) { r.Verdict.Validity = Invalid }, `verdict: invalid, but the worst phase is valid`},
		"unknown":     {func(r *Run) { r.Phase["get"].doubt("fine", nil, "why") }, `phase "get": a reason is judged "fine"`},
		"exit code":   {func(r *Run) { r.ExitCode = ExitInvalid }, `exit code 4, but that of the verdict is 0`},
		"strict":      {func(r *Run) { r.Strict = true; r.Phase["get"].doubt(Suspect, nil, "why"); r.judge(); r.ExitCode = 0 }, `exit code 0, but that of the verdict is 4`},
		"asserts":     {func(r *Run) { r.Asserts = []AssertResult{{Name: "a", Reason: "null"}} }, `verdict: assertions are none, but by the asserts they are fail`},
		"kept silent": {func(r *Run) { r.Phase["get"].doubt(Suspect, nil, "why"); r.judge(); r.Verdict.Reasons = nil }, `verdict: a reason is not among its own: phase get: why`},
		"complete":    {func(r *Run) { r.Losses = []Loss{{Worker: "w1"}} }, `verdict: complete, though worker w1 was lost`},
		"loss backwards": {
			func(r *Run) { r.Losses = []Loss{{Worker: "w1", Phase: "get", KnownSeconds: 2, LoadedSeconds: 1}} },
			`losses[0]: worker w1 is known up to 2 s, and had ended by 1 s`,
		},
		"unseen": {
			func(r *Run) { r.Losses = []Loss{{Worker: "w1", UnseenEstimated: true}} },
			`losses[0]: worker w1 may have sent an estimated 0 ops when it had no load to send`,
		},
		"incomplete": {func(r *Run) { r.Verdict.Completeness = "done" }, `verdict: completeness is "done"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			tt.spoil(r)
			require.ErrorContains(t, r.CheckValid(), tt.want)
			if p := r.Phase["get"]; name == "due" {
				p.doubt(Invalid, nil, "the ledgers do not balance")
				r.judge()
				require.NoError(t, r.CheckValid(), "an invalid phase may say what it is")
			}
		})
	}
}

func TestDecimal(t *testing.T) {
	require.Equal(t, []string{"0", "1.5", "99.99", "100", "1,000", "1,234,567"},
		[]string{decimal(0), decimal(1.5), decimal(99.99), decimal(100.4), decimal(999.6), decimal(1234567)})
}

func TestErrorTexts(t *testing.T) {
	var e measure.Errors
	for i := range 20 {
		for range i + 1 {
			e.Add([]byte{'a' + byte(i)})
		}
	}
	texts := errorTexts(&e)
	require.Equal(t, ErrorText{Text: "t", Count: 20}, texts[0])
	require.Equal(t, ErrorText{Text: "a", Count: 1}, texts[len(texts)-1])

	for i := range 100 { // more than are kept
		e.Add([]byte(strconv.Itoa(i)))
	}
	texts = errorTexts(&e)
	require.Equal(t, "t", texts[0].Text)
	require.Equal(t, "(other texts)", texts[len(texts)-1].Text)
	sum := uint64(0)
	for _, text := range texts {
		sum += text.Count
	}
	require.Equal(t, e.Total(), sum)
}

// Of a few ops there is no p99, and they may be late all the same.
func TestFewOpsStartLate(t *testing.T) {
	for _, tt := range []struct {
		ops  int64
		late int64 // so many in the middle, each by 100 ms
		want string
	}{
		{ops: 500, late: 100, want: "get: started late: p90 lag 1"},
		{ops: 500, late: 40},
		{ops: 80, late: 50, want: "get: started late: p50 lag 1"},
		{ops: 80, late: 30},
	} {
		load := measure.NewTotals(origin, len(endpoints))
		every := 4000 * ms / tt.ops
		for i := range tt.ops {
			due := origin + i*every
			start := due
			if i >= 10 && i < 10+tt.late {
				start += 100 * ms
			}
			record(load, measure.Sample{Verb: driver.Get, Due: due, Start: start, End: start + ms})
		}
		load.Span.Session(origin, origin+4000*ms)
		p := newPhase(openPhase(), load)
		require.Nil(t, p.Op["get"].Lag.P99)
		if tt.want == "" {
			require.Equal(t, Valid, p.Validity, texts(p))
			continue
		}
		require.Contains(t, strings.Join(texts(p), "; "), tt.want)
		require.Equal(t, Invalid, p.ValidityOf("op.get.response.p50"))
	}
}

// TestLateForWantOfRoomIsNotTheGenerators has a target stand still for half a second while all slots wait for it: the ops that waited for room are
// late, and loadgen was not. Where it was, the phase is not the load that was asked for.
func TestLateForWantOfRoomIsNotTheGenerators(t *testing.T) {
	for waited, want := range map[bool]Validity{true: Suspect, false: Invalid} {
		load := lateLoad(0, 300*µs)
		for i := range int64(500) {
			s := measure.Sample{Verb: driver.Get, Due: origin + i*ms, Start: origin + 500*ms, End: origin + 501*ms}
			record(load, s)
			if waited {
				load.Waited.Record(s.Start - s.Due - 10*µs)
			}
		}
		p := newPhase(openPhase(), load)
		text := strings.Join(texts(p), "; ")
		require.Equal(t, want, p.ValidityOf("op.get.response.p99"), text)
		if waited {
			require.Contains(t, text, "get: started late for want of room: p99 lag 45")
			require.Contains(t, text, "of all ops waited for the target to answer earlier ones; without these, 0")
			require.NotContains(t, text, "the loop")
		} else {
			require.Contains(t, text, "get: started late: p99 lag 45")
		}
	}
}
