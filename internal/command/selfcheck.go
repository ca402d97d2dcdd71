package command

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/selfcheck"
	"github.com/loadgen/loadgen/internal/load/machine"
)

func newSelfcheck() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "selfcheck",
		Short: "Measure loads with known answers, and find what disturbs measurements here",
		Long: `Measure loads with known answers: replies after a fixed and a random time, a queue with one server, a target that stalls. It runs a
plan like any other, on built-in nodes, and compares the figures with theory and with a floor measured beside it, within 20 µs or
1 to 2 %. It reports what this machine itself costs (clock, timer, scheduler, generator, floor), and what disturbs measurements on it,
with remedies. It takes about 15 seconds, twice that if something came out wrong, and should have two processors to itself.

Exit codes: 0 every answer was right; 4 one was wrong: do not trust figures from this machine as it is now; 5 stopped; 6 it could not
be run.`,
		Example: `  loadgen selfcheck
  loadgen selfcheck --json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := checkSelf(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				err = safefile.JSON(r)(cmd.OutOrStdout())
			} else {
				err = r.Text(cmd.OutOrStdout())
			}
			if err != nil {
				return failed("%w", err)
			}
			if !r.OK {
				return &exitError{code: exit.Invalid}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.AddCommand(newFloor())
	return c
}

// checkSelf carries out the self-check.
func checkSelf(cmd *cobra.Command) (*selfcheck.Result, error) {
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	root := os.DirFS("/")
	before, err := look(root)
	if err != nil {
		return nil, failed("%w", err)
	}
	r := &selfcheck.Result{Lags: selfcheck.MeasureLags()}
	apart := standApart()
	for attempt := range attempts {
		err := attemptSelf(ctx, cmd.ErrOrStderr(), &knownAnswers{drain: drain, apart: apart}, r, attempt)
		switch {
		case errors.Is(err, errStopped):
			return nil, &exitError{code: exit.Aborted, text: err.Error()}
		case err != nil:
			return nil, failed("%w", err)
		}
		if r.Conclude(); r.OK {
			break
		}
	}
	after, err := look(root)
	if err != nil {
		return nil, failed("%w", err)
	}
	if !r.OK { // a disturbance may have begun after the first measurement
		r.Lags = r.Lags.Worse(selfcheck.MeasureLags())
	}
	env := machine.Read(root)
	r.Machine = selfcheck.Machine{
		CPUModel: env.CPUModel, CPUs: env.CPUs, Kernel: env.Kernel, ClockSource: env.ClockSource, Governor: env.Governor,
		CgroupCPUs: env.CgroupCPUs, FDSoft: env.FDSoft,
	}
	r.Machine.Look(root)
	r.Machine.Between(before.ticks, after.ticks, after.own-before.own)
	if before.throttled != nil && after.throttled != nil {
		periods := after.throttled.Periods - before.throttled.Periods
		r.Machine.Throttled = &periods
	}
	r.Doubt()
	return r, nil
}

// use is the processor time counted up to a moment.
type use struct {
	ticks     selfcheck.Ticks
	throttled *measure.Throttled // nil if it cannot be read
	own       float64            // seconds
}

func look(root fs.FS) (u use, err error) {
	if u.ticks, err = selfcheck.ReadTicks(root); err != nil {
		return u, err
	}
	if throttled, err := machine.Throttled(root); err == nil {
		u.throttled = &throttled
	}
	u.own = usedSeconds()
	return u, nil
}

// attempts is how often known answers are measured at most. Another program can spoil one attempt; a bug in loadgen spoils both.
const attempts = 2

// attemptSelf measures the known answers once.
func attemptSelf(ctx context.Context, words io.Writer, answers *knownAnswers, r *selfcheck.Result, attempt int) error {
	err := answers.run(ctx)
	answers.close(words)
	if err != nil {
		return err
	}
	if attempt == 0 {
		r.Floors = answers.floors()
	}
	r.Enter(attempt+1, answers.checks())
	return nil
}

// usedSeconds is the processor time of this process and of its children that have ended.
func usedSeconds() float64 {
	sum := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			panic(err) // only for an invalid argument
		}
		sum += float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	return sum
}
