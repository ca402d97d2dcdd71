package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/plan"
)

// compareFlags are the flags of runs compare.
type compareFlags struct {
	*runFlags
	form     formFlags
	exitCode bool
	worse    string
	metric   string
}

// comparisonForms are the formats of a comparison.
var comparisonForms = [...]form[[]*comparison.Result]{
	{"text", ".txt", func(w io.Writer, all []*comparison.Result) error {
		return report.Comparison(w, all, optionsFor(w, "", false))
	}},
	{"markdown", ".md", report.ComparisonMarkdown},
	{"json", ".json", report.ComparisonJSON},
}

func newCompare(runs *runFlags) *cobra.Command {
	flags := compareFlags{runFlags: runs}
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare runs, with the statistics of experiments",
		Long: `Compare runs with other runs. A is the baseline. Each side is

  RUN                    one run
  RUN,RUN,RUN            several runs, as repetitions
  RUN..RUN               runs of the same plan, from the first to the last
  EXPERIMENT/VARIANT     the runs of a variant that count

or both are experiments, EXPERIMENT EXPERIMENT: then each variant that both have is compared separately.

Differences in plan and environment are listed first, since nothing kept them constant. Then come the tables of an experiment. A difference
counts as one by the rule of experiments, which needs five runs of each side, started in turn: A B B A ….

With --worse B is gated, as by the gate of an experiment: by the processor time of the servers for an op where that was observed, else by response.p99
of each op. Runs that were made in turn, with servers restarted, are pairs, and five may decide; of others it cannot be told.

Exit codes: 0 compared; 4 a figure of either side is invalid; 2 wrong usage, or no such run. With --worse or --exit-code 1 if B is worse, 0 if it is not worse
by that, 7 if that cannot be told; 4 only for doubts about counts and values.`,
		Example: `  loadgen runs compare 20261120T173438Z-hydra-m4-4f2a 20261121T090112Z-hydra-m4-77d0
  loadgen runs compare 20261120T173438Z-hydra-m4-4f2a..20261120T181020Z-hydra-m4-0c1b 20261121T090112Z-hydra-m4-77d0..20261121T093301Z-hydra-m4-be02
  loadgen runs compare 20261120T200000Z-nwr-9b01 20261121T200000Z-nwr-51fe
  loadgen runs compare 20261120T200000Z-nwr-9b01/w=2,r=1 20261121T200000Z-nwr-51fe/w=2,r=1 --format markdown`,
		Args: exactly(2, "two sides"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0], args[1]) },
	}
	addForms(c, &flags.form, comparisonForms[:])
	c.Flags().BoolVar(&flags.exitCode, "exit-code", false, "the same as --worse 3%")
	c.Flags().StringVar(&flags.worse, "worse", "", "exit with code 1 if B is worse, 0 if it is not worse by `SHARE`, such as 3%, and 7 if neither can be told")
	c.Flags().StringVar(&flags.metric, "metric", "", "gate by `METRIC`: cpu_per_op, rate, response.p50 or another that experiments compare (default: cpu_per_op, or response.p99)")
	return c
}

func (f *compareFlags) run(cmd *cobra.Command, a, b string) error {
	form, err := formOf(&f.form, comparisonForms[:])
	if err != nil {
		return err
	}
	root, err := f.root()
	if err != nil {
		return err
	}
	if f.exitCode {
		f.worse = cmp.Or(f.worse, "3%")
	}
	worse := 0.0
	switch {
	case f.worse != "":
		if worse, err = shareOf("--worse", f.worse); err != nil {
			return err
		}
	case f.metric != "":
		return errors.New("--metric is of a gate: add --worse 3%")
	}
	var results []*comparison.Result
	x, err := whole(root, a)
	if err != nil {
		return err
	}
	y, err := whole(root, b)
	if err != nil {
		return err
	}
	if x != nil && y != nil {
		results, err = f.byVariant(root, x, y, worse, cmd.ErrOrStderr())
	} else {
		results = make([]*comparison.Result, 1)
		results[0], err = f.between(root, a, b, worse, cmd.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	if err := form.into(&f.form, cmd.OutOrStdout(), results); err != nil {
		return err
	}
	return f.verdict(results)
}

// whole returns the experiment that an argument names, or nil if it names something else.
func whole(root, text string) (*run.Experiment, error) {
	if strings.ContainsAny(text, "/,") || strings.Contains(text, "..") {
		return nil, nil
	}
	x, err := rundir.LoadExperiment(root, text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return x, err
}

// between compares two sides, and gates them unless worse is 0.
func (f *compareFlags) between(root, a, b string, worse float64, words io.Writer) (*comparison.Result, error) {
	var sides [2][]comparison.Kept
	for i, text := range []string{a, b} {
		ids, err := side(root, text)
		if err != nil {
			return nil, err
		}
		if sides[i], err = kept(root, ids, words); err != nil {
			return nil, err
		}
	}
	c, err := experiment.Between(sides[0], sides[1])
	if err != nil || worse == 0 {
		return c, err
	}
	p, err := plan.Decode(sides[0][0].Plan, f.known.All)
	if err == nil {
		c.Gates, err = experiment.GateKept(sides[0], sides[1], p, f.metric, worse)
	}
	if err != nil {
		return nil, fmt.Errorf("--worse %s: %w", f.worse, err)
	}
	return c, nil
}

// byVariant compares the variants that two experiments share, in the first one's order. It says which variants only one of them has.
func (f *compareFlags) byVariant(root string, x, y *run.Experiment, worse float64, words io.Writer) (results []*comparison.Result, err error) {
	if x.ID == y.ID {
		return nil, fmt.Errorf("experiment %s is on both sides: loadgen runs show %s compares its variants", x.ID, x.ID)
	}
	for _, name := range names(x) {
		if !slices.Contains(names(y), name) {
			fmt.Fprintf(words, "loadgen: only %s has variant %s\n", x.ID, name)
			continue
		}
		c, err := f.between(root, x.ID+"/"+name, y.ID+"/"+name, worse, words)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", name, err)
		}
		c.Variant = name
		results = append(results, c)
	}
	for _, name := range names(y) {
		if !slices.Contains(names(x), name) {
			fmt.Fprintf(words, "loadgen: only %s has variant %s\n", y.ID, name)
		}
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%s and %s have no variant in common: name one of each, EXPERIMENT/VARIANT", x.ID, y.ID)
	}
	return results, nil
}

// verdict turns the results into an exit code.
func (f *compareFlags) verdict(results []*comparison.Result) error {
	invalid, decisions := false, []run.Decision{}
	for _, c := range results {
		for i := range c.Figures {
			invalid = invalid || f.worse == "" && c.Figures[i].Validity == run.Invalid
		}
		for _, s := range c.Sides {
			for _, r := range s.Runs {
				invalid = invalid || r.Verdict.Validity == run.Invalid && slices.ContainsFunc(r.Verdict.Codes, reason.Code.Counts)
			}
		}
		for _, g := range c.Gates {
			decisions = append(decisions, g.Decision)
		}
	}
	switch {
	case slices.Contains(decisions, run.GateFailed):
		return exitWith(exit.Assert)
	case slices.Contains(decisions, run.GateUndecided), f.worse != "" && len(decisions) == 0:
		return exitWith(exit.Undecided)
	case invalid:
		return exitWith(exit.Invalid)
	}
	return nil
}

// side returns the runs that an argument names.
func side(root, text string) ([]string, error) {
	if id, variant, found := strings.Cut(text, "/"); found {
		return runsOfVariant(root, id, variant)
	}
	var ids []string
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "..")
		if !isRange {
			if x, err := rundir.LoadExperiment(root, part); err == nil {
				return nil, fmt.Errorf("%s is an experiment: name a variant of it, %s/%s", part, part, strings.Join(names(x), " or "+part+"/"))
			}
			ids = append(ids, part)
			continue
		}
		between, err := runsBetween(root, first, last)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		ids = append(ids, between...)
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return nil, fmt.Errorf("%s: run %s is named twice", text, id)
		}
	}
	return ids, nil
}

func names(x *run.Experiment) (all []string) {
	for _, v := range x.Variants {
		all = append(all, v.Name)
	}
	return all
}

// runsOfVariant lists the runs of a variant that count.
func runsOfVariant(root, id, variant string) ([]string, error) {
	x, err := rundir.LoadExperiment(root, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no experiment %s in %s; see loadgen runs list", id, root)
	}
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names(x), variant) {
		return nil, fmt.Errorf("experiment %s has no variant %q: it has %s", id, variant, strings.Join(names(x), ", "))
	}
	var ids []string
	for _, r := range x.Runs {
		if r.Variant == variant && r.Counts() {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("experiment %s has no run of variant %s that counts", id, variant)
	}
	return ids, nil
}

// runsBetween lists the finished runs of the same plan from first to last, in order of their start.
func runsBetween(root, first, last string) ([]string, error) {
	all, err := rundir.List(root)
	if err != nil {
		return nil, failed("%w", err)
	}
	slices.SortStableFunc(all, func(a, b run.Summary) int { return a.StartedAt.Compare(b.StartedAt) })
	at := func(id string) int {
		return slices.IndexFunc(all, func(s run.Summary) bool { return s.ID == id && s.Unfinished == "" && s.Runs == 0 })
	}
	from, to := at(first), at(last)
	switch {
	case from < 0:
		return nil, fmt.Errorf("no finished run %s in %s; see loadgen runs list", first, root)
	case to < 0:
		return nil, fmt.Errorf("no finished run %s in %s; see loadgen runs list", last, root)
	case from > to:
		return nil, fmt.Errorf("the first run is the later one: write %s..%s", last, first)
	case all[from].PlanDigest != all[to].PlanDigest:
		return nil, errors.New("the first and the last run had different plans: name runs one by one, with commas")
	}
	var ids []string
	for _, s := range all[from : to+1] {
		if s.Unfinished == "" && s.Runs == 0 && s.PlanDigest == all[from].PlanDigest {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// kept reads runs and their plans.
func kept(root string, ids []string, words io.Writer) ([]comparison.Kept, error) {
	var all []comparison.Kept
	for _, id := range ids {
		r, err := rundir.Load(root, id)
		if err != nil {
			return nil, fmt.Errorf("%w; see loadgen runs list", err)
		}
		text, err := rundir.Plan(root, id)
		if err != nil {
			fmt.Fprintf(words, "loadgen: %v: compared without the plan\n", err)
		}
		all = append(all, comparison.Kept{Run: r, Plan: text})
	}
	return all, nil
}
