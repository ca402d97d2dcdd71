package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/servers"
)

// sides are the variants of a plan of versus. Texts include their quotes.
type sides struct {
	Variable, A, B string
	Restart        bool // by commands, with a gate
	Worse, Op      string
}

func newVersus(known *drivers.Set) *cobra.Command {
	flags := quickly("versus", known)
	c := &cobra.Command{
		Use:   "versus A B",
		Short: "Say whether a server is worse than another",
		Long: `Say whether server B is worse than server A, in a sentence. Each is a command that starts a server at {port}, or the address of one that runs.

Commands are started anew for every run, in pairs in random order, until a gate decides: exit code 1 if B is worse, 0 if it is not worse by --worse,
7 if neither can be told within --budget. Its figure is the processor time of the server for an op, which other programs hardly touch, or else
response.p99. No shell is involved; quotes group words. The servers end with the command.

Of addresses, the servers are not restarted, and of such, one in eight seems worse by chance. So the answer is at most that they differ, and with
--worse the exit code is 7.

The command writes a plan, shown by --plan, and runs it like loadgen run.`,
		Example: `  loadgen versus 'redis-server --port {port}' '/opt/new/redis-server --port {port}' --budget 10m
  loadgen versus 'memcached -p {port}' 'memcached -p {port} -t 8' --driver memcached --rate 50k/s
  loadgen versus redis://127.0.0.1:6379 redis://127.0.0.1:6380`,
		Args: exactly(2, "two servers"),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.versus(cmd, args[0], args[1]) },
	}
	f := c.Flags()
	flags.add(f)
	f.StringVar(&flags.rate, "rate", "", "ops arrive at this `RATE` (default: 10k/s; 1k/s for postgres and web)")
	f.DurationVar(&flags.duration, "duration", 5*time.Second, "load for `DURATION` in each run")
	flags.share(f, "worse", "budget")
	return c
}

// versus compares two servers.
func (f *quickFlags) versus(cmd *cobra.Command, a, b string) error {
	starts, gated := strings.Contains(a, port), f.worse != ""
	if starts != strings.Contains(b, port) {
		return errors.New("one is a command with {port} and the other is not: write two commands, or two addresses")
	}
	of := f.running
	if starts {
		of = f.started
	}
	at, s, end, err := of(a, b)
	if err != nil {
		return err
	}
	defer end()
	words := f.wordsOn(cmd.ErrOrStderr())
	if err := f.ready(at, words); err != nil {
		return err
	}
	t, q, err := f.trial(cmd, at, s)
	if err != nil || t == nil {
		return err
	}
	for i := range t.Plans {
		if q.at = t.Plans[i].Target("server").Endpoints[0]; !starts {
			if err := f.guard(cmd.Context(), t.Plans[i], q); err != nil {
				return err
			}
		}
	}
	t.Budget, f.worse = f.runFlags.budget, ""
	complete := true
	f.show = func(w io.Writer, x *run.Experiment, _ report.Options) error {
		answer := strings.Join(tables.Answers(x), " ")
		if complete = x.Verdict.Completeness == run.Complete; !starts {
			answer += " The servers were not restarted: a restart alone may make such a difference."
		}
		_, err := fmt.Fprintf(w, "%s\nThe whole report: loadgen report %s\n", answer, x.ID)
		return err
	}
	err = f.runFlags.experiment(cmd, t)
	for _, p := range t.Plans {
		if !complete && !starts && q.Fills { // the last phase of a run deletes its keys
			if err := f.clean(cmd, p, words); err != nil {
				return failed("its keys could not be deleted: %w", err)
			}
		}
	}
	var ended *exitError
	if !starts && gated && (err == nil || errors.As(err, &ended) && (ended.code == exit.Assert || ended.code == exit.Invalid)) {
		return exitWith(exit.Undecided)
	}
	return err
}

// port stands for a server's port in the command that starts it.
const port = "{port}"

// started makes the sides of two commands, which a hook starts at a port that nobody has. end ends the last of them.
func (f *quickFlags) started(a, b string) (at *address, s *sides, end func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = free.Close()
	}
	if err != nil {
		return nil, nil, nil, failed("%w", err)
	}
	place := free.Addr().String()
	if at, err = loadable().parse(place, f.driver); err != nil {
		return nil, nil, nil, err
	}
	h, end, err := hook.Servers("server", place, map[string]string{"A": a, "B": b})
	f.allowed = hooks{"server": h}
	return at, &sides{Variable: "server", A: `"A"`, B: `"B"`, Restart: true, Worse: quoted(cmp.Or(f.worse, "3%"))}, end, err
}

// running makes the sides of two addresses.
func (f *quickFlags) running(a, b string) (_ *address, _ *sides, end func(), err error) {
	var at [2]*address
	for i, text := range []string{a, b} {
		if at[i], err = loadable().parse(text, f.driver); err != nil {
			return nil, nil, nil, fmt.Errorf("%w; or write two commands that start servers at {port}", err)
		}
	}
	there := *at[1]
	there.endpoint = at[0].endpoint
	switch {
	case at[0].driver != at[1].driver:
		return nil, nil, nil, fmt.Errorf("a server of %s and one of %s: write two of a kind", at[0].driver, at[1].driver)
	case there != *at[0]:
		return nil, nil, nil, errors.New("the addresses differ in more than host and port: write the same user, database and path in both, or a plan")
	case f.runFlags.budget != 0:
		return nil, nil, nil, errors.New("--budget bounds a gate, and servers at addresses are not restarted: leave it out, or write commands that start them at {port}")
	}
	return at[0], &sides{Variable: "endpoint", A: quoted(at[0].endpoint), B: quoted(at[1].endpoint)}, func() {}, nil
}

// trial writes the plan of the experiment, and reads it; nil if it was only to be shown.
func (f *quickFlags) trial(cmd *cobra.Command, a *address, s *sides) (*runner.Trial, *quick, error) {
	if f.rate == "" {
		f.rate = "10k/s"
		if a.driver == "postgres" || a.driver == "web" {
			f.rate = "1k/s"
		}
	}
	q, err := f.request(a)
	if err != nil {
		return nil, nil, err
	}
	q.Fields = ""
	if q.Versus = s; !s.Restart {
		q.Endpoint = "var.endpoint"
	} else if cpu := servers.Of(a.driver).CPU; cpu != nil {
		q.Fields = listed(cpu)
	} else if a.driver != "web" {
		s.Op = q.Ops[0].Name
	}
	text, p, err := f.written(cmd, quickPlan, q)
	if err != nil || p == nil {
		return nil, nil, err
	}
	t, err := f.read(text).trial(cmd.ErrOrStderr())
	return t, q, err
}
