package experiment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
)

const planText = `{"name":"p","phases":[{"name":"load","closed":{"sessions":16,"duration_ns":10000000000}}],"asserts":[{"name":"a","line":7}]}`

// kept returns stored runs of a rate, with levels 1 % apart.
func kept(side string, n int, rate float64, random *rand.Rand) (all []comparison.Kept) {
	for i := range n {
		r := measured(run.NewExperiment(""), "", i, rate*(1+0.01*random.NormFloat64()))
		r.ID, r.StartedAt = fmt.Sprint(side, i), time.Unix(int64(i), 0)
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

// However large the difference, fewer than five runs of a side cannot tell it from a restart.
func TestFewRunsCannotTell(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for n, want := range map[[2]int]string{
		{1, 1}: "1 of A, 1 of B. That is too few to tell", {1, 5}: "1 of A, 5 of B", {5, 2}: "5 of A, 2 of B", {5, 5}: "",
	} {
		c, err := experiment.Between(kept("a", n[0], 1000, random), kept("b", n[1], 5000, random))
		require.NoError(t, err)
		rate := compared(t, c, "rate")
		require.Equal(t, want == "", rate.Differs)
		require.Equal(t, want == "", len(c.Notes) == 0)
		if want != "" {
			require.Contains(t, c.Notes[0], want)
			require.Contains(t, rate.Nulls["p"], "are too few to tell what chance does")
		}
	}
}

// TestRunsThatWereNotStartedInTurn may differ because something else changed in between.
func TestRunsThatWereNotStartedInTurn(t *testing.T) {
	const in, not = "differs", "differs; order not randomised"
	for order, want := range map[string]string{"ABABABABAB": in, "ABBAABBAAB": in, "AAAAABBBBB": not, "BBBBBAAAAA": not, "AABBABABAB": in, "ABBBBBAAAA": not} {
		random := rand.New(rand.NewPCG(3, 1))
		var sides [2][]comparison.Kept
		for i, side := range order {
			one := kept(fmt.Sprint(i), 1, 1000*float64(side-'A'+1), random)[0]
			one.StartedAt = time.Unix(int64(i), 0)
			sides[side-'A'] = append(sides[side-'A'], one)
		}
		c, err := experiment.Between(sides[0], sides[1])
		require.NoError(t, err)
		require.Equal(t, want, compared(t, c, "rate").Finding, order)
	}
}

func TestBetweenRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	a, b := kept("a", 2, 1000, random), kept("b", 2, 1000, random)
	_, err := experiment.Between(a, append(b, a[1]))
	require.EqualError(t, err, "run a1 is on both sides: compare it with another")
	b[0].Conclude(run.Aborted)
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Equal(t, "Run b0 is aborted and does not count.", c.Notes[0])
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
		a[i].Phase["load"].Target.Replication = &run.Replication{Coordinate: "client"}
		b[i].Phase["load"].Target.Replication = &run.Replication{Coordinate: "server"}
	}
	c, err := experiment.Between(a, b)
	require.NoError(t, err)
	require.Empty(t, c.Figures)
	require.Contains(t, c.Notes[1], `Phase load is not compared: coordinate = "client" and coordinate = "server"`)
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
