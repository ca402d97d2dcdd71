package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/prom"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newPlan() *cobra.Command { return group("plan", "Check and show plans", newCheck(), newShow()) }

func newCheck() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "check PLAN.hcl",
		Short: "Find all mistakes in a plan, and predict what it will do",
		Long: `Find all mistakes in a plan, each with its place and what to write instead, and predict ops, requests, time, sessions,
connections, memory and the number of metrics. Nothing is run, and no endpoint is asked.`,
		Example: `  loadgen plan check plans/hydra.hcl
  loadgen plan check plans/hydra.hcl -var w=3`,
		Args: one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := flags.load(args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			var files unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
				return failed("read the limit on open files: %w", err)
			}
			return predict(cmd.OutOrStdout(), p, int64(min(files.Cur, math.MaxInt64)))
		},
	}
	flags.add(c.Flags())
	return c
}

func newShow() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "show PLAN.hcl",
		Short: "Print a plan as canonical JSON: what every worker gets",
		Long: `Print a plan as canonical JSON: variables, defaults and conditions are resolved, keys are sorted. These are the bytes that every
worker gets and that the run's plan digest is of.`,
		Example: "  loadgen plan show plans/hydra.hcl -var w=3",
		Args:    one("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := flags.load(args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			canonical, err := p.Canonical()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", canonical)
			return err
		},
	}
	flags.add(c.Flags())
	return c
}

// predict writes what a plan will do and take, and warns when it wants more open files than this process may have.
func predict(w io.Writer, p *plan.Plan, files int64) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "plan %s: no mistakes found\n\n", p.Name)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tops\trequests\tsetup ops\tduration\tsessions\tconnections\tmemory\t")
	all := p.Predict()
	for _, ph := range all.Phases {
		row(t, ph.Name, ph.Load)
	}
	if len(all.Phases) > 1 {
		row(t, "all", all.Total)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\nA duration of - is up to the target. Requests are those of an undisturbed run. Memory is an upper estimate for one worker.\n")
	fmt.Fprintf(&b, "Metrics (--http): %d series on the coordinator's page and %d more for each worker; %d on a worker's own page.\n",
		prom.Series(p, 0), prom.Series(p, 1)-prom.Series(p, 0), prom.PartSeries(p))
	if all.Total.Files > files {
		fmt.Fprintf(&b, "\nWarning: one worker would need %d open files, and the limit here is %d: raise it with ulimit -n %d.\n",
			all.Total.Files, files, all.Total.Files)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func row(w io.Writer, name string, l plan.Load) {
	duration := "-"
	if l.Duration != nil {
		duration = l.Duration.Round(time.Millisecond).String()
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d MiB\t\n",
		name, known(l.Ops), known(l.Requests), l.SetupOps, duration, l.Sessions, l.Connections, (l.Memory+1<<20-1)>>20)
}

// known writes a number that may have to wait for the run.
func known(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
