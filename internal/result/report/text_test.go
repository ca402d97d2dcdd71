package report

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestText(t *testing.T) {
	for name, r := range map[string]*run.Run{
		"good": good(), "overloaded": overloaded(), "broken": broken(), "unreachable": unreachable(), "fleet": fleet(), "levels": levels(), "observed": observed(),
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			require.NoError(t, Text(&b, r, Options{Dir: "/var/lib/loadgen/runs/" + r.ID}))
			fits(t, b.String(), usualWide)
			golden(t, name+".txt", b.String())
		})
	}
}

func fits(t *testing.T, text string, width int) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if width != usualWide || !strings.HasSuffix(line, "]") { // a doubt is a line, and no terminal limits it
			require.LessOrEqual(t, columns(line), width, line)
		}
		require.Equal(t, strings.TrimRight(line, " "), line)
	}
}

// On a terminal of 80 columns the terminal wraps no line of a report, and a wider one is used.
func TestTextKeepsToTheTerminal(t *testing.T) {
	for name, r := range map[string]*run.Run{
		"good": good(), "overloaded": overloaded(), "broken": broken(), "unreachable": unreachable(), "fleet": fleet(), "levels": levels(), "observed": observed(),
	} {
		t.Run(name, func(t *testing.T) {
			var narrow, wide strings.Builder
			require.NoError(t, Text(&narrow, r, Options{Width: 80}))
			fits(t, narrow.String(), 80)
			require.NoError(t, Text(&wide, r, Options{Width: 200}))
			fits(t, wide.String(), mostWide)
			require.Less(t, strings.Count(wide.String(), "\n"), strings.Count(narrow.String(), "\n"), "the width is used")
			if name == "good" || name == "levels" {
				golden(t, name+"-80.txt", narrow.String())
			}
		})
	}
}

// TestReasonsStandOnce, with what they mean, their code and the places where they were found, the worst first.
func TestReasonsStandOnce(t *testing.T) {
	late := func(op, lag string) run.Reason {
		return run.Reason{Validity: run.Suspect, Code: reason.StartedLate, Text: op + ": started late: 1 % of the ops by at least " + lag}
	}
	waited := func(share string) run.Reason {
		return run.Reason{Validity: run.Invalid, Code: reason.RunQueue, Text: "the generator's loop waited " + share + " of the time"}
	}
	r := run.New(run.Header{}, machine.Environment{})
	load := func(reasons ...run.Reason) *run.Phase {
		return &run.Phase{Kind: "load", Validity: run.Invalid, Op: map[string]*run.Op{"get": {}, "put": {}}, Reasons: reasons}
	}
	r.Add("day", load(late("get", "2 ms"), late("put", "3 ms"), waited("20 %")))
	r.Add("night", load(waited("30 %"), run.Reason{Validity: run.Suspect, Text: "a bit odd"}))
	var b strings.Builder
	require.NoError(t, Text(&b, r, Options{}))
	require.Contains(t, b.String(), `Figures marked ! are INVALID: use none of them.
  ! The figures include time in which loadgen itself waited for a processor: day and night: the generator's loop waited 20 or 30 % of the time [run_queue]
  ? loadgen started some ops late, so response times include waiting in loadgen: day get and put: started late: 1 % of the ops by at least 2 or 3 ms [started_late]
  ? night: a bit odd
What to do: loadgen explain run_queue started_late
`)
	require.Equal(t, 1, strings.Count(b.String(), "started late"))
}

// TestCapped: what the plan's own cap ended is not called aborted.
func TestCapped(t *testing.T) {
	r := run.New(header, environment)
	r.Conclude(run.Capped, reason.Why{Code: reason.Capped, Text: "ended by the cap of 1m on the runs of a variant"})
	require.Equal(t, exit.OK, r.ExitCode)
	var b strings.Builder
	require.NoError(t, Text(&b, r, Options{}))
	require.Contains(t, b.String(), "The run was CAPPED: the plan's cap has ended it, and it counts as far as it got.")
	require.Contains(t, b.String(), "- ended by the cap of 1m on the runs of a variant")
}

// TestWorkersAreFew names the lost of a large fleet and some of the others.
func TestWorkersAreFew(t *testing.T) {
	r := run.New(header, environment)
	for i := range 100 {
		r.Fleet = append(r.Fleet, run.Worker{Name: fmt.Sprintf("w%d", i), Sessions: 1})
	}
	r.Losses = []worker.Loss{{Worker: "w77", Phase: "put"}}
	p := newPrinter(Options{})
	p.workers(r)
	require.Contains(t, p.b.String(), "1 of 100 LOST")
	require.Contains(t, p.b.String(), "  w77         1 session\n              LOST in phase put: known up to 0 s, nothing is missing\n")
	require.Contains(t, p.b.String(), "and 83 other workers\n")
}

func TestList(t *testing.T) {
	at := func(id string, seconds float64, c run.Completeness, v run.Validity, a run.Assertions) run.Summary {
		return run.Summary{
			Header: run.Header{ID: id}, Seconds: seconds,
			Verdict: run.Verdict{Completeness: c, Validity: v, Assertions: a},
		}
	}
	var b strings.Builder
	require.NoError(t, List(&b, []run.Summary{
		{Header: run.Header{ID: "20261121T080000Z-hydra-m4-0a0b"}, Unfinished: "no result yet"},
		at("20261120T173438Z-hydra-m4-4f2a", 1.913, run.Complete, run.Valid, run.Pass),
		at("20261120T173000Z-valkey-cluster-read-c0de", 125, run.Complete, run.Suspect, run.None),
		at("20261119T235959Z-hydra-m4-ffff", 3725, run.Aborted, run.Invalid, run.Fail),
		at("20261119T000000Z-hydra-m4-0001", 0.0123, run.Failed, run.Valid, run.None),
	}))
	golden(t, "list.txt", b.String())

	b.Reset()
	require.NoError(t, List(&b, nil))
	require.Equal(t, "no runs\n", b.String())
}

func TestTextWriteError(t *testing.T) {
	boom := errors.New("boom")
	require.ErrorIs(t, Text(failingWriter{boom}, good(), Options{}), boom)
	require.ErrorIs(t, List(failingWriter{boom}, nil), boom)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
