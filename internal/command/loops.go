package command

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

// loopFlags say how many event loops a worker has, how they wait and where they run, and where its log files are.
type loopFlags struct {
	known   *drivers.Set
	n       int
	spin    time.Duration
	pin     string
	logRoot string
	files   string
	secrets *bindings
	policy  *policy.Policy // nil for none
	budget  *policy.Budget // the budget of its rates, for all runs
	foreign bool           // plans come from a coordinator that may be on another machine
}

// noSpin marks a spin that was not given.
const noSpin = time.Duration(math.MinInt64)

func (f *loopFlags) add(set *pflag.FlagSet) {
	set.IntVar(&f.n, "loops", 0, "use `N` event loops, one thread each (default: LOADGEN_LOOPS, or one less than the number of processors, and beside built-in nodes at most half of them)")
	set.DurationVar(&f.spin, "spin", noSpin, "before an op of an open load is due, spin for this `TIME` instead of sleeping; 0s: never")
	set.Lookup("spin").DefValue = fmt.Sprintf("%v, with --pin %v", engine.DefaultSpin, engine.PinnedSpin)
	set.StringVar(&f.pin, "pin", "", "run event loops and log file threads only on these `CPUS`, such as 1 or 2,3, or node0 for those of a NUMA node; assigned round-robin")
	set.StringVar(&f.files, "files", "", "read plans' traces, key files and value files below `DIR` (default: the plan's directory in the coordinator's process; a worker elsewhere reads none)")
	f.secrets = new(bindings)
	set.Var(f.secrets, "secret", "send a secret only to these places: `NAME=HOST:PORT`, where HOST is an address, a network or a name, or NAME=unix://PATH; repeatable (default: where the plan says; a worker without it sends none)")
	set.StringVar(&f.logRoot, "log-root", "", "keep log files of plans only below `DIR` (default: in the user's state directory)")
}

// given says whether any flag was given that only concerns the worker in this process; the coordinator itself also reads files.
func (f *loopFlags) given() bool {
	return *f != loopFlags{known: f.known, spin: noSpin, files: f.files, secrets: f.secrets, foreign: f.foreign}
}

func (f *loopFlags) check() error {
	switch {
	case f.n < 0:
		return fmt.Errorf("--loops %d: write a number above 0", f.n)
	case f.n > engine.MostLoops():
		return fmt.Errorf("--loops %d: %w", f.n, tooManyLoops())
	case f.spin < 0 && f.spin != noSpin:
		return fmt.Errorf("--spin %v: write 0s or more", f.spin)
	}
	if f.foreign && f.files != "" {
		var err error
		if f.files, err = filepath.Abs(f.files); err != nil {
			return fmt.Errorf("--files: %w", err)
		}
		if info, err := os.Stat(f.files); err != nil {
			return fmt.Errorf("--files: %w: write an existing directory", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--files: %s is not a directory", f.files)
		}
	}
	if _, err := loopsOfEnvironment(); err != nil {
		return err
	}
	_, err := f.cpus()
	return err
}

// loopsOfEnvironment returns the number of event loops that the environment asks for; 0 for any.
func loopsOfEnvironment() (int, error) {
	text := os.Getenv("LOADGEN_LOOPS")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("LOADGEN_LOOPS=%s: set a number above 0, or nothing", text)
	}
	if n > engine.MostLoops() {
		return 0, fmt.Errorf("LOADGEN_LOOPS=%d: %w", n, tooManyLoops())
	}
	return n, nil
}

// tooManyLoops returns the error for more than engine.MostLoops.
func tooManyLoops() error {
	return fmt.Errorf("loops beyond the processors only take turns on them: write at most %d on this machine, and more sessions for more clients", engine.MostLoops())
}

func (f *loopFlags) cpus() ([]int, error) {
	if f.pin == "" {
		return nil, nil
	}
	var list []int
	for text := range strings.SplitSeq(f.pin, ",") {
		number, node := strings.CutPrefix(text, "node")
		n, err := strconv.ParseUint(number, 10, 10)
		if err != nil {
			return nil, errors.New("--pin " + f.pin + ": write numbers of CPUs, such as 1 or 2,3, or a NUMA node, such as node0")
		}
		if !node {
			list = append(list, int(n))
			continue
		}
		cpus, err := machine.NodeCPUs(os.DirFS("/"), int(n))
		if err != nil {
			return nil, fmt.Errorf("--pin %s: %w", f.pin, err)
		}
		list = append(list, cpus...)
	}
	return list, nil
}

// asked returns how many event loops the flags, which check has accepted, ask for; 0 for any.
func (f *loopFlags) asked() int {
	if f.n > 0 {
		return f.n
	}
	n, _ := loopsOfEnvironment()
	return n
}

// halves returns CPUs for the loops of a worker of this process, and others for built-in nodes. There are none if the flags say where loops run, if they
// ask for more loops than would have a CPU, or if this machine has too few CPUs or lets nobody choose.
func (f *loopFlags) halves() (loops, nodes []int) {
	loops, nodes = machine.Halves(os.DirFS("/"))
	free := func() error { return nil }
	if f.pin != "" || f.asked() > len(loops) || machine.On(loops, free) != nil || machine.On(nodes, free) != nil {
		return nil, nil
	}
	return loops, nodes
}

// set applies flags that check has accepted.
func (f *loopFlags) set(cfg *engine.Config) {
	cfg.Loops = f.asked()
	switch f.spin {
	case noSpin:
	case 0:
		cfg.Spin = -1
	default:
		cfg.Spin = f.spin
	}
	cfg.Pin, _ = f.cpus()
}

// args are the same flags as arguments for another process.
func (f *loopFlags) args() []string {
	args := []string{"--loops", strconv.Itoa(f.n), "--pin", f.pin, "--log-root", f.logRoot, "--files", f.files}
	if f.spin != noSpin {
		args = append(args, "--spin", f.spin.String())
	}
	for _, text := range f.secrets.texts {
		args = append(args, "--secret", text)
	}
	return args
}

// open returns a function that opens files named by plans. If the plans belong to the user who started this process, it opens any file. If they come
// from elsewhere, it opens files below --files only; without that flag, open returns nil.
func (f *loopFlags) open() func(path string) (engine.File, error) {
	switch {
	case !f.foreign:
		return func(path string) (engine.File, error) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(f.files, path)
			}
			file, err := safefile.Open(path)
			if err != nil {
				return nil, fmt.Errorf("%w: paths begin where the plan is, or in --files DIR", err)
			}
			return file, nil
		}
	case f.files == "":
		return nil
	}
	return func(path string) (engine.File, error) {
		file, err := safefile.OpenBelow(f.files, path)
		if err != nil {
			return nil, fmt.Errorf("%w: copy it to where this worker reads files, its --files DIR", err)
		}
		return file, nil
	}
}

// newEngine returns this process's worker. Its loops keep to the CPUs in keep, or run anywhere if there are none.
func newEngine(loops *loopFlags, keep []int, log *slog.Logger) *engine.Engine {
	cfg := engine.Config{Drivers: loops.known.All, Secrets: environmentSecrets, Logger: log, Verify: verifyApart, Open: loops.open(), Allow: loops.secrets.allow(loops.foreign), Policy: loops.policy, Budget: loops.budget, Keep: keep}
	cfg.LogRoot = func() (string, error) { return logRoot(loops.logRoot) }
	loops.set(&cfg)
	return engine.New(cfg)
}
