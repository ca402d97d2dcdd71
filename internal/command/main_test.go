package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	loadgen "github.com/loadgen/loadgen/internal/command"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestMain builds the program once and puts it on PATH. The tests run it as users do, with the real binary's exit codes, signals and child processes.
func TestMain(m *testing.M) {
	if os.Getenv(ownPanic) != "" {
		loadgen.CrashLoudly()
		go func() { panic("a bug of our own") }() // of any goroutine
		select {}
	}
	if text := os.Getenv(strangerTask); text != "" {
		os.Exit(stranger(text))
	}
	os.Exit(withProgram(m.Run))
}

// withoutDebugger leaves out what only a debugger reads, which takes a third of the time to link.
const withoutDebugger = "-ldflags=-w"

func withProgram(tests func() int) int {
	dir, err := os.MkdirTemp("", "loadgen-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	builds := []*exec.Cmd{building(filepath.Join(dir, "loadgen"), "", "CGO_ENABLED=0")}
	if cc := os.Getenv("LOADGEN_TEST_RACE"); cc != "" {
		raced = filepath.Join(dir, "raced", "loadgen")
		builds = append(builds, building(raced, "-race", "CGO_ENABLED=1", "CC="+cc))
		plain := tests
		tests = func() int { return max(plain(), racesFound(dir)) }
	}
	if err := together(builds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("LOADGEN_LOOPS", strconv.Itoa(servertest.Loops())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("LOADGEN_SECRET_PG", servertest.PostgresPassword); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests()
}

// raced is a loadgen that the race detector watches, if LOADGEN_TEST_RACE names a C compiler.
var raced string

// fleets matches the tests whose processes share most between goroutines: coordinators, and workers elsewhere, whatever happens to them.
var fleets = regexp.MustCompile(`^Test(ThreeWorkers|TheOtherWorker|CtrlC|PagesOfAFleet|MetricsOfARun|HydraOnThree|HydraLoses|KilledWorker|LostBefore|SecondsOfAStopped|` +
	`Replace|SamplesOfThree|TraceIsDivided|FlappingCable|DiskOfAFleet|PolicyEnds|ExperimentWithWorkers|Trials)`)

// building builds the program at path, with another flag unless that is "".
func building(path, flag string, env ...string) *exec.Cmd {
	args := []string{"build", "-trimpath", "-buildvcs=false", withoutDebugger}
	if flag != "" {
		args = append(args, flag)
	}
	build := exec.Command("go", append(args, "-o", path, "../../cmd/loadgen")...)
	build.Env = append(os.Environ(), env...)
	return build
}

// together runs commands at once. Each links on one processor.
func together(commands []*exec.Cmd) error {
	var group errgroup.Group
	for _, c := range commands {
		group.Go(func() error {
			if words, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %w\n%s", c, err, words)
			}
			return nil
		})
	}
	return group.Wait()
}

// racesFound prints what the race detector has found, and returns the tests' status for it.
func racesFound(dir string) (status int) {
	logs, _ := filepath.Glob(filepath.Join(dir, "raced", "race.*")) // the pattern is right
	for _, log := range logs {
		words, err := os.ReadFile(log)
		fmt.Fprintf(os.Stderr, "%s%v\n", words, err)
		status = 1
	}
	return status
}

// onFourLoops matches the tests that hold what servers have counted against the command's ledgers, which four loops then share.
var onFourLoops = regexp.MustCompile(`^Test\w*(ServersCount|TargetsCount|CountsWhat|CountedAlike|Quorums|KeysOfBatches|HydraOnBuiltin|UnixSockets)`)

// program is the loadgen that a test runs.
func program(t testing.TB) (path string, env []string) {
	if onFourLoops.MatchString(t.Name()) {
		env = append(env, "LOADGEN_LOOPS=4")
	}
	if raced == "" || !fleets.MatchString(t.Name()) {
		return "loadgen", env
	}
	return raced, append(env, "GORACE=exitcode=0 atexit_sleep_ms=100 log_path="+filepath.Join(filepath.Dir(raced), "race"))
}

// text is what a process has said so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(b)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// process is a loadgen under way.
type process struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr text
	began, ended   time.Time // ended is valid once done is closed
	done           chan struct{}
}

// command returns a loadgen command with its own state directory.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, env := program(t)
	cmd := exec.Command(path, args...)
	state := t.TempDir()
	if kept := os.Getenv("LOADGEN_TEST_RESULTS"); kept != "" { // runs stay there
		var err error
		state, err = os.MkdirTemp(kept, "state")
		require.NoError(t, err)
	}
	cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME="+state), env...)
	return cmd
}

// start starts a command in a process group of its own, as a shell does. It is killed at the end of the test.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, began: time.Now(), done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	}
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start())
	go func() { // ends with the process; the test's end waits for it
		defer close(p.done)
		_ = cmd.Wait() // the exit code tells
		p.ended = time.Now()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, as a rule
		<-p.done
	})
	return p
}

// signal sends a signal to the process group, as a terminal does.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(-p.cmd.Process.Pid, s))
}

// wait returns the exit code, -1 after a signal. A process that takes longer fails the test.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("%s has not ended within %v\n%s%s", strings.Join(p.cmd.Args, " "), within, &p.stdout, &p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// until waits for a state that comes while the process runs, and fails the test once that is over.
func (p *process) until(is func() bool) {
	p.t.Helper()
	late := time.After(3 * time.Minute)
	for !is() {
		select {
		case <-p.done:
			require.True(p.t, is(), "%s has ended before that\n%s%s", strings.Join(p.cmd.Args, " "), &p.stdout, &p.stderr)
			return
		case <-late:
			p.t.Fatalf("%s does not come to that\n%s%s", strings.Join(p.cmd.Args, " "), &p.stdout, &p.stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// said waits until what the process has written to its standard output contains words.
func (p *process) said(words string) {
	p.t.Helper()
	p.until(func() bool { return strings.Contains(p.stdout.String(), words) })
}

// told waits until what the process has written to its standard error contains words.
func (p *process) told(words string) {
	p.t.Helper()
	p.until(func() bool { return strings.Contains(p.stderr.String(), words) })
}

// load is a coordinator run under way.
type load struct {
	*process
	runs, out string
	repeat    func() *load // begins the same run anew
}

// begin writes a plan to a file and starts to run it.
func begin(t testing.TB, src string, args ...string) *load {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(patient(src)), 0o600))
	return beginFile(t, path, args...)
}

var (
	targetBlock = regexp.MustCompile(`(?ms)^target "[^"]+" \{\n.*?^\}`)
	needsNone   = regexp.MustCompile(`timeout|driver\s+= "null"`)
)

// patient gives a plan's targets that set no timeout one that is longer than any stall of the machine: the default is a second, and what has timed
// out is in no count of successes.
func patient(src string) string {
	return targetBlock.ReplaceAllStringFunc(src, func(target string) string {
		if needsNone.MatchString(target) {
			return target
		}
		return strings.Replace(target, "{\n", "{\n  timeout = \"60s\"\n", 1)
	})
}

// beginExample begins the plan in a file of this repository that needs no other, with patience.
func beginExample(t testing.TB, name string, args ...string) *load {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "..", "plans", name))
	require.NoError(t, err)
	return begin(t, string(src), args...)
}

// beginFile starts to run the plan in a file.
func beginFile(t testing.TB, path string, args ...string) *load {
	t.Helper()
	return beginBy(t, func(args ...string) *exec.Cmd { return command(t, args...) }, path, args...)
}

// beginBy is beginFile with commands of another making.
func beginBy(t testing.TB, command func(args ...string) *exec.Cmd, path string, args ...string) *load {
	t.Helper()
	dir := t.TempDir()
	l := &load{runs: filepath.Join(dir, "runs"), out: filepath.Join(dir, "run.json")}
	l.repeat = func() *load { return beginBy(t, command, path, args...) }
	l.process = start(t, command(append([]string{"coordinator", "run", path, "--runs", l.runs, "--out", l.out}, args...)...))
	return l
}

// result waits for the end of the run, and returns its result after checking that it is consistent.
func (l *load) result(within time.Duration) *run.Run {
	l.t.Helper()
	code := l.wait(within)
	b, err := os.ReadFile(l.out)
	require.NoError(l.t, err, "%s%s", &l.stdout, &l.stderr)
	var r run.Run
	require.NoError(l.t, json.Unmarshal(b, &r), "%s", &l.stderr)
	require.NoError(l.t, r.CheckValid())
	require.Equal(l.t, r.ExitCode, code)
	return &r
}

// whole returns the result of a run that has done all its work, however well it kept time beside other tests. It is for tests that compare counts,
// and for tests that do something to a run that a repetition would not get.
func (l *load) whole() *run.Run {
	l.t.Helper()
	r := l.result(5 * time.Minute)
	require.Equal(l.t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	return r
}

// clean waits for the end of a run that must succeed: its exit code is 0, or 4 if by the kernel's count other programs had the processors. If only
// the run says so, it is repeated, at most twice: a hypervisor may take a processor away once by chance, but not every time.
func (l *load) clean(within time.Duration) *run.Run {
	l.t.Helper()
	r := l.result(within)
	for tries := 2; starved(r) && !crowded(r) && tries > 0; tries-- {
		*l = *l.repeat()
		r = l.result(within)
	}
	if !starved(r) || !crowded(r) {
		require.Equal(l.t, exit.OK, r.ExitCode, "%v\n%s", r.Verdict.Reasons, &l.stdout)
	}
	return r
}

// starved says whether a run is invalid for one kind of reason only: its loops waited for a processor, a quota held them back, or they stood still,
// or ops started late meanwhile. Other tests run beside this one.
func starved(r *run.Run) bool {
	for _, p := range r.Phase {
		for _, why := range p.Reasons {
			kept := slices.Contains([]reason.Code{reason.RunQueue, reason.CpuQuota, reason.StoodStill}, why.Code) ||
				why.Code == reason.StartedLate && strings.Contains(why.Text, "; the generator's loop was kept from its processor ")
			if why.Validity == run.Invalid && !kept {
				return false
			}
		}
	}
	return r.ExitCode == exit.Invalid && r.Verdict.Completeness == run.Complete
}

// crowded says whether the kernel saw, in every invalid phase, that other programs had the processors: its loops were in a run queue, a quota was
// spent, or the machine was busy with other programs; and no loop stood still for longer than it was in the queue. The run's own word is no excuse.
func crowded(r *run.Run) bool {
	for _, p := range r.Phase {
		if p.Validity != run.Invalid {
			continue
		}
		wait, others, least := p.Generator.RunQueueWait, p.Generator.Machine, 0.01
		if p.Stalls > 0 {
			least = max(least, p.MaxStallSeconds/p.Seconds)
		}
		if (wait == nil || *wait < least) && !others.Doubtful() && !throttled(p) {
			return false
		}
	}
	return true
}

// slowed says whether the kernel saw, in a phase, that other programs had the processors, whatever the phase's verdict.
func slowed(p *run.Phase) bool {
	wait := p.Generator.RunQueueWait
	return wait != nil && *wait > 0.01 || p.Generator.Machine.Doubtful() || throttled(p)
}

// throttled says whether the kernel saw that a CPU quota, perhaps of the machine's own container, kept loadgen from running.
func throttled(p *run.Phase) bool {
	return p.Generator.Throttled != nil && p.Generator.Throttled.Periods > 0
}

// TestOnlyAKernelExcusesALateStart has runs that blame late starts on other programs, with and without kernel figures that agree.
func TestOnlyAKernelExcusesALateStart(t *testing.T) {
	late := func(g measure.Generator) *run.Run {
		return &run.Run{ExitCode: exit.Invalid, Verdict: run.Verdict{Completeness: run.Complete}, Phase: map[string]*run.Phase{"p": {
			Validity: run.Invalid, Generator: g,
			Reasons: []run.Reason{{Validity: run.Invalid, Code: reason.StartedLate, Text: "get: started late: 1 % of the ops by at least 3 ms; the generator's loop was kept from its processor 3 times"}},
		}}}
	}
	waited, little := 0.04, 0.001
	for _, tt := range []struct {
		g    measure.Generator
		want bool
	}{
		{measure.Generator{}, false},
		{measure.Generator{RunQueueWait: &little, Machine: &measure.Machine{OthersShare: 0.01, IdleShare: 0.5}}, false},
		{measure.Generator{RunQueueWait: &little, Machine: &measure.Machine{OthersShare: 0.3}}, true},
		{measure.Generator{RunQueueWait: &waited}, true},
		{measure.Generator{RunQueueWait: &little, Throttled: &measure.Throttled{}}, false},
		{measure.Generator{RunQueueWait: &little, Throttled: &measure.Throttled{Periods: 1}}, true},
	} {
		r := late(tt.g)
		require.True(t, starved(r))
		require.Equal(t, tt.want, crowded(r), "%+v", tt.g)
	}
	still := late(measure.Generator{RunQueueWait: &waited})
	p := still.Phase["p"]
	p.Reasons = append(p.Reasons, run.Reason{Validity: run.Invalid, Code: reason.StoodStill, Text: "the generator stood still 1 time for more than 250 ms, at most 300 ms"})
	p.Stalls, p.MaxStallSeconds, p.Seconds = 1, 0.3, 10
	require.True(t, starved(still))
	require.True(t, crowded(still), "a stall of 300 ms, of 400 ms in the queue")
	p.MaxStallSeconds = 0.5
	require.False(t, crowded(still), "a stall of 500 ms, of 400 ms in the queue")
}

// underWay waits until the second step of a plan, which is its load, is being measured: its first second is on disk.
func (l *load) underWay() {
	l.t.Helper()
	l.until(func() bool {
		return slices.ContainsFunc(l.snapshots(), func(s measure.Snapshot) bool { return s.Step == 1 })
	})
}

// snapshots returns those of all runs so far.
func (l *load) snapshots() (all []measure.Snapshot) {
	l.t.Helper()
	logs, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
	require.NoError(l.t, err)
	for _, path := range logs {
		all = append(all, readSnapshots(l.t, path)...)
	}
	return all
}

// readSnapshots returns the snapshots in a log that may be growing.
func readSnapshots(t testing.TB, path string) []measure.Snapshot {
	t.Helper()
	dir := filepath.Dir(path)
	var list []measure.Snapshot
	var torn *rundir.TornError
	err := rundir.Snapshots(filepath.Dir(dir), filepath.Base(dir), func(worker, b []byte) error {
		require.NotEmpty(t, worker)
		var s measure.Snapshot
		rest, err := s.Decode(b)
		require.Empty(t, rest)
		list = append(list, s)
		return err
	})
	if !errors.As(err, &torn) {
		require.NoError(t, err)
	}
	return list
}

// Blocks of several tests' plans, each with the line break before it.
const (
	anyEndpoints = `
variable "endpoints" {
	type    = list(string)
	default = []
}`
	redisT = `
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
}`
	tenSmall = `
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}`
	hundredD = `
dataset "d" {
	keys { count = 100 }
	values { size = 100 }
}`
	hundredItems = `
dataset "items" {
	keys { count = 100 }
	values { size = 100 }
}`
	fillD = `
phase "fill" {
	target  = target.t
	dataset = dataset.d
	populate {}
}`
	fillItems = `
phase "fill" {
	target  = target.t
	dataset = dataset.items
	populate {}
}`
	fillCache = `
phase "fill" {
	target  = target.cache
	dataset = dataset.items
	populate {}
}`
	fillDB = `
phase "fill" {
	target  = target.db
	dataset = dataset.items
	populate {}
}`
)
