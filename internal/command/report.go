package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/report"
	reportpage "github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// reportFlags are the flags of report.
type reportFlags struct {
	runFlags
	form formFlags
	full bool
}

// forms are the formats of a report.
func (f *reportFlags) forms() []form[[]timeline.Source] {
	return []form[[]timeline.Source]{
		{"text", ".txt", func(w io.Writer, all []timeline.Source) error { return report.Texts(w, all, optionsFor(w, "", f.full)) }},
		{"html", ".html", reportpage.Write},
		{"markdown", ".md", report.Markdown},
		{"csv", ".csv", report.CSV},
		{"json", ".json", report.JSON},
		{"junit", ".xml", report.JUnit},
		{"github", "", report.GitHub},
	}
}

func newReport(known *drivers.Set) *cobra.Command {
	flags := reportFlags{runFlags: *runsOf(known)}
	c := &cobra.Command{
		Use:   "report [RUN|EXPERIMENT...]",
		Short: "Report on runs and experiments as HTML, text, Markdown, CSV or JSON",
		Long: `Report on finished runs and on experiments; by default, on the last one.

HTML is one self-contained page, with charts of throughput and latency over time, and quantiles and a heatmap from every sample that the
run kept; for an experiment, it compares the variants. Text is what the terminal showed. Markdown is for pull requests. CSV has a line
per second, or per row of a long load. JSON is the stored results, one after another. JUnit is for CI: a case for each phase's validity, for each assert,
and for what a search or a gate was to find; what cannot be told is an error. The format github annotates a change with the cases that did not pass.`,
		Example: `  loadgen report -o report.html
  loadgen report 20261120T173438Z-hydra-m4-4f2a --format markdown
  loadgen report 20261120T173438Z-nwr-9b01 -o nwr.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	c.Flags().StringVar(&flags.runs, "runs", "", "look for runs in `DIR` (default: in the user's state directory)")
	addFull(c.Flags(), &flags.full)
	addForms(c, &flags.form, flags.forms())
	return c
}

func (f *reportFlags) run(cmd *cobra.Command, ids []string) error {
	form, err := formOf(&f.form, f.forms())
	if err != nil {
		return err
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	if ids, err = orLatest(root, ids); err != nil {
		return err
	}
	var all []timeline.Source
	for _, id := range ids {
		s, err := loadSource(f.known, root, id, cmd.ErrOrStderr())
		if err != nil {
			return fmt.Errorf("%w; see loadgen runs list", err)
		}
		all = append(all, s)
	}
	return form.into(&f.form, cmd.OutOrStdout(), all)
}

// writePage writes the page of the run in a directory.
func (f *runFlags) writePage(cmd *cobra.Command, dir string, words io.Writer) error {
	s, err := loadSource(f.known, filepath.Dir(dir), filepath.Base(dir), words)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.report, err)
	}
	return writeTo(cmd, f.report, func(w io.Writer) error { return reportpage.Write(w, []timeline.Source{s}) })
}

// orLatest returns the runs that are named, or else the newest finished one that was made here, or its experiment.
func orLatest(root string, ids []string) ([]string, error) {
	if len(ids) > 0 {
		return ids, nil
	}
	runs, err := rundir.List(root)
	if err != nil {
		return nil, failed("%w", err)
	}
	for _, s := range runs {
		switch {
		case s.Runs > 0, s.Imported, s.Unfinished != "": // an experiment began before its runs
		case s.Experiment != "" && isExperiment(root, s.Experiment):
			return []string{s.Experiment}, nil
		default:
			return []string{s.ID}, nil
		}
	}
	return nil, fmt.Errorf("no finished run in %s: loadgen run makes one", root)
}

// isExperiment says whether an experiment of that name exists.
func isExperiment(root, id string) bool {
	_, err := rundir.LoadExperiment(root, id)
	return err == nil
}

// loadSource reads the files of a run or an experiment. If part of them cannot be read, the page lacks some charts, and loadSource warns.
func loadSource(known *drivers.Set, root, id string, words io.Writer) (timeline.Source, error) {
	x, err := loadExperiment(known, root, id)
	switch {
	case err == nil:
		return loadStudy(known, root, x, words), nil
	case !errors.Is(err, fs.ErrNotExist):
		return timeline.Source{}, err
	}
	r, err := rundir.Load(root, id)
	if err != nil {
		return timeline.Source{}, err
	}
	s := timeline.Source{Run: r}
	s.Detail, s.Plan = loadRest(known, root, r, words)
	return s, nil
}

// loadStudy reads an experiment's runs, one at a time, since there may be many.
func loadStudy(known *drivers.Set, root string, x *run.Experiment, words io.Writer) timeline.Source {
	s := timeline.Source{Study: timeline.NewStudy(x)}
	for _, one := range x.Runs {
		r, err := rundir.Load(root, one.ID)
		if err != nil {
			fmt.Fprintf(words, "loadgen: %v: the report leaves out this run's charts\n", err)
			continue
		}
		d, canonical := loadRest(known, root, r, words)
		s.Study.Add(r, d)
		if s.Plan == nil && r.Variant == x.Baseline {
			s.Plan = canonical
		}
	}
	return s
}

// wordsOf are a plan's names of verbs; the standard ones if the plan cannot be read.
func wordsOf(known *drivers.Set, canonical []byte) driver.Words {
	p, err := plan.Decode(canonical, known.All)
	if err != nil {
		return driver.Words{}
	}
	return p.Words()
}

// loadRest reads a run's files besides its result; nil if there are none.
func loadRest(known *drivers.Set, root string, r *run.Run, words io.Writer) (d *timeline.Run, canonical []byte) {
	canonical, err := rundir.Plan(root, r.ID)
	if err != nil {
		fmt.Fprintf(words, "loadgen: %v: the report leaves out the plan\n", err)
	}
	for _, name := range r.PhaseOrder {
		if r.Phase[name].Steps == nil {
			fmt.Fprintf(words, "loadgen: run %s was made by an older loadgen, which did not say whose snapshots are whose: the report leaves out heatmaps and curves\n", r.ID)
			return nil, canonical
		}
	}
	d = timeline.NewRun(r, wordsOf(known, canonical))
	if err := rundir.Snapshots(root, r.ID, func(_, snapshot []byte) error { return d.Add(snapshot) }); err != nil {
		fmt.Fprintf(words, "loadgen: %v: the report leaves out heatmaps and curves\n", err)
		d = nil
	}
	return d, canonical
}
