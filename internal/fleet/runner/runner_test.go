package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

// text is a plan without a target; the test says how long it loads, and what else it has.
const text = `plan "p" { description = "A load on nothing" }
variable "sessions" { default = 1 }
target "t" { driver = "null" }
dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}
phase "get" {
  target  = target.t
  dataset = dataset.d
  ops     = { get = 1 }
  closed {
    sessions = var.sessions
    %s
  }
}
%s`

// parsed is the plan of a text.
func parsed(t *testing.T, load, more string) *plan.File {
	file, diags := plan.Parse(fmt.Appendf(nil, text, load, more), "p.hcl", drivers.All())
	require.Empty(t, diags)
	return file
}

func resolved(t *testing.T, file *plan.File, variant string) *plan.Plan {
	p, diags := file.Resolve(plan.Vars{Variant: variant})
	require.Empty(t, diags)
	return p
}

// shown counts what it is told.
type shown struct{ updates, cleared int }

func (s *shown) Show(run.Update) { s.updates++ }
func (s *shown) Clear()          { s.cleared++ }

// config runs plans in this process.
func config(t *testing.T, progress *shown) Config {
	quiet := slog.New(slog.DiscardHandler)
	return Config{
		Root: t.TempDir(), Version: "v1", Labels: map[string]string{"a": "b"},
		Samples:     func(*rundir.Dir, *plan.Plan, *run.Run) error { return nil },
		Means:       observe.Means{Drivers: drivers.All()},
		Protocol:    drivers.Stock().Protocol,
		Environment: func() machine.Environment { return machine.Environment{Hostname: "here"} },
		Words:       io.Discard, Progress: func(string) Progress { return progress }, Logger: quiet, Drain: make(chan struct{}),
		Fleet: FleetConfig{
			Version: "v1", CPU: func() time.Duration { return 2 * time.Second },
			New: func(keep []int) rpc.Local {
				return engine.New(engine.Config{Keep: keep, Drivers: drivers.All(), Loops: 1, Spin: -1, Sleep: time.Sleep, Logger: quiet})
			},
		},
	}
}

// requireKept checks that a run's directory holds its result.
func requireKept(t *testing.T, c Config, r *run.Run, dir string) {
	t.Helper()
	require.Equal(t, filepath.Join(c.Root, r.ID), dir)
	kept, err := rundir.Load(c.Root, r.ID)
	require.NoError(t, err)
	require.Equal(t, r.Verdict.Completeness, kept.Verdict.Completeness)
	require.Equal(t, r.Verdict.Reasons, kept.Verdict.Reasons)
	require.Equal(t, r.ExitCode, kept.ExitCode)
}

func TestARunIsKeptWithItsAsserts(t *testing.T) {
	progress := &shown{}
	c := config(t, progress)
	p := resolved(t, parsed(t, "iterations = 7", `assert "seven" { that = phase.get.op.get.ok + phase.get.op.get.miss == 7 }`+"\n"+`assert "eight" { that = phase.get.op.get.due == 8 }`), "")
	r, dir, err := Run(t.Context(), c, p, "")
	require.NoError(t, err)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Equal(t, []bool{true, false}, []bool{*r.Asserts[0].OK, *r.Asserts[1].OK})
	require.Equal(t, run.Fail, r.Verdict.Assertions)
	require.EqualValues(t, 7, r.Phase["get"].Op["get"].Due)
	require.Equal(t, []any{"p", "v1", "here", "b", ""}, []any{r.Plan, r.Loadgen, r.Environment.Hostname, r.Labels["a"], r.Variant})
	require.InDelta(t, 2, r.CoordinatorCPUSeconds, 0)
	require.Equal(t, []string{Local}, r.Workers)
	require.Equal(t, 1, progress.cleared)
	require.Positive(t, progress.updates)
	requireKept(t, c, r, dir)
}

// A run whose worker cannot begin also has a result, which says why.
func TestARunThatCannotBeginIsKept(t *testing.T) {
	c := config(t, &shown{})
	c.Fleet.Workers, c.Fleet.Listen = 1, "127.0.0.1:port"
	r, dir, err := Run(t.Context(), c, resolved(t, parsed(t, "iterations = 1", ""), ""), "")
	require.NoError(t, err)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Equal(t, []reason.Code{reason.NotCarriedOut}, r.Verdict.Codes)
	require.ErrorContains(t, errors.New(r.Verdict.Reasons[0]), "--listen")
	requireKept(t, c, r, dir)
}

func TestWhatCannotBeKeptFailsTheRun(t *testing.T) {
	c := config(t, &shown{})
	c.Samples = func(*rundir.Dir, *plan.Plan, *run.Run) error { return errors.New("no room for samples") }
	r, _, err := Run(t.Context(), c, resolved(t, parsed(t, "iterations = 1", ""), ""), "")
	require.NoError(t, err)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Codes, reason.NotKept)
	require.Contains(t, r.Verdict.Reasons, "no room for samples")

	c.Root = filepath.Join(c.Root, "a\x00b")
	_, _, err = Run(t.Context(), c, resolved(t, parsed(t, "iterations = 1", ""), ""), "")
	require.Error(t, err, "there is no directory, and no result")
}

// door is a port that is open to everybody.
type door struct{ at net.Listener }

func (d door) Listener() net.Listener { return d.at }
func (door) Guard(*http.Server)       {}
func (door) Words() string            { return "" }

// TestARunIsWatched: page, stream and metrics show a run, its event and its verdict, until the configuration ends them. Hooks are told what they are for.
func TestARunIsWatched(t *testing.T) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := config(t, &shown{})
	note := filepath.Join(t.TempDir(), "note")
	c.Allowed = map[string]hook.Hook{}
	c.Allowed["note"], err = hook.Parse("note=sh -c 'echo $LOADGEN_EVENT $LOADGEN_VAR_sessions $LOADGEN_RUN >>" + note + "'")
	require.NoError(t, err)
	c.Restart = Restart{Hook: "note", Within: time.Minute, Values: map[string]string{"sessions": "1"}}
	c.Page = func() (prom.Door, error) { return door{at}, nil }
	c.Source = func(id string) (timeline.Source, error) {
		r, err := rundir.Load(c.Root, id)
		return timeline.Source{Run: r}, err
	}
	var end func(context.Context)
	c.Stay = func(f func(context.Context)) { end = f }
	drain := make(chan struct{})
	c.Drain = drain
	p := resolved(t, parsed(t, `duration = "10m"
    think    = "10ms"
  }
  event "noted" {
    at   = "100ms"
    do   = "hook"
    hook = hook.note`, ""), "")

	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	get := func(path string) *http.Response {
		answer, err := client.Get("http://" + at.Addr().String() + path)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return answer
	}
	text := func(path string) string {
		answer := get(path)
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(all)
	}
	watched := make(chan string, 1)
	go func() { // from the load's first second until its end
		answer := get("/stream")
		defer answer.Body.Close()
		all := ""
		for lines := bufio.NewScanner(answer.Body); !strings.Contains(all, "event: end") && lines.Scan(); {
			if all += lines.Text() + "\n"; strings.Contains(all, "noted") && c.Drain != nil {
				c.Drain = nil
				close(drain)
			}
		}
		watched <- all
	}()
	r, _, err := Run(t.Context(), c, p, "")
	require.NoError(t, err)
	require.Equal(t, exit.Aborted, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, <-watched, "ABORTED")
	told, err := os.ReadFile(note)
	require.NoError(t, err)
	require.Equal(t, "1 "+r.ID+"\nnoted "+r.ID+"\n", string(told), "the restart, and the event")

	require.Contains(t, text("/"), "<title>")
	metrics := text("/metrics")
	require.Regexp(t, fmt.Sprintf(`(?m)^loadgen_ops_total\{.*outcome="miss".*\} %d$`, r.Phase["get"].Op["get"].Miss), metrics)
	require.Regexp(t, `(?m)^loadgen_event\{event="noted".*\} 0$`, metrics, "its phase is over")
	end(t.Context())
	_, err = client.Get("http://" + at.Addr().String() + "/")
	require.Error(t, err)
}

// An endless load ends with its limit, or when the user says so, and the result tells which it was.
func TestRunsThatAreEnded(t *testing.T) {
	p := resolved(t, parsed(t, `duration = "10m"`, ""), "")
	c := config(t, &shown{})
	c.Timeout = 50 * time.Millisecond
	r, _, err := Run(t.Context(), c, p, "")
	require.NoError(t, err)
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Equal(t, reason.TimedOut, r.Verdict.Codes[0])
	require.Equal(t, "ended by --timeout 50ms", r.Verdict.Reasons[0])

	c = config(t, &shown{})
	drain := make(chan struct{})
	close(drain)
	c.Drain = drain
	r, _, err = Run(t.Context(), c, p, "")
	require.NoError(t, err)
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Equal(t, reason.User.Code, r.Verdict.Codes[0])
}

// TestTimeoutHidesNoReason: what ended a run before its limit did comes first, and what came with the end stays.
func TestTimeoutHidesNoReason(t *testing.T) {
	c := config(t, &shown{})
	c.Timeout = 50 * time.Millisecond
	c.Fleet.Listen, c.Fleet.Workers, c.Fleet.Means.Dir = "127.0.0.1:0", 1, filepath.Join(t.TempDir(), "fleet")
	c.Fleet.Wait, c.Fleet.TTL, c.Fleet.Lease, c.Fleet.Words = time.Minute, time.Minute, 10*time.Second, io.Discard
	r, _, err := Run(t.Context(), c, resolved(t, parsed(t, `duration = "10m"`, ""), ""), "")
	require.NoError(t, err)
	require.Equal(t, []reason.Code{reason.TimedOut, reason.NotCarriedOut}, r.Verdict.Codes, r.Verdict.Reasons)
	require.Contains(t, r.Verdict.Reasons[1], "no worker has come")

	late := reason.Why{Code: reason.TimedOut, Text: "ended by --timeout 1s"}
	for name, c := range map[string]struct{ before, want []reason.Why }{
		"the plan's stop": {[]reason.Why{{Code: reason.StoppedByPlan, Text: "stop"}}, []reason.Why{{Code: reason.StoppedByPlan, Text: "stop"}, late}},
		"a lost worker":   {[]reason.Why{reason.User, {Code: reason.WorkerLost, Text: "w1"}}, []reason.Why{late, {Code: reason.WorkerLost, Text: "w1"}}},
	} {
		r := run.New(run.Header{}, machine.Environment{})
		r.Conclude(run.Aborted, c.before...)
		require.Equal(t, c.want, endedBy(r, late), name)
	}
}

// TestUnstartedRuns: the result says whether it was the user who stopped waiting for workers.
func TestUnstartedRuns(t *testing.T) {
	cause := errors.New("no worker has come")
	r := unstarted(t.Context(), job{}, machine.Environment{}, cause)
	require.Equal(t, []any{exit.Failed, []string{"no worker has come"}}, []any{r.ExitCode, r.Verdict.Reasons})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r = unstarted(ended, job{}, machine.Environment{}, cause)
	require.Equal(t, []any{exit.Aborted, []reason.Code{reason.User.Code, reason.NotCarriedOut}}, []any{r.ExitCode, r.Verdict.Codes})
}

// ids are those of an experiment's runs.
func ids(x *run.Experiment) (all []string) {
	for _, r := range x.Runs {
		all = append(all, r.ID)
	}
	return all
}

// requireAgain checks that settings and runs make the same experiment, but for what only it says.
func requireAgain(t *testing.T, c Config, trial *Trial, x *run.Experiment, unproven ...string) {
	t.Helper()
	var s experiment.Settings
	_, err := rundir.Settings(c.Root, x.ID, &s)
	require.NoError(t, err)
	require.NoError(t, s.CheckValid())
	var runs []*run.Run
	for _, id := range ids(x) {
		r, err := rundir.Load(c.Root, id)
		require.NoError(t, err)
		runs = append(runs, r)
	}
	again, not, err := experiment.Again(x, &s, runs)
	require.NoError(t, err)
	planOf := func(r *run.Run) (*plan.Plan, error) { return trial.Plans[trial.index(r.Variant)], nil }
	require.NoError(t, s.Show(again, runs, planOf, nil))
	again.StartedAt = rundir.StartOf(x.ID)
	require.Empty(t, rundir.Differences(x, again))
	require.Equal(t, unproven, not)
}

func TestAnExperimentRunsEachVariant(t *testing.T) {
	file := parsed(t, "iterations = 5", `experiment {
  repeat = 2
  variant "one" { sessions = 1 }
  variant "two" { sessions = 2 }
}
table "t" {
  column "ops" { value = phase.get.op.get.due }
}`)
	e, diags := file.Experiment()
	require.Empty(t, diags)
	tables, diags := file.Tables()
	require.Empty(t, diags)
	var ended []string
	trial := &Trial{
		Experiment: e, Plans: []*plan.Plan{resolved(t, file, "one"), resolved(t, file, "two")}, Wanted: expr.Wanted{Tables: tables},
		Ended:     func(r *run.Run, dir string) { ended = append(ended, r.Variant+" "+filepath.Base(dir)) },
		Latencies: func(*run.Experiment) expr.Latencies { return nil },
	}
	require.Same(t, trial.Plans[0], trial.Baseline())
	c := config(t, &shown{})
	x, dir, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.True(t, x.Finished)
	require.Equal(t, filepath.Join(c.Root, x.ID), dir)
	require.Len(t, x.Runs, 4)
	var named []string
	for _, r := range x.Runs {
		named = append(named, r.Variant+" "+r.ID)
		require.Equal(t, run.StopFinished, r.Stopped, r.Verdict.Reasons)
	}
	require.Equal(t, named, ended)
	require.Equal(t, "t", x.Tables[0].Title)
	require.Equal(t, []string{"5", "10"}, []string{x.Tables[0].Rows[0].Cells[0].Text, x.Tables[0].Rows[1].Cells[0].Text})
	kept, err := rundir.LoadExperiment(c.Root, x.ID)
	require.NoError(t, err)
	require.Equal(t, ids(x), ids(kept))
	requireAgain(t, c, trial, x)

	c.Resume = x.ID
	_, _, err = Experiment(t.Context(), c, trial)
	require.ErrorContains(t, err, "has all of its 4 runs")
}

// endedAfterThree returns an experiment of the variants one and two that the user ends once three runs have ended, and the IDs of all that have.
func endedAfterThree(t *testing.T, file *plan.File) (c Config, trial *Trial, ended *[]string) {
	e, diags := file.Experiment()
	require.Empty(t, diags)
	drain, ended := make(chan struct{}), new([]string)
	trial = &Trial{Experiment: e, Plans: []*plan.Plan{resolved(t, file, "one"), resolved(t, file, "two")}, Latencies: func(*run.Experiment) expr.Latencies { return nil }}
	trial.Ended = func(r *run.Run, _ string) {
		if *ended = append(*ended, r.ID); len(*ended) == 3 {
			close(drain)
		}
	}
	c = config(t, &shown{})
	c.Drain = drain
	return c, trial, ended
}

// An experiment that the user has ended resumes where it was: finished runs are not repeated.
func TestAnExperimentGoesOn(t *testing.T) {
	file := parsed(t, "iterations = 5", `experiment {
  repeat = 2
  variant "one" { sessions = 1 }
  variant "two" { sessions = 2 }
}`)
	c, trial, ended := endedAfterThree(t, file)
	x, _, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.Len(t, x.Runs, 3)
	require.Equal(t, exit.Aborted, x.ExitCode)
	require.Equal(t, reason.User.Code, x.Verdict.Codes[0])
	requireAgain(t, c, trial, x, reason.User.Text)

	c.Drain, c.Resume = make(chan struct{}), x.ID
	again, _, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.Len(t, *ended, 4)
	require.True(t, again.Finished)
	require.Equal(t, run.Complete, again.Verdict.Completeness, again.Verdict.Reasons)
	require.Equal(t, append(ids(x), (*ended)[3]), ids(again))
	requireAgain(t, c, trial, again)

	trial.Repeat, c.Resume = 3, again.ID
	_, _, err = Experiment(t.Context(), c, trial)
	require.ErrorContains(t, err, "was begun with a plan of digest "+x.PlanDigest)
}

// A gate that the user has ended cannot tell, and resumes where it was. One whose servers do not start gives up.
func TestAGateGoesOn(t *testing.T) {
	file := parsed(t, "iterations = 500", `experiment {
  repeat  = 8
  restart = hook.again
  gate {
    metric = "response.mean"
    worse  = "3%"
  }
  variant "one" { sessions = 1 }
  variant "two" { sessions = 2 }
}`)
	c, trial, _ := endedAfterThree(t, file)
	restarts := func(command string) map[string]hook.Hook {
		h, err := hook.Parse("again=" + command)
		require.NoError(t, err)
		return map[string]hook.Hook{"again": h}
	}
	c.Allowed = restarts("true")
	x, _, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.Len(t, x.Runs, 3)
	require.Equal(t, exit.Aborted, x.ExitCode)
	require.Regexp(t, "^Cannot tell after 1 pair of runs", x.Gate.Text)
	requireAgain(t, c, trial, x, reason.User.Text)

	c.Drain, c.Resume = make(chan struct{}), x.ID
	again, _, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.Equal(t, ids(x), ids(again)[:3])
	require.Equal(t, 8, again.Gate.Pairs, again.Gate.Why)
	require.NotEmpty(t, again.Gate.Decision)
	require.Len(t, again.Runs, 16)
	requireAgain(t, c, trial, again)

	c.Resume, c.Allowed = "", restarts("false")
	failed, _, err := Experiment(t.Context(), c, trial)
	require.NoError(t, err)
	require.Equal(t, exit.Failed, failed.ExitCode)
	require.LessOrEqual(t, len(failed.Runs), 3, "two of a side")
	require.Contains(t, failed.Verdict.Reasons[0], "given up, since all runs failed by the same cause")
	require.Regexp(t, "failed: restart the targets: hook again: exit status 1", failed.Gate.Why[0])
	requireAgain(t, c, trial, failed)
}

func TestHooksOfATrial(t *testing.T) {
	with := func(hooks ...string) *plan.Plan {
		p := &plan.Plan{}
		for _, name := range hooks {
			p.Observes = append(p.Observes, &plan.Observe{Kind: plan.ObserveHook, Hook: name})
		}
		return p
	}
	trial := &Trial{Experiment: &plan.Experiment{Restart: "fresh"}, Plans: []*plan.Plan{with("b", "a"), with("a"), with()}, Wanted: expr.Wanted{Tables: []plan.Table{}}}
	require.Equal(t, []string{"a", "b", "fresh"}, trial.Hooks())
	trial.Restart = ""
	require.Equal(t, []string{"a", "b"}, trial.Hooks())
}

// Hooks are told what runs, with values as a shell would have them, without a string's quotes.
func TestWhatHooksAreTold(t *testing.T) {
	require.Equal(t, []string{
		"LOADGEN_PLAN=p", "LOADGEN_RUN=r", "LOADGEN_EXPERIMENT=x", "LOADGEN_VARIANT=v", "LOADGEN_REPETITION=2", `LOADGEN_VAR_layout=raw "x"`, "LOADGEN_VAR_w=3",
	}, told(run.Header{Plan: "p", ID: "r", Experiment: "x", Variant: "v", Repetition: 2}, map[string]string{"w": "3", "layout": `"raw \"x\""`}))
}

// TestLimits of time end what listens, and say afterwards whether it was they.
func TestLimits(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		drain := make(chan struct{})
		none, reached := limited(drain, 0, time.Second)
		require.Equal(t, (<-chan struct{})(drain), none)
		require.False(t, reached())

		began := time.Now()
		ended, reached := limited(drain, time.Hour, time.Minute)
		<-ended
		require.Equal(t, time.Minute, time.Since(began), "the rest of it")
		require.True(t, reached())
		require.True(t, reached(), "whenever it is asked")

		ended, reached = limited(drain, time.Hour, time.Hour)
		require.False(t, reached())
		select {
		case <-ended:
			require.Fail(t, "nothing has ended it")
		default:
		}

		ended, reached = limited(drain, time.Hour, time.Hour)
		require.False(t, interrupted(t.Context(), drain))
		close(drain)
		<-ended
		require.False(t, reached())
		require.True(t, interrupted(t.Context(), drain))
	})
}

func TestNodesThatAreNotThere(t *testing.T) {
	n := newNodes(nil, func(driver string) (string, error) { return "", fmt.Errorf("driver %q has no built-in nodes", driver) })
	_, err := n.Start(t.Context(), &plan.Target{Name: "t", Driver: "null", Builtin: &plan.Builtin{Nodes: 1}})
	require.EqualError(t, err, `driver "null" has no built-in nodes`)
	require.EqualError(t, n.Flush(t.Context(), "t"), `target "t" has no built-in nodes`)
	n.kill()
	require.Empty(t, n.ended())
	require.NoError(t, n.close())
}
