package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/target/adapter"
)

func newAdapterCheck() *cobra.Command {
	var shared bool
	c := &cobra.Command{
		Use:   "check HOST:PORT",
		Short: "Check that an adapter does what loadgen relies on",
		Long: `Check that an adapter, a server in front of a store, speaks the part of RESP that loadgen relies on (docs/adapters.md): what is a miss, which bytes
come back, in which order, and what connections share. It takes at most 5 s, and says what to do about each fault. At the end it times PING,
the floor of any latency that is measured through the adapter.

Its keys begin with loadgen:adapter: and are deleted. It refuses a server that says it holds keys, unless --shared is given.

Exit codes: 0 no fault, 1 a fault, 6 it could not be checked.`,
		Example: "  loadgen adapter check 127.0.0.1:7000",
		Args:    one("address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, _, err := net.SplitHostPort(args[0]); err != nil {
				return fmt.Errorf("%s: write HOST:PORT", args[0])
			}
			dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", args[0]) }
			ctx, cancel := context.WithTimeout(cmd.Context(), adapter.Within)
			defer cancel()
			r, err := adapter.Check(ctx, dial, "loadgen:adapter:"+rand.Text()+":", shared)
			if err != nil {
				return failed("adapter at %s: %w", args[0], err)
			}
			w := cmd.OutOrStdout()
			for _, f := range r.Findings {
				if f.Err == nil {
					fmt.Fprintf(w, "ok    %s\n", f.Check)
				} else {
					fmt.Fprintf(w, "FAULT %s: %s\n      %s\n", f.Check, quantity.Plain(f.Err.Error()), f.Remedy)
				}
			}
			if !r.OK() {
				return &exitError{code: exit.Assert}
			}
			_, err = fmt.Fprintf(w, "\nPING: p50 %v, p99 %v: no latency that is measured through it can be less\n", r.P50.Round(time.Microsecond), r.P99.Round(time.Microsecond))
			return err
		},
	}
	c.Flags().BoolVar(&shared, "shared", false, "check a server that holds other keys")
	return c
}
