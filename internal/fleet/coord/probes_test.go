package coord

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/judge"
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

// A probe that falls due while another is in progress is skipped and counted. Those that are merely late because of it are not.
func TestProbesThatAreSkipped(t *testing.T) {
	for _, c := range []struct {
		takes          []time.Duration
		seconds        float64
		skipped, taken int
	}{
		{[]time.Duration{0}, 5.5, 0, 5},
		{[]time.Duration{900 * time.Millisecond}, 5.5, 0, 4},
		{[]time.Duration{900 * time.Millisecond}, 5.95, 0, 5},
		{[]time.Duration{1500 * time.Millisecond, 0}, 5.6, 0, 5},
		{[]time.Duration{2500 * time.Millisecond, 0}, 5.6, 1, 4},
		{[]time.Duration{3500 * time.Millisecond, 0}, 5.6, 2, 3},
		{[]time.Duration{3500 * time.Millisecond, 0}, 9.1, 2, 7},
		{[]time.Duration{2500 * time.Millisecond, 0, 3500 * time.Millisecond, 0}, 9.1, 3, 6},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			w, k := watching(&sluggish{takes: c.takes, hears: true}, time.Second, time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(c.seconds*1e9), cancel)
			w.each(ctx)
			require.Equal(t, time.Duration(c.seconds*1e9), time.Since(w.c.zero), "it ends with the load")
			synctest.Wait()
			w.c.journal.close()
			require.Equal(t, []int{c.skipped, c.taken}, []int{w.seen.Skipped, k.appended}, "%+v", c)
		})
	}
}

// An observation that is only made before and after the load takes no probes during it.
func TestProbesAroundTheLoadAlone(t *testing.T) {
	w, _ := watching(&sluggish{takes: []time.Duration{0}}, 0, time.Minute)
	w.each(t.Context())
	require.Zero(t, w.probe.Probe.(*sluggish).taken)
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

// A probe cut off by the end of the load is left out; one that timed out is not.
func TestProbesThatTheEndCutsOff(t *testing.T) {
	for timeout, taken := range map[time.Duration]int{time.Minute: 0, time.Second: 1} {
		servertest.Bubble(t, func(t *testing.T) {
			w, k := watching(&sluggish{takes: []time.Duration{time.Hour}, hears: true}, time.Second, timeout)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(2500*time.Millisecond, cancel)
			w.each(ctx)
			w.c.journal.close()
			require.Equal(t, taken, k.appended, "%v", timeout)
		})
	}
}

// A probe that cannot be written is an error of the phase; later probes do not clear it.
func TestProbesThatCannotBeWritten(t *testing.T) {
	w, k := watching(nil, 0, time.Second)
	begin := func(p *run.Probe) { p.When = "before" }
	w.enter(begin, time.Now(), probed{value: map[string]float64{"n": math.NaN()}})
	require.Nil(t, w.last)
	require.ErrorContains(t, w.kept(), `observe "o": encode a probe: `)
	w.enter(begin, time.Now(), probed{})
	require.ErrorContains(t, w.kept(), `observe "o": encode a probe: `)
	w.c.journal.close()
	require.Equal(t, 1, k.appended)
}

// The end of a phase waits until its probes are on disk, without the usual delay.
func TestTheEndWaitsForProbesToBeKept(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		w, k := watching(&sluggish{takes: []time.Duration{0}}, 0, time.Second)
		all := &watch{all: []*watcher{w}}
		all.begin(t.Context())
		require.NoError(t, all.end(t.Context()))
		require.Equal(t, w.c.zero, time.Now(), "nothing is waited for")
		require.Equal(t, []int{2, 1}, []int{k.appended, k.syncs})
		require.Equal(t, map[string]*judge.Observation{"o": &w.seen}, all.observed())

		w, k = watching(&sluggish{takes: []time.Duration{0}}, 0, time.Second)
		k.err = errRefuses
		all = &watch{all: []*watcher{w}}
		all.begin(t.Context())
		require.ErrorIs(t, all.end(t.Context()), errRefuses)
	})
}

// The load begins once all probes before it have answered. The probes after it begin once those during it have ended.
func TestProbesOfAPhaseFollowEachOther(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		fast, _ := watching(&sluggish{takes: []time.Duration{time.Second}}, 0, time.Minute)
		slow, _ := watching(&sluggish{takes: []time.Duration{3 * time.Second, 2 * time.Second}}, 0, time.Minute)
		all := &watch{all: []*watcher{fast, slow}}
		all.begin(t.Context())
		require.Equal(t, 3*time.Second, time.Since(slow.c.zero))
		require.NoError(t, all.end(t.Context()))
		require.Equal(t, 5*time.Second, time.Since(slow.c.zero))
		require.Equal(t, []int{2, 2}, []int{fast.probe.Probe.(*sluggish).taken, slow.probe.Probe.(*sluggish).taken})
	})
	servertest.Bubble(t, func(t *testing.T) {
		w, _ := watching(&sluggish{takes: []time.Duration{0, 10 * time.Second, 0}}, time.Second, time.Minute)
		all := &watch{all: []*watcher{w}}
		all.begin(t.Context())
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, all.end(t.Context()))
		require.Equal(t, 1550*time.Millisecond, time.Since(w.c.zero), "the one in the load does not return, and is given its moment")
		time.Sleep(10 * time.Second)
	})
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

// Emptying built-in nodes is observed as a load is: before and after.
func TestProbesAroundAFlush(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		s := stepOf(t, "closed {\n sessions = 10\n iterations = 3\n}", 1)
		s.c.Plan.Targets[0].Builtin = &plan.Builtin{}
		s.ph.Clear = &plan.Clear{}
		s.c.Plan.Observes = []*plan.Observe{{Name: "o", Timeout: time.Minute}}
		s.c.Observe = func(*plan.Observe, []string) Probe { return &sluggish{takes: []time.Duration{time.Second}} }
		s.c.Nodes, s.c.journal = &nodes{}, newJournal(&kept{})
		end := s.c.observe()
		require.NoError(t, s.c.phase(t.Context(), s.ph))
		end()
		s.c.journal.close()
		require.Equal(t, 2*time.Second, time.Since(s.c.zero))
		p := s.c.result.Phase["p"]
		require.Equal(t, []any{2, 0, "a sluggish one"}, []any{p.Probes["o"].Taken, p.Probes["o"].Failed, p.Probes["o"].Of})
	})
}
