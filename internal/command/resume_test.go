package command_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// formOf is what an experiment's tables are made of, apart from what was measured.
func formOf(x *run.Experiment) (form []string) {
	for _, r := range x.Runs {
		form = append(form, fmt.Sprint("run ", r.Variant, " ", r.Repetition))
	}
	for _, v := range x.Variants {
		form = append(form, fmt.Sprint("variant ", v.Name, " ", v.Values, " ", v.Runs, " ", v.Stopped))
	}
	for _, f := range x.Figures {
		form = append(form, fmt.Sprint("figure ", f.Variant, " ", f.Phase, " ", f.Op, " ", f.Metric, " ", f.Values))
	}
	for _, t := range x.Tables {
		form = append(form, fmt.Sprint("table ", t.Title, " ", t.Columns, " ", len(t.Rows)))
	}
	return form
}

// TestResumeAKilledExperiment kills an experiment again and again. Resumed, it keeps its finished runs, and ends like one that was never killed.
func TestResumeAKilledExperiment(t *testing.T) {
	t.Parallel()
	plan := strings.Replace(briefExperiment, "repeat = 3", "repeat = 4", 1)
	whole := begin(t, plan)
	require.Contains(t, []int{exit.OK, exit.Invalid}, whole.wait(60*time.Second), "%s", &whole.stderr)
	want := onlyExperiment(t, whole.runs)

	dice := rand.New(rand.NewPCG(7, 7))
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(plan), 0o600))
	l := beginFile(t, path)
	runs := l.runs
	l.until(func() bool {
		found, err := filepath.Glob(filepath.Join(runs, "*", "experiment.json"))
		return err == nil && len(found) == 1
	})
	kept := 0
	for range 4 {
		time.Sleep(300*time.Millisecond + time.Duration(dice.Int64N(int64(500*time.Millisecond))))
		send(l.process, syscall.SIGKILL)
		l.wait(60 * time.Second)
		x := onlyExperiment(t, runs)
		require.GreaterOrEqual(t, len(x.Runs), kept, "nothing that was finished is run again")
		if x.Finished {
			break
		}
		kept = len(x.Runs)
		l = &load{runs: runs, process: start(t, command(t, "coordinator", "run", path, "--runs", runs, "--resume", x.ID))}
	}
	require.Contains(t, []int{exit.OK, exit.Invalid, -1}, l.wait(60*time.Second), "%s", &l.stderr)
	x := onlyExperiment(t, runs)
	if !x.Finished {
		last := start(t, command(t, "coordinator", "run", path, "--runs", runs, "--resume", x.ID))
		require.Contains(t, []int{exit.OK, exit.Invalid}, last.wait(60*time.Second), "%s", &last.stderr)
		require.Contains(t, last.stderr.String(), "of them have been run, and are kept")
		x = onlyExperiment(t, runs)
	}
	require.True(t, x.Finished)
	require.Equal(t, formOf(want), formOf(x))
	require.Equal(t, want.PlanDigest, x.PlanDigest)

	for _, one := range x.Runs {
		r, err := rundir.Load(runs, one.ID)
		require.NoError(t, err)
		require.Equal(t, r.Repetition, r.DrawsAs, "resumed or not")
	}

	// A coordinator killed after the last run had not compared the runs yet.
	file := filepath.Join(runs, x.ID, "experiment.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	uncompared := bytes.Replace(text, []byte(`"finished": true`), []byte(`"finished": false`), 1)
	require.NotEqual(t, text, uncompared)
	require.NoError(t, os.WriteFile(file, uncompared, 0o600))
	rest := start(t, command(t, "coordinator", "run", path, "--runs", runs, "--resume", x.ID))
	require.Contains(t, []int{exit.OK, exit.Invalid}, rest.wait(60*time.Second), "%s", &rest.stderr)
	require.Equal(t, formOf(want), formOf(onlyExperiment(t, runs)))

	again := start(t, command(t, "coordinator", "run", path, "--runs", runs, "--resume", x.ID))
	require.Equal(t, exit.Failed, again.wait(60*time.Second))
	require.Contains(t, again.stderr.String(), "has all of its 12 runs")
}

// onlyExperiment returns the one in a directory of runs.
func onlyExperiment(t *testing.T, runs string) *run.Experiment {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(runs, "*", "experiment.json"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	x, err := rundir.LoadExperiment(runs, filepath.Base(filepath.Dir(found[0])))
	require.NoError(t, err)
	return x
}

// TestResumeRefuses an experiment that is not the one begun, or that cannot be resumed.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	l := begin(t, strings.Replace(briefExperiment, "repeat = 3", "repeat = 1", 1))
	require.Contains(t, []int{exit.OK, exit.Invalid}, l.wait(60*time.Second), "%s", &l.stderr)
	x := onlyExperiment(t, l.runs)
	for name, c := range map[string]struct {
		plan string
		args []string
		code int
		want []string
	}{
		"another plan":       {strings.Replace(briefExperiment, "count = 10", "count = 11", 1), []string{"--resume", x.ID}, 2, []string{x.PlanDigest, "and this one's is", "leave --resume out"}},
		"another repeat":     {briefExperiment, []string{"--resume", x.ID}, 2, []string{x.PlanDigest, "and this one's is"}},
		"no such experiment": {briefExperiment, []string{"--resume", "20261120T173438Z-x-4f2a"}, 6, []string{"no experiment 20261120T173438Z-x-4f2a"}},
		"a run":              {briefExperiment, []string{"--resume", x.Runs[0].ID}, 6, []string{x.Runs[0].ID + " is not an experiment"}},
		"a way out":          {briefExperiment, []string{"--resume", ".."}, 6, []string{"a name has"}},
		"no experiment":      {nothing, []string{"--resume", x.ID}, 2, []string{"the plan has none"}},
		"once":               {briefExperiment, []string{"--resume", x.ID, "--once"}, 2, []string{"use one of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "plan.hcl")
			require.NoError(t, os.WriteFile(path, []byte(c.plan), 0o600))
			p := start(t, command(t, append([]string{"coordinator", "run", path, "--runs", l.runs}, c.args...)...))
			require.Equal(t, c.code, p.wait(60*time.Second), "%s", &p.stderr)
			for _, want := range c.want {
				require.Contains(t, p.stderr.String(), want)
			}
		})
	}
}
