// Package command is what loadgen's command line does.
//
// Each command is in the file of its name: coordinator run in coordinator.go, plan fmt in plan_fmt.go. Shared parts:
//
//	plan_read.go    a plan's text, variables and variants      fleet.go       flags that say where workers come from
//	plan_files.go   traces, keys and values that plans name    loops.go       flags that say how a worker uses this machine
//	forms.go        formats of reports                         hooks.go       flags that name commands for plans
//	progress.go     a run's progress                           interrupts.go  Ctrl-C
//
// Package runner runs plans.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Main runs a command line, without the program's name, and returns the exit code. Its plans may also use drivers of the program's own. It is called
// once in a process, by its main function.
func Main(args []string, own ...driver.Driver) int {
	crashLoudly()
	if len(args) > 0 && args[0] == hook.Command {
		return hook.Supervise(args[1:])
	}
	known, err := drivers.With(own...)
	if err != nil {
		fmt.Fprintf(os.Stderr, "loadgen: %v\n", err)
		return exit.Usage
	}
	return execute(args, known)
}

// crashLoudly makes a panic end the process with SIGABRT and the stacks of all goroutines. Go's own exit code for a panic is 2, which here means an
// invalid plan.
func crashLoudly() { debug.SetTraceback("crash") }

// exitError is an error with its own exit code. An empty text means that the message was already written.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// execute runs a command line and returns the exit code.
func execute(args []string, known *drivers.Set) int {
	root := newRoot(known)
	root.SetArgs(withTwoDashes(args))
	err := root.Execute()
	var failure *exitError
	switch {
	case err == nil:
		return exit.OK
	case !errors.As(err, &failure):
		failure = &exitError{code: exit.Usage, text: err.Error()}
	}
	if failure.text != "" {
		fmt.Fprintf(os.Stderr, "loadgen: %s\n", quantity.Plain(failure.text)) // may quote servers and other users' files
	}
	return failure.code
}

// withTwoDashes accepts -var and -var-file, as other HCL tools spell them.
func withTwoDashes(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		if name == "-var" || name == "-var-file" {
			out[i] = "-" + arg
		}
	}
	return out
}

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		RunE:  noCommand,
	}
	c.AddCommand(commands...)
	return c
}

// noCommand runs for a command that only has subcommands: it lists them, or says that the given one does not exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	if isAddress(args[0]) { // which may hold a password
		return errors.New("this looks like a server's address, not like a command: write loadgen bench URL, or loadgen capacity URL")
	}
	remedy := "see " + cmd.CommandPath() + " --help"
	if meant := meantCommand(cmd, args[0]); meant != "" {
		remedy = "did you mean " + meant + "? " + remedy
	}
	return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), remedy)
}

// meantCommand returns the command that a word after cmd probably meant, or "". For a plan, as in "loadgen coordinator plan.hcl", that is the command
// that runs plans; otherwise a command of that name further down, as in "loadgen run", or one that the word may be a typo of.
func meantCommand(cmd *cobra.Command, word string) string {
	if strings.HasSuffix(word, ".hcl") {
		return cmd.Root().Name() + " run " + word
	}
	var known []string
	for _, c := range cmd.Commands() {
		for _, below := range c.Commands() {
			if below.Name() == word {
				return below.CommandPath()
			}
		}
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	if near := dialect.DidYouMean(word, known); near != "" {
		return cmd.CommandPath() + " " + near
	}
	return ""
}

// one requires a single argument, and otherwise says how to write the command.
func one(what string) cobra.PositionalArgs { return exactly(1, "one "+what) }

// exactly requires n arguments, named in words.
func exactly(n int, words string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("want %s, got %s: write %s", words, quantity.Count(len(args), "argument"), cmd.UseLine())
	}
}

// some requires at least one run or experiment.
func some(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no run is named: write %s", cmd.UseLine())
	}
	return nil
}

// atMost requires at most n arguments, and otherwise says how to write the command.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return fmt.Errorf("unexpected argument %q: write %s", args[n], cmd.UseLine())
	}
}

// Tree returns the tree of commands: its help texts are those of man pages, too.
func Tree() *cobra.Command { return newRoot(drivers.Stock()) }

func newRoot(known *drivers.Set) *cobra.Command {
	root := &cobra.Command{
		Use:   "loadgen",
		Short: "Load-test caches, databases and web servers",
		Long: `Loadgen loads caches, key-value stores, databases (PostgreSQL), web servers (HTTP) and log files, and reports throughput, latency, and whether to
believe them. Plans in HCL say what to do; an experiment in a plan compares variants of it, and says which differences are more than chance.

  loadgen capacity redis://127.0.0.1:6379    find a server's capacity; also of postgres:// and http://
  loadgen bench http://127.0.0.1:8080/       put one load on a server
  loadgen versus 'COMMAND' 'COMMAND'         say whether one server is worse than another, for CI
  loadgen size redis://127.0.0.1:6379        say what an item takes there, and how many fit
  loadgen disk /var/lib/etcd                 say how long a sync takes there, and whether etcd's objective holds
  loadgen plan init --driver postgres        write a starter plan for a server
  loadgen run plans/hydra.hcl                run a plan; starts built-in cache nodes if it names no endpoints
  loadgen run plans/nwr.hcl                  run an experiment, and compare its variants
  loadgen plan check plans/hydra.hcl         find mistakes; predict ops, connections, memory and time
  loadgen runs list                          list past runs
  loadgen report -o report.html              write a page on the last run
  loadgen explain run_queue                  say what a reason for doubt means, and what to do

Exit codes: 0 success, 1 an assertion failed, 2 wrong usage or an invalid plan, 3 degraded, 4 invalid figures, 5 stopped by the
user or the plan, 6 something could not be run, 7 cannot
tell: what was measured does not answer the question. If several apply, the first of 2 6 5 3 4 1 7 0.`,
		Args:          cobra.ArbitraryArgs,
		RunE:          noCommand,
		Version:       versionLine(nil),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newCapacity(known), newBench(known), newVersus(known), newSize(known), newDisk(known), newClean(known), newRun(known),
		group("coordinator", "Run plans", newRun(known)),
		newWorker(known),
		group("token", "Let workers on other machines join", newTokenCreate(), newTokenList(), newTokenRevoke()),
		group("deploy", "Print Kubernetes manifests or systemd units", newKubernetes(known), newSystemd(), newPod()),
		group("target", "Run the built-in target", newServe()),
		group("plan", "Write, check and show plans", newInit(known), newFmt(), newCheck(known), newShow(known)),
		newRuns(known), newReport(known),
		group("trace", "Record traffic, and replay it", newTraceRecord(), newTraceImport(), newTraceDiff()),
		group("log", "Look at log files that a killed run or a crash has left", newInspectLog(), newVerifyLog()),
		newExplain(), newSelfcheck(),
		group("adapter", "Check adapters, which let loadgen load any store", newAdapterCheck()),
		newVerify(known), newVersion(known), newCompletion())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	complete(root, known)
	nameRuns(root)
	fitHelp(root, min(cmp.Or(columnsOf(os.Stdout), widestHelp), widestHelp))
	return root
}

// widestHelp is the greatest width of help texts, in columns.
const widestHelp = 100

// fitHelp wraps the texts of a command and those below it, except indented lines.
func fitHelp(cmd *cobra.Command, width int) {
	paragraphs := strings.Split(cmd.Long, "\n\n")
	for i, text := range paragraphs {
		if !strings.HasPrefix(text, " ") {
			paragraphs[i] = strings.Join(report.Wrap(text, width), "\n")
		}
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	if !cmd.HasParent() { // the others inherit it
		cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", width)))
	}
	for _, c := range cmd.Commands() {
		fitHelp(c, width)
	}
}

// flagError says what to write instead of a flag that does not exist or cannot be parsed.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if where := elsewhere(cmd, unknown); where != "" {
			return fmt.Errorf("%w: %s", err, where)
		}
		remedy := "see " + cmd.CommandPath() + " --help"
		if near := nearest(cmd, unknown.GetSpecifiedName()); near != "" {
			remedy = "did you mean --" + near + "? " + remedy
		}
		return fmt.Errorf("%w: %s", err, remedy)
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration":
		return fmt.Errorf("--%s %q: write a duration with its unit, such as 10s or 500ms", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid) && strings.Contains(invalid.GetFlag().Value.Type(), "int"):
		return fmt.Errorf("--%s %q: write a whole number", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == new(bindings).Type():
		return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), writeBinding)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s %q: write a value of type %s", invalid.GetFlag().Name, invalid.GetValue(), invalid.GetFlag().Value.Type())
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// nearest returns the command's flag that a typo may have meant, or "".
func nearest(cmd *cobra.Command, name string) string {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return dialect.DidYouMean(name, known)
}

// failed returns an error with exit code exit.Failed.
func failed(format string, args ...any) error {
	return &exitError{code: exit.Failed, text: fmt.Errorf(format, args...).Error()}
}

// orFailed returns an error with exit code exit.Failed, or nil if err is nil.
func orFailed(err error) error {
	if err == nil {
		return nil
	}
	return failed("%w", err)
}
