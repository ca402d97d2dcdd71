package report

import (
	"io"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// List writes a line for each run or experiment, in the order given.
func List(w io.Writer, runs []run.Summary) error {
	p := newPrinter(Options{})
	if len(runs) == 0 {
		p.line("no runs")
	}
	wide := 0
	for _, s := range runs {
		wide = max(wide, columns(s.ID))
	}
	for _, s := range runs {
		id := left(s.ID, wide)
		if s.Unfinished != "" {
			p.line("%s  unfinished: %s", id, s.Unfinished)
			continue
		}
		p.line("%s  %s  %s  %s", id, right(quantity.Duration(s.Seconds), 10), left(string(s.Verdict.Completeness), 8), standing(s))
	}
	return p.to(w, "list")
}

// standing returns what follows the completeness in a run's line.
func standing(s run.Summary) string {
	if s.Verdict.Completeness == run.Failed {
		return strings.Join(words.Labels(s.Labels), " ") // no figures, nothing to verify
	}
	text := left(string(s.Verdict.Validity), 7)
	if s.Runs > 0 {
		text += "  experiment of " + quantity.Count(s.Runs, "run")
	}
	switch s.Verdict.Assertions {
	case run.Pass:
		text += "  asserts pass"
	case run.Undecided:
		text += "  asserts undecided"
	case run.Fail:
		text += "  asserts FAIL"
	}
	if s.Imported {
		text += "  imported"
	}
	if s.Unverified != "" {
		text += "  NOT VERIFIED"
	}
	if len(s.Labels) > 0 {
		text += "  " + strings.Join(words.Labels(s.Labels), " ")
	}
	return text
}
