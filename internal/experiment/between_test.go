package experiment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/experiment"
	"github.com/loadgen/loadgen/internal/experiment/comparison"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/run/conditions"
)

const planText = `{"name":"p","phases":[{"name":"load","closed":{"sessions":16,"duration_ns":10000000000}}],"asserts":[{"name":"a","line":7}]}`

// kept returns stored runs of a rate, with levels 1 % apart.
func kept(side string, n int, rate float64, random *rand.Rand) (all []comparison.Kept) {
	for i := range n {
		r := measured(run.NewExperiment(""), "", i, 30, rate*(1+0.01*random.NormFloat64()), random)
		r.ID = fmt.Sprint(side, i)
		all = append(all, comparison.Kept{Run: r, Plan: []byte(planText)})
	}
	return all
}

// side returns B's figure of a metric.
func compared(t *testing.T, c *comparison.Result, metric string) run.Figure {
	t.Helper()
	for _, f := range c.Figures {
		if f.Variant == "B" && f.Metric == metric {
			return f
		}
	}
	require.Fail(t, "no such figure", metric)
	return run.Figure{}
}

func TestBetweenFindsWhatAnExperimentWould(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	c, err := experiment.Between(kept("a", 5, 1000, random), kept("b", 5, 1300, random))
	require.NoError(t, err)
	rate := compared(t, c, "rate")
	require.True(t, rate.Differs, rate.Finding)
	require.InDelta(t, 1.3, *rate.Ratio, 0.05)
	require.Empty(t, c.Notes)
	require.Empty(t, c.Differences)
	require.Len(t, c.Tables, len(c.Figures)/2)
	for _, f := range c.Figures {
		requireReasons(t, f)
	}
	again, err := experiment.Between(kept("a", 5, 1000, random), kept("b", 5, 1000, random))
	require.NoError(t, err)
	require.Contains(t, compared(t, again, "rate").Finding, "no difference shown (MDE ")
}

// However large the difference and however long the runs, a single pair cannot tell it from a restart.
func TestAPairCannotTell(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	a, b := kept("a", 1, 1000, random), kept("b", 1, 5000, random)
	for _, k := range []comparison.Kept{a[0], b[0]} {
		ph := k.Phase["load"]
		for len(ph.Series) < 200 {
			ph.Series = append(ph.Series[:len(ph.Series)-1], ph.Series[2:len(ph.Series)-1]...)
		}
		for i := range ph.Series {
			ph.Series[i].T = float64(i + 1)
		}
		ph.Steady.Seconds = 150
	}
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Contains(t, c.Notes[0], "a single pair cannot tell a difference from the spread between restarts")
	rate := compared(t, c, "rate")
	require.False(t, rate.Differs)
	require.Greater(t, *rate.RatioLo, 4.0, "within the runs there is no doubt")
	require.Contains(t, rate.Finding, "cannot tell: one repetition does not tell the spread between restarts")

	for _, n := range [][2]int{{1, 2}, {2, 1}, {2, 2}} {
		c, err := experiment.Between(kept("a", n[0], 1000, random), kept("b", n[1], 1000, random))
		require.NoError(t, err)
		require.Empty(t, c.Notes, "%d and %d runs are no pair", n[0], n[1])
	}
}

func TestBetweenRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	a, b := kept("a", 2, 1000, random), kept("b", 2, 1000, random)
	_, err := experiment.Between(a, append(b, a[1]))
	require.EqualError(t, err, "run a1 stands on both sides: compare it with another")
	b[0].Conclude(run.Aborted)
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Equal(t, []string{"Run b0 is aborted and does not count."}, c.Notes)
	require.Equal(t, run.StopAborted, c.Sides[1].Runs[0].Stopped)
	b[1].Conclude(run.Failed)
	_, err = experiment.Between(a, b)
	require.EqualError(t, err, "no run of side B counts: b0, b1")
}

// N, W and R have different meanings when the client and when the server replicates.
func TestBetweenKeepsKindsOfReplicationApart(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	a, b := kept("a", 2, 1000, random), kept("b", 2, 1000, random)
	for i := range a {
		a[i].Phase["load"].Target.Replication = &conditions.Replication{Coordinate: "client"}
		b[i].Phase["load"].Target.Replication = &conditions.Replication{Coordinate: "server"}
	}
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Empty(t, c.Figures)
	require.Contains(t, c.Notes[0], `Phase load is not compared: coordinate = "client" and coordinate = "server"`)
}

// Observations of the target's side follow the figures: what changed, as means over the runs that have it.
func TestBetweenShowsWhatWasObserved(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	a, b := kept("a", 2, 1000, random), kept("b", 2, 1000, random)
	number := func(v float64) *float64 { return &v }
	counter := func(unit string, delta, rate float64) run.Observed {
		return run.Observed{Unit: unit, Counter: true, Delta: number(delta), Rate: number(rate)}
	}
	gauge := func(unit string, least, mean, most float64) run.Observed {
		return run.Observed{Unit: unit, Min: number(least), Mean: number(mean), Max: number(most)}
	}
	for i, k := range a {
		k.Phase["load"].Observe = map[string]map[string]run.Observed{"redis": {
			"cpu": counter("s", 1, 0.25+float64(i)/2), "calls": counter("", 100, 10), "sent": counter("bytes", 3e6, 3e6), "evicted": counter("", 0, 0),
			"cpu_us": counter("us", 9, 1234), "memory": gauge("bytes", 1<<20, 2<<20, 3<<20), "limit": gauge("bytes", 5, 5, 5), "lag": gauge("us", 1, 7, 9),
		}}
	}
	b[1].Phase["load"].Observe = map[string]map[string]run.Observed{"redis": {"memory": gauge("bytes", 4<<20, 4<<20, 4<<20), "evicted": counter("", 8, 2)}}
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Len(t, c.Tables, len(c.Figures)/2+1)
	last := c.Tables[len(c.Tables)-1]
	require.Equal(t, "phase load, observed: redis; means of the runs, of counters per second", last.Title)
	got := map[string][]string{}
	for i, column := range last.Columns {
		got[column.Title] = []string{last.Rows[0].Cells[i].Text, last.Rows[1].Cells[i].Text}
	}
	require.Equal(t, map[string][]string{
		"cpu": {"50.0 %", "–"}, "calls, /s": {"10.0", "–"}, "sent, MB/s": {"3.00", "–"}, "evicted, /s": {"0", "2.00"}, "cpu_us, µs/s": {"1,234", "–"},
		"memory, MiB": {"2.00", "4.00"}, "lag, µs": {"7.00", "–"},
	}, got)
}
