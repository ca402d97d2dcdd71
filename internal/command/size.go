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
	hitFlags
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
		Use:   "size [URL|HOST:PORT]",
		Short: "Say what an item takes in a server's memory, how many fit, and how many hit",
		Long: `Say how many bytes an item takes in a server, how much memory more items would take, and how many a given memory has room for, each with a 95 %
interval. The figure is the server's own: Redis' used_memory, memcached's bytes, the size of PostgreSQL's table on disk, or the used part of an Ignite node's
data region, which the node reports only with ignite-indexing.

The address is a URL (redis://, rediss://, memcached://, postgres://, ignite://HOST/REGION) or HOST:PORT with --driver. A password comes from
LOADGEN_SECRET_TARGET in the environment, or from --password-file.

The command writes a plan, shown by --plan, and runs it like loadgen run: six fills, 120,000 items and 64 MiB at most, with a look at the server after
each. Its keys have a prefix that only this run uses, and it deletes them by name at the end; PostgreSQL gets a table of its own, Ignite a cache. It refuses
a server that holds other keys or is in use, since their memory could not be told apart.

With --trace, or --of and --phase, it also says how much memory holds a hit ratio (--hits), or which hit ratio a memory holds (--maxmemory), if the least
recently used items are evicted. A trace needs times; its times to live play no part. A plan's phase counts up to ten million ops, after the earlier phases that populate its dataset.`,
		Example: `  loadgen size redis://127.0.0.1:6379 --value 200B --items 10M
  loadgen size redis://127.0.0.1:6379 --value 1KiB --maxmemory 4GiB
  loadgen size 127.0.0.1:11211 --driver memcached --value 200B --key 40
  loadgen size ignite://127.0.0.1 --value 200B --items 1M
  loadgen size redis://127.0.0.1:6379 --trace day.csv --hits 95%
  loadgen size --item 304B --of plans/cache-size.hcl --phase read --maxmemory 4GiB`,
		RunE: flags.run,
	}
	f := c.Flags()
	flags.share(f, "runs", "out", "progress", "label", "loops", "strict", "var", "var-file", "variant")
	f.StringVar(&flags.driver, "driver", "", "the `NAME` of the protocol, if the address is no URL: redis, memcached, postgres or ignite (default redis)")
	f.StringVar(&flags.size, "value", "200B", "values have this `SIZE`")
	f.IntVar(&flags.key, "key", leastKey, "keys have `N` bytes, 24 to 200")
	f.StringVar(&flags.items, "items", "", "say what `N` items would take, such as 10M")
	f.StringVar(&flags.memory, "maxmemory", "", "say how many items this `SIZE` has room for, such as 4GiB (default: the server's own limit)")
	f.StringVar(&flags.trace, "trace", "", "say what memory the gets of the trace in `FILE` need, or how many hit")
	f.StringVar(&flags.form, "form", "cache", "the trace's `FORM`: cache, csv, json or mooncake")
	f.StringVar(&flags.of, "of", "", "say it of the draws of a phase in the plan `FILE`")
	f.StringVar(&flags.phase, "phase", "", "the `NAME` of that phase")
	f.StringVar(&flags.hits, "hits", "", "say how much memory holds this `SHARE` of hits, such as 95%")
	f.StringVar(&flags.item, "item", "", "all items take this `SIZE`, such as 304B: no server is asked")
	f.StringVar(&flags.sample, "sample", "", "fill in `N` items at most (default: as many as take 64 MiB, 124,518 at most)")
	f.StringVar(&flags.format, "format", "text", "print `FORMAT`: text or json")
	f.StringVar(&flags.user, "user", "", "log in as user `NAME`")
	f.StringVar(&flags.ca, "ca", "", "trust the certificates in `FILE` for rediss:// (default: the system's)")
	f.StringVar(&flags.password, "password-file", "", "read the password from `FILE` (default: LOADGEN_SECRET_TARGET in the environment)")
	f.StringVar(&flags.plan, "plan", "", "also write the plan to `FILE`; - prints it, and nothing is run")
	return c
}

// run writes the plan, runs it, and prints the answers. With --item there is no plan to run.
func (f *sizeFlags) run(cmd *cobra.Command, args []string) error {
	is, err := f.asked()
	if err == nil {
		err = f.ask(cmd.ErrOrStderr(), is.value, len(args) > 0)
	}
	if err != nil {
		return err
	}
	if f.item != "" {
		return f.show(cmd.OutOrStdout(), nil, is)
	}
	if err := one("address")(cmd, args); err != nil {
		return err
	}
	a, err := sizable().parse(args[0], f.driver)
	if err != nil {
		return err
	}
	fields, _ := footprint.Of(a.driver)
	words := f.wordsOn(cmd.ErrOrStderr())
	if err := f.ready(a, words); err != nil {
		return err
	}
	q, err := f.request(a)
	if err != nil {
		return err
	}
	points := footprint.Points(is.sample)
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
		for _, said := range result.Environment.Servers["server"] {
			if policy := said["maxmemory_policy"]; f.curve != nil && (strings.HasSuffix(policy, "-lfu") || strings.HasSuffix(policy, "-random")) {
				return failed("%s at %s evicts by %s, and what hits is known for LRU only: set maxmemory-policy allkeys-lru, or ask with --item %.0fB", q.Driver, q.at, policy, taken.Item)
			}
		}
		return f.show(cmd.OutOrStdout(), taken, is)
	})
}

// show prints the answers, from what items take in a store; nil if no store was measured.
func (f *sizeFlags) show(w io.Writer, taken *footprint.Footprint, is questions) (err error) {
	var all struct {
		*footprint.Figures
		Hits *hold `json:"hits,omitempty"`
	}
	if f.curve != nil {
		store := taken
		if store == nil {
			store = &footprint.Footprint{Item: f.each}
		}
		if all.Hits, err = f.in(store, float64(is.memory)); err != nil {
			return err
		}
	}
	if f.format == "json" {
		if taken != nil {
			all.Figures = taken.Figures(is.items, is.memory)
		}
		return safefile.JSON(all)(w)
	}
	if taken != nil {
		err = taken.Text(w, is.items, is.memory)
	}
	if all.Hits != nil && err == nil {
		err = all.Hits.text(w)
	}
	return err
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

// questions are the numbers in the flags; 0 for those that are not asked about.
type questions struct {
	items, memory int64
	value         int64 // bytes of a value
	sample        int64 // number of items to fill in
}

// asked reads the questions from the flags.
func (f *sizeFlags) asked() (is questions, err error) {
	if f.items != "" {
		if is.items, err = dialect.ParseCount(f.items); err != nil || is.items < 1 {
			return is, fmt.Errorf("--items %q: write a number above 0, such as 500k or 10M", f.items)
		}
	}
	if f.memory != "" {
		if is.memory, err = dialect.ParseSize(f.memory); err != nil || is.memory < 1 {
			return is, fmt.Errorf("--maxmemory %q: write a size, such as 512MiB or 4GiB", f.memory)
		}
	}
	is.value, err = dialect.ParseSize(f.size)
	switch {
	case err != nil || is.value < 1:
		return is, fmt.Errorf("--value %q: write a size, such as 200B or 1KiB", f.size)
	case f.format != "text" && f.format != "json":
		return is, fmt.Errorf("--format %s: write text or json", f.format)
	case f.key < leastKey || f.key > 200:
		return is, fmt.Errorf("--key %d: write a number from %d to 200", f.key, leastKey)
	case f.sample == "":
		is.sample = max(leastSample, min(mostSampled, mostFilled/(is.value+int64(f.key)+perKey)))
		return is, nil
	}
	if is.sample, err = dialect.ParseCount(f.sample); err != nil || is.sample < leastSample || is.sample > 10_000_000 {
		return is, fmt.Errorf("--sample %q: write a number from %d to 10M", f.sample, leastSample)
	}
	return is, nil
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
