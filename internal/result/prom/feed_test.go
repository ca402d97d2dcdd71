package prom_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestFeed follows a run from before its first step to its end, by what a scrape shows.
func TestFeed(t *testing.T) {
	p := parse(t, strings.Replace(samplePlan, `duration = "60s"`, "duration = \"60s\"\n    ramp     = \"10s\"", 1))
	c := with()
	f := prom.NewFeed(c, "r", p)
	shows := func(name string, want float64, labels ...string) {
		t.Helper()
		require.InDelta(t, want, value(t, gather(t, c)[name], labels...), 1e-9, "%s %v", name, labels)
	}
	second := func(origin int64, verbs ...driver.Verb) *measure.Totals {
		d := counted(verbs, 1, 1, 0)
		d.Origin = origin
		return d
	}
	const origin = 5e9

	shows("loadgen_run_active", 1)
	shows("loadgen_phase_active", 0, "phase=get")
	f.Add(second(origin, driver.Get), origin+1e9)
	shows("loadgen_ops_due_total", 0, "phase=get", "op=get")

	setup := worker.Step{Seq: 0, Phase: "get", Kind: worker.Setup, To: 10}
	f.Begin(setup)
	f.Add(second(origin, driver.Put), origin+1e9)
	shows("loadgen_phase_active", 1, "phase=get")
	shows("loadgen_setup_ops_due_total", 100, "phase=get")
	shows("loadgen_ops_due_total", 0, "phase=get", "op=get")

	f.Done(setup)
	shows("loadgen_phase_active", 0, "phase=get")
	load := worker.Step{Seq: 1, Phase: "get", Kind: worker.Load, To: 10}
	f.Begin(load)
	f.Done(setup) // late: its step has ended
	shows("loadgen_phase_active", 1, "phase=get")
	first := second(2*origin, driver.Get)
	f.Add(first, 2*origin+1e9)
	first.Reset() // the caller keeps counting in it
	f.Add(second(2*origin, driver.Get), 2*origin+2e9)
	shows("loadgen_setup_ops_due_total", 100, "phase=get")
	shows("loadgen_ops_due_total", 200, "phase=get", "op=get")
	shows("loadgen_phase_offered_ops_per_second", 0, "phase=get")
	f.Begin(worker.Step{Seq: 2, Phase: "get", Kind: worker.Load, To: 10}) // a phase of several steps, each with its own origin
	f.Add(second(3*origin, driver.Get), 3*origin+1e9)
	shows("loadgen_ops_due_total", 300, "phase=get", "op=get")

	// Two workers, each with half of the sessions.
	half, shape := p.Phase("mixed").Sessions()/2, pace.Shape(p.Phase("mixed").Open.Shape())
	parts := []worker.Step{
		{Seq: 3, Phase: "mixed", Kind: worker.Load, To: half, Shape: shape},
		{Seq: 3, Phase: "mixed", Kind: worker.Load, From: half, To: 2 * half, Shape: shape},
	}
	f.Begin(parts[0])
	f.Begin(parts[1])
	shows("loadgen_phase_active", 0, "phase=get")
	for seconds, want := range map[int64]float64{1: 200, 5: 1000, 10: 2000, 59: 2000, 60: 0, 61: 0} {
		f.Add(second(4*origin, driver.Get, driver.Put), 4*origin+seconds*1e9)
		shows("loadgen_phase_offered_ops_per_second", want, "phase=mixed")
	}
	f.Add(second(4*origin, driver.Get, driver.Put), 4*origin+1e9)
	shows("loadgen_ops_due_total", 700, "phase=mixed", "op=put")
	shows("loadgen_event", 0, "phase=mixed", "event=cold")
	f.Happen("mixed", "cold", true)
	shows("loadgen_event", 1, "phase=mixed", "event=cold")
	f.Happen("mixed", "cold", false)
	shows("loadgen_event", 0, "phase=mixed", "event=cold")
	f.Happen("mixed", "cold", true)
	f.Done(parts[1]) // lost: nobody wants its ops any more
	f.Add(second(4*origin, driver.Get, driver.Put), 4*origin+11e9)
	shows("loadgen_phase_offered_ops_per_second", 1000, "phase=mixed")
	f.Done(parts[0])
	shows("loadgen_phase_active", 0, "phase=mixed")
	shows("loadgen_phase_offered_ops_per_second", 0, "phase=mixed")
	shows("loadgen_event", 0, "phase=mixed", "event=cold")
	f.Begin(parts[0])

	f.Done(parts[0])
	stray := worker.Step{Seq: 4, Phase: "elsewhere", Kind: worker.Load, To: 10}
	f.Begin(stray)
	f.Add(second(5*origin, driver.Get), 5*origin+1e9)
	f.Done(stray)
	f.Begin(parts[0])

	shows("loadgen_assert", -1, "assert=fast")
	shows("loadgen_assert_limit", 0.02, "assert=fast")
	f.Probe(&run.Probe{Observe: "disk", Value: map[string]float64{"files": 12}})
	shows("loadgen_observed", 12, "observe=disk", "field=files")
	f.Judge(run.Verdict{Completeness: run.Degraded, Validity: run.Suspect})
	shows("loadgen_run_completeness", 1)
	shows("loadgen_run_validity", 1)
	shows("loadgen_run_active", 1)
	f.End(run.Verdict{Completeness: run.Degraded, Validity: run.Invalid, Assertions: run.Fail}, []run.AssertResult{{Name: "fast", OK: new(bool)}, {Name: "as expected"}})
	for name, want := range map[string]float64{
		"loadgen_run_active": 0, "loadgen_run_completeness": 1, "loadgen_run_validity": 2, "loadgen_run_assertions": 2,
	} {
		shows(name, want)
	}
	shows("loadgen_assert", 0, "assert=fast")
	shows("loadgen_assert", -1, "assert=as expected")
	shows("loadgen_phase_active", 0, "phase=mixed")
	shows("loadgen_phase_offered_ops_per_second", 0, "phase=mixed")
	shows("loadgen_ops_due_total", 800, "phase=mixed", "op=put")
}

// TestFeedWhileScraped is for the race detector.
func TestFeedWhileScraped(t *testing.T) {
	c := with()
	f := prom.NewFeed(c, "r", parse(t, samplePlan))
	f.Begin(worker.Step{Phase: "mixed", Kind: worker.Load})
	var hands sync.WaitGroup
	for range 2 {
		hands.Go(func() {
			for i := range int64(8) {
				f.Add(counted([]driver.Verb{driver.Get}, 1, 1, 0), i*1e9)
			}
		})
		hands.Go(func() {
			for range 8 {
				page(t, c)
			}
		})
	}
	hands.Wait()
	require.EqualValues(t, 1600, value(t, gather(t, c)["loadgen_ops_due_total"], "phase=mixed", "op=get"))
}

// TestOfferedIsOfOps: a schedule says when scenarios are due; the page shows how many ops they bring.
func TestOfferedIsOfOps(t *testing.T) {
	p := parse(t, strings.Replace(samplePlan, "batch   = 4", "scenario \"change\" {\n    weight = 3\n    step \"get\" {}\n    step \"put\" {}\n  }", 1))
	c := with()
	f := prom.NewFeed(c, "r", p)
	ph := p.Phase("mixed")
	f.Begin(worker.Step{Phase: "mixed", Kind: worker.Load, To: ph.Sessions(), Shape: pace.Shape(ph.Open.Shape())})
	const origin = 5e9
	d := counted([]driver.Verb{driver.Get}, 1, 1, 0)
	d.Origin = origin
	f.Add(d, origin+1e9)
	offered := value(t, gather(t, c)["loadgen_phase_offered_ops_per_second"], "phase=mixed")
	require.InDelta(t, 2000*(1*1+3*2)/4, offered, 1e-9, "a quarter of the scenarios is a get or a put, the others are both")
}

// TestAPageThatNobodyReadsLeavesLittle: /metrics and the live page's charts take at most 1 MB a minute, since the collector is off.
func TestAPageThatNobodyReadsLeavesLittle(t *testing.T) {
	p := parse(t, samplePlan)
	f, charts := prom.NewFeed(with(), "r", p), timeline.Live(p.Words())
	f.Begin(worker.Step{Phase: "mixed", Kind: worker.Load})
	const minutes = 10
	var spent, before, after runtime.MemStats
	var b []byte
	for second := range int64(60 * minutes) {
		s := measure.Snapshot{From: second * 1e9, To: (second + 1) * 1e9, Delta: *measure.NewTotals(0, 1)}
		for op := range int64(50) {
			due := s.From + op*20e6
			s.Delta.AddDue(driver.Get)
			s.Delta.Record(&measure.Sample{Verb: driver.Get, Due: due, Start: due, End: due + 100e3*(1+op)})
		}
		s.Running.Add(&s.Delta)
		b, _ = s.AppendBinary(b[:0])
		runtime.ReadMemStats(&before)
		f.Add(&s.Delta, s.To)
		f.Judge(run.Verdict{})
		require.NoError(t, charts.Add(b))
		runtime.ReadMemStats(&after)
		spent.TotalAlloc += after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, spent.TotalAlloc, uint64(minutes*1_000_000))
}
