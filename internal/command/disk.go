package command

import (
	_ "embed" // for the plan
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/pmem"
)

//go:embed disk.tmpl
var diskPlan string

// diskPhase is a load of small entries on a file whose blocks are made in one way.
type diskPhase struct {
	Name     string
	Title    string
	Prealloc pmem.Prealloc
	Writers  int // several share each sync
	Says     string
}

// diskPhases are in the order in which they run: the one that fills a journal least comes first.
func diskPhases() []diskPhase {
	return []diskPhase{
		{"zeroed", "blocks zeroed", pmem.Zeroed, 1, "The blocks were written before, as in a log that recycles its files."},
		{"grouped", "zeroed, 8 writers", pmem.Zeroed, 8, "Eight writers share one log, and each sync is for all that wait for one."},
		{"reserved", "blocks reserved", pmem.Reserved, 1, "The blocks are reserved by fallocate and written for the first time, as by etcd."},
		{"extended", "blocks extended", pmem.Extending, 1, "The file is made longer by each entry."},
	}
}

const (
	leastDiskSize   = 8 << 20         // bytes of a file
	leastDiskBudget = 4 * time.Second // for all phases
)

// diskFlags are the flags of loadgen disk.
type diskFlags struct{ quickFlags }

// disk holds the data for the plan's template.
type disk struct {
	Root, Goal, Size string
	Quantiles        []string
	Duration         time.Duration
	Phases           []diskPhase
	Objective        objective

	place pmem.Place
	goal  string // for people
}

func newDisk(known *drivers.Set) *cobra.Command {
	flags := &diskFlags{quickFlags: *quickly("disk", known)}
	c := &cobra.Command{
		Use:   "disk DIR",
		Short: "Say what a log can do in a directory: how long a sync takes there",
		Long: `Measure how long fdatasync takes in a directory after each entry of 2 KiB from one writer, if the blocks of the file were written before, are
reserved, or have to be found; and say whether that is quick enough for a log such as etcd's, which needs a 99th percentile of at most 10 ms. Also
measure 8 writers that share their syncs, how much the device writes for each byte of an entry, and how many bytes a second it takes in pieces of
1 MiB; and name the directory's file system and device.

The command writes a plan, shown by --plan, and runs it like loadgen run. Its files are in DIR/loadgen-disk and are deleted at the end, also after
Ctrl-C. They take four times --size, and a directory without room for them is refused. Exit codes: 0 the objective is met with reserved blocks, as etcd
writes, 1 it is not, others as for loadgen run.`,
		Example: `  loadgen disk /var/lib/etcd
  loadgen disk . --slo p999=5ms --budget 2m
  loadgen disk /mnt/data --size 1GiB --report disk.html`,
		Args: one("directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	f := c.Flags()
	flags.share(f, "runs", "out", "report", "progress", "label", "strict")
	f.StringArrayVar(&flags.slo, "slo", []string{"p99=10ms"}, "the objective of a write with its sync: `pQ=TIME`, such as p99=10ms or p999=20ms")
	f.DurationVar(&flags.budget, "budget", 30*time.Second, "load for `DURATION` in all, after making the files")
	f.StringVar(&flags.size, "size", "256MiB", "each of four files has this `SIZE`")
	f.StringVar(&flags.plan, "plan", "", "also write the plan to `FILE`; - prints it, and nothing is run")
	return c
}

// run writes the plan, runs it, and prints the answer.
func (f *diskFlags) run(cmd *cobra.Command, dir string) error {
	says := f.wordsOn(cmd.ErrOrStderr())
	if err := f.ready(new(address), says); err != nil {
		return err
	}
	d, err := f.asked(dir)
	if err != nil {
		return err
	}
	_, p, err := f.written(cmd, diskPlan, d)
	if err != nil || p == nil {
		return err
	}
	fmt.Fprintf(says, "%s in %s: it takes %v, and the time to make four files of %s.\n", d.place, d.Root, f.budget, f.size)
	result, _, err := f.end(cmd, p, says)
	if err != nil {
		return err
	}
	if result.ExitCode == exit.Failed && len(result.Phase) == 0 {
		return failed("%s: %s", d.Root, result.Verdict.Reasons[0]) // it could not begin
	}
	if err := d.show(f.textOn(cmd, says), result); err != nil {
		return failed("%w", err)
	}
	if result.ExitCode == exit.OK && !d.place.Keeps() {
		return exitWith(exit.Invalid)
	}
	return exitWith(result.ExitCode)
}

// unknown says why the loads do not tell whether a disk meets the objective; "" if they do.
func (d *disk) unknown(r *run.Run) string {
	switch {
	case !d.place.Keeps():
		return fmt.Sprintf("as far as can be seen, what is synced on %s does not survive a power loss: name a directory on the disk itself", d.place)
	case r.Verdict.Validity == run.Invalid:
		why := r.Verdict.Reasons[0]
		if ph := r.Phase["reserved"]; ph != nil { // the one that counts
			if i := slices.IndexFunc(ph.Reasons, func(is run.Reason) bool { return is.Validity == run.Invalid }); i >= 0 {
				why = ph.Reasons[i].Text
			}
		}
		return "its figures are invalid: " + why
	}
	return ""
}

// asked makes the plan's data from the flags. It returns an error if the directory has no room for the files.
func (f *diskFlags) asked(dir string) (*disk, error) {
	size, err := dialect.ParseSize(f.size)
	if err != nil || size < leastDiskSize || size > math.MaxInt64/8 {
		return nil, fmt.Errorf("--size %q: write 8MiB or more, such as 256MiB", f.size)
	}
	if f.budget < leastDiskBudget {
		return nil, fmt.Errorf("--budget %v: write %v or more: there are five loads", f.budget, leastDiskBudget)
	}
	goals, err := objectivesOf(f.slo, "")
	if err != nil {
		return nil, err
	}
	if len(goals) != 1 || goals[0].Op != "" {
		return nil, fmt.Errorf("--slo %q: write one objective of writes, such as p99=10ms", f.slo)
	}
	d := &disk{Size: quoted(f.size), Duration: f.budget / 5, Phases: diskPhases(), Objective: goals[0]}
	d.Quantiles = []string{"0.5", "0.99", "0.999", "0.9999"}
	if share := "0." + strings.TrimRight(strings.TrimPrefix(d.Objective.Quantile, "p"), "0"); !slices.Contains(d.Quantiles, share) {
		d.Quantiles = append(d.Quantiles, share)
	}
	d.goal = d.Objective.Quantile + " <= " + d.Objective.Limit
	d.Goal = quoted(d.goal + ", with reserved blocks")
	if d.Root, err = filepath.Abs(dir); err != nil {
		return nil, failed("%s: %w", dir, err)
	}
	f.loops.logRoot = d.Root
	if info, err := os.Stat(d.Root); err == nil && !info.IsDir() { // a pipe would never open
		return nil, failed("open %s: not a directory: write one", d.Root)
	}
	root, err := os.OpenRoot(d.Root)
	if err != nil {
		return nil, failed("%w: write a directory that is there and that this user may use", err)
	}
	defer root.Close()
	free, place, err := pmem.Room(root)
	if err != nil {
		return nil, failed("%s: %w", d.Root, err)
	}
	if d.place = place; free < 4*size {
		return nil, failed("%s: %s are free on %s, and four files of %s do not fit: make room, or write a --size of a quarter of it at most",
			d.Root, quantity.Bytes(free), place, f.size)
	}
	return d, nil
}

// show describes the place, and the results of the loads there.
func (d *disk) show(w io.Writer, r *run.Run) error {
	fmt.Fprintf(w, "%s is on %s%s\n", d.Root, d.place, cacheOf(d.place))
	var caveats []string
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "entries of 2 KiB\tops/s\tp50\tp99\tp99.9\tp99.99\tmax\t%s\tdevice\tflushes\t\n", d.goal)
	for _, one := range d.Phases {
		ph := r.Phase[one.Name]
		if ph == nil || ph.Op["append"] == nil || ph.Log == nil {
			continue // the run ended before
		}
		op := ph.Op["append"]
		cell := func(v *float64, path string, as func(float64) string) string {
			if v == nil {
				return "-" // there were too few samples
			}
			return as(*v) + words.Mark(ph, "op.append."+path)
		}
		quantile := func(name string) string { return cell(op.Service.Quantile(name), "service."+name, quantity.Duration) }
		met := "unknown"
		limit, _ := time.ParseDuration(d.Objective.Limit) // the plan has it
		if is := op.Service.Quantile(d.Objective.Quantile); is != nil {
			met = map[bool]string{true: "yes", false: "no"}[*is <= limit.Seconds()] + words.Mark(ph, "op.append.service."+d.Objective.Quantile)
		}
		row := []string{one.Title, cell(op.Rate, "rate", func(v float64) string { return quantity.Thousands(int64(v)) })}
		for _, name := range []string{"p50", "p99", "p999", "p9999"} {
			row = append(row, quantile(name))
		}
		row = append(row, cell(op.Service.Max, "service.max", quantity.Duration), met)
		row = append(row, deviceCells(ph)...)
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
		if ph.Log.Failure != "" {
			caveats = append(caveats, one.Title+": a log failed: "+ph.Log.Failure)
		}
		for _, c := range append(slices.Clone(ph.Log.Caveats), unknownOf(ph)...) {
			if !slices.Contains(caveats, c) {
				caveats = append(caveats, c)
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "device: how many times its own size it writes for an entry; flushes: of its cache, for an entry")
	if ph := r.Phase["pieces"]; ph != nil && ph.Log != nil && ph.Log.BytesPerSecond != nil {
		fmt.Fprintf(w, "pieces of 1 MiB, each with its sync: %s/s%s\n", quantity.Bytes(int64(*ph.Log.BytesPerSecond)), words.Mark(ph, "log.bytes_per_second"))
	}
	for _, c := range caveats {
		fmt.Fprintf(w, "Note: %s\n", c)
	}
	for _, a := range r.Asserts {
		switch {
		case d.unknown(r) != "" && (a.OK == nil || *a.OK):
			fmt.Fprintf(w, "Whether it meets %s is not known: %s\n", a.Name, d.unknown(r))
		case a.OK == nil:
			fmt.Fprintf(w, "Whether it meets %s is not known: %s\n", a.Name, a.Reason)
		case *a.OK:
			fmt.Fprintf(w, "It meets %s, as etcd writes: %s\n", a.Name, a.Value)
		default:
			fmt.Fprintf(w, "It does not meet %s, as etcd writes: %s\n", a.Name, a.Value)
		}
	}
	if r.Verdict.Validity != run.Valid {
		fmt.Fprintln(w, "Figures marked ? or ! are in doubt: loadgen report says why")
	}
	return nil
}

// deviceCells returns the device's figures per entry.
func deviceCells(ph *run.Phase) []string {
	cells := []string{"-", "-"}
	if d := ph.Device; d != nil && d.Amplification != nil {
		cells[0] = fmt.Sprintf("%.2f×", *d.Amplification)
	}
	if d := ph.Device; d != nil && d.FlushesPerOp != nil {
		cells[1] = fmt.Sprintf("%.2f", *d.FlushesPerOp)
	}
	return cells
}

// unknownOf returns why the device's cells are empty.
func unknownOf(ph *run.Phase) (all []string) {
	for _, path := range []string{"device.bytes", "device.flushes"} {
		if why := ph.Nulls[path]; why != "" && !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return all
}

// cacheOf says what the kernel reports about a device's write cache.
func cacheOf(p pmem.Place) string {
	text := ""
	if p.Behind != "" {
		text = ", which is kept in " + p.Behind
	}
	switch pmem.WriteCache(p) {
	case "write back":
		text += ", with a write cache that each sync empties"
	case "write through":
		text += ", without a volatile write cache"
	}
	return text
}
