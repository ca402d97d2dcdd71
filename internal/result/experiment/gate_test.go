package experiment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestGatesDecide by pairs of runs that scatter as those of real servers: equal ones seldom fail, and those that are 5 % worse than a limit of 3 % allows
// do. LOADGEN_TEST_DRAWS draws more of them.
func TestGatesDecide(t *testing.T) {
	normal := func(sd float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return sd * r.NormFloat64() }
	}
	gates := servertest.Draws(200)
	for _, c := range []struct {
		name  string
		run   func(*rand.Rand) float64
		finds float64 // at least, of those planted
	}{
		{"deviation 2 %", normal(0.02), 0.94},
		{"deviation 5 %", normal(0.05), 0.94},
		{"deviation 15 %", normal(0.15), 0},
		{"two modes", func(r *rand.Rand) float64 { return 0.1*float64(r.IntN(2)) + 0.005*r.NormFloat64() }, 0},
		{"one in ten + 50 %", func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 0.4 + 0.01*r.NormFloat64()
			}
			return 0.01 * r.NormFloat64()
		}, 0},
	} {
		for _, planted := range []float64{0, 0.01, 0.05} {
			found := map[run.Decision]int{}
			pairs := 0
			for i := range gates {
				random := rand.New(rand.NewPCG(uint64(i), 53))
				var worse []float64
				var d run.Decision
				for _, look := range []int{8, 12, 18, 27, 40} {
					for len(worse) < look {
						worse = append(worse, math.Log1p(planted)+c.run(random)-c.run(random))
					}
					if d = experiment.Decide(worse, math.Log(1.03), 40); d != run.GateUndecided {
						break
					}
				}
				found[d]++
				pairs += len(worse)
			}
			share := func(d run.Decision) float64 { return float64(found[d]) / float64(gates) }
			t.Logf("%-18s worse by %.0f %%: %5.1f %% fail, %5.1f %% pass, %5.1f %% cannot tell, %4.1f pairs", c.name, 100*planted, 100*share(run.GateFailed), 100*share(run.GatePassed),
				100*share(run.GateUndecided), float64(pairs)/float64(gates))
			chance := func(share float64) float64 { return 2 * math.Sqrt(share*(1-share)/float64(gates)) }
			switch planted {
			case 0:
				require.LessOrEqual(t, share(run.GateFailed), 0.05+chance(0.05))
			case 0.01:
				require.LessOrEqual(t, share(run.GateFailed), 0.13+chance(0.13))
			default:
				require.GreaterOrEqual(t, share(run.GateFailed), c.finds-chance(c.finds))
				require.LessOrEqual(t, share(run.GatePassed), 0.05+chance(0.05))
			}
		}
	}
}

// TestGateOfAnExperiment counts pairs by what touches its metric, and says what it decided.
func TestGateOfAnExperiment(t *testing.T) {
	for name, c := range map[string]struct {
		cpu    float64 // of the variant, to the baseline's
		pairs  int
		change func(r *run.Run, ph *run.Phase) // of the variant's second run
		code   int
		text   string
	}{
		"worse":     {cpu: 1.1, pairs: 8, code: exit.Assert, text: `^new is worse than old: cpu per op by \+10[0-9.]* % \(\+[0-9.]+ % to \+[0-9.]+ %\), after 8 pairs of runs\. That it is worse is shown, not that it is by 3 %\.$`},
		"as good":   {cpu: 1, pairs: 8, code: exit.OK, text: `^new is not worse than old by 3 %: cpu per op by .* after 8 pairs of runs\.$`},
		"few":       {cpu: 1, pairs: 4, code: exit.Undecided, text: `^Cannot tell after 4 pairs of runs whether new is worse than old by 3 %: cpu per op by .*, and runs deviate by .* About 8 pairs would tell\.$`},
		"late":      {cpu: 1, pairs: 8, change: doubt("started_late"), code: exit.OK, text: `The doubts about time do not touch that\.$`},
		"lost":      {cpu: 1, pairs: 8, change: doubt("ledgers"), code: exit.Invalid, text: `^new is not worse`},
		"failed op": {cpu: 1, pairs: 8, change: func(_ *run.Run, ph *run.Phase) { ph.Op["get"].OK-- }, code: exit.Undecided, text: `^Cannot tell after 7 pairs .* 1 more pair did not count\.$`},
		"restarted": {cpu: 1, pairs: 9, change: func(_ *run.Run, ph *run.Phase) { ph.Observe["cpu"]["cpu_seconds"] = run.Observed{Counter: true} }, code: exit.OK, text: `1 more pair did not count\.$`},
	} {
		t.Run(name, func(t *testing.T) {
			e := described(40, "old", "new")
			e.Gate = &plan.Gate{Worse: 0.03}
			x := begun(e)
			x.Gate = &run.Gate{Metric: plan.CPUPerOp, Phase: "load", Worse: 0.03}
			var runs []*run.Run
			random := rand.New(rand.NewPCG(1, 53))
			for i := range c.pairs {
				for v, variant := range []string{"old", "new"} {
					r := rated(variant, i+1, 1000)
					cpu := 0.01 * (1 + 0.001*random.NormFloat64())
					if v == 1 {
						cpu *= c.cpu
					}
					ph := r.Phase["load"]
					ph.Observe = map[string]map[string]run.Observed{"cpu": {"cpu_seconds": {Counter: true, Delta: &cpu}}}
					if c.change != nil && v == 1 && i == 1 {
						c.change(r, ph)
					}
					r.Conclude(run.Complete)
					x.Add(r)
					runs = append(runs, r)
				}
			}
			experiment.Conclude(x, runs)
			require.Regexp(t, c.text, x.Gate.Text)
			require.Equal(t, c.code, x.ExitCode, fmt.Sprint(x.Gate.Why))
		})
	}
}

// TestKeptRunsAreGated as pairs if the sides took turns. An improvement passes, and of one run against one it cannot be told.
func TestKeptRunsAreGated(t *testing.T) {
	p := &plan.Plan{Phases: []*plan.Phase{{Name: "load", Ops: []plan.Weight{{Op: "get", Weight: 1}}, Closed: &plan.Closed{}}, {Name: "fill", Populate: &plan.Clients{}}}}
	random := rand.New(rand.NewPCG(2, 53))
	for _, c := range []struct {
		order string
		rate  float64 // of B, to that of A
		want  run.Decision
		text  string
	}{
		{"ABBAABBAAB", 1, run.GatePassed, `^B is not worse than A by 3 %: rate of get by .*, after 5 pairs of runs\.$`},
		{"ABBAABBAAB", 0.9, run.GateFailed, `^B is worse than A: rate of get by \+1`},
		{"ABBAABBAAB", 1.2, run.GatePassed, `^B is not worse than A by 3 %: rate of get by −`},
		{"ABBAAB", 0.9, run.GateUndecided, `^Cannot tell after 3 pairs of runs whether B is worse than A by 3 %: rate of get by \+1.* About 8 pairs would tell\.$`},
		{"AB", 0.5, run.GateUndecided, `^Cannot tell after 1 pair of runs`},
		{"AAAAABBBBB", 0.9, run.GateUndecided, `^Cannot tell: the runs were not made in turn, A B B A …, and as many of each\.$`},
		{"ABBAABBAABB", 0.9, run.GateUndecided, `^Cannot tell: the runs were not made in turn`},
	} {
		var sides [2][]comparison.Kept
		for i, side := range c.order {
			rate := 1000 * (1 + 0.001*random.NormFloat64())
			if side == 'B' {
				rate *= c.rate
			}
			r := rated("", 1, rate)
			r.StartedAt = time.Unix(int64(i), 0)
			r.Conclude(run.Complete)
			sides[side-'A'] = append(sides[side-'A'], comparison.Kept{Run: r})
		}
		gates, err := experiment.GateKept(sides[0], sides[1], p, "rate", 0.03)
		require.NoError(t, err)
		require.Len(t, gates, 1)
		require.Equal(t, c.want, gates[0].Decision, c.order)
		require.Regexp(t, c.text, gates[0].Text)
	}
	_, err := experiment.GateKept(nil, nil, p, "p98", 0.03)
	require.ErrorContains(t, err, `no metric "p98": write cpu_per_op, rate`)
}

// doubt makes a phase INVALID by a reason.
func doubt(code reason.Code) func(*run.Run, *run.Phase) {
	return func(_ *run.Run, ph *run.Phase) {
		ph.Validity, ph.Reasons = run.Invalid, []run.Reason{{Validity: run.Invalid, Code: code}}
	}
}
