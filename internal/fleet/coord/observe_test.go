package coord_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// fakeProbe counts how often it is taken, and says when to the worker's notes.
type fakeProbe struct {
	mu     sync.Mutex
	w      *fakeWorker
	taken  float64
	closed bool
	hang   chan struct{} // Take returns when it is closed, whatever its ctx says; nil: at once
}

func (p *fakeProbe) Of() string { return "a fake" }

func (p *fakeProbe) Take(context.Context) (map[string]float64, map[string]string) {
	if p.hang != nil {
		<-p.hang
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	p.w.note("probe %v", p.taken)
	return map[string]float64{"used_bytes": p.taken, "size_bytes": 7}, map[string]string{"files": "not counted"}
}

func (p *fakeProbe) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

const observed = twoPhases + `
observe "disk" {
	directory { path = "/" }
}`

// observing returns a config whose observations are the probe's.
func observing(t *testing.T, text string, join joiner, p *fakeProbe) coord.Config {
	cfg := configOf(t, text, join, p.w)
	cfg.Observe = func(o *plan.Observe, endpoints []string) coord.Probe {
		require.Equal(t, "disk", o.Name)
		require.Empty(t, endpoints)
		return p
	}
	return cfg
}

func TestProbesStandAroundTheLoad(t *testing.T) { overBoth(t, testProbesStandAroundTheLoad) }

func testProbesStandAroundTheLoad(t *testing.T, join joiner) {
	p := &fakeProbe{w: newFake()}
	cfg := observing(t, observed, join, p)
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Equal(t, []string{
		"assign 0 of 1",
		"prepare first setup 0–10 last=false", "run first setup",
		"prepare first load 0–10 last=true", "probe 1", "run first load", "probe 2",
		"prepare second load 0–3 last=true", "probe 3", "run second load", "probe 4",
	}, p.w.noted())
	require.True(t, p.closed)
	disk := r.Phase["second"].Observe["disk"]
	require.Equal(t, []float64{3, 4, 1}, []float64{*disk["used_bytes"].Before, *disk["used_bytes"].After, *disk["used_bytes"].Delta})
	require.Equal(t, "not counted", r.Why("phase", "first", "observe", "disk", "files", "before").Text)
	require.Equal(t, []any{"directory", "a fake", 2}, []any{r.Phase["first"].Probes["disk"].Kind, r.Phase["first"].Probes["disk"].Of, r.Phase["first"].Probes["disk"].Taken})
	require.LessOrEqual(t, r.Phase["first"].Probes["disk"].Series[0].T, 0.0)

	kept := cfg.Store.(*memory).probes
	require.Len(t, kept, 4)
	var last run.Probe
	require.NoError(t, json.Unmarshal([]byte(kept[3]), &last))
	require.Equal(t, []any{"second", "disk", "after", 4.0}, []any{last.Phase, last.Observe, last.When, last.Value["used_bytes"]})
	require.NotContains(t, kept[0], "\n")
}

// A probe that does not return costs its timeout once before and once after the load, and does not disturb the load.
func TestProbeHangs(t *testing.T) { overBoth(t, testProbeHangs) }

func testProbeHangs(t *testing.T, join joiner) {
	p := &fakeProbe{w: newFake(), hang: make(chan struct{})}
	defer close(p.hang)
	cfg := observing(t, strings.Replace(observed, `directory { path = "/" }`, "timeout = \"100ms\"\n every = \"1s\"\n directory { path = \"/\" }", 1), join, p)
	began := time.Now()
	p.w.count = func(_ context.Context, w *fakeWorker, step worker.Step, t *measure.Totals) {
		done(t, step.To-step.From)
	}
	r := coord.Run(context.Background(), cfg)
	require.Less(t, time.Since(began), 3*time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.EqualValues(t, 10, r.Phase["first"].Op["put"].OK)
	require.Equal(t, "the probe before has not returned", r.Why("phase", "first", "observe", "disk", "used_bytes", "before").Text)
	require.Equal(t, []run.ErrorText{{Text: "no answer within 100ms", Count: 1}, {Text: "the probe before has not returned", Count: 1}}, r.Phase["first"].Probes["disk"].Errors)
	require.Equal(t, 2, r.Phase["second"].Probes["disk"].Failed)
}

// While a load goes on there is a probe each second; the load's end does not wait for one.
func TestProbesDuringTheLoad(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := &fakeProbe{w: newFake()}
		text := strings.Replace(observed, `directory { path = "/" }`, "every = \"1s\"\n directory { path = \"/\" }", 1)
		p.w.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
			if step.Phase == "second" {
				time.Sleep(2500 * time.Millisecond)
			}
			done(t, step.To-step.From)
		}
		r := coord.Run(context.Background(), observing(t, text, local, p))
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		var at []float64
		for _, point := range r.Phase["second"].Probes["disk"].Series {
			at = append(at, math.Round(point.T*10)/10)
		}
		require.Equal(t, []float64{0, 1, 2, 2.5}, at)
	})
}

func TestProbesCannotBeKept(t *testing.T) {
	p := &fakeProbe{w: newFake()}
	cfg := observing(t, observed, local, p)
	cfg.Store = &fullAfter{memory: memory{}, err: errors.New("no space left on device")}
	r := coord.Run(context.Background(), cfg)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "no space left on device")
}

// fullAfter is a Store that keeps snapshots, and no probes.
type fullAfter struct {
	memory
	err error
}

func (f *fullAfter) Observe([]byte) error { return f.err }

// When the user ends the run at once, nothing waits for probes.
func TestProbesOfARunThatIsEnded(t *testing.T) {
	p := &fakeProbe{w: newFake()}
	ctx, cancel := context.WithCancel(context.Background())
	p.w.count = func(ctx context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
		if step.Kind.Timed() {
			cancel()
			<-ctx.Done()
		}
		done(t, step.To-step.From)
	}
	r := coord.Run(ctx, observing(t, observed, local, p))
	require.Equal(t, run.Aborted, r.Verdict.Completeness)
	require.Contains(t, r.Phase, "first")
	require.NotNil(t, r.Phase["first"].Observe["disk"]["used_bytes"].Before)
}

// sluggish is a probe whose takes last as long as told. It may notice that its time is over.
type sluggish struct {
	lasts time.Duration
	hears bool
}

func (*sluggish) Of() string { return "a sluggish one" }
func (*sluggish) Close()     {}

func (p *sluggish) Take(ctx context.Context) (map[string]float64, map[string]string) {
	if !p.hears {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(p.lasts):
		return map[string]float64{"used_bytes": 1, "size_bytes": 7}, nil
	case <-ctx.Done():
		return nil, map[string]string{"": "cut off"}
	}
}

// TestProbesThatTakeTooLong: a probe gets its timeout, and a moment to notice that it is over. One that runs on blocks later probes until it returns.
func TestProbesThatTakeTooLong(t *testing.T) {
	const timeout, moment = 2 * time.Second, 50 * time.Millisecond
	none := []run.ErrorText{}
	for name, c := range map[string]struct {
		probe         sluggish
		first, second []run.ErrorText
	}{
		"in time":              {sluggish{lasts: timeout - 1}, none, none},
		"a moment late":        {sluggish{lasts: timeout + moment - 1}, none, none},
		"it hears of its time": {sluggish{time.Hour, true}, []run.ErrorText{{Text: "cut off", Count: 2}}, []run.ErrorText{{Text: "cut off", Count: 2}}},
		"too late": {
			sluggish{lasts: timeout + time.Second},
			[]run.ErrorText{{Text: "no answer within 2s", Count: 1}, {Text: "the probe before has not returned", Count: 1}},
			[]run.ErrorText{{Text: "no answer within 2s", Count: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				w := newFake()
				w.count = func(_ context.Context, _ *fakeWorker, step worker.Step, t *measure.Totals) {
					if done(t, step.To-step.From); step.Phase == "second" {
						time.Sleep(5 * time.Second)
					}
				}
				w.prepare = func(context.Context) {
					if w.step.Kind.Timed() { // the first phase is over
						time.Sleep(5 * time.Second)
					}
				}
				cfg := configOf(t, strings.Replace(observed, "directory {", "timeout = \"2s\"\n directory {", 1), local, w)
				cfg.Observe = func(*plan.Observe, []string) coord.Probe { return &c.probe }
				r := coord.Run(t.Context(), cfg)
				require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
				require.Equal(t, c.first, r.Phase["first"].Probes["disk"].Errors)
				require.Equal(t, c.second, r.Phase["second"].Probes["disk"].Errors)
				time.Sleep(5 * time.Second) // until the last has returned
			})
		})
	}
}

// TestWhereProbesLook: at the endpoints of started nodes, otherwise at those of the plan; each is asked for its counts, too.
func TestWhereProbesLook(t *testing.T) {
	for target, want := range map[string][]string{`endpoints = ["10.0.0.1:1"]`: {"10.0.0.1:1"}, "builtin {}": {"127.0.0.1:7", "127.0.0.1:8"}} {
		text := strings.NewReplacer(`"null"`, `"redis"`, `endpoints = ["a"]`, target).Replace(onePhase)
		text += "\nobserve \"o\" {\n server {\n target = target.t\n fields = [\"used_memory\"]\n }\n}"
		p := &fakeProbe{w: newFake()}
		cfg := configOf(t, text, local, p.w)
		cfg.Nodes = new(builtIn)
		var at [][]string
		cfg.Observe = func(_ *plan.Observe, endpoints []string) coord.Probe {
			at = append(at, endpoints)
			return p
		}
		coord.Run(t.Context(), cfg)
		require.Equal(t, want, at[0])
		require.Equal(t, want, slices.Concat(at[1:]...))
		require.True(t, p.closed)
	}
}
