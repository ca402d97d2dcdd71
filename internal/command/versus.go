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
	"github.com/loadgen/loadgen/internal/target/servers"
)

// sides are the variants of a plan of versus. Texts include their quotes.
type sides struct {
	Variable, A, B string
	Restart        bool // by commands, with a gate
	Worse, Op      string
}

func newVersus() *cobra.Command {
	flags := &quickFlags{command: "versus"}
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("want two servers, got %d: write %s", len(args), cmd.UseLine())
			}
			return nil
		},
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
	const port = "{port}"
	starts, gated := strings.Contains(a, port), f.worse != ""
	if starts != strings.Contains(b, port) {
		return errors.New("one is a command with {port} and the other is not: write two commands, or two addresses")
	}
	var at [2]*address
	var err error
	words := f.wordsOn(cmd.ErrOrStderr())
	s := &sides{Variable: "server", A: `"A"`, B: `"B"`, Restart: starts, Worse: quoted(cmp.Or(f.worse, "3%"))}
	if starts {
		free, err := net.Listen("tcp", "127.0.0.1:0") // a port that nobody has
		if err != nil {
			return failed("%w", err)
		}
		if err := free.Close(); err != nil {
			return failed("%w", err)
		}
		h, end, err := hook.Servers("server", free.Addr().String(), map[string]string{"A": a, "B": b})
		if err != nil {
			return err
		}
		defer end()
		f.allowed = hooks{"server": h}
		if at[0], err = loadable().parse(free.Addr().String(), f.driver); err != nil {
			return err
		}
	} else {
		for i, text := range []string{a, b} {
			if at[i], err = loadable().parse(text, f.driver); err != nil {
				return fmt.Errorf("%w; or write two commands that start servers at {port}", err)
			}
		}
		if at[0].driver != at[1].driver {
			return fmt.Errorf("a server of %s and one of %s: write two of a kind", at[0].driver, at[1].driver)
		}
		if f.runFlags.budget != 0 {
			return errors.New("--budget bounds a gate, and servers at addresses are not restarted: leave it out, or write commands that start them at {port}")
		}
		s.Variable, s.A, s.B = "endpoint", quoted(at[0].endpoint), quoted(at[1].endpoint)
	}
	if err := errors.Join(f.checkProgress(), f.checkOutputs(), f.loops.check(), f.secretOf(at[0], words)); err != nil {
		return err
	}
	if f.labels, err = parseLabels(f.labelTexts); err != nil {
		return err
	}
	t, q, err := f.trial(cmd, at[0], s)
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
	t.Budget = f.runFlags.budget
	f.show = func(w io.Writer, x *run.Experiment, _ report.Options) error {
		answer := strings.Join(tables.Answers(x), " ")
		if !starts {
			answer += " The servers were not restarted: a restart alone may make such a difference."
		}
		_, err := fmt.Fprintf(w, "%s\nThe whole report: loadgen report %s\n", answer, x.ID)
		return err
	}
	f.worse = ""
	err = f.runFlags.experiment(cmd, t)
	var ended *exitError
	if !starts && gated && (err == nil || errors.As(err, &ended) && (ended.code == exit.Assert || ended.code == exit.Invalid)) {
		return exitWith(exit.Undecided)
	}
	return err
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
	text, err := q.text()
	if err != nil {
		return nil, nil, err
	}
	p, err := f.kept(cmd, text)
	if err != nil || p == nil {
		return nil, nil, err
	}
	q.bytes = int64(p.Datasets[0].Values.Size)
	t, err := f.read(text).trial(cmd.ErrOrStderr())
	return t, q, err
}
