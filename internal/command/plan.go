package command

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/plan/compress"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/prom"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/loadgen/loadgen/pkg/pmem"
)

func newCheck(known *drivers.Set) *cobra.Command {
	flags := planFlags{known: known}
	var root string
	var sight sightFlags
	c := &cobra.Command{
		Use:   "check PLAN.hcl",
		Short: "Find all mistakes in a plan, and predict what it will do",
		Long: `Find all mistakes in a plan, with the place and the remedy for each, and predict ops, requests, time, sessions, connections,
memory, log files and the number of metrics. Nothing is run, and no endpoint is contacted. Traces and files that the plan names are read
to the end, and what was found in each is printed.

For a plan with an experiment, check every variant, predict the time of all runs, and say how large a difference must be to be found; with
--see, how many repetitions it takes to find one of that size. --variant NAME checks one variant.`,
		Example: `  loadgen plan check plans/hydra.hcl
  loadgen plan check plans/hydra.hcl -var w=3
  loadgen plan check plans/trace.hcl --files plans
  loadgen plan check plans/batch.hcl --see 3% --spread 2%`,
		Args: one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
				return failed("read the limit on open files: %w", err)
			}
			here := means{files: int64(min(files.Cur, math.MaxInt64)), memory: machine.Available(os.DirFS("/")), logRoot: root, known: known}
			return flags.check(cmd, args[0], here, &sight)
		},
	}
	flags.add(c.Flags())
	flags.addFiles(c.Flags())
	sight.add(c.Flags())
	c.Flags().StringVar(&root, "log-root", "", "check for room for log files below `DIR` (default: as for run)")
	return c
}

// check checks the plan at path, or all variants of its experiment, prints a prediction, and says which files it has read.
func (p *planFlags) check(cmd *cobra.Command, path string, here means, sight *sightFlags) error {
	text, err := p.open(path)
	if err != nil {
		return err
	}
	if p.variant == "" {
		t, err := text.trial(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if t != nil {
			if err := predict(cmd.OutOrStdout(), t.Baseline(), here); err != nil {
				return err
			}
			predictTrial(cmd.OutOrStdout(), t, here)
			if err := sight.tell(cmd.OutOrStdout(), here.known, t); err != nil {
				return err
			}
			if err := here.logs(cmd.OutOrStdout(), t.Plans); err != nil {
				return err
			}
			return text.named.report(cmd.OutOrStdout())
		}
	}
	if sight.see != "" {
		return fmt.Errorf("--see %s: it is about an experiment: write experiment { … } in %s, or leave out --variant", sight.see, path)
	}
	resolved, err := text.plan(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := predict(cmd.OutOrStdout(), resolved, here); err != nil {
		return err
	}
	if err := here.logs(cmd.OutOrStdout(), []*plan.Plan{resolved}); err != nil {
		return err
	}
	fmt.Fprint(cmd.OutOrStdout(), wanted(resolved.Hooks()))
	return text.named.report(cmd.OutOrStdout())
}

// predictTrial prints how many runs an experiment has and how long they take. The prediction above it is the baseline's.
func predictTrial(w io.Writer, t *runner.Trial, here means) {
	fmt.Fprintf(w, "\nThese are the baseline's. Experiment: %d variants × %d = %d runs, %s, baseline %s.\n",
		len(t.Variants), t.Repeat, len(t.Variants)*t.Repeat, t.Order, t.Experiment.Baseline)
	var known time.Duration
	open := 0
	for i, v := range t.Variants {
		phases, all := t.Plans[i].Predict()
		each := "as long as the target takes"
		var least time.Duration
		for _, ph := range phases {
			if ph.Duration != nil {
				least += *ph.Duration
			}
		}
		if all.Duration != nil {
			each = least.String()
		} else {
			open++
			if least > 0 {
				each = "at least " + least.String()
			}
		}
		known += time.Duration(t.Repeat) * least
		if bytes := most(t.Plans[i].Keeps(here.known.All)); bytes > 0 {
			each += ", log files of " + mebibytes(bytes)
		}
		fmt.Fprintf(w, "  %s: %s\n", v.Name, each)
	}
	for _, name := range t.LeftOut {
		fmt.Fprintf(w, "  %s: left out, because when is false\n", name)
	}
	switch {
	case open == 0:
		fmt.Fprintf(w, "All runs take %v, and a second or so each for starting and ending.\n", known)
	case known > 0:
		fmt.Fprintf(w, "All runs take at least %v; the rest is up to the target.\n", known)
	default:
		fmt.Fprintf(w, "How long all runs take is up to the target.\n")
	}
	if t.Cap > 0 {
		fmt.Fprintf(w, "The cap ends the runs of a variant after %v together, so all of them after %v.\n", t.Cap, time.Duration(len(t.Variants))*t.Cap)
	}
	foretell(w, t)
	fmt.Fprint(w, wanted(t.Hooks()))
}

// foretell prints what size of difference the experiment will find, before the time is spent.
func foretell(w io.Writer, t *runner.Trial) {
	deviations, family := experiment.DetectableBy(t.Experiment, t.Baseline())
	if family == 0 {
		return
	}
	fmt.Fprintf(w, "It compares up to %s in all. ", quantity.Count(family, "figure"))
	if math.IsInf(deviations, 1) {
		fmt.Fprintf(w, "It takes more runs of each variant to find a difference, however large: write repeat = %d or more.\n", stat.LeastRounds(len(t.Variants)))
		return
	}
	fmt.Fprintf(w, "To be found nine times in ten, a difference must be %.2f standard deviations between runs: if runs deviate by 1 %%, about %s.\n",
		deviations, quantity.Percent(math.Expm1(0.01*deviations)))
	if most := math.Log1p(t.Matters); t.Matters > 0 {
		fmt.Fprintf(w, "To find a difference of %s, which matters, runs must deviate by at most %s.\n", quantity.Percent(t.Matters), quantity.Percent(most/deviations))
	}
}

// sightFlags ask how many repetitions it takes to find a difference.
type sightFlags struct{ see, spread string }

func (f *sightFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.see, "see", "", "say how many repetitions find a difference of this `SHARE`, such as 3%, nine times in ten")
	flags.StringVar(&f.spread, "spread", "", "if runs deviate by this `SHARE` (default: as those of the plan's last experiment in the runs directory)")
}

// tell answers.
func (f *sightFlags) tell(w io.Writer, known *drivers.Set, t *runner.Trial) error {
	if f.see == "" {
		if f.spread != "" {
			return errors.New("--spread: it is for --see: write --see 3%, the difference to find")
		}
		return nil
	}
	see, err := shareOf("--see", f.see)
	if err != nil {
		return err
	}
	var spread float64
	if f.spread != "" {
		spread, err = shareOf("--spread", f.spread)
	} else {
		spread, err = lastSpread(known, t.Baseline().Name)
	}
	if err != nil {
		return err
	}
	const most = 1000 // of repeat
	_, family := experiment.DetectableBy(t.Experiment, t.Baseline())
	needed := func(family int) string {
		if n := experiment.Repetitions(math.Log1p(see)/spread, len(t.Variants), family, most); n > 0 {
			return fmt.Sprint(n)
		}
		return "more than " + quantity.Thousands(most)
	}
	_, err = fmt.Fprintf(w, "To find a difference of %s nine times in ten, if runs deviate by %s: %s repetitions among %s, %s if compare names one figure of one variant.\n",
		quantity.Percent(see), quantity.Percent(spread), needed(family), quantity.Count(family, "comparison"), needed(1))
	return err
}

// lastSpread returns the median spread of the figures of the last experiment with a plan's name.
func lastSpread(known *drivers.Set, plan string) (float64, error) {
	root, err := (&runFlags{}).root()
	if err != nil {
		return 0, err
	}
	kept, err := rundir.List(root)
	if err != nil {
		return 0, failed("%w", err)
	}
	slices.SortStableFunc(kept, func(a, b run.Summary) int { return b.StartedAt.Compare(a.StartedAt) })
	for _, s := range kept {
		if s.Runs == 0 || s.Plan != plan {
			continue
		}
		x, err := loadExperiment(known, root, s.ID)
		if err != nil {
			return 0, err
		}
		var all []float64
		for _, f := range x.Figures {
			if f.Spread != nil && *f.Spread > 0 && !f.Share() {
				all = append(all, *f.Spread)
			}
		}
		if slices.Sort(all); len(all) > 0 {
			return all[len(all)/2], nil
		}
	}
	return 0, fmt.Errorf("--see: no experiment of plan %s in %s says by how much runs deviate: write --spread 2%%", plan, root)
}

func newShow(known *drivers.Set) *cobra.Command {
	flags := planFlags{known: known}
	c := &cobra.Command{
		Use:   "show PLAN.hcl",
		Short: "Print the canonical JSON that every worker gets",
		Long: `Print a plan as canonical JSON, with variables, defaults and conditions resolved and keys sorted. Every worker gets these bytes,
and the run's plan digest is their hash.`,
		Example: "  loadgen plan show plans/hydra.hcl -var w=3",
		Args:    one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := flags.load(args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			canonical, err := p.Canonical()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", canonical)
			return err
		},
	}
	flags.add(c.Flags())
	flags.addFiles(c.Flags())
	return c
}

// means are the limits of this process.
type means struct {
	files  int64
	memory int64 // bytes of memory; 0 if unknown

	logRoot string // as given by --log-root
	known   *drivers.Set
}

// predict prints what a plan will do and need. It warns if the plan needs more open files or memory than this process may have, or more ops per second
// than a worker can send.
func predict(w io.Writer, p *plan.Plan, here means) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "plan %s: no mistakes found\n\n", p.Name)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	phases, all := here.connected(p)
	kept := p.Keeps(here.known.All)
	logs := "logs\t"
	if kept == nil {
		logs = ""
	}
	fmt.Fprintln(t, "phase\tops\trequests\tsetup ops\tduration\tsessions\tconnections\tmemory\t"+logs)
	for i, ph := range phases {
		if kept != nil {
			logs = mebibytes(kept[i].Disk)
			ph.Memory += kept[i].Memory
			all.Memory = max(all.Memory, ph.Memory)
		}
		row(t, ph, logs)
	}
	if len(phases) > 1 {
		if kept != nil {
			logs = mebibytes(most(kept))
		}
		all.Name = "all"
		row(t, all, logs)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\nA duration of - is up to the target. Requests are those of an undisturbed run. Memory is an upper estimate for one worker.\n")
	if slices.ContainsFunc(p.Phases, func(ph *plan.Phase) bool { return ph.Batch > 1 && p.EndpointsOf(ph)[ph.Target] > 1 }) {
		b.WriteString("A batch is a request to each endpoint that has some of its keys; the run shows how many these are.\n")
	}
	if err := shrink(&b, p); err != nil {
		return err
	}
	if kept != nil {
		b.WriteString("Logs are the files of one worker that has all sessions; in a file system in memory they are memory, too.\n")
	}
	if slices.ContainsFunc(p.Targets, func(t *plan.Target) bool { return t.Discovers() }) {
		b.WriteString("For a cluster, connections and memory are those of the nodes that the plan names; a worker finds the others.\n")
	}
	for i, o := range p.Show(here.known.All) {
		if i == 0 {
			b.WriteString("\nOps in the plan's own words, as they will be sent:\n")
		}
		fmt.Fprintf(&b, "  %s.%s: %s\n", o.Target, o.Name, strings.ReplaceAll(o.Text, "\n", "\n    "))
	}
	fmt.Fprintf(&b, "Metrics (--http): %d series on the coordinator's page and %d more for each worker; %d on a worker's own page.\n",
		prom.Series(p, 0), prom.Series(p, 1)-prom.Series(p, 0), prom.PartSeries(p))
	b.WriteString(exposed(p))
	for i, ph := range p.Phases {
		warn(&b, p, ph, here)
		if kept != nil && kept[i].Short != nil {
			fmt.Fprintf(&b, "\nWarning: phase %s on one worker: target %q: %v; or use more workers.\n", ph.Name, ph.Target, kept[i].Short)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// mostShrunk is how many bytes of values are compressed to tell how they compress: four times as many as zstd looks back, all datasets together.
const mostShrunk = 8 << 20

// repeats is the share of their bytes below which values are the same text again and again: one value's text shrinks to 0.75.
const repeats = 0.5

// shrink prints how values compress that are put and not taken from a file.
func shrink(w io.Writer, p *plan.Plan) error {
	for _, d := range p.Datasets {
		i := slices.IndexFunc(p.Phases, func(ph *plan.Phase) bool {
			return ph.Dataset == d.Name && len(ph.Scenarios) == 0 && ph.Trace() == nil && slices.ContainsFunc(ph.Ops, func(w plan.Weight) bool { return w.Op == driver.Put.String() })
		})
		if i < 0 || d.Keys.File != nil || d.Values.File != nil {
			continue
		}
		values, err := workload.Sample(p, p.Phases[i], mostShrunk/len(p.Datasets))
		if err != nil {
			return err
		}
		if len(values) > 0 {
			share, remedy := compress.Share(values), ""
			if share < repeats && d.Values.Record == nil && d.Values.Compressibility == nil {
				remedy = ": they repeat; values with a compressibility do not"
			}
			fmt.Fprintf(w, "%s of the values of dataset %s shrink to %.0f %% by zstd, compressed as one%s.\n",
				quantity.Bytes(int64(len(values))), d.Name, 100*share, remedy)
		}
	}
	return nil
}

// connected predicts a plan's load and needs. It leaves out connections to targets that have none, and counts those of all blocking clients.
func (here *means) connected(p *plan.Plan) (phases []plan.Load, all plan.Load) {
	phases, all = p.Predict()
	all.Connections = 0
	for i, ph := range p.Phases {
		l := &phases[i]
		l.Connections = int64(l.Sessions) * int64(here.connectionsOf(p, ph))
		l.Memory += p.Memory(ph, l.Sessions, here.clientsOf(p, ph)) - p.Memory(ph, l.Sessions, p.EndpointsOf(ph))
		all.Memory, all.Connections = max(all.Memory, l.Memory), max(all.Connections, l.Connections)
	}
	return phases, all
}

// connects says whether a target has something to connect to, or files to open.
func (here *means) connects(t *plan.Target) bool {
	return slices.ContainsFunc(here.known.All, func(d driver.Driver) bool {
		_, timed := d.(driver.Timed)
		return d.Name() == t.Driver && !timed
	})
}

// clients is how many connections a session of a phase has to each endpoint of a target: one, or one per op in flight for blocking clients.
func (here *means) clients(t *plan.Target, ph *plan.Phase) int {
	dials := func(d driver.Driver) bool {
		_, ok := d.(driver.Dialer)
		return ok && d.Name() == t.Driver
	}
	if slices.ContainsFunc(here.known.All, dials) {
		return ph.Pipeline()
	}
	return 1
}

// clientsOf returns how many clients a session of a phase has for each target.
func (here *means) clientsOf(p *plan.Plan, ph *plan.Phase) map[string]int {
	all := p.EndpointsOf(ph)
	for name := range all {
		all[name] *= here.clients(p.Target(name), ph)
	}
	return all
}

// connectionsOf returns how many connections a session of a phase opens.
func (here *means) connectionsOf(p *plan.Plan, ph *plan.Phase) (n int) {
	for name, clients := range here.clientsOf(p, ph) {
		if here.connects(p.Target(name)) {
			n += clients
		}
	}
	return n
}

// warn prints which of a phase's needs this machine cannot meet for one worker. The limits of the workers' own machines decide in the end.
func warn(b *bytes.Buffer, p *plan.Plan, ph *plan.Phase, here means) {
	if each := here.connectionsOf(p, ph); each > 0 {
		if short := ph.FilesShort(ph.Sessions(), each, here.files); short != "" {
			fmt.Fprintf(b, "\nWarning: phase %s: %s.\n", ph.Name, short)
		}
	}
	if short := p.MemoryShort(ph, ph.Sessions(), here.clientsOf(p, ph), here.memory); short != "" {
		fmt.Fprintf(b, "\nWarning: phase %s: %s.\n", ph.Name, short)
	}
	if gone := p.Evicts(ph); gone != "" {
		fmt.Fprintf(b, "\nWarning: phase %s: %s.\n", ph.Name, gone)
	}
	loops, _ := loopsOfEnvironment() // an error is reported when the plan is run
	loops = min(cmp.Or(loops, engine.DefaultLoops()), ph.Sessions())
	if most, rate := engine.MostPerLoop*float64(loops), ph.OpsPerSecond(); rate > most {
		fmt.Fprintf(b, "\nWarning: phase %s asks for %.0f ops a second, and a worker with as many event loops as here by default (%d) can send %.0f: use %.0f workers, or at most that rate on one.\n",
			ph.Name, rate, loops, most, math.Ceil(rate/most))
	}
}

// logs warns if one worker's log files would not fit here. The space on the workers' own machines decides in the end.
func (m *means) logs(w io.Writer, plans []*plan.Plan) error {
	var need int64
	for _, p := range plans {
		need = max(need, most(p.Keeps(m.known.All)))
	}
	if need == 0 {
		return nil
	}
	root, err := existing(m.logRoot)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return failed("--log-root: %w", err)
	}
	defer dir.Close()
	free, place, err := pmem.Room(dir)
	if err != nil {
		return failed("--log-root: %w", err)
	}
	what := "free"
	if place.Volatile() && m.memory > 0 && m.memory < free {
		free, what = m.memory, "of memory available"
	}
	if need <= free {
		return nil
	}
	_, err = fmt.Fprintf(w, "\nWarning: one worker's log files take %s, and below %s on %s there are %s %s here: make them smaller, use more workers, or write another --log-root.\n",
		mebibytes(need), root, place, mebibytes(free), what)
	return err
}

// most returns the most bytes of log files that exist at once.
func most(kept []plan.Kept) (bytes int64) {
	for _, k := range kept {
		bytes = max(bytes, k.Disk)
	}
	return bytes
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

func row(w io.Writer, l plan.Load, logs string) {
	duration := "-"
	if l.Duration != nil {
		duration = l.Duration.Round(time.Millisecond).String()
	}
	if logs != "" {
		logs += "\t"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%s\t%s\n",
		l.Name, known(l.Ops), known(l.Requests), l.SetupOps, duration, l.Sessions, l.Connections, mebibytes(l.Memory), logs)
}

// known formats a number that may be unknown before the run.
func known(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
