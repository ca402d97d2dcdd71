package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// outcome is how a mutant ended.
type outcome string

const (
	failed    outcome = "killed"
	hung      outcome = "killed by the deadline"
	survived  outcome = "survived"
	unreached outcome = "survived, never reached"
	broken    outcome = "did not compile"
)

// tester runs tests on mutants.
type tester struct {
	root     string
	tmp      string
	packages []string // whose tests are run, one after another
	run      string
	deadline time.Duration
	limit    time.Duration      // the requested deadline; 0: none
	covered  map[string][]block // by file, relative to the root
}

// block is a stretch of statements, and whether a test reached them.
type block struct {
	from, to [2]int // line, column
	reached  bool
}

// newTester runs the tests of the unchanged code. They must pass, and show what they reach and how long they take.
func newTester(ctx context.Context, o options, p *source, packages []string) (*tester, error) {
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	t := &tester{root: filepath.Join(tmp, "tree"), tmp: tmp, packages: packages, run: o.run, limit: o.deadline, covered: map[string][]block{}}
	if err := copyTree(t.root, p.root); err != nil {
		t.close()
		return nil, err
	}
	began := time.Now()
	for i, pkg := range packages {
		profile := filepath.Join(tmp, fmt.Sprintf("cover%d", i))
		out, err := t.test(ctx, 10*time.Minute, "", pkg, "-count=1", "-coverpkg=./"+p.path, "-coverprofile="+profile)
		if err != nil {
			t.close()
			return nil, fmt.Errorf("test %s without a change: %w\n%s", pkg, err, out)
		}
		if err := t.readProfile(profile, p.path); err != nil {
			t.close()
			return nil, err
		}
	}
	if t.deadline = o.deadline; t.deadline == 0 {
		t.deadline = 20*time.Second + 5*time.Since(began)
	}
	return t, nil
}

// copyTree copies a module, because failing tests write below it.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && (e.Name() == ".git" || name == "bin"):
			return filepath.SkipDir
		case e.IsDir():
			return os.Mkdir(filepath.Join(to, name), 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm())
	})
}

func (t *tester) close() { os.RemoveAll(t.tmp) }

// test runs a package's tests, for at most limit, and returns their output.
func (t *tester) test(ctx context.Context, limit time.Duration, overlay, pkg string, args ...string) ([]byte, error) {
	all := append([]string{"test", "-vet=off", "-failfast", "-timeout=30m", "-run=" + t.run}, args...)
	var env []string
	if overlay != "" { // in the environment, for programs that tests build
		env = []string{"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay)}
	}
	return t.command(ctx, limit, t.root, env, "go", append(all, pkg)...)
}

// command runs a program and everything it starts, for at most limit.
func (t *tester) command(ctx context.Context, limit time.Duration, dir string, env []string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && context.Cause(ctx) != nil {
		return out, context.Cause(ctx)
	}
	return out, err
}

var errDeadline = errors.New("not done before the deadline")

var (
	notBuilt = regexp.MustCompile(`\[(build|setup) failed\]`)
	failure  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
)

// try tests a mutant, in worker i's files. It also returns which test noticed.
func (t *tester) try(ctx context.Context, built *schema, i int, m mutant) (outcome, string) {
	number, ok := built.numbers[m.name()]
	switch {
	case ok && number == 0:
		return broken, ""
	case !t.reached(m):
		return unreached, ""
	case ok:
		return built.try(ctx, m, number)
	}
	overlay, err := t.overlay(i, m)
	if err != nil {
		return broken, ": " + err.Error()
	}
	for _, pkg := range t.packages {
		out, err := t.test(ctx, t.deadline, overlay, pkg)
		switch {
		case err == nil:
		case errors.Is(err, errDeadline):
			return hung, ""
		case notBuilt.Match(out):
			return broken, ""
		default:
			if by := failure.FindSubmatch(out); by != nil {
				return failed, " by " + string(by[1])
			}
			return failed, ""
		}
	}
	return survived, ""
}

// overlay writes the changed file, and the overlay that makes the go command read it.
func (t *tester) overlay(i int, m mutant) (string, error) {
	changed := filepath.Join(t.tmp, fmt.Sprintf("%d-%s", i, filepath.Base(m.file)))
	if err := os.WriteFile(changed, m.apply(), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(t.root, m.file): changed}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(t.tmp, fmt.Sprintf("%d.json", i))
	return name, os.WriteFile(name, text, 0o600)
}

// readProfile adds a coverage profile: lines of FILE:LINE.COL,LINE.COL STATEMENTS COUNT.
func (t *tester) readProfile(name, dir string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		file, rest, ok := strings.Cut(s.Text(), ":")
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from[0], &b.from[1], &b.to[0], &b.to[1], &statements, &count); !ok || err != nil {
			continue // the mode, in the first line
		}
		b.reached = count > 0
		file = filepath.Join(dir, filepath.Base(file))
		t.covered[file] = append(t.covered[file], b)
	}
	return nil
}

// reached reports whether a test runs the statements that a mutant changes. A mutant outside statements (in a constant) always counts as reached.
func (t *tester) reached(m mutant) bool {
	before := m.text[:m.start]
	at := [2]int{bytes.Count(before, []byte("\n")) + 1, m.start - bytes.LastIndexByte(before, '\n')}
	inside := false
	for _, b := range t.covered[m.file] {
		if less(at, b.from) || !less(at, b.to) {
			continue
		}
		if b.reached {
			return true
		}
		inside = true
	}
	return !inside
}

func less(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }
