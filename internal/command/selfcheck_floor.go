package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/load/bareclient"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
)

// floorFlags are the flags of selfcheck floor.
type floorFlags struct {
	driver, op string
	cfg        bareclient.Config
	json       bool
}

func newFloor() *cobra.Command {
	var f floorFlags
	c := &cobra.Command{
		Use:   "floor HOST:PORT",
		Short: "Measure what an op costs a client that only exchanges bytes",
		Long: `Measure what an op costs a client that only exchanges bytes with a server: it repeats one request, counts replies without reading
them, and measures nothing per op. No epoll client can do with less, so it is the baseline for the processor time and system
calls per op of any other, loadgen included. First pin each side to its own processors, for example with taskset.

All sessions use one key, which must exist for get.`,
		Example: `  loadgen selfcheck floor 127.0.0.1:6379 --op put --ops 1000000
  loadgen selfcheck floor 127.0.0.1:6379 --sessions 50 --pipeline 16 --ops 3000000`,
		Args: one("endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.driver, "driver", "redis", "speak the protocol of `NAME`: redis or memcached")
	flags.StringVar(&f.op, "op", "get", "send `OP`: get or put")
	flags.StringVar(&f.cfg.Key, "key", "key:000000000000", "use `KEY` in all requests")
	flags.IntVar(&f.cfg.Size, "size", 32, "put a value of this many `BYTES`")
	flags.IntVar(&f.cfg.Sessions, "sessions", 50, "open `N` connections")
	flags.IntVar(&f.cfg.Pipeline, "pipeline", 1, "write `N` requests of a session at once")
	flags.Int64Var(&f.cfg.Ops, "ops", 1_000_000, "send `N` ops over all sessions")
	flags.BoolVar(&f.json, "json", false, "print the figures as JSON")
	return c
}

func (f *floorFlags) run(cmd *cobra.Command, endpoint string) error {
	f.cfg.Endpoint = endpoint
	var known bool
	if f.cfg.Verb, known = (driver.Words{}).Verb(f.op); !known || f.cfg.Verb == driver.Delete {
		return fmt.Errorf("--op %q: write get or put", f.op)
	}
	if err := f.cfg.Validate(); err != nil {
		return err
	}
	codec, err := codecOf(f.driver)
	if err != nil {
		return err
	}
	f.cfg.Codec = codec
	ctx, stop := signal.NotifyContext(cmd.Context(), endings()...)
	defer stop()
	r, err := bareclient.Run(ctx, f.cfg)
	if err != nil {
		return failed("floor of %s: %w", endpoint, err)
	}
	if f.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return f.report(cmd.OutOrStdout(), &r)
}

// codecOf returns the codec of a driver with its defaults.
func codecOf(name string) (driver.Codec, error) {
	var names []string
	for _, d := range drivers.All() {
		w, ok := d.(driver.Wire)
		if ok && d.Name() == name {
			return w.NewCodec(driver.Link{Config: w.NewConfig(), Secrets: environmentSecrets})
		}
		if ok {
			names = append(names, d.Name())
		}
	}
	return nil, fmt.Errorf("--driver %q: write %s", name, strings.Join(names, " or "))
}

func (f *floorFlags) report(w io.Writer, r *bareclient.Result) error {
	per := func(x float64) float64 { return x / float64(r.Ops) }
	_, err := fmt.Fprintf(w, `floor of %v at %s, %d sessions, pipeline %d

  processor time of an op  %7.0f ns  (user %.0f ns, system %.0f ns)
  system calls of an op    %7.3f     (write %.3f, read %.3f, epoll %.3f)
  ops                      %7d     in %.3f s, %.0f/s
`,
		f.cfg.Verb, f.cfg.Endpoint, f.cfg.Sessions, f.cfg.Pipeline,
		per(r.UserSeconds+r.SystemSeconds)*1e9, per(r.UserSeconds)*1e9, per(r.SystemSeconds)*1e9,
		per(float64(r.Writes+r.Reads+r.Waits)), per(float64(r.Writes)), per(float64(r.Reads)), per(float64(r.Waits)),
		r.Ops, r.Seconds, float64(r.Ops)/r.Seconds)
	return err
}
