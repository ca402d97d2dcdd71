package judge

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/result/run"
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
		validity run.Validity
		reasons  []string
	}{
		{
			name: "good", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			validity: run.Valid,
		},
		{
			name: "as many bad as allowed", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(100, driver.Timeout)),
			validity: run.Valid,
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
			validity: run.Invalid,
			reasons: []string{
				`get: 10 % of 2,000 ops went wrong, more than max_bad = 1 %: 200 error; caused by 200 lost connection; "OOM command not allowed" × 150; "EOF" × 50`,
			},
		},
		{
			name: "clocks that are known well enough", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Apart = 9 * time.Millisecond },
			validity: run.Valid,
		},
		{
			name: "clocks that are not", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Apart = 20 * time.Millisecond },
			validity: run.Suspect,
			reasons:  []string{"the clocks of workers may be 20.0 ms apart, which is 2 % of the plateau: for so long some may have loaded without the others"},
		},
		{
			name: "conflicts are not bad", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.Conflict)),
			validity: run.Valid,
		},
		{
			name: "too few hits", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: run.Invalid, reasons: []string{"get: 90 % were hits, fewer than expect_hits = 99 %"},
		},
		{
			name: "hits as expected", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(100, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: run.Valid,
		},
		{
			name: "as many hits as asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.9) },
			validity: run.Valid,
		},
		{
			name: "hits within chance of what was asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.925) },
			validity: run.Valid,
		},
		{
			name: "other hits than asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.94) },
			validity: run.Suspect, reasons: []string{"get: 90 % were hits where hit_ratio = 94 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "all hits as asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(1) },
			validity: run.Valid,
		},
		{
			name: "more hits than asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(10, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.85) },
			validity: run.Suspect, reasons: []string{"get: 90 % were hits where hit_ratio = 85 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "all hits where many misses were asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(0.9) },
			validity: run.Suspect, reasons: []string{"get: 100 % were hits where hit_ratio = 90 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "one miss where none was asked", phase: closedPhase(), load: closedLoad(1000, ms, 0, every(2000, driver.Miss)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.HitRatio = share(1) },
			validity: run.Suspect, reasons: []string{"get: 99.9 % were hits where hit_ratio = 100 % was asked, further off than chance: were all keys put before, and have none been evicted or put by others?"},
		},
		{
			name: "no hit ratio", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.Conflict)),
			edit:     func(ph *plan.Phase, _ *Measured) { ph.ExpectHits = share(0.99) },
			validity: run.Invalid, reasons: []string{"get: none was answered, 99 % were expected to hit"},
		},
		{
			name: "ledger", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.AddDue(driver.Get) },
			validity: run.Invalid,
			reasons: []string{
				"the ledgers of the load do not balance: get: due 2001, but ok 2000 + miss 0 + conflict 0 + quorum_failed 0 + " +
					"timeout 0 + error 0 + shed 0 + in_flight 0 = 2000",
			},
		},
		{
			name: "ops that no request was made for", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { *m.Load.Request(0, driver.Get) = measure.Requests{} },
			validity: run.Invalid, reasons: []string{"get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 0 were"},
		},
		{
			name: "quorums of too few answers", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(ph *plan.Phase, m *Measured) {
				ph.Target = "three"
				r := m.Load.Request(0, driver.Get)
				r.Sent, r.Answered = r.Sent-1, r.Answered-1
			},
			validity: run.Invalid, reasons: []string{"get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 1,999 were"},
		},
		{
			name: "still in flight", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Load.AddDue(driver.Get)
				m.Load.AddInFlight(driver.Get, 1)
				m.Load.Request(1, driver.Get).Sent++
				m.Load.Request(1, driver.Get).InFlight++
			},
			validity: run.Invalid,
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
			validity: run.Valid,
		},
		{
			name: "stalled", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 2, 1234*ms },
			validity: run.Suspect, reasons: []string{"the generator stood still 2 times for more than 250 ms, at most 1.23 s"},
		},
		{
			name: "kept from its processor, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 1, Interrupted: &measure.Interrupted{Times: 2, Seconds: 0.2, MaxSeconds: 0.1}}}
			},
			validity: run.Suspect, reasons: []string{
				`the generator's loop was kept from its processor 2 times, for 200 ms in all, at most 100 ms: other threads had it for 0 s of these, the rest is a stop of the process, a hypervisor's, or work of the loop itself`,
			},
		},
		{
			name: "kept from its processor now and then, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 4, Interrupted: &measure.Interrupted{Times: 4, Seconds: 0.039, MaxSeconds: 0.021, OthersSeconds: 0.038}}}
			},
			validity: run.Valid,
		},
		{
			name: "kept from its processor for short, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 1, Interrupted: &measure.Interrupted{Times: 9, Seconds: 0.009, MaxSeconds: 0.002, OthersSeconds: 0.009}}}
			},
			validity: run.Valid,
		},
		{
			name: "others had the processor, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 1, RunQueueWait: share(0.02), Interrupted: &measure.Interrupted{Times: 9, Seconds: 0.02, MaxSeconds: 0.009, OthersSeconds: 0.02}}}
			},
			validity: run.Suspect, reasons: []string{
				`the generator's loop waited 2 % of the time for a processor, which others had`,
			},
		},
		{
			name: "one long gap in few ops, closed", phase: closedPhase(), load: closedLoad(1000, 5*ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 1, Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.021, MaxSeconds: 0.021, OthersSeconds: 0.02}}}
			},
			validity: run.Suspect, reasons: []string{
				`the generator's loop was kept from its processor 1 time, for 21.0 ms in all, at most 21.0 ms: other threads had it for 20.0 ms of these`,
			},
		},
		{
			name: "one long gap in many ops, closed", phase: closedPhase(), load: closedLoad(3000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Loops: 1, Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.021, MaxSeconds: 0.021, OthersSeconds: 0.02}}}
			},
			validity: run.Valid,
		},
		{
			name: "busy, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{Busy: 0.93}} },
			validity: run.Suspect,
			reasons:  []string{"client-bound: the generator's loop was busy 93 % of the time, so the rate is its own"},
		},
		{
			name: "busy enough, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{Busy: 0.8}} },
			validity: run.Valid,
		},
		{
			name: "busy, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{Busy: 0.2}, {Busy: 0.93}} },
			validity: run.Invalid, reasons: []string{"client-bound: the generator's loop was busy 93 % of the time"},
		},
		{
			name: "rather busy, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{Busy: 0.8}} },
			validity: run.Suspect, reasons: []string{"the generator's loop was busy 80 % of the time"},
		},
		{
			name: "garbage collection beside clients that block", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Executor: plan.Blocking, GCCycles: 7, GCPauseMaxSeconds: 0.9e-3}}
			},
			validity: run.Valid,
		},
		{
			name: "a long stop for it", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Executor: plan.Blocking, GCCycles: 7, GCPauseMaxSeconds: 1.1e-3}}
			},
			validity: run.Suspect, reasons: []string{"7 garbage collections ran in the generator while it measured"},
		},
		{
			name: "garbage collection", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{GCCycles: 1}} },
			validity: run.Suspect, reasons: []string{"1 garbage collection ran in the generator while it measured"},
		},
		{
			name: "without a processor, closed", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{RunQueueWait: share(0.4)}, {RunQueueWait: share(0.1)}}
			},
			validity: run.Suspect,
			reasons:  []string{"the generator's loop waited 40 % of the time for a processor, which others had"},
		},
		{
			name: "without a processor, open", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{RunQueueWait: share(0.11)}} },
			validity: run.Invalid,
			reasons:  []string{"the generator's loop waited 11 % of the time for a processor, which others had"},
		},
		{
			name: "a processor as often as wanted", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Generators = []measure.Generator{{RunQueueWait: share(0.01)}} },
			validity: run.Valid,
		},
		{
			name: "throttled", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Throttled: &measure.Throttled{Periods: 2, Seconds: 0.125}}, {Throttled: &measure.Throttled{Periods: 1, Seconds: 0.125}}}
			},
			validity: run.Invalid, reasons: []string{"a CPU quota kept the generator from running 3 times, for 250 ms in all"},
		},
		{
			name: "the network lost some", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{TCP: &measure.TCP{BytesSent: 100_000, BytesRetransmitted: 20, Retransmits: 1}}}
			},
			validity: run.Suspect, reasons: []string{"TCP sent 0.02 % of the bytes again, in 1 segment: the network lost them, or the other end was late"},
		},
		{
			name: "goroutines without a thread", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Executor: "blocking", SchedLatencyP99Seconds: 0.002}}
			},
			validity: run.Suspect, reasons: []string{"goroutines that could run waited for a thread: p99 2.00 ms"},
		},
		{
			name: "stood still, open", phase: openPhase(), load: lateLoad(3*ms, 300*µs),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 1, 500*ms },
			validity: run.Invalid,
			reasons: []string{
				"the generator stood still 1 time for more than 250 ms, at most 500 ms",
				"get: started late: p99 lag 3.00 ms",
			},
		},
		{
			name: "stood still, open, and hardly any op was late", phase: openPhase(), load: openLoad(ms, 0),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Stalls, m.Load.MaxStall = 1, 300*ms },
			validity: run.Suspect, reasons: []string{"the generator stood still 1 time for more than 250 ms, at most 300 ms"},
		},
		{
			name: "lag as a queue of that cost has it", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Busy: 0.6, ProductiveSeconds: 0.08}}
			},
			validity: run.Valid, // 20 µs an op: p99 wait 4.9 of them
		},
		{
			name: "lag that no queue of that cost has", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Busy: 0.1, ProductiveSeconds: 0.08}}
			},
			validity: run.Suspect,
			reasons: []string{
				"get: started late: p99 lag 100 µs beside a p99 service time of 300 µs; a queue of ops that take 20.0 µs would have 19.1 µs",
			},
		},
		{
			name: "a tail of single gaps, of others", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{
					{Interrupted: &measure.Interrupted{Times: 3, Seconds: 0.0625, MaxSeconds: 0.004, OthersSeconds: 0.0625}},
					{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.0625, MaxSeconds: 0.008, OthersSeconds: 0.0625}},
				}
			},
			validity: run.Suspect,
			reasons: []string{
				"get: one in a thousand started late: p99.9 lag 4.00 ms; the generator's loop was kept from its processor 4 times, " +
					"for 125 ms in all, at most 8.00 ms: other threads had it for 125 ms of these",
			},
		},
		{
			name: "a tail of single gaps, of a hypervisor", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.008, MaxSeconds: 0.008}}}
			},
			validity: run.Suspect,
			reasons: []string{
				"get: one in a thousand started late: p99.9 lag 4.00 ms; the generator's loop was kept from its processor 1 time, " +
					"for 8.00 ms in all, at most 8.00 ms: other threads had it for 0 s of these, the rest is a hypervisor's or an interrupt's",
			},
		},
		{
			name: "a tail that gaps are too short for", phase: openPhase(), load: tailLoad(4*ms, 300*µs),
			edit: func(_ *plan.Phase, m *Measured) {
				m.Generators = []measure.Generator{{Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.001, MaxSeconds: 0.001}}}
			},
			validity: run.Suspect, reasons: []string{"get: one in a thousand started late: p99.9 lag 4.00 ms"},
		},
		{
			name: "a tail that is short beside that of the target", phase: openPhase(), load: tailLoad(4*ms, 50*ms),
			validity: run.Valid,
		},
		{
			name: "foreign values", phase: closedPhase(), load: closedLoad(1000, ms, 0, always(driver.OK)),
			edit:     func(_ *plan.Phase, m *Measured) { m.Load.Foreign = 1200 },
			validity: run.Suspect, reasons: []string{"1,200 values read were not written by loadgen"},
		},
		{
			name: "open, good", phase: openPhase(), load: openLoad(ms, 0),
			validity: run.Valid,
		},
		{
			name: "open, overloaded", phase: openPhase(), load: openLoad(ms, 2*ms),
			validity: run.Invalid,
			reasons:  []string{"offered 1,000/s, sustained 500/s", "get: started late: p99 lag 3.96 s"},
		},
		{
			name: "open, overloaded with scenarios", phase: openPhase(), load: openLoad(ms, 2*ms),
			edit: func(ph *plan.Phase, m *Measured) {
				ph.Scenarios = []plan.Scenario{{Name: "visit", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}}}}
				m.Load.Scenarios = []*measure.Op{m.Load.Ops[driver.Get]}
			},
			validity: run.Invalid,
			reasons:  []string{"offered 1,000 scenarios/s, sustained 500 scenarios/s", "get: started late: p99 lag 3.96 s", "scenario visit: started late: p99 lag 3.96 s"},
		},
		{
			name: "open, not quite", phase: openPhase(), load: openLoad(ms, 1010*µs),
			validity: run.Invalid,
			reasons:  []string{"offered 1,000/s, sustained 990/s", "get: started late: p99 lag 39.8 ms"},
		},
		{
			name: "open, lag beside a short service time", phase: openPhase(), load: lateLoad(100*µs, 300*µs),
			validity: run.Suspect,
			reasons:  []string{"get: started late: p99 lag 100 µs beside a p99 service time of 300 µs"},
		},
		{
			name: "open, lag that does not matter", phase: openPhase(), load: lateLoad(40*µs, 100*µs),
			validity: run.Valid,
		},
	}
	var touched strings.Builder
	for _, tt := range tests {
		m := Measured{Endpoints: endpoints, Load: tt.load}
		if tt.edit != nil {
			tt.edit(tt.phase, &m)
		}
		p := NewPhase(testPlan(), tt.phase, m)
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, append([]string{}, tt.reasons...), texts(p))
			require.Equal(t, tt.validity, p.Validity)
		})
		for _, why := range p.Reasons {
			fmt.Fprintf(&touched, "%s: %s: %s\n", tt.name, why.Validity, strings.Join(why.Touches, " "))
		}
	}
	golden(t, "touches.txt", touched.String())
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "run with -update and read the diff")
}

// texts returns the texts of a phase's reasons.
func texts(p *run.Phase) []string {
	all := []string{}
	for _, why := range p.Reasons {
		all = append(all, why.Text)
	}
	return all
}

// TestDoubtStandsBesideWhatItTouches checks the figures of a closed phase whose generator was the bottleneck.
func TestDoubtStandsBesideWhatItTouches(t *testing.T) {
	p := NewPhase(testPlan(), closedPhase(), Measured{
		Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Generators: []measure.Generator{{Busy: 0.93}},
	})
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.rate"))
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.rate_wall"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.ok"))
	p.Reasons = append(p.Reasons, run.Reason{Validity: run.Invalid, Touches: []string{"op.get"}})
	require.Equal(t, run.Invalid, p.ValidityOf("op.get.rate"), "the worst of both")
	require.Equal(t, run.Invalid, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, run.Valid, p.ValidityOf("op.getter.rate"), "paths are whole names")
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
			want: `setup: 1 of 2 put ops were done: 1 ended in an error; "READONLY" × 1`,
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
			require.Equal(t, tt.want, Shortfall(tt.kind, tt.planned, tt.copies, tt.totals))
		})
	}
}

func TestShortfallMakesInvalid(t *testing.T) {
	load := measure.NewTotals(origin, len(endpoints))
	record(load, measure.Sample{Verb: driver.Put, Outcome: driver.Timeout, Cause: measure.Cause(op.RequestTimeout)})
	populate := &plan.Phase{Name: "fill", Target: "one", Dataset: "items", Ops: []plan.Weight{{Op: "put", Weight: 1}}, Populate: &plan.Populate{Sessions: 4, Pipeline: 2}}
	p := NewPhase(testPlan(), populate, Measured{Endpoints: endpoints, Load: load})
	require.Equal(t, run.Invalid, p.Validity)
	require.Equal(t, []string{"populate: 0 of 200 put ops were done: 1 timed out, 199 were never begun"}, texts(p))
	require.Equal(t, worker.Populate, p.Kind)

	ph := closedPhase()
	p = NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Setup: load})
	require.Equal(t, []string{"setup: 0 of 1 put ops were done: 1 timed out"}, texts(p))
}

func TestErrorTexts(t *testing.T) {
	var e measure.Errors
	for i := range 20 {
		for range i + 1 {
			e.Add([]byte{'a' + byte(i)})
		}
	}
	texts := errorTexts(&e)
	require.Equal(t, run.ErrorText{Text: "t", Count: 20}, texts[0])
	require.Equal(t, run.ErrorText{Text: "a", Count: 1}, texts[len(texts)-1])

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

// Texts with the same count keep their order, and two are quoted.
func TestTheFirstErrorsAreCited(t *testing.T) {
	var e measure.Errors
	for _, text := range []string{"c", "a", "b", "b", "d"} {
		e.Add([]byte(text))
	}
	texts := errorTexts(&e)
	require.Equal(t, []run.ErrorText{{Text: "b", Count: 2}, {Text: "a", Count: 1}, {Text: "c", Count: 1}, {Text: "d", Count: 1}}, texts)
	for n, want := range []string{"", `; "b" × 2`, `; "b" × 2; "a" × 1`, `; "b" × 2; "a" × 1`, `; "b" × 2; "a" × 1`} {
		require.Equal(t, want, quote(texts[:n]), "of %d", n)
	}
}

// A few ops have no p99, but may be late all the same.
func TestFewOpsStartLate(t *testing.T) {
	for _, tt := range []struct {
		ops  int64
		late int64 // this many in the middle, each by 100 ms
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
			require.Equal(t, run.Valid, p.Validity, texts(p))
			continue
		}
		require.Contains(t, strings.Join(texts(p), "; "), tt.want)
		require.Equal(t, run.Invalid, p.ValidityOf("op.get.response.p50"))
	}
}

// TestLateForWantOfRoomIsNotTheGenerators: a target stands still for half a second while all slots wait for it. The ops that waited for a slot are
// late, but loadgen was not. If it was, the phase is not the load that was asked for.
func TestLateForWantOfRoomIsNotTheGenerators(t *testing.T) {
	for waited, want := range map[bool]run.Validity{true: run.Suspect, false: run.Invalid} {
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

// TestOneLongGapTouchesTheTailAlone, in a closed phase: the rate and the other quantiles stay valid.
func TestOneLongGapTouchesTheTailAlone(t *testing.T) {
	p := &phase{Phase: &run.Phase{
		Model: "closed", Seconds: 10, Load: run.Load{Sessions: 4, Pipeline: 2}, Op: map[string]*run.Op{"get": {Figures: run.Figures{Ledger: run.Ledger{OK: 7000, Miss: 1000}}}},
		Generator: measure.Generator{Loops: 1, Interrupted: &measure.Interrupted{Times: 1, Seconds: 0.03, MaxSeconds: 0.03}},
	}}
	p.judgeGaps()
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.response.p999"))
	require.Equal(t, run.Suspect, p.ValidityOf("op.get.service.max"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.response.p99"))
	require.Equal(t, run.Valid, p.ValidityOf("op.get.rate"))
}
