package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/run"
)

// progressForms are the values of --progress.
var progressForms = [...]string{"auto", "lines", "json", "none"}

func (f *runFlags) checkProgress() error {
	if slices.Contains(progressForms[:], f.progress) {
		return nil
	}
	return fmt.Errorf("--progress %s: write one of %s", f.progress, strings.Join(progressForms[:], ", "))
}

// wordsOn returns a writer for messages to w during a run.
func (f *runFlags) wordsOn(w io.Writer) io.Writer {
	if f.progress == "json" {
		return report.NewJSONLines(w)
	}
	return w
}

// newProgress shows a run's progress among the messages, in the requested form.
func (f *runFlags) newProgress(words io.Writer, id string) *report.Progress {
	switch {
	case f.progress == "none":
		return report.NewProgress(io.Discard, nil, id)
	case f.progress != "auto" || !isTerminal(words):
		return report.NewProgress(words, nil, id)
	}
	return report.NewProgress(words, func() int { return columnsOf(words) }, id)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// columnsOf returns the current width of the terminal w; 0 if it is not a terminal, or if the width is unknown.
func columnsOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// optionsFor returns how to show a report on w: as wide as its terminal, and in colours unless NO_COLOR says otherwise (no-color.org).
func optionsFor(w io.Writer, dir string, full bool) report.Options {
	opts := report.Options{Width: columnsOf(w), Dir: dir, Full: full}
	opts.Colour = opts.Width > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return opts
}

// addFull adds the flag that shows all of a report.
func addFull(f *pflag.FlagSet, full *bool) {
	f.BoolVar(full, "full", false, "show all of the text report: untimed phases in full, comparisons and columns that never vary")
}

// tell reports the end of a run to programs. People are shown the result instead.
func tell(words io.Writer, r *run.Run, dir string) {
	if lines, ok := words.(*report.JSONLines); ok {
		lines.Result(r, dir)
	}
}
