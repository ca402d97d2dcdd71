package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

const (
	mostFilled  = 64 << 20 // bytes of keys and values, unless --sample says more
	mostSampled = 1 << 17  // items, unless --sample says more
	leastSample = 200      // items
	leastKey    = 24       // bytes: the part that distinguishes a run's keys from others, and their number
)

// sizeFlags are the flags of loadgen size.
type sizeFlags struct {
	quickFlags
	items  string
	memory string
	sample string
	format string
	key    int
}

// filling is a step that fills a store, with keys that no other step has.
type filling struct {
	Name   string
	Items  int64
	Format string
}

func newSize(known *drivers.Set) *cobra.Command {
	flags := &sizeFlags{quickFlags: *quickly("size", known)}
	flags.keys, flags.pipeline = "1", 1
	c := &cobra.Command{
		Use:   "size URL|HOST:PORT",
		Short: "Say what an item takes in a server's memory, and how many fit",
		Long: `Say how many bytes an item takes in a server, how much memory more items would take, and how many a given memory has room for, each with a 95 %
interval. The figure is the server's own: Redis' used_memory, memcached's bytes, the size of PostgreSQL's table on disk, or the used part of an Ignite node's
data region, which the node reports only with ignite-indexing.

The address is a URL (redis://, rediss://, memcached://, postgres://, ignite://HOST/REGION) or HOST:PORT with --driver. A password comes from
LOADGEN_SECRET_TARGET in the environment, or from --password-file.

The command writes a plan, shown by --plan, and runs it like loadgen run: six fills, 120,000 items and 64 MiB at most, with a look at the server after
each. Its keys have a prefix that only this run uses, and it deletes them by name at the end; PostgreSQL gets a table of its own, Ignite a cache. It refuses
a server that holds other keys or is in use, since their memory could not be told apart.`,
		Example: `  loadgen size redis://127.0.0.1:6379 --value 200B --items 10M
  loadgen size redis://127.0.0.1:6379 --value 1KiB --maxmemory 4GiB
  loadgen size 127.0.0.1:11211 --driver memcached --value 200B --key 40
  loadgen size ignite://127.0.0.1 --value 200B --items 1M`,
		Args: one("address"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	f := c.Flags()
	flags.share(f, "runs", "out", "progress", "label", "loops", "strict")
	f.StringVar(&flags.driver, "driver", "", "the `NAME` of the protocol, if the address is no URL: redis, memcached, postgres or ignite (default redis)")
	f.StringVar(&flags.size, "value", "200B", "values have this `SIZE`")
	f.IntVar(&flags.key, "key", leastKey, "keys have `N` bytes, 24 to 200")
	f.StringVar(&flags.items, "items", "", "say what `N` items would take, such as 10M")
	f.StringVar(&flags.memory, "maxmemory", "", "say how many items this `SIZE` has room for, such as 4GiB (default: the server's own limit)")
	f.StringVar(&flags.sample, "sample", "", "fill in `N` items at most (default: as many as take 64 MiB, 124,518 at most)")
	f.StringVar(&flags.format, "format", "text", "print `FORMAT`: text or json")
	f.StringVar(&flags.user, "user", "", "log in as user `NAME`")
	f.StringVar(&flags.ca, "ca", "", "trust the certificates in `FILE` for rediss:// (default: the system's)")
	f.StringVar(&flags.password, "password-file", "", "read the password from `FILE` (default: LOADGEN_SECRET_TARGET in the environment)")
	f.StringVar(&flags.plan, "plan", "", "also write the plan to `FILE`; - prints it, and nothing is run")
	return c
}

// run writes the plan, runs it, and prints the answer.
func (f *sizeFlags) run(cmd *cobra.Command, at string) error {
	a, err := sizable().parse(at, f.driver)
	if err != nil {
		return err
	}
	fields, _ := footprint.Of(a.driver)
	words := f.wordsOn(cmd.ErrOrStderr())
	if err := f.ready(a, words); err != nil {
		return err
	}
	items, memory, sample, err := f.asked()
	if err != nil {
		return err
	}
	q, err := f.request(a)
	if err != nil {
		return err
	}
	points := footprint.Points(sample)
	phases := f.fill(q, points)
	q.Fields, q.Keys = listed(fields.Names()), points[len(points)-1]
	q.Description = quoted("what an item takes")
	_, p, err := f.written(cmd, quickPlan, q)
	if err != nil || p == nil {
		return err
	}
	if err := f.guard(cmd.Context(), p, q); err != nil {
		return err
	}
	fmt.Fprintf(words, "%s at %s: what an item takes, by %s with keys of %d bytes and values of %d.\n", q.Driver, q.at, quantity.Count(uint64(q.Keys), "item"), f.key, q.bytes)
	return f.carryOut(cmd, p, words, func(result *run.Run, _ string) error {
		if result.Verdict.Completeness != run.Complete {
			q.unfilled(words, result)
			return nil
		}
		taken, err := footprint.New(result, "server", phases, points, fields)
		if err != nil {
			return failed("%s at %s: %w", q.Driver, q.at, err)
		}
		if f.format == "json" {
			return safefile.JSON(taken.Figures(items, memory))(cmd.OutOrStdout())
		}
		return taken.Text(cmd.OutOrStdout(), items, memory)
	})
}

// unfilled says why there are no figures.
func (q *quick) unfilled(words io.Writer, result *run.Run) {
	if len(result.Verdict.Reasons) == 0 {
		return
	}
	fmt.Fprintf(words, "%s at %s was not filled: %s", q.Driver, q.at, result.Verdict.Reasons[0])
	switch {
	case strings.Contains(result.Verdict.Reasons[0], "NOPERM"):
		fmt.Fprint(words, ". Let its user write and delete keys that begin with loadgen-")
	case result.Verdict.Completeness == run.Failed:
		fmt.Fprintf(words, ". If values of %d bytes are beyond its limit, write a smaller --value", q.bytes)
	}
	fmt.Fprintln(words)
}

// asked reads the questions from the flags, and the number of items to fill in.
func (f *sizeFlags) asked() (items, memory, sample int64, err error) {
	if f.items != "" {
		if items, err = dialect.ParseCount(f.items); err != nil || items < 1 {
			return 0, 0, 0, fmt.Errorf("--items %q: write a number above 0, such as 500k or 10M", f.items)
		}
	}
	if f.memory != "" {
		if memory, err = dialect.ParseSize(f.memory); err != nil || memory < 1 {
			return 0, 0, 0, fmt.Errorf("--maxmemory %q: write a size, such as 512MiB or 4GiB", f.memory)
		}
	}
	value, err := dialect.ParseSize(f.size)
	switch {
	case err != nil || value < 1:
		return 0, 0, 0, fmt.Errorf("--value %q: write a size, such as 200B or 1KiB", f.size)
	case f.format != "text" && f.format != "json":
		return 0, 0, 0, fmt.Errorf("--format %s: write text or json", f.format)
	case f.key < leastKey || f.key > 200:
		return 0, 0, 0, fmt.Errorf("--key %d: write a number from %d to 200", f.key, leastKey)
	case f.sample == "":
		return items, memory, max(leastSample, min(mostSampled, mostFilled/(value+int64(f.key)+perKey))), nil
	}
	if sample, err = dialect.ParseCount(f.sample); err != nil || sample < leastSample || sample > 10_000_000 {
		return 0, 0, 0, fmt.Errorf("--sample %q: write a number from %d to 10M", f.sample, leastSample)
	}
	return items, memory, sample, nil
}

// fill adds to a plan the steps after which a store holds these numbers of items, and returns the phases before which it does.
func (f *sizeFlags) fill(q *quick, points []int64) (phases []string) {
	before := int64(0)
	for i, n := range points {
		name := string(rune('a' + i))
		head := q.Prefix + name // so that no two steps share a key
		q.Fillings = append(q.Fillings, filling{Name: name, Items: n - before, Format: fmt.Sprintf("%s%%0%dd", head, f.key-len(head))})
		phases = append(phases, "fill-"+name)
		before = n
	}
	return append(phases[1:], "clean-a")
}
