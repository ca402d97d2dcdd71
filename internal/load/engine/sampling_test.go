package engine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sampled carries a phase out on virtual servers and returns what was counted and what was drawn.
func sampled(t *testing.T, p *plan.Plan, script func(b *bench)) (measure.Totals, []measure.DrawnOp) {
	b := newBench(t, p, "load", time.Millisecond)
	defer b.g.close()
	if script != nil {
		script(b)
	}
	parts, all, seq := b.equipStep(stepOf(b.g.phase, worker.Load)), measure.Samples{}, uint64(0)
	b.l.run()
	c := collector{g: b.g, begin: b.l.origin, seq: &seq, sink: func(s *measure.Snapshot) { all.Merge(&s.Samples) }}
	totals := c.collect(parts)
	require.NoError(t, totals.CheckValid())
	return totals, all.Ops()
}

// sameOps checks that the ops drawn are all that ended, by verb and outcome, and in each of their times.
func sameOps(t *testing.T, totals *measure.Totals, ops []measure.DrawnOp) {
	t.Helper()
	var counts [driver.NumVerbs][driver.NumOutcomes]uint64
	var lag, service, response [driver.NumVerbs]hist.Hist
	for _, op := range ops {
		counts[op.Verb][op.Outcome]++
		lag[op.Verb].Record(op.Start - op.Due)
		service[op.Verb].Record(op.End - op.Start)
		response[op.Verb].Record(op.End - op.Due)
	}
	ended := uint64(0)
	for v, o := range totals.Ops {
		want := o.Ledger().Outcomes
		want[driver.Shed] = 0
		require.Equal(t, want, counts[v], "%v", driver.Verb(v))
		if o == nil {
			continue
		}
		var allService, allResponse hist.Hist
		for class := range measure.NumClasses {
			allService.Merge(&o.Service[class])
			allResponse.Merge(&o.Response[class])
		}
		ended += o.Lag.Count()
		require.Equal(t, o.Lag.Print(), lag[v].Print())
		require.Equal(t, allService.Print(), service[v].Print())
		require.Equal(t, allResponse.Print(), response[v].Print())
	}
	require.Positive(t, ended)
}

// TestSamplesOfEachWay keeps every op that ends, in each of the ways and through everything that can happen to ops: they are those that were counted.
func TestSamplesOfEachWay(t *testing.T) {
	const mixed = "samples = 100000\nops = { get = 3, put = 2, delete = 1 }\nmax_bad = 1\n"
	const closed = mixed + "closed {\n sessions = 3\n duration = \"1300ms\"\n pipeline = 5\n}"
	after := func(b *bench, d time.Duration, do func()) { b.net.at(time.Duration(b.net.clock.t)+d, do) }
	for _, c := range []struct {
		name      string
		endpoints int
		target    string
		phase     string
		script    func(b *bench)
		says      string // an error of some
	}{
		{name: "runs", endpoints: 2, phase: closed},
		{name: "open runs", endpoints: 1, phase: mixed + "open {\n rate = 3000\n duration = \"2s\"\n sessions = 2\n on_full = \"shed\"\n}"},
		{name: "programs", endpoints: 2, phase: closed, script: func(b *bench) { b.indirect = true }},
		{name: "quorum", endpoints: 3, target: nwr321, phase: strings.Replace(closed, "delete = 1", "delete = 0", 1)},
		{name: "scenario", endpoints: 1, phase: "samples = 100000\nscenario \"s\" {\n weight = 1\n step \"put\" {}\n step \"get\" {}\n}\nclosed {\n sessions = 3\n duration = \"300ms\"\n}"},
		{name: "errors", endpoints: 2, phase: closed, script: func(b *bench) { b.server(0).words = []byte("-OOM no room\r\n") }, says: "OOM no room"},
		{name: "errors of programs", endpoints: 2, phase: closed, script: func(b *bench) { b.indirect, b.server(0).words = true, []byte("-OOM no room\r\n") }, says: "OOM no room"},
		{name: "timeouts", endpoints: 1, target: `timeout = "20ms"`, phase: closed, script: func(b *bench) { b.server(0).latency = every(100, -1) }, says: ":"},
		{name: "lost", endpoints: 2, phase: closed, script: func(b *bench) { after(b, 200*time.Millisecond, b.server(0).sever) }, says: ":"},
		{name: "lost of programs", endpoints: 2, phase: closed, script: func(b *bench) {
			b.indirect = true
			after(b, 200*time.Millisecond, b.server(0).sever)
		}, says: ":"},
	} {
		t.Run(c.name, func(t *testing.T) {
			totals, ops := sampled(t, redisPlanOf(t, c.endpoints, "size = 100", c.target, c.phase), c.script)
			sameOps(t, &totals, ops)
			saying := 0
			for _, of := range ops {
				if of.Outcome == driver.Error && of.Error != "" { // one that found no connection has none
					require.Contains(t, of.Error, c.says)
					saying++
				} else if !of.Outcome.Failed() {
					require.Empty(t, of.Error)
				}
			}
			require.Equal(t, c.says != "", saying > 0)
			lost := uint64(0)
			for _, o := range totals.Ops {
				if o != nil {
					lost += o.Causes[op.Lost]
				}
			}
			require.GreaterOrEqual(t, uint64(saying), lost, "each that was lost has a reason")
		})
	}
}

// TestSamplesAreBoundedAndSeeded keeps few of many, the same ones again with the same seed.
func TestSamplesAreBoundedAndSeeded(t *testing.T) {
	phase := func(n int) string {
		return fmt.Sprintf("samples = %d\nops = { get = 3, put = 1 }\nclosed {\n sessions = 3\n duration = \"3s\"\n pipeline = 5\n}", n)
	}
	_, some := sampled(t, redisPlanOf(t, 1, "size = 100", "", phase(50)), nil)
	require.Len(t, some, 50)
	_, again := sampled(t, redisPlanOf(t, 1, "size = 100", "", phase(50)), nil)
	require.Equal(t, some, again)
	_, all := sampled(t, redisPlanOf(t, 1, "size = 100", "", phase(100_000)), nil)
	require.Greater(t, len(all), 10_000)
	thirds := [3]int{}
	from, to := all[0].Start, all[len(all)-1].Start+1
	for _, op := range some {
		thirds[3*(op.Start-from)/(to-from)]++
	}
	for _, n := range thirds {
		require.InDelta(t, 50.0/3, n, 16, "over the whole of the phase: %v", thirds)
	}
}

// TestSamplesOfWebKnowStatusAndBytes loads a server that says how it answers.
func TestSamplesOfWebKnowStatusAndBytes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	text := strings.Replace(webPlan(server.Listener.Addr().String(), "", "200B", "closed {\n sessions = 2\n iterations = 100\n}"), "max_bad     = 1", "max_bad = 1\nsamples = 1000", 1)
	ops := samplesOf(t, text)
	require.Len(t, ops, 200)
	seen := map[int]int{}
	for _, op := range ops {
		seen[op.Code]++
		require.Greater(t, op.In, int64(30))
		require.Greater(t, op.Out, int64(30))
		switch op.Verb {
		case driver.Put:
			require.Equal(t, driver.Error, op.Outcome)
			require.Equal(t, 503, op.Code)
			require.Equal(t, "status 503 Service Unavailable", op.Error)
			require.Greater(t, op.Out, int64(200))
		default:
			require.Equal(t, driver.Miss, op.Outcome)
			require.Equal(t, 404, op.Code)
		}
	}
	require.Len(t, seen, 2)
}

// An op of which several requests failed for different reasons has no single reason, one whose requests all failed for the same has that.
func TestWhyAnOpFailed(t *testing.T) {
	l := &loop{sampling: new(sampling), rec: new(measure.Totals)}
	for _, c := range []struct {
		said []string
		want string
	}{{[]string{"a"}, "a"}, {[]string{"a", "a"}, "a"}, {[]string{"a", "b"}, string(severalErrors)}, {[]string{"a", "b", "b"}, string(severalErrors)}} {
		l.sampling.forget()
		for _, text := range c.said {
			l.wrong([]byte(text))
		}
		require.Equal(t, c.want, string(l.sampling.why))
	}
}

// Steps, workers and loops each draw from a sequence of their own, in which it does not matter how ops end.
func TestDrawsAreIndependent(t *testing.T) {
	draws := func(seq, from, loop int, alone bool) (list []int64) {
		s := newSampling(3, 7, worker.Step{Seq: seq, From: from}, loop, 0)
		for due := range int64(1000) {
			if alone {
				s.endedAlone(&measure.Sample{Due: due}, new(opState))
			} else {
				s.ended(&measure.Sample{Due: due}, 1)
			}
		}
		for _, op := range s.drawn() {
			list = append(list, op.Due)
		}
		return list
	}
	first := draws(0, 0, 0, false)
	require.Equal(t, first, draws(0, 0, 0, true))
	for _, of := range [][3]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 512}} {
		require.NotEqual(t, first, draws(of[0], of[1], of[2], false), of)
	}
}

// Samples are in the time of the assignment's wall clock.
func TestSamplesAreInWallTime(t *testing.T) {
	e := assigned(t, Config{Loops: 1}, nullPlan(t, 1, "", "ops = { get = 1 }\nsamples = 10\nclosed { iterations = 5 }"))
	e.clock = &virtualClock{tick: 10}
	loaded(t, e)
	var all measure.Samples
	_, err := e.Run(t.Context(), e.now(), func(s *measure.Snapshot) (func() error, error) {
		all.Merge(&s.Samples)
		return s.CheckValid, nil
	})
	require.NoError(t, err)
	require.Len(t, all.Ops(), 5)
	for _, op := range all.Ops() {
		require.InDelta(t, int64(time.Hour), op.Start, float64(time.Second))
	}
}
