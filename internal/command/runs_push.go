package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/pgexport"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

func newPush(flags *runFlags) *cobra.Command {
	var within time.Duration
	c := &cobra.Command{
		Use:   "push URL [RUN...]",
		Short: "Write runs to a PostgreSQL database, for a team to query",
		Long: `Write runs, their series and figures to a PostgreSQL database: by default, all finished runs. An experiment brings its runs. The tables
are in the schema loadgen, which the first push creates (docs/history.md). What is already there is skipped, so a push can be repeated.

The password may be in the URL, where other users of this machine may see it, or come from PGPASSWORD or ~/.pgpass. A database on
another machine is contacted with sslmode=verify-full unless the URL names another mode.`,
		Example: `  loadgen runs push postgres://loadgen@db.example.org/team
  loadgen runs push 'postgres://loadgen@db.example.org:5433/team?sslmode=verify-full&sslrootcert=ca.pem' 20261120T173438Z-hydra-m4-4f2a`,
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("no database is named: write %s", cmd.UseLine())
			}
			if within <= 0 {
				return fmt.Errorf("--timeout %v: write a positive duration, such as 1m", within)
			}
			p := pushing{cmd: cmd, root: root}
			if err := p.choose(args[1:]); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endings()...)
			defer stop()
			return p.to(ctx, args[0], within)
		}),
	}
	c.Flags().DurationVar(&within, "timeout", time.Minute, "give up on a run, or on connecting, after `DURATION`")
	return c
}

// pushing is a push in progress.
type pushing struct {
	cmd         *cobra.Command
	root        string
	runs        []string
	experiments []string

	added, there int
}

// choose lists the runs and experiments to push: the named ones, or all that have finished.
func (p *pushing) choose(ids []string) error {
	if len(ids) == 0 {
		all, err := rundir.List(p.root)
		if err != nil {
			return failed("%w", err)
		}
		for _, s := range all {
			if s.Unfinished == "" {
				ids = append(ids, s.ID)
			}
		}
		slices.Reverse(ids) // oldest first
	}
	for _, id := range ids {
		x, err := rundir.LoadExperiment(p.root, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.runs = append(p.runs, id)
			continue
		case err != nil:
			return failed("%w", err)
		case !x.Finished:
			return fmt.Errorf("experiment %s has not finished", id)
		}
		p.experiments = append(p.experiments, id)
		for _, r := range x.Runs {
			if _, err := rundir.Load(p.root, r.ID); err == nil {
				p.runs = append(p.runs, r.ID)
			}
		}
	}
	slices.Sort(p.runs)
	p.runs = slices.Compact(p.runs)
	for _, id := range p.runs {
		if _, err := rundir.Load(p.root, id); err != nil {
			return fmt.Errorf("%w; see loadgen runs list", err)
		}
	}
	return nil
}

// to writes to the database.
func (p *pushing) to(ctx context.Context, url string, within time.Duration) error {
	db, err := pgexport.Open(ctx, url, within)
	if err != nil {
		return failed("%w", err)
	}
	err = p.all(ctx, db)
	if err := errors.Join(err, db.Close()); err != nil {
		return failed("%w (%d pushed before)", err, p.added)
	}
	_, err = fmt.Fprintf(p.cmd.OutOrStdout(), "%d pushed, %d there already\n", p.added, p.there)
	return err
}

func (p *pushing) all(ctx context.Context, db *pgexport.DB) error {
	for _, id := range p.runs {
		r, err := rundir.Load(p.root, id)
		if err != nil {
			return err
		}
		text, err := rundir.Plan(p.root, id)
		if err != nil {
			fmt.Fprintf(p.cmd.ErrOrStderr(), "loadgen: %v: it is pushed without the plan\n", err)
		}
		added, err := db.Push(ctx, r, text)
		if err := p.say(id, added, err); err != nil {
			return err
		}
	}
	for _, id := range p.experiments {
		x, err := rundir.LoadExperiment(p.root, id)
		if err != nil {
			return err
		}
		added, err := db.PushExperiment(ctx, x)
		if err := p.say(id, added, err); err != nil {
			return err
		}
	}
	return nil
}

// say reports the outcome for one run or experiment.
func (p *pushing) say(id string, added bool, err error) error {
	if err != nil || !added {
		if err == nil {
			p.there++
		}
		return err
	}
	p.added++
	_, err = fmt.Fprintln(p.cmd.OutOrStdout(), id)
	return err
}
