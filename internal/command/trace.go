package command

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the plan
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/capture"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
)

//go:embed trace.tmpl
var replayPlan string

func newTraceImport() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Turn a recording of requests into a trace, and a plan that replays it",
		Long: `Turn what others recorded into a trace and a plan that replays it, STEM.trace and STEM.hcl. Recordings are the output of MONITOR (Redis, Valkey),
packets of RESP (pcap, as of tcpdump -s 0), logs of PostgreSQL (csvlog, jsonlog), and access logs of web servers (combined; or JSON, an object on
each line). They may be compressed by gzip or zstd, and their form is recognised.

Every record becomes a request or is left out, and the command prints how many were left out, and why: commands of a connection, such as
SUBSCRIBE; those that manage a server, such as CONFIG, unless --allow names them; secrets; what was not recorded whole.`,
		Example: `  loadgen trace import monitor.txt -o shop
  loadgen trace import redis.pcap -o shop
  loadgen trace import postgresql-*.csv --database shop -o shop
  loadgen trace import access.log.1.gz access.log -o site
  loadgen trace import access.json --fields time=time,method=verb,uri=path -o site`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := c.Flags()
	f.add(flags, "import")
	flags.StringVar(&f.options.Form, "form", "", "the recordings' `FORM`: monitor, pcap, csvlog, jsonlog, combined or access (default: recognised)")
	flags.StringToStringVar(&f.options.Fields, "fields", nil, "names in a JSON access log: time, method, uri, duration, client, host as `MEANING=NAME,...` (default ts, m, u, rt, c, host)")
	flags.UintSliceVar(&f.options.Ports, "port", nil, "servers' ports in a pcap, as `PORT,...` (default: whoever was connected to)")
	flags.StringVar(&f.options.Database, "database", "", "of PostgreSQL's log, only the statements in the database `NAME`")
	return c
}

// add adds the flags of import and record.
func (f *importFlags) add(flags *pflag.FlagSet, does string) {
	flags.StringVarP(&f.stem, "output", "o", "", "write STEM.trace and STEM.hcl, with the path `STEM`")
	flags.BoolVar(&f.anonymize, "anonymize", false, "replace keys and values by others of the same shape; equal ones stay equal")
	flags.StringSliceVar(&f.options.Allow, "allow", nil, does+" commands that are left out otherwise, by `NAME,...`")
	flags.BoolVar(&f.force, "force", false, "overwrite existing files")
}

// importFlags are the flags of trace import, and what it has found so far.
type importFlags struct {
	stem      string
	options   capture.Options
	anonymize bool
	force     bool

	server    string // the driver of the recorded server
	ledger    capture.Ledger
	clients   numbered
	databases numbered
	names     numbered             // of commands
	requests  [mostNames + 1]int64 // by number of the name; the last ones have none of their own
}

// numbered numbers texts from 0.
type numbered struct {
	of  map[string]uint32
	all []string
}

// number returns the number of a text; ok is false if there would be more than most.
func (n *numbered) number(text string, most int) (i uint32, ok bool) {
	if i, known := n.of[text]; known {
		return i, true
	}
	if len(n.all) == most {
		return 0, false
	}
	if n.of == nil {
		n.of = map[string]uint32{}
	}
	i = uint32(len(n.all))
	n.of[text], n.all = i, append(n.all, text)
	return i, true
}

const (
	sortWindow   = 64 << 20 // bytes of requests that are sorted in memory
	importMemory = 94 << 20 // bytes from which on garbage is collected at once
	mostClients  = 1 << 20
	mostNames    = 1 << 12 // commands that are counted apart
	ownOps       = 16      // ops of a plan's own
)

func (f *importFlags) run(cmd *cobra.Command, files []string) error {
	if err := f.free(); err != nil {
		return err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(importMemory))
	sorter := capture.NewSorter(sortWindow)
	defer sorter.Close()
	sum, shown := sha256.New(), &reading{began: time.Now(), update: run.Update{Phase: "import", Kind: worker.Load}}
	if w := cmd.ErrOrStderr(); isTerminal(w) {
		shown.on = report.NewProgress(w, func() int { return columnsOf(w) }, "")
		defer shown.on.Clear()
	}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil { // otherwise opening it says why
			shown.update.Total += uint64(info.Size())
		}
	}
	for _, path := range files {
		file, err := safefile.Open(path)
		if err != nil {
			return failed("%w", err)
		}
		shown.update.Doing = "reading " + quantity.Plain(filepath.Base(path))
		err = f.read(io.TeeReader(file, io.MultiWriter(sum, shown)), sorter)
		_ = file.Close() // it was only read
		if err != nil {
			return failed("%s: %w", path, err)
		}
	}
	return f.end(cmd.OutOrStdout(), sorter, [32]byte(sum.Sum(nil)), files)
}

// reading shows how much of the recordings was read, on a terminal. It is a writer of what was.
type reading struct {
	on     *report.Progress // nil if that is not shown
	began  time.Time
	update run.Update
}

// Write implements io.Writer.
func (r *reading) Write(p []byte) (int, error) {
	r.update.Done, r.update.Elapsed = r.update.Done+uint64(len(p)), time.Since(r.began)
	if r.on != nil {
		r.on.Show(r.update)
	}
	return len(p), nil
}

// free checks that the files to be written do not exist, or may be replaced.
func (f *importFlags) free() error {
	if f.stem == "" {
		return errors.New("-o is missing: write -o STEM, for STEM.trace and STEM.hcl")
	}
	f.stem = strings.TrimSuffix(strings.TrimSuffix(f.stem, ".hcl"), ".trace")
	for _, path := range []string{f.stem + ".trace", f.stem + ".hcl"} {
		if _, err := os.Lstat(path); err == nil && !f.force {
			return fmt.Errorf("%s already exists: name another stem, or overwrite it with --force", path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("%w", err)
		}
	}
	return nil
}

// end writes the trace and the plan, and says what became of each record.
func (f *importFlags) end(out io.Writer, sorter *capture.Sorter, seed [32]byte, from []string) error {
	if f.ledger.Ops == 0 {
		return failed("no record could become a request%s", f.leftOut())
	}
	plan, err := f.write(sorter, seed, from)
	if err != nil {
		return failed("%w", err)
	}
	clients := "1 client"
	if plan.Clients > 1 {
		clients = fmt.Sprint(plan.Clients, " clients")
	}
	fmt.Fprintf(out, "wrote %s.trace and %s.hcl: %d requests, %s, within %s\n", f.stem, f.stem, plan.Requests, clients, plan.Span)
	fmt.Fprintf(out, "%d records: %d requests%s\n", f.ledger.Records, f.ledger.Ops, f.leftOut())
	_, err = fmt.Fprintf(out, "replay them on a server for tests: loadgen run %s.hcl -var 'endpoints=[%q]'\n", f.stem, plan.Example)
	return err
}

// leftOut says how many records were left out, and why.
func (f *importFlags) leftOut() string {
	if len(f.ledger.LeftOut) == 0 {
		return ", none left out"
	}
	var b strings.Builder
	for _, why := range slices.Sorted(maps.Keys(f.ledger.LeftOut)) {
		fmt.Fprintf(&b, "\n  left out %8d  %s", f.ledger.LeftOut[why], quantity.Plain(why))
	}
	return b.String()
}

// read reads a recording.
func (f *importFlags) read(file io.Reader, sorter *capture.Sorter) error {
	if f.anonymize && f.options.Mask == nil {
		f.options.Mask = capture.NewMask()
	}
	r, err := capture.Open(file, f.options, &f.ledger)
	if err != nil {
		return err
	}
	defer r.Close()
	if f.server = cmp.Or(f.server, r.Server); f.server != r.Server {
		return errors.New("it is of another kind of server than the file before: import each by itself")
	}
	for rec := (capture.Record{}); ; {
		if err := r.Next(&rec); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		stamp, err := f.count(&rec)
		if err != nil {
			return err
		}
		if err := sorter.Add(capture.Request{Stamp: stamp, Bytes: rec.Request}); err != nil {
			return err
		}
	}
}

// count numbers a request's client, database and name, and counts it.
func (f *importFlags) count(rec *capture.Record) (s capture.Stamp, err error) {
	s = capture.Stamp{At: rec.At, Tick: rec.Tick}
	var few, known bool
	if s.Client, few = f.clients.number(rec.Client, mostClients); few && f.server != "web" { // a web server's plan has one host
		s.Place, few = f.databases.number(rec.Database, mostClients)
	}
	switch {
	case !few:
		return s, fmt.Errorf("more than %d clients or databases", mostClients)
	case s.Place > 0 && f.server == "postgres":
		return s, fmt.Errorf("statements in more than one database: choose one, such as --database %s", quantity.Plain(rec.Database))
	}
	if s.Name, known = f.names.number(rec.Name, mostNames); !known {
		s.Name = mostNames
	}
	f.requests[s.Name]++
	return s, nil
}

// replay is what the plan's template needs.
type replay struct {
	Name, Path, Trace, From, Driver, Database, Example string
	Requests                                           int64
	Clients, Sessions                                  int
	Span                                               time.Duration
	Ops                                                []tracedOp
	Selects, Gets                                      bool
}

// tracedOp is an op of the plan.
type tracedOp struct{ Name, Form string }

// taken are the names of ops that mean something else in plans than commands of these names.
var taken = map[string]bool{"put": true, "append": true, "write": true, "read": true, "clear": true}

var noName = regexp.MustCompile(`[^a-z0-9_]+`)

// opName is how a plan names the op of a command.
func opName(command string) string {
	op := noName.ReplaceAllString(strings.ToLower(command), "_")
	if taken[op] || op == "" || op[0] < 'a' || op[0] > 'z' {
		op = "command_" + op
	}
	return op
}

// ops chooses which requests have an op of their own: the commonest. The others share the last one. of has the index of each name's op, by its number.
func (f *importFlags) ops() (ops []tracedOp, of map[uint32]int) {
	form := "requests"
	if f.server == "web" {
		form = "vegeta"
	}
	of = map[uint32]int{}
	transactions := slices.Index(f.names.all, "multi")
	if transactions >= 0 {
		ops, of[uint32(transactions)] = append(ops, tracedOp{"multi", "transactions"}), 0
	}
	numbers := slices.SortedFunc(maps.Values(f.names.of), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(f.requests[b], f.requests[a]), cmp.Compare(f.names.all[a], f.names.all[b]))
	})
	for _, i := range numbers {
		suffix := ""
		if f.server != "redis" {
			suffix = "_request" // get and delete mean more in plans
		}
		op := opName(f.names.all[i] + suffix)
		if int(i) != transactions && len(ops) < ownOps-1 && !slices.Contains(ops, tracedOp{op, form}) {
			ops, of[i] = append(ops, tracedOp{op, form}), len(ops)
		}
	}
	if len(of) < len(f.names.all) || f.requests[mostNames] > 0 {
		ops = append(ops, tracedOp{"other", form})
	}
	return ops, of
}

// write writes the trace and the plan.
func (f *importFlags) write(sorter *capture.Sorter, seed [32]byte, files []string) (*replay, error) {
	ops, of := f.ops()
	stem, databases := filepath.Base(f.stem), f.databases.all
	p := &replay{
		Name: planName(stem), Path: stem + ".hcl", Trace: stem + ".trace", Example: "127.0.0.1:6379", Driver: f.server,
		Clients: len(f.clients.all), Sessions: min(len(f.clients.all), 256), Ops: ops, Selects: len(databases) > 1,
	}
	head := trace.Header{Clients: uint32(p.Clients), Commands: f.ledger.Commands}
	if p.Selects {
		var added int64
		for _, n := range f.requests {
			added += n
		}
		head.Commands["select, added by loadgen"] = added
	}
	for _, o := range ops {
		head.Names = append(head.Names, o.Name)
	}
	p.Gets = slices.ContainsFunc(ops, func(o tracedOp) bool { return o.Name == "get" })
	switch {
	case f.server == "web":
		p.Example = "127.0.0.1:8080"
	case f.server == "postgres":
		p.Example, p.Database = "127.0.0.1:5432", strconv.Quote(databases[0])
	case len(databases) == 1 && databases[0] != "0":
		p.Database = databases[0]
	}
	var bases []string
	for _, path := range files {
		bases = append(bases, quantity.Plain(filepath.Base(path)))
	}
	p.From = strings.Join(bases, ", ")
	var first, last int64
	err := secretFile(f.stem+".trace", f.force, func(w io.Writer) error {
		out, err := trace.NewWriter(w, head)
		if err != nil {
			return err
		}
		var whole []byte
		err = sorter.Each(seed, func(r *capture.Request) error {
			op, own := of[r.Name]
			if !own {
				op = len(ops) - 1
			}
			if p.Requests == 0 {
				first = r.At
			}
			last = r.At
			p.Requests++
			whole = whole[:0]
			if p.Selects {
				whole = redis.AppendCommand(whole, "SELECT", databases[r.Place])
			}
			return out.Write(r.At-first, r.Client, op, append(whole, r.Bytes...))
		})
		return errors.Join(err, out.Close())
	})
	if err != nil {
		return nil, err
	}
	p.Span = time.Duration(last - first).Round(time.Millisecond)
	text, err := filled(replayPlan, p.Path, p)
	if err != nil {
		return nil, err
	}
	return p, secretFile(f.stem+".hcl", f.force, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// planName returns a name that a plan may have.
func planName(stem string) string {
	return cmp.Or(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(stem, "-"), "-"), "replay")
}

// secretFile writes a file that only its owner may read: recorded requests hold what clients stored.
func secretFile(path string, force bool, write func(io.Writer) error) error {
	if force {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return safefile.Create(path, 0o600, write)
}
