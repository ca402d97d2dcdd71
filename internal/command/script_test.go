package command_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestScripts runs the sessions at a shell in testdata/script. Beside the usual commands they have
//
//	code N PROGRAM ARG…    the program ends with exit code N
//
// A run that should have been valid, or fast, is repeated from scratch if it was not and other programs had the processors.
//
// There are the variables ROOT (of this repository), REFUSING, BUSY and SILENT (addresses: nobody listens, someone else does, one who never
// answers).
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Deadline:            time.Now().Add(15 * time.Minute),
		Setup:               setup,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": code},
	})
}

func setup(env *testscript.Env) error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	refusing, err := refuse(env)
	if err != nil {
		return err
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0") // nothing is ever accepted from it: the kernel connects, and nobody answers
	if err != nil {
		return err
	}
	env.Defer(func() { _ = busy.Close() })
	env.Setenv("ROOT", root)
	env.Setenv("LOADGEN_LOOPS", os.Getenv("LOADGEN_LOOPS"))
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	env.Setenv("REFUSING", refusing)
	env.Setenv("BUSY", busy.Addr().String())
	env.Setenv("SILENT", busy.Addr().String())
	return nil
}

// refuse returns an address that refuses connections: its port is taken, so that nobody else gets it, but nothing listens.
func refuse(env *testscript.Env) (string, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	env.Defer(func() { _ = unix.Close(socket) })
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		return "", err
	}
	inet, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return "", fmt.Errorf("a socket's name is a %T", name)
	}
	return fmt.Sprintf("127.0.0.1:%d", inet.Port), nil
}

// code runs a program that has to end with an exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	before, got := runsBelow(ts), exitCode(ts, args[1:])
	for tries := 9; mayBeOfTheMachine(args[1:], want, got) && tries > 0; tries-- {
		excused := false
		for dir := range runsBelow(ts) {
			if !before[dir] {
				excused = excused || slowedRun(ts, dir)
				ts.Check(os.RemoveAll(dir)) // as if it had not been
			}
		}
		if !excused {
			break
		}
		got = exitCode(ts, args[1:])
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// exitCode runs a program.
func exitCode(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	ts.Check(err)
	return 0
}

// mayBeOfTheMachine says whether a command is a run that should have been valid, or have failed by an assert only, but was invalid or slower than an
// assert allows.
func mayBeOfTheMachine(args []string, want, got int) bool {
	ran := len(args) > 2 && (args[1] == "run" || args[1] == "coordinator" && args[2] == "run")
	return ran && got != want && (want == exit.OK || want == exit.Assert) && (got == exit.Invalid || got == exit.Assert)
}

// slowedRun says whether, in a phase of the run that a directory may hold, the kernel saw other programs take the processors, or the run is invalid
// and says so itself.
func slowedRun(ts *testscript.TestScript, dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if errors.Is(err, fs.ErrNotExist) { // an experiment's, whose runs have theirs
		return false
	}
	ts.Check(err)
	var r run.Run
	ts.Check(json.Unmarshal(text, &r))
	return starved(&r) || slices.ContainsFunc(slices.Collect(maps.Values(r.Phase)), slowed)
}

// runsBelow lists the directories of runs and experiments that a script has.
func runsBelow(ts *testscript.TestScript) map[string]bool {
	found := map[string]bool{}
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); name == "snapshots.log" || name == "experiment.json" {
			found[filepath.Dir(path)] = true
		}
		if errors.Is(err, fs.ErrNotExist) { // it has gone meanwhile
			return nil
		}
		return err
	}))
	return found
}
