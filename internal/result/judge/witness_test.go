package judge

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestTheTableIsExplained compares docs/truth.md with the table of invariants.
func TestTheTableIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/truth.md")
	require.NoError(t, err)
	var want strings.Builder
	want.WriteString("| must hold | else | silent if |\n|---|---|---|\n")
	for _, row := range invariants() {
		want.WriteString("| " + row.holds + " | [" + string(row.code) + "](reasons.md#" + string(row.code) + ") | " + row.silent + " |\n")
	}
	require.Contains(t, string(page), want.String(), "paste it")
}

// Values of other keys make a phase invalid once they are a larger share of the gets than may fail; those of another run leave it suspect.
func TestValuesOfOtherKeysAndRuns(t *testing.T) {
	for misplaced, want := range map[uint64]run.Validity{1: run.Suspect, 10: run.Suspect, 11: run.Invalid} {
		load := measure.NewTotals(origin, len(endpoints))
		load.Ops[driver.Get] = &measure.Op{}
		load.Ops[driver.Get].Outcomes[driver.OK] = 1000
		p := &phase{Phase: &run.Phase{}, counts: &counts{phase: &plan.Phase{MaxBad: 0.01}}}
		p.counts.Load = load
		require.Empty(t, append(p.misplaced(), p.anotherRun()...))
		p.Misplaced, p.AnotherRun = misplaced, 1000
		require.Equal(t, want, p.misplaced()[0].validity)
		require.Equal(t, run.Suspect, p.anotherRun()[0].validity)
	}
}

// Bytes that nobody asked for leave what came with them suspect, and make a phase invalid if they came alone.
func TestUnaskedBytes(t *testing.T) {
	p := &phase{Phase: &run.Phase{}}
	require.Empty(t, p.unasked())
	p.Generator.Unasked = measure.Unasked{Alone: 1, Behind: 2}
	got := p.unasked()
	require.Equal(t, []run.Validity{run.Invalid, run.Suspect}, []run.Validity{got[0].validity, got[1].validity})
}

// Reads that all miss are the speed of absent keys, unless the phase says that it wants that, or answers misses itself.
func TestReadsThatAllMiss(t *testing.T) {
	none, some := 0.0, 0.5
	for _, c := range []struct {
		misses, ok uint64
		phase      plan.Phase
		want       []run.Validity
	}{
		{misses: 100, want: []run.Validity{run.Invalid}},
		{misses: 100, ok: 1},
		{misses: 99, want: []run.Validity{run.Valid}},
		{misses: 100, phase: plan.Phase{ExpectHits: &none}, want: []run.Validity{run.Valid}},
		{misses: 100, phase: plan.Phase{ExpectHits: &some}, want: []run.Validity{run.Invalid}},
		{misses: 100, phase: plan.Phase{HitRatio: &none}},
		{misses: 100, phase: plan.Phase{OnMiss: "put"}},
	} {
		p := &phase{Phase: &run.Phase{Op: map[string]*run.Op{"get": {}}}, counts: &counts{phase: &c.phase}}
		p.Op["get"].OK, p.Op["get"].Miss = c.ok, c.misses
		var got []run.Validity
		for _, b := range p.allMissed() {
			got = append(got, b.validity)
		}
		require.Equal(t, c.want, got, c)
	}
}

// Loads that never reached the source are not loads.
func TestLoadsBeyondThoseSent(t *testing.T) {
	for sent, broken := range map[uint64]bool{0: false, 252_798: true, 261_000: false, 270_000: false} {
		p := &phase{Phase: &run.Phase{}, counts: &counts{phase: &plan.Phase{Batch: 1}, plan: &plan.Plan{Targets: []*plan.Target{{Name: "cached", Source: "db"}, {Name: "db"}}}}}
		p.Target, p.Others, p.Cache = run.Target{Name: "cached"}, []run.Target{{Name: "db"}}, &run.Cache{Loads: 261_730}
		p.Requests = []run.Requests{{Target: "db", Verb: "get", Requests: measure.Requests{Sent: sent}}, {Target: "db", Verb: "put", Requests: measure.Requests{Sent: 9_000}}}
		got := p.loadsUnsent()
		require.Equal(t, broken, len(got) > 0, sent)
		if broken {
			require.Equal(t, "cache.loads is 261,730, but db was sent 252,798 gets: the others did not reach it", got[0].text)
		}
	}
}

// Ops that were due more often than their share says are named, by the first.
func TestShares(t *testing.T) {
	for gets, want := range map[uint64]int{7500: 0, 7700: 0, 7800: 1, 7000: 1, 0: 1} {
		p := &phase{Phase: &run.Phase{Op: map[string]*run.Op{"get": {}, "put": {}}}, counts: &counts{phase: &plan.Phase{Ops: []plan.Weight{{Op: "get", Weight: 3}, {Op: "put", Weight: 1}}}}}
		p.Op["get"].Due, p.Op["put"].Due = gets, 10_000-gets
		require.Len(t, p.sharesApart(), want, gets)
	}
}

// The slots of a lost worker have ended, not hung.
func TestLostWorkersHangNoSlots(t *testing.T) {
	for lost, want := range map[int]int{0: 1, 1: 0} {
		p := &phase{Phase: &run.Phase{}, counts: &counts{}, rates: rates{stall: stall{byTime: 50, byEnds: 60}}}
		p.counts.Losses = make([]worker.Loss, lost)
		d := &doubts{}
		p.judgeStall(d)
		require.Len(t, *d, want)
	}
}

// A target that answers one op in twenty late is no target that stands still, though sometimes all slots wait; one that stands still once is.
func TestBimodalTargetsDoNotStall(t *testing.T) {
	const slots, second = 2, int64(1e9)
	stalled := func(seed uint64, late float64) (n int) {
		rng, load := rand.New(rand.NewPCG(seed, 7)), measure.NewTotals(origin, len(endpoints))
		for slot := range slots {
			turns, first, out, last := int64(0), origin+int64(slot)*100, int64(0), int64(0)
			for at := int64(slot) * 100; at < 2*second; {
				took := 1e6 + rng.Int64N(1e5)
				switch {
				case rng.Float64() < late:
					took = 250e6 + rng.Int64N(1e7)
				case late == 0 && at < second && at+took >= second:
					took = 250e6
				}
				record(load, measure.Sample{Due: origin + at, Start: origin + at, End: origin + at + took})
				out, at, last, turns = origin+at, at+took, origin+at+took, turns+1
			}
			load.Span.Busy(first, out, last, (last-first)/turns)
		}
		ph := closedPhase()
		ph.Closed.Sessions, ph.Closed.Iterations, ph.Closed.Duration = slots, 0, 2*time.Second
		for _, why := range NewPhase(testPlan(), ph, Measured{Endpoints: endpoints, Load: load}).Reasons {
			if why.Code == reason.Stalled {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, stalled(1, 0))
	for seed := range uint64(20) {
		require.Zero(t, stalled(seed, 0.05), seed)
	}
}

// TestSetupsThatUseCaches has steps of a setup that neither get nor put leave caches empty.
func TestSetupsThatUseCaches(t *testing.T) {
	for op, uses := range map[string]bool{"get": true, "put": true, "login": false} {
		ph := &plan.Phase{Setup: []plan.Weight{{Op: op, Weight: 1}}}
		require.Equal(t, uses, filledBefore(&plan.Plan{Phases: []*plan.Phase{ph}}, ph, new(plan.Target)))
	}
}
