package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sampleFlags are the flags of runs samples.
type sampleFlags struct {
	*runFlags
	form    formFlags
	phase   string
	latency string
}

// sampled says which samples of a run to write.
type sampled struct {
	root, id, phase string
	due             bool // measure latencies from when ops were due
}

// sampleForms are the formats for samples.
var sampleForms = [...]form[*sampled]{
	{"csv", ".csv", writeSamples},
	{"vegeta-csv", ".vegeta", func(w io.Writer, s *sampled) error { return s.each(timeline.Vegeta("csv", w, s.due)) }},
	{"vegeta-json", ".json", func(w io.Writer, s *sampled) error { return s.each(timeline.Vegeta("json", w, s.due)) }},
	{"vegeta-gob", ".gob", func(w io.Writer, s *sampled) error { return s.each(timeline.Vegeta("gob", w, s.due)) }},
}

func newSamples(flags *runFlags) *cobra.Command {
	f := sampleFlags{runFlags: flags}
	c := &cobra.Command{
		Use:   "samples [RUN]",
		Short: "Write a run's sampled ops, as CSV or for vegeta",
		Long: `Write the ops sampled in a run's phases with samples = N; by default, the last run's. The format is that of samples.csv in the
run's directory, or one of vegeta 12's, for its report, plot and encode.

Rates that vegeta computes from them are those of the samples, not of the load. Its latency starts with the request (--latency service),
or when the op was due (--latency response).`,
		Example: `  loadgen runs samples
  loadgen runs samples 20261120T173438Z-web-m4-4f2a --phase load --format vegeta-gob | vegeta report
  loadgen runs samples -o load.json --latency response`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	c.Flags().StringVar(&f.phase, "phase", "", "write only samples of `PHASE` (default: the one that has any)")
	c.Flags().StringVar(&f.latency, "latency", "service", "in vegeta's formats, measure from the op's start, `service`, or from when it was due, response")
	addForms(c, &f.form, sampleForms[:])
	return c
}

func (f *sampleFlags) run(cmd *cobra.Command, args []string) error {
	form, err := formOf(&f.form, sampleForms[:])
	if err != nil {
		return err
	}
	what := sampled{phase: f.phase, due: f.latency == "response"}
	if f.latency != "service" && !what.due {
		return fmt.Errorf("--latency %s: write service or response", f.latency)
	}
	if what.root, err = f.root(); err != nil {
		return err
	}
	if args, err = orLatest(what.root, args); err != nil {
		return err
	}
	what.id = args[0]
	if isExperiment(what.root, what.id) {
		return fmt.Errorf("%s is an experiment: name one of its runs; loadgen runs show %s lists them", what.id, what.id)
	}
	if err := what.choose(); err != nil {
		return err
	}
	return form.into(&f.form, cmd.OutOrStdout(), &what)
}

// choose selects the phase, which must have samples.
func (s *sampled) choose() error {
	var phases []string
	err := rundir.Samples(s.root, s.id, func(r io.Reader) error {
		return timeline.ReadSamples(r, func(one *timeline.Sample) error {
			if !slices.Contains(phases, one.Phase) {
				phases = append(phases, one.Phase)
			}
			return nil
		})
	})
	switch {
	case errors.Is(err, rundir.ErrNoSamples):
		return fmt.Errorf("%w: write samples = 10000, or how many ops to keep, in a phase of its plan", err)
	case err != nil:
		return failed("%w", err)
	case len(phases) == 0:
		return fmt.Errorf("run %s has a samples file without samples", s.id)
	case s.phase == "" && len(phases) > 1:
		return fmt.Errorf("run %s has samples of several phases: add --phase %s", s.id, either(phases))
	case s.phase == "":
		s.phase = phases[0]
	case !slices.Contains(phases, s.phase):
		return fmt.Errorf("--phase %s: run %s has samples of %s", s.phase, s.id, strings.Join(phases, ", "))
	}
	return nil
}

// each calls f with each sample of the phase.
func (s *sampled) each(f func(*timeline.Sample) error) error {
	return rundir.Samples(s.root, s.id, func(r io.Reader) error {
		return timeline.ReadSamples(r, func(one *timeline.Sample) error {
			if one.Phase != s.phase {
				return nil
			}
			return f(one)
		})
	})
}

// writeSamples writes the phase's samples as in the run's file.
func writeSamples(w io.Writer, s *sampled) error {
	rows := timeline.NewSampleWriter(w)
	if err := s.each(rows.Write); err != nil {
		return err
	}
	return rows.Flush()
}

// keepSamples writes the samples of phases that want them into the directory of a run whose snapshots are all there.
func keepSamples(dir *rundir.Dir, p *plan.Plan, r *run.Run) error {
	if !slices.ContainsFunc(p.Phases, func(ph *plan.Phase) bool { return ph.Samples > 0 }) {
		return nil
	}
	text, err := timeline.AppendSamples(nil, r, p.Words(), dir.Records)
	if err != nil || len(text) == 0 {
		return err
	}
	return dir.KeepSamples(text)
}
