package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// hang is a time in which a target answers nothing, from the step's start. What it would have answered then comes at the end of it.
type hang struct {
	from, to time.Duration
	most     int // replies that it holds back; 0: all
}

// turnTime is how long targets that hang take otherwise: 1,571.7 ops a second in four slots.
const turnTime = 2545 * time.Microsecond

// hangs makes a server answer after turnTime, except while it hangs.
func (b *bench) hangs(server int, all ...hang) {
	begin := time.Duration(b.net.clock.t)
	held := make([]int, len(all))
	b.server(server).latency = func(int) time.Duration {
		now := time.Duration(b.net.clock.t) - begin
		for i, h := range all {
			if at := now + turnTime; at >= h.from && at < h.to && (h.most == 0 || held[i] < h.most) {
				held[i]++
				return h.to - now
			}
		}
		return turnTime
	}
}

// judged makes a result of what workers counted.
func (b *bench) judged(m judge.Measured, workers ...measure.Totals) *run.Phase {
	m.Endpoints, m.Load, m.Shape = []string{"e0"}, &measure.Totals{}, stepOf(b.g.phase, worker.Load).Shape
	for i := range workers {
		m.Load.Merge(&workers[i])
	}
	require.NoError(b.t, m.Load.CheckValid())
	return judge.NewPhase(b.g.plan, b.g.phase, m)
}

// stalls returns the words of a result's reasons of that kind.
func stalls(p *run.Phase) (texts []string) {
	for _, r := range p.Reasons {
		if r.Code == reason.Stalled {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// TestRatesOfSlotsThatHang: a closed load's rate is that of what was answered while it lasted, whichever slots hang, and when. It was 785/s for
// 1,310/s with four that hung at the end.
func TestRatesOfSlotsThatHang(t *testing.T) {
	const (
		s     = time.Second
		most  = "nothing ended for "
		some  = " ended in the plateau, but the times of these ops make it "
		four  = "sessions = 4\n duration = \"6s\"\n"
		piped = "sessions = 2\n pipeline = 16\n duration = \"6s\"\n"
	)
	for name, c := range map[string]struct {
		closed string
		hangs  []hang
		truth  float64
		why    string // "": none
	}{
		"no hang":                     {four, nil, 1571.7, ""},
		"for a little":                {four, []hang{{from: s, to: s * 5 / 4}}, 1571.7 * 23 / 24, ""},
		"across the end":              {four, []hang{{from: 5 * s, to: 8 * s}}, 1571.7 * 5 / 6, most},
		"half, across the end":        {four, []hang{{5 * s, 8 * s, 2}}, 1571.7 * 11 / 12, some},
		"one of many, across the end": {"sessions = 100\n duration = \"6s\"", []hang{{3 * s, 9 * s, 1}}, 25 * 1571.7 * 199 / 200, ""},
		"at the start":                {four, []hang{{to: s}}, 1571.7 * 5 / 6, most},
		"half, at the start":          {four, []hang{{0, s, 2}}, 1571.7 * 11 / 12, some},
		"across the end of the ramp":  {four + "ramp = \"1s\"", []hang{{from: s / 2, to: 2 * s}}, 1571.7 * 4 / 5.25, most},
		"in the middle":               {four, []hang{{from: 2 * s, to: 3 * s}}, 1571.7 * 5 / 6, most},
		"again and again":             {four, []hang{{from: s, to: s * 3 / 2}, {from: 2 * s, to: s * 5 / 2}, {3 * s, 5 * s, 1}, {from: s * 11 / 2, to: 9 * s}}, 1571.7 * 4 / 6, some},
		"for most of it":              {four, []hang{{from: s, to: 15 * s}}, 1571.7 / 6, most},
		"with think time":             {"sessions = 8\n duration = \"6s\"\n think = \"2545us\"", []hang{{from: 5 * s, to: 8 * s}}, 1571.7 * 5 / 6, most},
		"with think time, few turns":  {"sessions = 400\n duration = \"6s\"\n think = \"500ms\"", []hang{{from: s * 11 / 2, to: 8 * s}}, 796 * 11 / 12, some},
		"pipelines":                   {piped, []hang{{from: 5 * s, to: 8 * s}}, 8 * 1571.7 * 5 / 6, most},
		"one of two pipelines":        {piped, []hang{{5 * s, 8 * s, 1}}, 8 * 1571.7 * 11 / 12, some},
		"iterations":                  {"sessions = 4\n iterations = 1965", []hang{{from: 2 * s, to: 3 * s}}, 1571.7 * 5 / 6, most},
		"iterations of one":           {"sessions = 1\n iterations = 1965", []hang{{from: 2 * s, to: 3 * s}}, 1571.7 / 4 * 5 / 6, most},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, redisPlan(t, 1, "timeout = \"20s\"", "ops = { get = 1 }\nexpect_hits = 0\nclosed {\n"+c.closed+"\n}"), "load", 0)
			b.hangs(0, c.hangs...)
			p := b.judged(judge.Measured{}, b.run(worker.Load))
			require.InEpsilon(t, c.truth, *p.Op["get"].Answered, 0.015)
			if c.why == "" {
				require.Equal(t, run.Valid, p.Validity, p.Reasons)
				return
			}
			require.Equal(t, run.Suspect, p.Validity)
			require.Len(t, stalls(p), 1)
			require.Contains(t, stalls(p)[0], c.why)
			require.Equal(t, run.Suspect, p.ValidityOf("op.get.answered"))
		})
	}
}

// TestRateOfATargetThatLosesReplies: one request in 4,000 gets no reply. Once a connection has lost as many as it has slots, it is silent until they
// time out.
func TestRateOfATargetThatLosesReplies(t *testing.T) {
	for lasts, why := range map[time.Duration]int{4 * time.Second: 0, 5 * time.Second: 1, 10 * time.Second: 1} {
		b := newBench(t, redisPlan(t, 1, "", fmt.Sprintf("ops = { get = 1 }\nclosed {\n sessions = 4\n pipeline = 16\n duration = %q\n}", lasts)), "load", 0)
		b.server(0).latency = func(n int) time.Duration {
			if n%4000 == 0 {
				return -1
			}
			return turnTime
		}
		end, answered := b.net.clock.t+int64(lasts), uint64(0)
		b.seen = func(s *measure.Snapshot) {
			if s.To <= end {
				got := &s.Delta.Ops[driver.Get].Outcomes
				answered += got[driver.OK] + got[driver.Miss]
			}
		}
		p := b.judged(judge.Measured{}, b.run(worker.Load))
		require.InEpsilon(t, float64(answered)/lasts.Seconds(), *p.Op["get"].Answered, 0.003, lasts)
		require.Len(t, stalls(p), why, lasts)
	}
}

// Scenarios on two targets wait for the one that hangs.
func TestRateOfScenariosThatHang(t *testing.T) {
	p := twoTargets(t, "closed {\n sessions = 4\n duration = \"6s\"\n}")
	for _, target := range p.Targets {
		target.Timeout = 20 * time.Second
	}
	b := newBench(t, p, "load", turnTime)
	b.hangs(1, hang{from: 5 * time.Second, to: 8 * time.Second})
	r := b.judged(judge.Measured{Others: map[string][]string{"b": {"e1"}}}, b.run(worker.Load))
	require.InEpsilon(t, 1571.7/3*5/6, *r.Scenario["copy"].Answered, 0.005)
	require.InEpsilon(t, 1571.7/3*5/6, *r.Op["get"].Answered, 0.005)
	require.Len(t, stalls(r), 1)
}

// togetherOn carries a load out on workers of their own, one for each target that may hang, and judges it as one. All are told to stop at a time; 0:
// they are not.
func togetherOn(t *testing.T, phase string, stop time.Duration, targets ...[]hang) *run.Phase {
	t.Helper()
	var b *bench
	var totals []measure.Totals
	for _, hangs := range targets {
		b = newBench(t, redisPlan(t, 1, "timeout = \"20s\"", phase), "load", 0)
		b.hangs(0, hangs...)
		if stop > 0 {
			b.net.at(time.Duration(b.net.clock.t)+stop, func() { b.e.halt.Store(drain) })
		}
		totals = append(totals, b.run(worker.Load))
	}
	return b.judged(judge.Measured{Aborted: stop > 0}, totals...)
}

// One worker's target hangs, those of the others do not.
func TestRateOfAWorkerWhoseTargetHangs(t *testing.T) {
	p := togetherOn(t, "ops = { get = 1 }\nclosed {\n sessions = 4\n duration = \"6s\"\n}", 0, nil, []hang{{from: 3 * time.Second, to: 9 * time.Second}}, nil)
	require.InEpsilon(t, 2.5*1571.7, *p.Op["get"].Answered, 0.005)
	require.Contains(t, stalls(p)[0], "slots hung: ")
}

// TestStopsAfterSilence: a load whose target says nothing any more, from 5 s on, lasts until it is stopped at 8 s, with all of its workers.
func TestStopsAfterSilence(t *testing.T) {
	const s, stop = time.Second, 8 * time.Second
	silent := []hang{{from: 5 * s, to: time.Hour}}
	open := func(more string) string {
		return "ops = { get = 1 }\nopen {\n rate = 1000\n sessions = 4\n" + more + "\n}"
	}
	closed := func(more string) string { return "ops = { get = 1 }\nclosed {\n sessions = 4\n" + more + "\n}" }
	const long = "duration = \"30s\"\n"
	for name, c := range map[string]struct {
		phase   string
		rate    float64 // of a worker whose target does not fall silent
		offered float64 // likewise; 0: none
		silent  float64 // the share of the rate that is left
	}{
		"closed":                 {closed(long), 1571.7, 0, 5. / 8},
		"closed, draining":       {closed("duration = \"6s\""), 1571.7, 0, 5. / 6},
		"iterations":             {closed("iterations = 100000"), 1571.7, 0, 5. / 8},
		"closed, with pipelines": {closed(long + "pipeline = 16"), 16 * 1571.7, 0, 5. / 8},
		"closed, that thinks":    {closed(long + "think = \"7545us\""), 4 / 0.01009, 0, 5. / 8},
		"closed, with a ramp":    {closed(long + "ramp = \"4s\""), 1571.7, 0, 2. / 5},
		"open":                   {open(long + "arrivals = \"constant\""), 1000, 1000, 5. / 8},
		"open, poisson":          {open(long + "arrivals = \"poisson\""), 1000, 1000, 5. / 8},
		"open, that sheds":       {open(long + "arrivals = \"constant\"\n on_full = \"shed\""), 1000, 1000, 5. / 8},
		"open, draining":         {open("duration = \"6s\"\n drain = \"20s\"\n arrivals = \"constant\""), 1000, 1000, 5. / 6},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(p *run.Phase, workers, rate float64) {
				require.InDelta(t, stop.Seconds(), p.Seconds, 0.06, "a loop looks up 20 times a second")
				require.InEpsilon(t, rate, *p.Op["get"].Answered, 0.02)
				if c.offered > 0 {
					require.InEpsilon(t, workers*c.offered, *p.OfferedRate, 0.02)
					require.InEpsilon(t, rate, *p.AchievedRate, 0.02)
				}
				require.NotEqual(t, run.Valid, p.Validity)
			}
			check(togetherOn(t, c.phase, stop, silent), 1, c.silent*c.rate)
			check(togetherOn(t, c.phase, stop, silent, nil, silent), 3, (2*c.silent+1)*c.rate)
		})
	}
}
