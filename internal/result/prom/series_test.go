package prom_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestSeriesArePredicted(t *testing.T) {
	for name, p := range map[string]*plan.Plan{
		"sample":         parse(t, samplePlan),
		"many endpoints": withTarget(t, 40, 16),
		"one endpoint":   withTarget(t, 1, 1),
		"seven":          withTarget(t, 7, 5),
		"nine":           withTarget(t, 9, 5),
	} {
		for _, workers := range []int{0, 1, 3} {
			if workers != 1 && name != "sample" {
				continue // each worker has its own series, whatever the plan
			}
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				v := prom.NewView("r", p)
				list := make([]worker.Status, workers)
				for i := range list {
					list[i].Name = fmt.Sprint(i)
				}
				c, part := with(list...), prom.NewPart()
				c.Set(v)
				part.Set(v)
				require.Equal(t, prom.Series(p, workers), samples(page(t, c)), "before the run")
				require.Equal(t, prom.PartSeries(p), samples(partPage(t, part)), "before the run")
				for i := range v.Phases {
					ph := &v.Phases[i]
					ph.Load = asked(ph, 1)
					ph.Setup = ph.Load
				}
				c.Set(v)
				part.Set(v)
				require.Equal(t, prom.Series(p, workers), samples(page(t, c)), "in the run")
				require.Equal(t, prom.PartSeries(p), samples(partPage(t, part)), "in the run")
			})
		}
	}
}

// withTarget is the sample plan with its first target on a number of endpoints, copies of each key.
func withTarget(t *testing.T, endpoints, copies int) *plan.Plan {
	t.Helper()
	list := make([]string, endpoints)
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprintf("127.0.0.1:%d", 7001+i))
	}
	text := strings.Replace(samplePlan, `["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004"]`,
		"["+strings.Join(list, ", ")+"]", 1)
	text = strings.Replace(text, "n          = 3", fmt.Sprintf("n          = %d", copies), 1)
	text = strings.Replace(text, "w          = 2", "w          = 1", 1)
	return parse(t, text)
}

// TestBudget counts the samples of the page by subject, for the most expensive plan.
func TestBudget(t *testing.T) {
	p := withTarget(t, 40, 16)
	v := prom.NewView("r", p)
	c := with(worker.Status{Name: "a"})
	c.Set(v)
	var perRun, perPlan, perWorker, perPhase, perOp, perScenario, perStep int
	for line := range strings.Lines(page(t, c)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, `assert="`), strings.Contains(line, `observe="`):
			perPlan++
		case strings.Contains(line, `worker="a"`):
			perWorker++
		case strings.Contains(line, `scenario="change"`) && strings.Contains(line, `step="put"`):
			perStep++
		case strings.Contains(line, `scenario="change"`) && !strings.Contains(line, `step="`):
			perScenario++
		case strings.Contains(line, `op="get",`) && strings.Contains(line, `phase="get"`):
			perOp++
		case strings.Contains(line, `phase="get"`):
			perPhase++
		case !strings.Contains(line, `phase="`):
			perRun++
		}
	}
	require.Equal(t, 100, perOp)
	require.Equal(t, 36, perScenario)
	require.Equal(t, 36, perStep)
	require.Equal(t, 38, perPhase)
	require.Equal(t, 5, perWorker)
	require.Equal(t, 4, perRun)
	require.Equal(t, 2+1+4, perPlan, "two asserts, one of which has a limit, and four fields")
}
