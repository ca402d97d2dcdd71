package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// Texts writes each run as [Text] does and each experiment as [Experiment] does, with an empty line between them.
func Texts(w io.Writer, all []timeline.Source, opts Options) error {
	for i, s := range all {
		if i > 0 {
			if err := written(w, "report", "\n"); err != nil {
				return err
			}
		}
		err := error(nil)
		if s.Study != nil {
			err = Experiment(w, s.Study.Experiment, opts)
		} else {
			err = Text(w, s.Run, opts)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// JSON writes each run or experiment as stored in its directory (docs/result.md), one after another.
func JSON(w io.Writer, all []timeline.Source) error {
	for _, s := range all {
		var result any = s.Run
		if s.Study != nil {
			result = s.Study.Experiment
		}
		if err := safefile.JSON(result)(w); err != nil {
			return err
		}
	}
	return nil
}

// CSV writes a line for each second of each phase (RFC 4180); for an experiment, those of each run. A line has the level, from 1, if the phase has
// levels, the counts of that second, the ops that had ended by its end, and its response times in seconds, empty if the result has none: their mean,
// the usual quantiles, and those that the plans name. Then follow the observations of the target's side, a column for each field: the value from the
// last probe before the end of that second. Names that a spreadsheet would take for a formula are prefixed with an apostrophe.
func CSV(w io.Writer, all []timeline.Source) error {
	out := csv.NewWriter(w)
	runs := runsOf(all)
	fields := observedFields(runs)
	head := []string{"run", "variant", "repetition", "phase", "level", "t", "ops"}
	figures := metric.Row(quantilesIn(runs)...)
	for _, m := range figures {
		head = append(head, strings.ReplaceAll(m.Name, ".", "_"))
	}
	for _, f := range fields {
		head = append(head, name(f.observation+"."+f.name))
	}
	rows := [][]string{head}
	for _, r := range runs {
		rows = append(rows, secondsOf(r, figures, fields)...)
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write series: %w", err)
	}
	return nil
}

// runsOf lists the runs, and those of experiments.
func runsOf(all []timeline.Source) (runs []*run.Run) {
	for _, s := range all {
		if s.Study != nil {
			runs = append(runs, s.Study.Runs...)
		} else {
			runs = append(runs, s.Run)
		}
	}
	return runs
}

// quantilesIn lists the quantiles that the seconds of any of the runs have.
func quantilesIn(runs []*run.Run) (names []string) {
	for _, r := range runs {
		for _, ph := range r.Phase {
			if len(ph.Series) > 0 {
				names = append(names, ph.Series[0].Response.Shown()...)
			}
		}
	}
	return names
}

func secondsOf(r *run.Run, figures []metric.Of[run.Row], fields []observedField) (rows [][]string) {
	repetition := ""
	if r.Repetition > 0 {
		repetition = strconv.Itoa(r.Repetition)
	}
	for _, phase := range r.PhaseOrder {
		ended := uint64(0)
		ph := r.Phase[phase]
		first := len(rows)
		for _, row := range ph.Series {
			ended += row.OK + row.Miss + row.Bad
			line := []string{name(r.ID), name(r.Variant), repetition, name(phase), levelAt(ph, row.T), exact(&row.T), strconv.FormatUint(ended, 10)}
			for _, m := range figures {
				line = append(line, exact(m.Value(&row)))
			}
			rows = append(rows, line)
		}
		for _, f := range fields {
			for i, value := range f.over(ph) {
				rows[first+i] = append(rows[first+i], exact(value))
			}
		}
	}
	return rows
}

// name escapes a text so that a spreadsheet shows it: text that begins with one of these characters is a formula there, even in quotes.
func name(text string) string {
	if text = quantity.Plain(text); strings.IndexAny(text, "=+-@\t\n") == 0 {
		return "'" + text
	}
	return text
}

// levelAt returns the level of a row that ends at a time, from 1; "" if the phase has none.
func levelAt(ph *run.Phase, end float64) string {
	for i, l := range slices.Backward(ph.Levels) {
		if l.StartSeconds < end {
			return strconv.Itoa(i + 1)
		}
	}
	return ""
}

// exact formats a figure with all its digits; "" if there is none.
func exact(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// Markdown writes, as GitHub Flavored Markdown, the verdict and then the figures of each run, the promises of its log files and the observations of
// its target, or the tables of each experiment.
func Markdown(w io.Writer, all []timeline.Source) error {
	var b strings.Builder
	for i, s := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		if s.Study != nil {
			experimentMarkdown(&b, s.Study.Experiment)
		} else {
			summary(&b, s.Run)
		}
	}
	return written(w, "report", b.String())
}

func summary(b *strings.Builder, r *run.Run) {
	opening(b, r.Plan, append(words.Facts(r), r.ID), words.Answers(r), words.Verdict(r), words.Shortcomings(r, false), tables.Doubts(r))
	if len(r.PhaseOrder) == 0 {
		return
	}
	quantiles := shownIn(r)
	b.WriteString("\n| phase | op | rate |")
	for _, name := range quantiles {
		b.WriteString(" " + quantity.QuantileText(name) + " |")
	}
	fmt.Fprintf(b, " max | figures |\n|---|---|--:|%s--:|---|\n", strings.Repeat("--:|", len(quantiles)))
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		for _, o := range words.DoneIn(ph) {
			fmt.Fprintf(b, "| %s | %s | %s |", markdown(name), markdown(strings.TrimPrefix(strings.Replace(o.At, ".", " ", 1), "op ")), perSecond(o.Rate))
			for _, name := range quantiles {
				fmt.Fprintf(b, " %s |", words.Latency(o.Response.Quantile(name)))
			}
			fmt.Fprintf(b, " %s | %s |\n", words.Latency(o.Response.Max), markdown(string(ph.Validity)))
			if o.Batched() {
				fmt.Fprintf(b, "| %s | keys of %s | %s |%s | %s |\n", markdown(name), markdown(o.Name), perSecond(o.Op.Keys.Rate), strings.Repeat(" |", len(quantiles)), markdown(string(ph.Validity)))
			}
		}
	}
	for _, name := range r.PhaseOrder {
		levelsMarkdown(b, name, r.Phase[name])
	}
	logsMarkdown(b, r)
	observedMarkdown(b, r)
}

// shownIn returns the quantiles to show of a run: those that its plan names, or the usual ones.
func shownIn(r *run.Run) []string {
	for _, name := range r.PhaseOrder {
		for _, o := range words.DoneIn(r.Phase[name]) {
			return o.Response.Shown()
		}
	}
	return new(run.Latency).Shown()
}

// levelsMarkdown writes the table of levels.
func levelsMarkdown(b *strings.Builder, name string, ph *run.Phase) {
	if len(ph.Levels) == 0 {
		return
	}
	heads := words.LevelHeads(ph)
	fmt.Fprintf(b, "\n| levels of %s | %s | |\n|---|%s---|\n", markdown(name), strings.Join(heads[:], " | "), strings.Repeat("--:|", len(heads)))
	for _, row := range words.Levels(ph) {
		fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(row.Op), strings.Join(row.Cells[:], " | "), markdown(row.Word))
	}
}

func perSecond(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return quantity.Whole(*rate) + "/s"
}
