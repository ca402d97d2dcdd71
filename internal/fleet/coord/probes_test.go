package coord

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sluggish is a probe whose takes last the given times; the last applies to all that follow. It may notice that its time is over.
type sluggish struct {
	takes []time.Duration
	hears bool
	taken int
}

func (*sluggish) Of() string { return "a sluggish one" }
func (*sluggish) Close()     {}

func (p *sluggish) Take(ctx context.Context) (map[string]float64, map[string]string) {
	took := p.takes[min(p.taken, len(p.takes)-1)]
	p.taken++
	if !p.hears {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return nil, map[string]string{"": "cut off"}
	}
	return map[string]float64{"n": float64(p.taken)}, nil
}

// watching takes probes each second, with a timeout, and returns what its journal keeps.
func watching(probe Probe, every, timeout time.Duration) (*watcher, *kept) {
	k := &kept{}
	c := &coordinator{zero: time.Now(), journal: newJournal(k)}
	return &watcher{c: c, phase: "p", o: &plan.Observe{Name: "o", Every: every, Timeout: timeout}, probe: &asked{Probe: probe}}, k
}

// A probe gets its timeout, and a moment to notice that it is over. One that runs on blocks later probes until it returns.
func TestProbesThatTakeTooLong(t *testing.T) {
	const timeout, moment = 2 * time.Second, 50 * time.Millisecond
	for name, c := range map[string]struct {
		takes time.Duration
		hears bool
		after time.Duration
		want  map[string]string
		late  bool
	}{
		"in time":              {takes: timeout - 1, after: timeout - 1},
		"a moment late":        {takes: timeout + moment - 1, after: timeout + moment - 1},
		"it hears of its time": {takes: time.Hour, hears: true, after: timeout, want: map[string]string{"": "cut off"}},
		"too late":             {takes: timeout + moment + 1, after: timeout + moment, want: map[string]string{"": "no answer within 2s"}, late: true},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			w, k := watching(&sluggish{takes: []time.Duration{c.takes, 0}, hears: c.hears}, 0, timeout)
			var got []run.Probe
			take := func() run.Probe {
				w.take(t.Context(), func(p *run.Probe) { p.When = "during"; got = append(got, *p) })
				return got[len(got)-1]
			}
			p := take()
			require.Equal(t, c.after, time.Since(w.c.zero), name)
			require.Equal(t, []float64{c.after.Seconds(), c.after.Seconds()}, []float64{p.At, p.Seconds}, name)
			require.Equal(t, c.want, p.Missing, name)
			require.Equal(t, c.want == nil, p.Value != nil, name)
			require.Equal(t, c.late, w.probe.late != nil, name)
			if c.late {
				p = take()
				require.Equal(t, map[string]string{"": "the probe before has not returned"}, p.Missing)
				require.Zero(t, p.Seconds)
				require.Equal(t, c.after, time.Since(w.c.zero), "it is not waited for")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			p = take()
			require.Nil(t, p.Missing, name)
			require.Equal(t, 2.0, p.Value["n"], "the second that was made")
			require.Nil(t, w.probe.late, name)
			w.c.journal.close()
			require.Equal(t, len(got), k.appended, name)
		})
	}
}

// A target is observed at its endpoints: those of started nodes, otherwise those of the plan. A run that is read back observes nothing.
func TestWhereProbesLook(t *testing.T) {
	for name, c := range map[string]struct {
		target  *plan.Target
		of      string
		want    []string
		watched bool
	}{
		"of the plan":   {&plan.Target{Name: "t", Endpoints: []string{"a"}}, "t", []string{"a"}, true},
		"built in":      {&plan.Target{Name: "t", Endpoints: []string{"a"}, Builtin: &plan.Builtin{}}, "t", []string{"n"}, true},
		"of no target":  {&plan.Target{Name: "t", Endpoints: []string{"a"}}, "", nil, true},
		"no one's name": {&plan.Target{Name: "t", Endpoints: []string{"a"}}, "u", nil, true},
		"none":          {target: &plan.Target{Name: "t"}},
	} {
		var at [][]string
		k := &kept{}
		closed := 0
		cfg := Config{Plan: &plan.Plan{Targets: []*plan.Target{c.target}}, Observe: func(_ *plan.Observe, endpoints []string) Probe {
			at = append(at, endpoints)
			return closing{closed: &closed}
		}}
		if c.watched {
			cfg.Plan.Observes = []*plan.Observe{{Name: "o", Target: c.of}}
		}
		co := newCoordinator(cfg)
		co.nodes, co.journal = map[string][]string{"t": {"n"}}, newJournal(k)
		end := co.observe()
		require.Zero(t, closed, name)
		end()
		co.journal.close()
		if !c.watched {
			require.Zero(t, k.appended, "nothing is watched")
			continue
		}
		require.Equal(t, [][]string{c.want}, at, name)
		require.Equal(t, 1, closed, name)
		require.Equal(t, 1, k.appended, "what is looked at, in words")
		co.past, at = &past{}, nil
		co.observe()()
		require.Empty(t, at, name)
		require.Equal(t, 1, closed, name)
	}
}

// closing is a probe that counts how often it is closed.
type closing struct {
	Probe
	closed *int
}

func (closing) Of() string { return "a file" }
func (c closing) Close()   { *c.closed++ }
