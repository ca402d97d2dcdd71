package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

// nothing is a plan without a target, to which tests add an experiment.
const nothing = `
plan "brief" {}
variable "sessions" { default = 1 }
variable "latency" { default = "1ms" }
variable "duration" { default = "" }
target "t" {
	driver  = "null"
	latency = var.latency
}` + tenSmall + `
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = var.sessions
		iterations = var.duration == "" ? 100 : null
		duration   = var.duration == "" ? null : var.duration
	}
}
`

// briefExperiment compares loads with known rates: a session that waits 1 ms for each answer has 1,000 a second.
const briefExperiment = nothing + `
experiment {
	repeat = 3
	variant "one" { sessions = 1 }
	variant "two" { sessions = 2 }
	variant "again" { sessions = 1 }
}`

// briefTable is a table for it.
const briefTable = `
table "rates" {
	column "rate" {
		unit  = "/min"
		value = phase.load.op.get.rate
	}
	column "gain" { value = rate / baseline.rate }
	column "misses" { value = phase.load.op.get.latency.miss.response.p50 }
	expected "elsewhere" {
		source = "a guess"
		rate   = 500
	}
}
chart "rates" {
	title = "Gets of a second"
	unit  = "/min"
	line "ok" { value = phase.load.series.rate }
}
chart "tail" {
	over = "quantile"
	line "get" { value = phase.load.op.get.response }
	line "missed" { value = phase.load.op.get.latency.miss.response }
}
chart "misses" {
	over = "var.sessions"
	line "median" { value = phase.load.op.get.latency.miss.response.p50 }
}`

func TestTablesOfThePlan(t *testing.T) {
	t.Parallel()
	l := begin(t, briefExperiment+briefTable)
	x := l.experiment(60 * time.Second)
	rates := x.Tables[0]
	require.Equal(t, []string{"rate /min", "gain", "misses"}, []string{rates.Columns[0].Title, rates.Columns[1].Title, rates.Columns[2].Title})
	require.Len(t, rates.Rows, 4)
	one, two := rates.Rows[0].Cells, rates.Rows[1].Cells
	require.InEpsilon(t, l.meanRate(x, "one"), *one[0].Value, 1e-9)
	require.InDelta(t, 1, *one[1].Value, 0)
	require.InEpsilon(t, *two[0].Value / *one[0].Value, *two[1].Value, 1e-9)
	null := run.Cell{Reason: "phase.load.op.get.latency.miss.response.p50 is null: no op missed", Cause: "no op missed"}
	require.Equal(t, null, one[2])
	guess := rates.Rows[3]
	require.True(t, guess.Elsewhere)
	require.Equal(t, "30,000", guess.Cells[0].Text)
	require.Equal(t, "not given", guess.Cells[1].Reason)
	require.Contains(t, l.stdout.String(), "elsewhere *")
	require.Contains(t, l.stdout.String(), "* not measured here: a guess")

	tail := x.Charts[1]
	require.Equal(t, []any{"tail", "quantile", true, 6}, []any{tail.Title, tail.Over, tail.Log, len(tail.Lines)})
	require.Equal(t, []string{"one", "get", ""}, []string{tail.Lines[0].Variant, tail.Lines[0].Name, tail.Lines[0].Reason})
	require.GreaterOrEqual(t, *tail.Lines[0].Y[0], 0.00099, "an answer takes 1 ms, to the bucket")
	require.Equal(t, "no op missed", tail.Lines[1].Reason)
	require.Len(t, x.Charts[0].Lines, 3)
	for _, line := range x.Charts[0].Lines {
		require.NotEmpty(t, line.X)
	}

	show := start(t, command(t, "report", x.ID, "--format", "markdown", "--runs", l.runs))
	require.Zero(t, show.wait(60*time.Second))
	for _, row := range rates.Rows {
		require.Contains(t, l.stdout.String(), row.Cells[0].Text)
		require.Contains(t, show.stdout.String(), "| "+row.Cells[0].Text+" ")
	}
}

// meanRate is the mean of the rates of gets in the runs of a variant.
func (l *load) meanRate(x *run.Experiment, variant string) (mean float64) {
	l.t.Helper()
	n := 0.0
	for _, named := range x.Runs {
		if named.Variant == variant {
			r, err := rundir.Load(l.runs, named.ID)
			require.NoError(l.t, err)
			mean += *r.Phase["load"].Op["get"].Rate
			n++
		}
	}
	require.Positive(l.t, n)
	return mean / n
}

// experiment waits for the end of an experiment, and returns its result once it is known to be consistent with what is on disk.
func (l *load) experiment(within time.Duration) *run.Experiment {
	l.t.Helper()
	code := l.wait(within)
	b, err := os.ReadFile(l.out)
	require.NoError(l.t, err, "%s%s", &l.stdout, &l.stderr)
	var x run.Experiment
	require.NoError(l.t, json.Unmarshal(b, &x))
	require.NoError(l.t, x.CheckValid())
	require.Equal(l.t, x.ExitCode, code)
	kept, err := rundir.LoadExperiment(l.runs, x.ID)
	require.NoError(l.t, err)
	require.Equal(l.t, &x, kept)
	for _, named := range x.Runs {
		r, err := rundir.Load(l.runs, named.ID)
		require.NoError(l.t, err)
		require.Equal(l.t, []any{x.ID, named.Variant, named.Repetition}, []any{r.Experiment, r.Variant, r.Repetition})
		require.Equal(l.t, named.Verdict, r.Verdict)
	}
	return &x
}

// disturbed says whether the kernel saw, in a run of an experiment, that other programs had the processors: the findings may then be theirs.
func (l *load) disturbed(x *run.Experiment) bool {
	l.t.Helper()
	return slices.ContainsFunc(x.Runs, func(named run.ExperimentRun) bool {
		r, err := rundir.Load(l.runs, named.ID)
		require.NoError(l.t, err)
		for _, p := range r.Phase {
			if slowed(p) {
				return true
			}
		}
		return false
	})
}

// figure returns a figure of an experiment.
func figure(t *testing.T, x *run.Experiment, variant, metric string) run.Figure {
	t.Helper()
	for _, f := range x.Figures {
		if f.Variant == variant && f.Metric == metric {
			return f
		}
	}
	require.Fail(t, "no such figure", "%s of %s", metric, variant)
	return run.Figure{}
}

// stops lists how far variants got.
func stops(x *run.Experiment) map[string]run.Stop {
	all := map[string]run.Stop{}
	for _, v := range x.Variants {
		all[v.Name] = v.Stopped
	}
	return all
}

// TestExperimentFindsWhatIsThere compares answers that take 1 ms with answers that take 100 ms, a difference that other programs cannot hide.
func TestExperimentFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
experiment {
	repeat = 4
	variant "quick" { sessions = 10 }
	variant "slow" {
		sessions = 10
		latency  = "100ms"
		duration = "300ms"
	}
	variant "again" { sessions = 10 }
}`)
	x := l.experiment(60 * time.Second)
	require.Contains(t, []int{exit.OK, exit.Invalid}, x.ExitCode, x.Verdict.Reasons)
	require.True(t, x.Finished)
	outlook := regexp.MustCompile(`phase load: the smallest difference in \S.* that is shown nine times in ten is \S.* \(\w+\), if runs scatter as those so far\n`)
	require.Len(t, outlook.FindAllString(l.stderr.String(), -1), 1, &l.stderr)
	require.Len(t, x.Runs, 12)
	for i, r := range x.Runs {
		require.Equal(t, i/3+1, r.Repetition, "each variant once, then all again")
	}
	for i := range 3 {
		require.Equal(t, x.Runs[i].Variant, x.Runs[5-i].Variant, "in the reverse order")
	}
	const p50, busy = "response.p50", ", SUSPECT" // other programs had the processor, and it says so
	quick, slow := figure(t, x, "quick", p50), figure(t, x, "slow", p50)
	require.Contains(t, quick.Finding, "baseline")
	require.GreaterOrEqual(t, *quick.Score, 0.001)
	require.GreaterOrEqual(t, *slow.Score, 0.1*0.996, "it is in the middle of the quantile's bucket, which is 0.8 % wide")
	require.Equal(t, 4, slow.Values)
	if !l.disturbed(x) {
		require.Greater(t, *slow.Ratio, 20.0)
		require.True(t, slow.Differs, slow.Finding)
		require.Equal(t, "differs", strings.TrimSuffix(slow.Finding, busy))
	}
}

func TestExperimentGoesOnAfterAFailedRun(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
target "gone" {
	driver    = "redis"
	endpoints = ["127.0.0.1:1"]
}
variable "broken" { default = false }
phase "later" {
	when    = var.broken
	target  = target.gone
	dataset = dataset.d
	ops     = { get = 1 }
	closed { duration = "1s" }
}
experiment {
	repeat = 2
	order  = "sequential"
	variant "broken" { broken = true }
	variant "whole" { broken = false }
}`)
	x := l.experiment(60 * time.Second)
	require.Equal(t, exit.Failed, x.ExitCode)
	require.Len(t, x.Runs, 4)
	require.Equal(t, map[string]run.Stop{"broken": run.StopFailed, "whole": run.StopFinished}, stops(x))
	require.Contains(t, figure(t, x, "whole", "rate").Finding, "cannot tell")
	require.Equal(t, "no values: no run of this variant counts", figure(t, x, "broken", "rate").Finding)
	require.Contains(t, l.stdout.String(), `2 runs of broken, "later": target "gone": `)
}

func TestCapKeepsWhatThereIs(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
experiment {
	repeat = 3
	cap    = "10s" # those that are short have time enough, however slow the disk is that their results are written to
	variant "long" { duration = "1m" }
	variant "short" { duration = "50ms" }
}`)
	x := l.experiment(60 * time.Second)
	require.Equal(t, run.Capped, x.Verdict.Completeness, "as planned")
	require.Contains(t, []int{exit.OK, exit.Invalid}, x.ExitCode, "of the runs: not of the cap")
	require.Equal(t, run.StopCap, stops(x)["long"])
	for _, one := range x.Runs {
		require.Equal(t, map[string]run.Completeness{"long": run.Capped, "short": run.Complete}[one.Variant], one.Verdict.Completeness)
	}
	long := figure(t, x, "long", "rate")
	require.Equal(t, 1, long.Values, "what it cut off counts, and nothing was run after it")
	require.InEpsilon(t, l.meanRate(x, "long"), *long.Score, 1e-9)
	require.LessOrEqual(t, *long.Score, 1001.0, "an answer takes 1 ms; other programs make it later, never sooner")
	require.Contains(t, strings.Join(x.Verdict.Reasons, "\n"), "long, repetition 1: ended by the cap of 10s on the runs of a variant")
	require.Contains(t, x.Verdict.Reasons, "long: not run as often as planned: its cap is used up")
}

func TestInterruptedExperimentShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
experiment {
	order = "sequential"
	variant "short" { duration = "50ms" }
	variant "long" { duration = "1m" }
}`)
	l.told("long, repetition 1")
	l.told("load  1")
	l.signal(syscall.SIGINT)
	x := l.experiment(60 * time.Second)
	require.Equal(t, exit.Aborted, x.ExitCode)
	require.Equal(t, map[string]run.Stop{"short": run.StopFinished, "long": run.StopAborted}, stops(x))
	require.Len(t, x.Runs, 6)
	rates := 0 // a run of 50 ms that had no processor does not count, or has too few ops for a rate
	for _, one := range x.Runs[:5] {
		if !one.Counts() {
			require.Equal(t, run.Invalid, one.Verdict.Validity)
			continue
		}
		r, err := rundir.Load(l.runs, one.ID)
		require.NoError(t, err)
		if r.Phase["load"].Op["get"].Rate != nil {
			rates++
		}
	}
	require.Equal(t, rates, figure(t, x, "short", "rate").Values)
	require.Contains(t, x.Verdict.Reasons[0], "stopped by the user after 6 runs")
}

// A killed experiment leaves a directory that names its runs, which are compared as far as they go.
func TestKilledExperimentCanBeShown(t *testing.T) {
	t.Parallel()
	l := begin(t, strings.Replace(briefExperiment, "repeat = 3", "repeat = 900\n order = \"sequential\"", 1)+briefTable)
	l.told("repetition 4")
	l.signal(syscall.SIGKILL)
	require.Equal(t, -1, l.wait(60*time.Second))
	paths, err := filepath.Glob(filepath.Join(l.runs, "*", "experiment.json"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	id := filepath.Base(filepath.Dir(paths[0]))
	list := start(t, command(t, "runs", "list", "--runs", l.runs))
	require.Zero(t, list.wait(60*time.Second))
	require.Regexp(t, id+` +unfinished: experiment, \d+ of 2700 runs so far`, list.stdout.String())
	show := start(t, command(t, "runs", "show", id, "--runs", l.runs))
	require.Zero(t, show.wait(60*time.Second), "%s", &show.stderr)
	require.Contains(t, show.stdout.String(), "UNFINISHED")
	require.Contains(t, show.stdout.String(), "mean ± 95 %", "what there is, is compared")
	require.Regexp(t, `(?m)^ *one +[\d,.]+[?!]? +1[?!]? `, show.stdout.String(), "the plan's own table has what there is")
	require.Regexp(t, `(?m)^── rates.*\n.*\n  one .*\n  two +–`, show.stdout.String(), "and blanks")
}

func TestForkedRunsAreOtherProcesses(t *testing.T) {
	t.Parallel()
	x := begin(t, strings.Replace(briefExperiment, "repeat = 3", "repeat = 1\n fork = true", 1)).experiment(60 * time.Second)
	require.Equal(t, run.Complete, x.Verdict.Completeness, x.Verdict.Reasons)
	require.Contains(t, figure(t, x, "two", "rate").Nulls["p"], "1 and 1 runs are too few")
}

// Workers stay for all runs, at the address of the first.
func TestExperimentWithWorkers(t *testing.T) {
	t.Parallel()
	tm := invite(t, 2, func(args ...string) *load {
		return begin(t, strings.ReplaceAll(briefExperiment, "sessions = 1", "sessions = 4"), args...)
	})
	tm.join(tm.addr, "--once=false")
	tm.join(tm.addr, "--once=false")
	x := tm.load.experiment(60 * time.Second)
	require.Equal(t, run.Complete, x.Verdict.Completeness, x.Verdict.Reasons)
	require.Len(t, x.Runs, 9)
}

// Each run has its own nodes: otherwise a get of what an earlier run has put would hit.
func TestBuiltinNodesAreStartedAnew(t *testing.T) {
	t.Parallel()
	x := begin(t, `
plan "fresh" {}
variable "x" { default = 1 }
target "t" {
	driver = "redis"
	builtin {}
}`+tenSmall+`
phase "get" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed { iterations = 100 }
}
phase "put" {
	target  = target.t
	dataset = dataset.d
	populate {}
}
experiment {
	repeat = 2
	matrix { x = [1, 2] }
}`).experiment(60 * time.Second)
	require.Len(t, x.Runs, 4)
	require.InDelta(t, 0, *figure(t, x, "x=1", "hit_ratio").Score, 0)
	require.InDelta(t, 0, *figure(t, x, "x=2", "hit_ratio").Score, 0)
}

// On a server that is not loadgen's own: values of 1 MiB take so much longer than those of 32 bytes that no neighbour hides it. A repetition of the
// baseline is close to it; package experiment tests, over 2,000 pairs, how rarely such a pair is called different.
func TestExperimentOnRedisHasAKnownAnswer(t *testing.T) {
	addr := servertest.Redis(t)
	l := begin(t, fmt.Sprintf(`
plan "sizes" {}
variable "size" { default = "32B" }
target "t" {
	driver    = "redis"
	endpoints = [%q]
}
dataset "d" {
	keys { count = 10 }
	values { size = var.size }
}
phase "put" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions = 2
		duration = "300ms"
	}
}
experiment {
	repeat = 4
	variant "small" { size = "32B" }
	variant "again" { size = "32B" }
	variant "large" { size = "1MiB" }
}`, addr))
	x := l.experiment(60 * time.Second)
	require.Len(t, x.Runs, 12)
	const p50 = "response.p50" // neighbours delay few of the ops
	large, again := figure(t, x, "large", p50), figure(t, x, "again", p50)
	require.NotNil(t, large.Ratio, "%s: %v", large.Finding, x.Verdict.Reasons)
	require.NotNil(t, again.Ratio, "%s: %v", again.Finding, x.Verdict.Reasons)
	if !l.disturbed(x) { // four runs may not show it where others had the processors
		require.True(t, large.Differs, large.Finding)
		require.Greater(t, *large.Ratio, 3.0)
		require.Less(t, *again.Ratio, 2.0)
	}
	require.Regexp(t, "differ|cannot tell", again.Finding, "shown or not, it is told")
}

// TestCompareExperiments compares two experiments of the same plan variant by variant, in all forms.
func TestCompareExperiments(t *testing.T) {
	t.Parallel()
	l := begin(t, briefExperiment)
	x := l.experiment(60 * time.Second)
	again := begin(t, strings.ReplaceAll(briefExperiment, `variant "two"`, `variant "three"`), "--runs", l.runs)
	again.runs = l.runs
	y := again.experiment(60 * time.Second)
	compare := func(form string) string {
		p := start(t, command(t, "runs", "compare", x.ID, y.ID, "--runs", l.runs, "--format", form))
		require.Contains(t, []int{exit.OK, exit.Invalid}, p.wait(60*time.Second), &p.stderr)
		require.Contains(t, p.stderr.String(), "loadgen: only "+x.ID+" has variant two\n")
		require.Contains(t, p.stderr.String(), "loadgen: only "+y.ID+" has variant three\n")
		return p.stdout.String()
	}
	var results []*comparison.Result
	require.NoError(t, json.Unmarshal([]byte(compare("json")), &results))
	require.Len(t, results, len(x.Variants)-1)
	for _, c := range results {
		require.NotEqual(t, "two", c.Variant)
		require.NotEmpty(t, c.Figures)
		for i, side := range c.Sides {
			for _, r := range side.Runs {
				require.Equal(t, c.Variant, r.Variant)
				require.True(t, slices.ContainsFunc([]*run.Experiment{x, y}[i].Runs, func(of run.ExperimentRun) bool { return of.ID == r.ID }))
			}
		}
	}
	require.Contains(t, compare("text"), "══ variant one\n\nA  ")
	require.Contains(t, compare("markdown"), "# Runs compared: one\n")
}
