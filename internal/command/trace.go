package command

import (
	"bytes"
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
	"text/template"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/target/capture"
)

//go:embed trace.tmpl
var replayPlan string

func newTrace() *cobra.Command {
	return group("trace", "Record traffic, and replay it", newTraceRecord(), newTraceImport(), newTraceDiff())
}

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
	flags.StringVarP(&f.stem, "output", "o", "", "write STEM.trace and STEM.hcl, with the path `STEM`")
	flags.StringVar(&f.form, "form", "", "the recordings' `FORM`: monitor, pcap, csvlog, jsonlog, combined or access (default: recognised)")
	flags.StringToStringVar(&f.fields, "fields", nil, "names in a JSON access log: time, method, uri, duration, client, host as `MEANING=NAME,...` (default ts, m, u, rt, c, host)")
	flags.UintSliceVar(&f.ports, "port", nil, "servers' ports in a pcap, as `PORT,...` (default: whoever was connected to)")
	flags.BoolVar(&f.anonymize, "anonymize", false, "replace keys and values by others of the same shape; equal ones stay equal")
	flags.StringSliceVar(&f.allow, "allow", nil, "import commands that are left out otherwise, by `NAME,...`")
	flags.StringVar(&f.database, "database", "", "of PostgreSQL's log, only the statements in the database `NAME`")
	flags.BoolVar(&f.force, "force", false, "overwrite existing files")
	return c
}

// importFlags are the flags of trace import, and what it has found so far.
type importFlags struct {
	stem   string
	form   string
	fields map[string]string
	ports  []uint
	allow  []string
	force  bool

	anonymize bool   // replace keys and values
	database  string // the only one whose statements are imported; "" for all

	mask      *capture.Mask
	ledger    capture.Ledger
	clients   map[string]uint32
	databases map[string]uint32
	names     map[string]int64 // requests by the name of the command
	server    string           // the driver of the recorded server
	first     int64
	last      int64
}

const (
	sortWindow   = 64 << 20 // bytes of requests that are sorted in memory
	importMemory = 84 << 20 // bytes from which on garbage is collected at once
	mostClients  = 1 << 20
	mostNames    = 1 << 12 // commands that are counted apart
	ownOps       = 16      // ops of a plan's own
)

func (f *importFlags) run(cmd *cobra.Command, files []string) error {
	if err := f.free(); err != nil {
		return err
	}
	f.begin()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(importMemory))
	sorter := capture.NewSorter(sortWindow)
	defer sorter.Close()
	sum := sha256.New()
	for i, path := range files {
		file, err := safefile.Open(path)
		if err != nil {
			return failed("%w", err)
		}
		err = f.read(file, i, sorter, sum)
		_ = file.Close() // it was only read
		if err != nil {
			return failed("%s: %w", path, err)
		}
	}
	return f.end(cmd.OutOrStdout(), sorter, [32]byte(sum.Sum(nil)), files)
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

func (f *importFlags) begin() {
	f.mask = capture.NewMask()
	f.clients, f.databases, f.names = map[string]uint32{}, map[string]uint32{}, map[string]int64{}
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
	s := "s"
	if plan.Clients == 1 {
		s = ""
	}
	fmt.Fprintf(out, "wrote %s.trace and %s.hcl: %d requests, %d client%s, within %s\n", f.stem, f.stem, plan.Ops, plan.Clients, s, plan.Span)
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
func (f *importFlags) read(file io.Reader, number int, sorter *capture.Sorter, sum io.Writer) error {
	o := capture.Options{Form: f.form, Fields: f.fields, Allow: f.allow}
	for _, p := range f.ports {
		if p == 0 || p > 65535 {
			return fmt.Errorf("--port %d: write a port from 1 to 65535", p)
		}
		o.Ports = append(o.Ports, uint16(p))
	}
	r, form, closing, err := capture.Open(io.TeeReader(file, sum), o, &f.ledger)
	if err != nil {
		return err
	}
	defer closing()
	server := serverOf[form]
	if number > 0 && server != f.server {
		return errors.New("it is of another kind of server than the file before: import each by itself")
	}
	f.server = server
	switch {
	case f.anonymize && server != "redis":
		return errors.New("--anonymize covers commands of Redis and Valkey, not SQL or URLs")
	case f.database != "" && server != "postgres":
		return errors.New("--database is of PostgreSQL's logs: leave it out")
	}
	var rec capture.Record
	var request []byte
	for {
		err := r.Next(&rec)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if f.anonymize {
			if why := f.mask.Hide(&rec); why != "" {
				f.ledger.Untake(why, int64(len(rec.Commands)))
				continue
			}
		}
		alone := true
		switch server {
		case "web":
			request = capture.AppendHTTP(request[:0], &rec)
		case "postgres":
			if f.database != "" && rec.Database != f.database {
				f.ledger.Untake("in another database", 1)
				continue
			}
			request = capture.AppendStatement(request[:0], &rec)
		default:
			var block bool
			request, block = capture.AppendCommands(request[:0], &rec)
			alone = !block
		}
		if !alone {
			rec.Name = "multi"
		}
		if err := f.count(&rec); err != nil {
			return err
		}
		err = sorter.Add(capture.Request{
			At: rec.At, Client: f.clients[rec.Client], Place: f.databases[rec.Database], Name: rec.Name, Alone: alone, Bytes: request,
		}, rec.Tick)
		if err != nil {
			return err
		}
	}
}

// count numbers clients and databases, and counts names.
func (f *importFlags) count(rec *capture.Record) error {
	if _, known := f.clients[rec.Client]; !known {
		if len(f.clients) == mostClients {
			return fmt.Errorf("more than %d clients", mostClients)
		}
		f.clients[rec.Client] = uint32(len(f.clients))
	}
	if _, known := f.databases[rec.Database]; !known && f.server != "web" {
		if len(f.databases) == mostClients {
			return fmt.Errorf("more than %d databases", mostClients)
		}
		if f.server == "postgres" && len(f.databases) > 0 {
			return fmt.Errorf("statements in more than one database: choose one, such as --database %s", quantity.Plain(rec.Database))
		}
		f.databases[rec.Database] = uint32(len(f.databases))
	}
	if _, known := f.names[rec.Name]; known || len(f.names) < mostNames {
		f.names[rec.Name]++
	}
	return nil
}

// serverOf has the driver of the server that a form of recordings is of.
var serverOf = map[string]string{
	capture.Monitor: "redis", capture.Packets: "redis", capture.CSVLog: "postgres", capture.JSONLog: "postgres", capture.Combined: "web", capture.Access: "web",
}

// replay is what the plan's template needs.
type replay struct {
	Name, Path, Trace, From, Driver, Database, Example string
	Ops                                                int64
	Clients, Sessions                                  int
	Span                                               time.Duration
	Requests                                           []tracedOp
	Gets                                               bool
}

// tracedOp is an op of the plan.
type tracedOp struct {
	Op, Form string
	Selects  bool
}

// taken are the names of ops that mean something else in plans than commands of these names.
var taken = map[string]bool{"put": true, "append": true, "write": true, "read": true, "clear": true}

var noName = regexp.MustCompile(`[^a-z0-9_]+`)

// ops chooses which requests have an op of their own: the commonest. The others share one. It returns the index of each name's op.
func (f *importFlags) ops() (ops []tracedOp, of map[string]int) {
	names := slices.SortedFunc(maps.Keys(f.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.names[b], f.names[a]), cmp.Compare(a, b))
	})
	of = map[string]int{}
	selects := len(f.databases) > 1
	form := "requests"
	if f.server == "web" {
		form = "vegeta"
	}
	if n := f.names["multi"]; n > 0 {
		ops, of["multi"] = append(ops, tracedOp{"multi", "transactions", selects}), 0
	}
	for _, name := range names {
		op := noName.ReplaceAllString(strings.ToLower(name), "_")
		if f.server != "redis" {
			op += "_request" // get and delete mean more in plans
		}
		if taken[op] || op == "" || op[0] < 'a' || op[0] > 'z' {
			op = "command_" + op
		}
		switch _, known := of[name]; {
		case known:
		case len(ops) < ownOps-1 && !slices.ContainsFunc(ops, func(o tracedOp) bool { return o.Op == op }):
			of[name] = len(ops)
			ops = append(ops, tracedOp{op, form, selects})
		default:
			of[name] = -1
		}
	}
	if other := slices.Contains(slices.Collect(maps.Values(of)), -1); other || len(f.names) == mostNames {
		ops = append(ops, tracedOp{"other", form, selects})
	}
	return ops, of
}

// write writes the trace and the plan.
func (f *importFlags) write(sorter *capture.Sorter, seed [32]byte, files []string) (*replay, error) {
	ops, of := f.ops()
	head := trace.Header{Clients: uint32(len(f.clients))}
	for _, o := range ops {
		head.Names = append(head.Names, o.Op)
	}
	databases := make([]string, len(f.databases))
	for name, i := range f.databases {
		databases[i] = name
	}
	p := &replay{
		Name: planName(filepath.Base(f.stem)), Path: filepath.Base(f.stem) + ".hcl", Trace: filepath.Base(f.stem) + ".trace", Example: "127.0.0.1:6379",
		Clients: len(f.clients), Sessions: min(len(f.clients), 256), Requests: ops,
	}
	p.Gets = slices.ContainsFunc(ops, func(o tracedOp) bool { return o.Op == "get" })
	p.Driver = f.server
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
	err := secretFile(f.stem+".trace", f.force, func(w io.Writer) error {
		out, err := trace.NewWriter(w, head)
		if err != nil {
			return err
		}
		var whole []byte
		err = sorter.Each(seed, func(r capture.Request) error {
			name, known := of[r.Name]
			if !known || name < 0 {
				name = len(ops) - 1
			}
			if p.Ops == 0 {
				f.first = r.At
			}
			f.last = r.At
			p.Ops++
			whole = whole[:0]
			if ops[name].Selects {
				whole = capture.AppendSelect(whole, databases[r.Place])
			}
			return out.Write(r.At-f.first, r.Client, name, append(whole, r.Bytes...))
		})
		return errors.Join(err, out.Close())
	})
	if err != nil {
		return nil, err
	}
	p.Span = time.Duration(f.last - f.first).Round(time.Millisecond)
	return p, secretFile(f.stem+".hcl", f.force, func(w io.Writer) error {
		var text bytes.Buffer
		if err := template.Must(template.New("replay").Parse(replayPlan)).Execute(&text, p); err != nil {
			return err
		}
		_, err := w.Write(hclwrite.Format(text.Bytes()))
		return err
	})
}

// planName returns a name that a plan may have.
func planName(stem string) string {
	return cmp.Or(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(stem, "-"), "-"), "replay")
}

// secretFile writes a file that only its owner may read: recorded requests hold what clients stored.
func secretFile(path string, force bool, write func(io.Writer) error) error {
	kind := os.O_EXCL
	if force {
		kind = os.O_TRUNC
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|kind, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
