package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/report"
	"github.com/loadgen/loadgen/internal/rundir"
)

// reportFlags are the flags of report.
type reportFlags struct {
	runFlags
	form string
}

// forms are what a report can be, and the ends of file names that ask for it.
var forms = [...]struct {
	name, suffix string
	write        func(io.Writer, []report.Source) error
}{
	{"text", ".txt", report.Texts},
	{"html", ".html", report.HTML},
	{"markdown", ".md", report.Markdowns},
	{"csv", ".csv", report.CSV},
	{"json", ".json", report.JSON},
}

func newReport() *cobra.Command {
	var flags reportFlags
	c := &cobra.Command{
		Use:   "report [RUN...]",
		Short: "Report on runs: as a page, text, Markdown, CSV or JSON",
		Long: `Report on runs that have finished, the last one where none is named.

The page is one file that needs nothing else, with charts of throughput and latency over time, quantiles and a heatmap from every sample
that the run has kept. Text is what the terminal showed; Markdown is for pull requests; CSV has a line for each second; JSON is the
result as it is kept, one after another.`,
		Example: `  loadgen report -o report.html
  loadgen report 20261120T173438Z-hydra-m4-4f2a --format markdown`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	f := c.Flags()
	f.StringVar(&flags.runs, "runs", "", "look for runs in `DIR` (default: in the user's state directory)")
	f.StringVarP(&flags.out, "out", "o", "", "write to `FILE`, whose end says the format: .html .txt .md .csv .json (default: to standard output)")
	f.StringVar(&flags.form, "format", "", "write `FORMAT`: text, html, markdown, csv or json (default: as the file's name says, or text)")
	return c
}

func (f *reportFlags) run(cmd *cobra.Command, ids []string) error {
	write, err := f.writer()
	if err != nil {
		return err
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		last, err := lastRun(root)
		if err != nil {
			return err
		}
		ids = []string{last}
	}
	var all []report.Source
	for _, id := range ids {
		s, err := loadSource(root, id, cmd.ErrOrStderr())
		if err != nil {
			return fmt.Errorf("%w; loadgen runs list names those there are", err)
		}
		all = append(all, s)
	}
	if f.out == "" {
		err = write(cmd.OutOrStdout(), all)
	} else {
		err = replace(f.out, func(w io.Writer) error { return write(w, all) })
	}
	if err != nil {
		return failed("%w", err)
	}
	return nil
}

// writePage writes the page of the run that a directory holds.
func (f *runFlags) writePage(dir string, words io.Writer) error {
	s, err := loadSource(filepath.Dir(dir), filepath.Base(dir), words)
	if err != nil {
		return err
	}
	return replace(f.report, func(w io.Writer) error { return report.HTML(w, []report.Source{s}) })
}

// writer picks the format.
func (f *reportFlags) writer() (func(io.Writer, []report.Source) error, error) {
	for _, form := range forms {
		switch {
		case f.form == form.name:
		case f.form == "" && f.out == "" && form.name == "text":
		case f.form == "" && f.out != "" && strings.EqualFold(filepath.Ext(f.out), form.suffix):
		default:
			continue
		}
		return form.write, nil
	}
	if f.form != "" {
		return nil, fmt.Errorf("--format %s: write text, html, markdown, csv or json", f.form)
	}
	return nil, fmt.Errorf("-o %s: its end says no format: write .html, .txt, .md, .csv or .json, or --format", f.out)
}

// lastRun returns the newest run that has finished.
func lastRun(root string) (string, error) {
	runs, err := rundir.List(root)
	if err != nil {
		return "", failed("%w", err)
	}
	for _, s := range runs {
		if s.Unfinished == "" && s.Runs == 0 { // an experiment is no run
			return s.ID, nil
		}
	}
	return "", fmt.Errorf("no finished run in %s: loadgen coordinator run makes one", root)
}

// loadSource reads what a run has left. Snapshots that cannot be read cost the page some charts, and are warned of.
func loadSource(root, id string, words io.Writer) (report.Source, error) {
	if _, err := rundir.LoadExperiment(root, id); err == nil {
		return report.Source{}, fmt.Errorf("%s is an experiment: report on its runs, or compare them with loadgen runs show", id)
	}
	r, err := rundir.Load(root, id)
	if err != nil {
		return report.Source{}, err
	}
	s := report.Source{Run: r, Detail: new(report.Detail)}
	var missing error
	if s.Plan, missing = rundir.Plan(root, id); missing != nil {
		fmt.Fprintf(words, "loadgen: %v: the report goes without the plan\n", missing)
	}
	if missing = rundir.Snapshots(root, id, func(_, snapshot []byte) error { return s.Detail.Add(snapshot) }); missing != nil {
		fmt.Fprintf(words, "loadgen: %v: the report goes without heatmaps and curves\n", missing)
		s.Detail = nil
	}
	return s, nil
}
