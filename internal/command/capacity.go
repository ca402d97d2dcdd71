package command

import (
	"bytes"
	"cmp"
	"crypto/rand"
	_ "embed" // for the plan
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/web"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/plan"
)

//go:embed quick.tmpl
var quickPlan string

// quickFlags are the flags of commands that write a plan and run it.
type quickFlags struct {
	runFlags
	command string // its name, which is the plan's and its load's

	driver   string
	slo      []string
	ops      string
	size     string
	keys     string
	sessions int
	pipeline int
	user     string
	headers  []string
	method   string
	body     string
	insecure bool
	http2    bool
	ca       string
	password string // --password-file
	shared   bool
	plan     string
	budget   time.Duration
	rate     string
	duration time.Duration
}

// quickly returns the flags of a command that finds drivers in known.
func quickly(command string, known *drivers.Set) *quickFlags {
	return &quickFlags{command: command, runFlags: *runsOf(known)}
}

func newCapacity(known *drivers.Set) *cobra.Command {
	flags := quickly("capacity", known)
	c := &cobra.Command{
		Use:   "capacity URL|HOST:PORT",
		Short: "Find the largest rate that a server holds",
		Long: `Find the largest rate at which a server answers within an objective, with its interval and the latency below it.

The address is a URL (redis://, rediss://, memcached://, postgres://, http://, https://) or HOST:PORT with --driver. A password comes from
LOADGEN_SECRET_TARGET in the environment, or from --password-file.

The command writes a plan, shown by --plan, and runs it like loadgen run. It fills the server with keys of its own, which have a
prefix that only this run uses and a time to live, and deletes them by name at the end. PostgreSQL gets a table of its own; a web server gets requests
for that URL and nothing else. Before the fill, the command refuses a replica, a fill that does not fit into maxmemory and, without --shared, a server
that holds other keys or is in use. Ctrl-C ends the search and says what it has found.`,
		Example: `  loadgen capacity redis://127.0.0.1:6379
  loadgen capacity 127.0.0.1:11211 --driver memcached --slo p99=1ms --size 1KiB
  LOADGEN_SECRET_TARGET=… loadgen capacity postgres://bench@127.0.0.1/postgres --ops get=1
  loadgen capacity http://127.0.0.1:8080/index.html --budget 30s --report capacity.html`,
		Args: one("address"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	f := c.Flags()
	flags.add(f)
	f.StringArrayVar(&flags.slo, "slo", nil, "the objective of response times: `[OP:]pQ=TIME`, such as p95=2ms or get:p50=500us; repeatable (default: p95=5ms for caches, p95=50ms for postgres, p95=500ms for http)")
	f.DurationVar(&flags.budget, "budget", time.Minute, "search for `DURATION` at most")
	return c
}

func newBench(known *drivers.Set) *cobra.Command {
	flags := quickly("bench", known)
	c := &cobra.Command{
		Use:   "bench URL|HOST:PORT",
		Short: "Put one load on a server",
		Long: `Put one load on a server: ops that arrive at a rate (--rate), or sessions that each wait for their answer (--sessions).

Like loadgen capacity, it takes an address and a password, writes keys of its own and deletes them, and refuses the same servers.`,
		Example: `  loadgen bench redis://127.0.0.1:6379 --rate 10k/s
  loadgen bench 127.0.0.1:11211 --driver memcached --sessions 50 --duration 30s
  loadgen bench http://127.0.0.1:8080/ --rate 500/s
  loadgen bench https://127.0.0.1:8443/orders --insecure --body '{"sku": "a"}' --header 'Content-Type: application/json'`,
		Args: one("address"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	f := c.Flags()
	flags.add(f)
	f.StringVar(&flags.rate, "rate", "", "ops arrive at this `RATE`, such as 10k/s, at random intervals (default: none: each session waits for its answer)")
	f.DurationVar(&flags.duration, "duration", 10*time.Second, "load for `DURATION`")
	return c
}

// add adds the flags that both commands have.
func (f *quickFlags) add(set *pflag.FlagSet) {
	f.share(set, "runs", "out", "report", "progress", "label", "loops", "strict")
	set.StringVar(&f.driver, "driver", "", "the `NAME` of the protocol, if the address is no URL: redis, memcached, postgres or web (default redis)")
	set.StringVar(&f.ops, "ops", "", "the mix, as `OP=WEIGHT,…` of get and put (default get=9,put=1; not for a web server)")
	set.StringVar(&f.size, "size", "200B", "values have this `SIZE`")
	set.StringVar(&f.keys, "keys", "100k", "use `N` keys")
	set.IntVar(&f.sessions, "sessions", 0, "open `N` sessions, each with a connection (default: 50; 16 for postgres)")
	set.IntVar(&f.pipeline, "pipeline", 1, "let each session have `N` ops in flight")
	set.StringVar(&f.user, "user", "", "log in as user `NAME`")
	set.StringArrayVar(&f.headers, "header", nil, "add a header to each HTTP request: `NAME: VALUE`; repeatable. Unless its name is harmless, as Accept is, the plan has {secret.HEADER_NAME} for the value")
	set.StringVar(&f.method, "method", "", "send HTTP requests with `METHOD`, such as PUT (default: GET; POST with --body)")
	set.StringVar(&f.body, "body", "", "what HTTP requests hold: `TEXT`, or @FILE for a file's")
	set.BoolVar(&f.http2, "http2", false, "speak HTTP/2: over https:// as agreed by ALPN, over http:// with a server that expects it; --pipeline is streams of a connection")
	set.BoolVar(&f.insecure, "insecure", false, "do not verify the certificate of rediss:// and https://; the result says so")
	set.StringVar(&f.ca, "ca", "", "trust the certificates in `FILE` for rediss:// and https:// (default: the system's)")
	set.StringVar(&f.password, "password-file", "", "read the password from `FILE` (default: LOADGEN_SECRET_TARGET in the environment)")
	set.BoolVar(&f.shared, "shared", false, "load a server that holds other keys or is in use by others")
	set.StringVar(&f.plan, "plan", "", "also write the plan to `FILE`; - prints it, and nothing is run")
}

// share adds some flags of a run, and sets the others to their defaults.
func (f *quickFlags) share(set *pflag.FlagSet, names ...string) {
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.addTo(all)
	for _, name := range names {
		set.AddFlag(all.Lookup(name))
	}
}

// run writes the plan and runs it.
func (f *quickFlags) run(cmd *cobra.Command, at string) error {
	a, err := loadable().parse(at, f.driver)
	if err != nil {
		return err
	}
	words := f.wordsOn(cmd.ErrOrStderr())
	if err := f.ready(a, words); err != nil {
		return err
	}
	q, err := f.request(a)
	if err != nil {
		return err
	}
	_, p, err := f.written(cmd, quickPlan, q)
	if err != nil || p == nil {
		return err
	}
	if err := f.guard(cmd.Context(), p, q); err != nil {
		return err
	}
	fmt.Fprint(words, q.summary(f))
	return f.carryOut(cmd, p, words, func(result *run.Run, dir string) error { return f.text(f.textOn(cmd, words), result, dir) })
}

// ready checks the flags of a run, and finds the password.
func (f *quickFlags) ready(a *address, words io.Writer) (err error) {
	if err = errors.Join(f.checkProgress(), f.checkOutputs(), f.loops.check(), f.secretOf(a, words)); err == nil {
		f.labels, err = parseLabels(f.labelTexts)
	}
	return err
}

// written writes the plan by its template, reads it, and keeps its text where --plan says. The plan is nil if that is all that --plan asks for.
func (f *quickFlags) written(cmd *cobra.Command, form string, with any) (text []byte, p *plan.Plan, err error) {
	if text, err = filled(form, "plan", with); err != nil {
		return nil, nil, err
	}
	if p, err = f.read(text).plan(cmd.ErrOrStderr()); err != nil {
		return nil, nil, err
	}
	fmt.Fprint(cmd.ErrOrStderr(), exposed(p))
	switch f.plan {
	case "":
	case standard:
		_, err := cmd.OutOrStdout().Write(text)
		return nil, nil, err
	default:
		if err := safefile.Replace(f.plan, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return nil, nil, failed("--plan: %w", err)
		}
	}
	return text, p, nil
}

// filled returns the text of a plan that a template makes. Errors call it name.
func filled(form, name string, with any) ([]byte, error) {
	var b bytes.Buffer
	if err := template.Must(template.New("plan").Parse(form)).Execute(&b, with); err != nil {
		return nil, err
	}
	text, diags := plan.Format(b.Bytes(), name)
	if diags.HasErrors() {
		return nil, diags
	}
	return text, nil
}

// carryOut runs the plan, shows the result, and removes what the run left on the server. If its fill times out, it begins again, more slowly.
func (f *quickFlags) carryOut(cmd *cobra.Command, p *plan.Plan, words io.Writer, show func(result *run.Run, dir string) error) error {
	writes := len(p.Phases) > 1
	f.begun = func(id string) {
		if writes {
			fmt.Fprintf(words, "If this process is killed, loadgen clean %s deletes its keys.\n", id)
		}
	}
	result, dir, err := f.end(cmd, p, words)
	if err != nil {
		return err
	}
	again := slowed(p, result)
	if !again {
		if err := show(result, dir); err != nil {
			return err
		}
	}
	if writes && result.Verdict.Completeness != run.Complete {
		begun := f.begun
		f.begun = nil // cleaning up is a run, too
		if err := f.clean(cmd, p, words); err != nil {
			return failed("its keys could not be deleted: %w: loadgen clean %s tries again", err, result.ID)
		}
		f.begun = begun
	}
	if again {
		fmt.Fprintf(words, "The fill timed out. It begins again, with fewer ops in flight. (%s)\n", result.Verdict.Reasons[0])
		return f.carryOut(cmd, p, words, show)
	}
	return exitWith(result.ExitCode)
}

// slowed makes a plan whose fill failed by timeouts fill and delete with fewer ops in flight. It returns false if there is nothing to slow.
func slowed(p *plan.Plan, result *run.Run) (again bool) {
	for _, ph := range p.Phases {
		is := result.Phase[ph.Name]
		again = again || ph.Populate != nil && *ph.Populate != plan.Clients{Sessions: 1, Pipeline: 1} && is != nil && is.Op["put"] != nil && is.Op["put"].Timeout > 0
	}
	if !again || result.Verdict.Completeness != run.Failed {
		return false
	}
	for _, ph := range p.Phases {
		for _, c := range []*plan.Clients{ph.Populate, ph.Clear} {
			switch {
			case c == nil:
			case c.Pipeline > 1:
				c.Pipeline = 1
			default:
				c.Sessions = 1
			}
		}
	}
	return true
}

// read reads the plan that was written.
func (f *quickFlags) read(text []byte) *planText {
	name := "the plan for " + f.command
	t := &planText{path: name, named: newNamedFiles("."), sources: map[string][]byte{name: text}}
	t.file, t.diags = plan.Parse(text, name, f.known.All)
	return t
}

// secretOf finds the password, and puts it where the plan looks it up.
func (f *quickFlags) secretOf(a *address, words io.Writer) error {
	const place = "LOADGEN_SECRET_TARGET"
	switch {
	case f.password != "":
		text, err := safefile.Secret(f.password)
		if err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
		return os.Setenv(place, text)
	case a.password != "":
		fmt.Fprintf(words, "Warning: other users of this machine can see a password in a command's arguments. Use %s or --password-file.\n", place)
		return os.Setenv(place, a.password)
	}
	return nil
}

// quick holds the data for the plan's template. Texts include their quotes where the plan needs them.
type quick struct {
	Command, Description        string
	Driver, Endpoint            string
	TLS, Secret, Fills          bool
	Insecure, HTTP2             bool
	CA, User, Database, SSLMode string
	Path, Method, Body          string
	Headers                     []header
	Table, Prefix, TTL          string
	Keys                        int64
	Size, From, Budget          string
	Sessions, Pipeline          int
	Ops                         []weight
	SLOs                        []objective
	Rate, Duration              string
	Fields                      string // figures that show which resource of the server gives out
	Fillings                    []filling
	Versus                      *sides // what versus compares; nil for any other command

	at    string // the endpoint, for people
	get   string // path of the URL, unchanged
	body  string // unchanged, too
	bytes int64  // of a value
}

type header struct{ Name, Value string }

// weight is an op and its weight in the mix.
type weight struct {
	Name   string
	Weight float64
}

// objective is a limit of response times.
type objective struct{ Op, Quantile, Limit string }

// notInNames matches what the name of a secret has none of.
var notInNames = regexp.MustCompile(`[^A-Z0-9_]`)

// quoted returns text as HCL writes it.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}

// listed returns names as the items of a list in HCL.
func listed(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// escaped returns text as it is written where placeholders have braces.
func escaped(text string) string { return strings.NewReplacer("{", "{{", "}", "}}").Replace(text) }

// request makes the plan's data from the flags.
func (f *quickFlags) request(a *address) (*quick, error) {
	_, secret := os.LookupEnv("LOADGEN_SECRET_TARGET")
	token := make([]byte, 4)
	_, _ = rand.Read(token) // it never fails
	id := hex.EncodeToString(token)
	of := servers.Of(a.driver)
	q := &quick{
		Command: f.command, Driver: a.driver, Endpoint: quoted(a.endpoint), at: a.endpoint, get: a.path, TLS: a.tls, Secret: secret, Fills: a.driver != "web",
		CA: quoted(f.ca), User: quoted(cmp.Or(f.user, a.user)), Database: a.database, SSLMode: quoted(a.sslmode),
		Path: quoted(escaped(a.path)), Table: "loadgen_" + id, Prefix: "loadgen-" + id + ":",
		Size: quoted(f.size), Sessions: cmp.Or(f.sessions, of.Sessions), Pipeline: f.pipeline, Duration: f.duration.String(), Budget: f.budget.String(), Rate: f.rate,
	}
	if a.driver != "redis" { // there it is a number
		q.Database = quoted(a.database)
	}
	if strain := of.Strain(); len(strain) > 0 {
		q.Fields = listed(strain)
	}
	if of.Expires {
		q.TTL = (cmp.Or(f.budget, f.duration).Round(time.Second) + 15*time.Minute).String()
	}
	if err := f.fits(a); err != nil {
		return nil, err
	}
	var err error
	if q.body, err = f.content(); err != nil {
		return nil, err
	}
	q.Insecure, q.HTTP2, q.Method, q.Body = f.insecure, f.http2, quoted(f.verb()), quoted(escaped(q.body))
	if q.User != "" && !secret && a.driver != "postgres" {
		return nil, fmt.Errorf("user %s has no password: set LOADGEN_SECRET_TARGET, or use --password-file", q.User)
	}
	if q.Keys, err = countOf(f.keys); err != nil {
		return nil, err
	}
	if a.driver == "web" {
		q.Keys, q.Size = 1, quoted("1B")
	}
	if q.Ops = []weight{{"page", 1}}; a.driver != "web" {
		if q.Ops, err = mixOf(cmp.Or(f.ops, "get=9,put=1")); err != nil {
			return nil, err
		}
	}
	for _, text := range f.headers {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("--header %.20q: write NAME: VALUE, such as Accept: text/html", text)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if value = escaped(value); !web.Harmless(name) {
			key := "HEADER_" + notInNames.ReplaceAllString(strings.ToUpper(name), "_")
			if slices.ContainsFunc(q.Headers, func(h header) bool { return strings.Contains(h.Value, "{secret."+key+"}") }) {
				return nil, fmt.Errorf("--header %s: another header's value is the secret %s, too: leave one out", name, key)
			}
			if err := os.Setenv("LOADGEN_SECRET_"+key, strings.TrimSpace(text[strings.Index(text, ":")+1:])); err != nil {
				return nil, fmt.Errorf("--header %s: %w", name, err)
			}
			value = "{secret." + key + "}"
		}
		q.Headers = append(q.Headers, header{quoted(name), quoted(value)})
	}
	if f.command == "capacity" {
		if q.SLOs, err = objectivesOf(f.slo, a.driver); err != nil {
			return nil, err
		}
		q.From = fmt.Sprintf("%.0f/s", q.least(f.budget))
	}
	q.Description = quoted(q.wants())
	return q, nil
}

// mostBody bounds the body that a flag gives: plans hold it.
const mostBody = 256 << 10

// content returns the body of requests.
func (f *quickFlags) content() (string, error) {
	path, isFile := strings.CutPrefix(f.body, "@")
	if !isFile {
		return f.body, nil
	}
	text, err := safefile.Read(path, mostBody)
	switch {
	case err != nil:
		return "", fmt.Errorf("--body: %w", err)
	case !utf8.Valid(text):
		return "", fmt.Errorf("--body @%s: it is no text in UTF-8, which a plan can hold: write a plan whose dataset has files as values (docs/web.md)", path)
	}
	return string(text), nil
}

// verb returns the method of HTTP requests.
func (f *quickFlags) verb() string {
	if f.method == "" && f.body != "" {
		return "POST"
	}
	return strings.ToUpper(cmp.Or(f.method, "GET"))
}

// least returns the lowest rate of a search: the one at which a quarter of the budget is enough for the samples that each quantile needs, of the
// rarest op.
func (q *quick) least(budget time.Duration) (rate float64) {
	for _, o := range q.SLOs {
		quantile, _ := strconv.ParseFloat("0."+strings.TrimPrefix(o.Quantile, "p"), 64) // it is of digits
		rarest, all := math.Inf(1), 0.0
		for _, op := range q.Ops {
			all += op.Weight
			if o.Op == "" || o.Op == op.Name {
				rarest = min(rarest, op.Weight)
			}
		}
		wants := math.Pow(2+math.Sqrt(4+10/(1-quantile)), 2) // ten beyond it, at random arrivals
		rate = max(rate, math.Ceil(1.01*wants*all/rarest/(budget/4).Seconds()))
	}
	return max(rate, 1)
}

// fits refuses flags that do not go with the address.
func (f *quickFlags) fits(a *address) error {
	_, rateless := dialect.ParseRate(f.rate)
	_, sizeless := dialect.ParseSize(f.size)
	switch {
	case len(f.headers) > 0 && a.driver != "web":
		return fmt.Errorf("--header is for http:// and https://, and the address is of %s", a.driver)
	case f.method+f.body != "" && a.driver != "web":
		return fmt.Errorf("--method and --body are for http:// and https://, and the address is of %s", a.driver)
	case f.http2 && a.driver != "web":
		return fmt.Errorf("--http2 is for http:// and https://, and the address is of %s", a.driver)
	case f.body != "" && (f.verb() == "GET" || f.verb() == "HEAD"):
		return fmt.Errorf("--body: a %s has none: write --method POST, or leave --body out", f.verb())
	case f.ops != "" && a.driver == "web":
		return errors.New("--ops: a web server gets one request, that of --method: leave it out, or write a plan (docs/web.md)")
	case f.ca != "" && !a.tls:
		return errors.New("--ca is for rediss:// and https://: of postgres, PGSSLROOTCERT names the file")
	case f.insecure && (!a.tls || f.ca != ""):
		return errors.New("--insecure is for rediss:// and https:// without --ca; of postgres, sslmode=require verifies nothing")
	case cmp.Or(f.user, a.user) != "" && (a.driver == "memcached" || a.driver == "web"):
		return fmt.Errorf("a user: %s has none here: leave it out", a.driver)
	case sizeless != nil:
		return fmt.Errorf("--size: %w", sizeless)
	case f.sessions < 0 || f.pipeline < 1:
		return errors.New("--sessions and --pipeline: write numbers above 0")
	case f.command == "capacity" && f.budget < 5*time.Second:
		return fmt.Errorf("--budget %v: write 5s or more: a search makes twenty tries of a second or so", f.budget)
	case f.rate != "" && rateless != nil:
		return fmt.Errorf("--rate %.40q: write how many per which time, such as 10k/s or 300/min", f.rate)
	case f.command != "capacity" && f.command != "size" && f.duration <= 0:
		return fmt.Errorf("--duration %v: write a duration above 0, such as 10s", f.duration)
	}
	return nil
}

// countOf reads a number such as 100k.
func countOf(text string) (int64, error) {
	n, err := dialect.ParseCount(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--keys %q: write a number, such as 5000, 100k or 1M", text)
	case n == 0:
		return 0, errors.New("--keys 0: write a number above 0")
	}
	return n, nil
}

// mixOf reads a mix such as get=9,put=1.
func mixOf(text string) (mix []weight, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		w, err := strconv.ParseFloat(value, 64)
		switch {
		case !ok || err != nil || !(w > 0 && w <= 1e6):
			return nil, fmt.Errorf("--ops %q: write OP=WEIGHT, such as get=9,put=1", text)
		case name != "get" && name != "put":
			return nil, fmt.Errorf("--ops %s: there are get and put here; a plan can have others (docs/plans.md)", name)
		}
		mix = append(mix, weight{name, w})
	}
	return mix, nil
}

var limits = regexp.MustCompile(`^(?:([a-z]+):)?(p[0-9]+)=([0-9.]+(?:ns|us|µs|ms|s|m))$`)

// objectivesOf reads objectives such as p95=2ms, or returns the driver's own.
func objectivesOf(texts []string, driver string) (list []objective, err error) {
	if len(texts) == 0 {
		texts = []string{servers.Of(driver).Objective}
	}
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			m := limits.FindStringSubmatch(strings.TrimSpace(part))
			if m == nil {
				return nil, fmt.Errorf("--slo %q: write pQ=TIME, such as p95=2ms, or OP:pQ=TIME, such as get:p50=500us", text)
			}
			list = append(list, objective{m[1], m[2], m[3]})
		}
	}
	return list, nil
}

// summary says what the command will do, and how long it takes.
func (q *quick) summary(f *quickFlags) string {
	lasts := cmp.Or(f.budget, f.duration)
	text := fmt.Sprintf("%s at %s: %s", q.Driver, q.at, q.wants())
	if f.command == "capacity" || q.Rate != "" {
		text += ", " + quantity.Count(q.Sessions, "session")
	}
	if q.Fills {
		return text + fmt.Sprintf(", %s. It takes %v, and the time to fill and to delete.\n", quantity.Count(int(q.Keys), "key"), lasts)
	}
	return text + fmt.Sprintf(". It takes %v.\n", lasts)
}

// wants says in a sentence what the plan is for.
func (q *quick) wants() string {
	switch {
	case len(q.SLOs) > 0:
		var goals []string
		for _, o := range q.SLOs {
			goals = append(goals, strings.TrimSpace(o.Op+" "+o.Quantile)+" <= "+o.Limit)
		}
		return "the largest rate with " + strings.Join(goals, ", ")
	case q.Rate != "":
		return q.Rate + " for " + q.Duration
	}
	return strconv.Itoa(q.Sessions) + " sessions for " + q.Duration
}
