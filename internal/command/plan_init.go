package command

import (
	"cmp"
	_ "embed" // for the first plan
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

//go:embed plan.tmpl
var firstPlan string

//go:embed log.tmpl
var firstLog string

//go:embed files.tmpl
var firstFiles string

//go:embed hydra.tmpl
var firstSpace string

// usual holds the usual addresses of servers of drivers without built-in nodes.
var usual = map[string]string{"postgres": "127.0.0.1:5432", "web": "127.0.0.1:8080", "ignite": "127.0.0.1:10800"}

// initFlags are the flags of plan init.
type initFlags struct {
	known     *drivers.Set
	driver    string
	trace     string // whose requests the plan is like; "" for a starter plan
	endpoints []string
	force     bool
}

func newInit(known *drivers.Set) *cobra.Command {
	flags := initFlags{known: known}
	c := &cobra.Command{
		Use:   "init [PLAN.hcl]",
		Short: "Write a starter plan",
		Long: `Write a starter plan for a driver and endpoints. It runs as it is, and its comments say what you can change. The default file is
plan.hcl; - is standard output. An existing file is kept unless --force is given. Nothing is prompted for, and no endpoint is contacted.`,
		Example: `  loadgen plan init --driver redis --endpoint 127.0.0.1:6379
  loadgen plan init --driver memcached cache.hcl
  loadgen plan init --driver postgres --endpoint 127.0.0.1:5432 db.hcl
  loadgen plan init --driver web --endpoint 127.0.0.1:8080 web.hcl
  loadgen plan init --driver log wal.hcl
  loadgen plan init --trace shop.trace shop-like.hcl
  loadgen plan init -`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "plan.hcl"
			if len(args) == 1 {
				path = args[0]
			}
			return flags.init(cmd, path)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.driver, "driver", "redis", "load targets with the driver `NAME`: "+strings.Join(known.Names(), ", "))
	f.StringArrayVar(&flags.endpoints, "endpoint", nil, "load the server at `HOST:PORT` or unix:///PATH; repeatable (default: a built-in node; of ignite, postgres and web, the usual port of this machine)")
	f.StringVar(&flags.trace, "trace", "", "write a plan whose load is like the requests of the trace in `FILE`, which loadgen trace import wrote")
	f.BoolVar(&flags.force, "force", false, "overwrite an existing file")
	return c
}

// first returns the template of a plan for a driver.
func first(d driver.Driver) string {
	if _, copies := d.(driver.Replicator); copies {
		return firstSpace
	}
	switch local, files := d.(localfile.Driver); {
	case files && localfile.Keyed(local):
		return firstFiles
	case files:
		return firstLog
	}
	return firstPlan
}

// init writes the plan after checking it as plan check does.
func (f *initFlags) init(cmd *cobra.Command, path string) error {
	if !slices.Contains(f.known.Names(), f.driver) {
		return fmt.Errorf("--driver %s: write one of %s", f.driver, strings.Join(f.known.Names(), ", "))
	}
	if path != standard && filepath.Ext(path) != ".hcl" { // probably an endpoint
		return fmt.Errorf("%s: write a file that ends in .hcl; name a server with --endpoint", path)
	}
	write := f.text
	if f.trace != "" {
		if write = f.like; f.driver != "redis" {
			return errors.New("--trace: only traces of Redis have a profile: leave --driver out")
		}
	}
	text, err := write(path)
	if err != nil {
		return err
	}
	if err := f.check(text); err != nil {
		return err
	}
	if path == standard {
		_, err = cmd.OutOrStdout().Write(text)
		return orFailed(err)
	}
	if err := f.write(path, text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: loadgen run %s runs it\n", path, path)
	return err
}

// check finds errors in the plan. Only the endpoints can be wrong, since the rest comes from the template.
func (f *initFlags) check(text []byte) error {
	file, diags := plan.Parse(text, "plan", f.known.All)
	if !diags.HasErrors() {
		_, diags = file.Resolve(plan.Vars{})
	}
	var errs []error
	for _, d := range diags {
		_, what, _ := strings.Cut(d.Summary, ": ") // drops the target's name, since there is only one
		errs = append(errs, errors.New(strings.TrimSpace(fmt.Sprintf("--endpoint: %s. %s", what, d.Detail))))
	}
	return errors.Join(errs...)
}

// write writes a new file, or with --force replaces one.
func (f *initFlags) write(path string, text []byte) error {
	into := func(w io.Writer) error { _, err := w.Write(text); return err }
	var err error
	if f.force {
		err = safefile.Replace(path, into)
	} else if err = safefile.Create(path, 0o644, into); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: name another file, or overwrite it with --force", path)
	}
	return orFailed(err)
}

// text fills in the template.
func (f *initFlags) text(path string) ([]byte, error) {
	all := f.known.All
	d := all[slices.IndexFunc(all, func(d driver.Driver) bool { return d.Name() == f.driver })]
	wire, _ := d.(driver.Wire)
	builtin := wire != nil && wire.Builtin() != ""
	_, dials := d.(driver.Dialer)
	servers := builtin || usual[f.driver] != "" || wire != nil || dials
	if servers && f.driver != "web" && (d.Outcomes(driver.Get) == nil || d.Outcomes(driver.Put) == nil) {
		return nil, fmt.Errorf("--driver %s: it knows no get and put of its own, so write a plan by hand (docs/plans.md)", f.driver)
	}
	if !servers && len(f.endpoints) > 0 {
		return nil, fmt.Errorf("--endpoint: the driver %s contacts no server: leave it out", f.driver)
	}
	at := f.endpoints
	if servers && !builtin && len(at) == 0 {
		at = []string{cmp.Or(usual[f.driver], "your-server:1234")}
	}
	for _, e := range at {
		if strings.ContainsFunc(e, unicode.IsControl) {
			return nil, fmt.Errorf("--endpoint %q: write HOST:PORT", e)
		}
	}
	if path == standard {
		path = "plan.hcl"
	}
	target, mix := "cache", "get = 9, put = 1"
	switch f.driver {
	case "postgres":
		target = "db"
	case "web":
		target, mix = "server", "page = 1"
	}
	return filled(first(d), path, struct {
		Driver, Name, Target, Mix, At, File, List string
		Endpoints                                 []string
		Servers, Builtin, Fills                   bool
	}{
		Driver: f.driver, Name: f.driver, Target: target, Mix: mix, At: strings.Join(at, ", "), File: path, List: listOf(at),
		Endpoints: at, Servers: servers, Builtin: builtin, Fills: servers && f.driver != "web",
	})
}
