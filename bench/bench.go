package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bench holds the state that all cells share.
type bench struct {
	w       io.Writer
	o       options
	root    string // directory of the module, where clients run
	dir     string // directory for temporary files
	clients []client
	others  []string // why the other peers are not among the clients
	peers   []peer

	serverOn, clientOn []string // prefixes that pin a process to its processor
	running            *server
	shares             []float64 // ratios of processor time to that of the build to compare with, one per round of each cell
}

// newBench builds loadgen and looks for its peers. The caller must close it.
func newBench(ctx context.Context, w io.Writer, o options) (*bench, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	b := &bench{w: w, o: o, root: filepath.Dir(strings.TrimSpace(string(gomod)))}
	if b.dir, err = os.MkdirTemp("", "loadgen-bench-"); err != nil {
		return nil, err
	}
	if err := os.Symlink(filepath.Join(b.root, "examples/adapters"), filepath.Join(b.dir, "adapters")); err != nil {
		b.close()
		return nil, err
	}
	exe := filepath.Join(cmp.Or(o.program, b.dir), "loadgen")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", exe, "./cmd/loadgen")
	build.Dir, build.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if words, err := build.CombinedOutput(); err != nil {
		b.close()
		return nil, fmt.Errorf("build loadgen: %w\n%s", err, words)
	}
	b.pin()
	if o.against != "" {
		other, err := exec.LookPath(o.against)
		if err == nil {
			other, err = filepath.Abs(other)
		}
		if err != nil {
			b.close()
			return nil, fmt.Errorf("-against: %w", err)
		}
		b.clients = []client{loadgen("loadgen", exe, b.dir), loadgen("against", other, b.dir)}
		return b, nil
	}
	b.clients = []client{loadgen("loadgen", exe, b.dir), floorOf(exe), replayOf(exe, b.dir)}
	b.peers, b.others = find(peers(b.dir, o.duration))
	for _, p := range b.peers {
		b.clients = append(b.clients, p.client)
	}
	return b, nil
}

// pin gives server and clients one processor each, if there are two.
func (b *bench) pin() {
	var set unix.CPUSet
	if _, err := exec.LookPath("taskset"); err != nil || unix.SchedGetaffinity(0, &set) != nil || set.Count() < 2 {
		return
	}
	var cpus []string
	for cpu := range runtime.NumCPU() * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, strconv.Itoa(cpu))
		}
	}
	b.serverOn, b.clientOn = []string{"taskset", "-c", cpus[0]}, []string{"taskset", "-c", cpus[1]}
}

func (b *bench) close() {
	if b.running != nil {
		b.running.stop()
	}
	_ = os.RemoveAll(b.dir) // temporary
}

// serve makes sure that the cell's server runs and holds every key that a client will request.
func (b *bench) serve(ctx context.Context, c *cell) error {
	if b.running != nil && b.running.kind == c.server && b.running.size == c.size {
		return nil
	}
	if b.running != nil {
		b.running.stop()
		b.running = nil
	}
	s, err := startServer(ctx, c.server, b.dir, b.serverOn)
	if err != nil {
		return err
	}
	s.size, b.running = c.size, s
	for _, cl := range b.clients {
		if cl.fill == nil || cl.args(c, s.port, 1) == nil || cl.name == "against" {
			continue
		}
		if _, _, err := b.execute(ctx, &cl, cl.fill(c, s.port)); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// figures are the results of one run of a client.
type figures struct {
	cpu  float64 // processor time per op, ns: of the whole process, unless the client reports its own
	rate float64 // ops per second, as the client reports
	hits float64 // share of gets that found their key, as the server reports; 1 if there were none
	hop  float64 // processor time per op of an adapter, ns
}

// execute runs a client on its processor, under the given tool if any, and returns its output and its final state.
func (b *bench) execute(ctx context.Context, cl *client, args []string, behind ...string) (string, *os.ProcessState, error) {
	argv := slices.Concat(b.clientOn, behind, []string{cl.exe}, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.root
	if b.running != nil && b.running.kind == "postgres" {
		cmd.Env = append(os.Environ(), postgresEnv...)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out), cmd.ProcessState, err
}

// measure runs a client once.
func (b *bench) measure(ctx context.Context, cl *client, c *cell, ops int64) (figures, error) {
	hits, misses, err := b.running.hits()
	if err != nil {
		return figures{}, err
	}
	hop := b.running.cpu()
	out, state, err := b.execute(ctx, cl, cl.args(c, b.running.port, ops))
	if err != nil {
		return figures{}, err
	}
	hop = b.running.cpu() - hop
	done, err := cl.count(out, ops)
	if err != nil {
		return figures{}, err
	}
	f := figures{cpu: float64(state.UserTime()+state.SystemTime()) / done, hits: 1, hop: hop / done}
	if f.rate, err = cl.rate(out); err != nil {
		return f, err
	}
	if cl.cpu != nil {
		if f.cpu, err = cl.cpu(out); err != nil {
			return f, err
		}
	}
	hitsNow, missesNow, err := b.running.hits()
	if gets := hitsNow - hits + missesNow - misses; gets > 0 {
		f.hits = (hitsNow - hits) / gets
	}
	return f, err
}

// count returns how many ops a client has done: told, the number that it was asked for, unless its output says otherwise.
func (cl *client) count(output string, told int64) (float64, error) {
	if cl.done == nil {
		return float64(told), nil
	}
	done, err := cl.done(output)
	if err == nil && done < 1 {
		err = fmt.Errorf("%s has done nothing: %q", cl.name, output)
	}
	return done, err
}

// enough returns how many ops loadgen does in the duration of a run, in whole pipelines of all sessions.
func (b *bench) enough(ctx context.Context, c *cell) (int64, error) {
	unit := int64(sessions * c.pipeline)
	if b.o.ops > 0 {
		return (b.o.ops + unit - 1) / unit * unit, nil
	}
	ops := 20 * unit
	for { // a short or disturbed run predicts little about a longer one
		f, err := b.measure(ctx, &b.clients[0], c, ops)
		if err != nil {
			return 0, err
		}
		want := int64(f.rate*b.o.duration.Seconds())/unit + 1
		if 2*ops >= want*unit {
			return max(want*unit, ops), nil
		}
		ops = min(want*unit, 16*ops)
	}
}

// entrant is a client in one cell.
type entrant struct {
	client
	rounds []figures
	calls  float64 // system calls per op; negative if they could not be counted
	err    error   // why the client no longer takes part
}

// cell runs and reports one comparison.
func (b *bench) cell(ctx context.Context, c *cell) error {
	if err := b.serve(ctx, c); err != nil {
		return err
	}
	ops, err := b.enough(ctx, c)
	if err != nil {
		return err
	}
	var field []*entrant
	for _, cl := range b.clients {
		if cl.args(c, b.running.port, ops) != nil {
			field = append(field, &entrant{client: cl, calls: -1})
		}
	}
	for range b.o.pairs {
		for _, e := range field {
			if e.err != nil {
				continue
			}
			var f figures
			if f, e.err = b.measure(ctx, &e.client, c, ops); e.err == nil {
				e.rounds = append(e.rounds, f)
			}
		}
		slices.Reverse(field)
	}
	if b.o.pairs%2 == 1 {
		slices.Reverse(field)
	}
	for _, e := range field {
		if e.err == nil {
			e.calls = b.calls(ctx, &e.client, c, ops)
		}
	}
	if err := errors.Join(field[0].err, ctx.Err()); err != nil {
		return err // without loadgen there is nothing to compare
	}
	if b.o.against != "" && field[1].err != nil {
		return field[1].err
	}
	b.report(c, ops, field)
	if b.o.against != "" {
		b.shares = append(b.shares, ratios(field[0], field[1], cpu)...)
	}
	return nil
}

// calls counts a client's system calls per op in a separate run, with perf, which does not disturb the client, or with strace, which slows it down.
// It is negative if neither works.
func (b *bench) calls(ctx context.Context, cl *client, c *cell, ops int64) float64 {
	file := filepath.Join(b.dir, "calls")
	count := func(n int64, field int, line string, tool ...string) float64 {
		out, _, err := b.execute(ctx, cl, cl.args(c, b.running.port, n), tool...)
		if err != nil {
			return -1
		}
		done, err := cl.count(out, n)
		if err != nil {
			return -1
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return -1
		}
		for l := range strings.Lines(string(text)) {
			words := strings.FieldsFunc(l, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
			if strings.Contains(l, line) && len(words) > field {
				if calls, err := strconv.ParseFloat(words[field], 64); err == nil {
					return calls / done
				}
			}
		}
		return -1
	}
	if calls := count(ops, 0, "sys_enter", "perf", "stat", "-x,", "-o", file, "-e", "raw_syscalls:sys_enter", "--"); calls >= 0 {
		return calls
	}
	few := max(ops/20, int64(sessions*c.pipeline))
	return count(few, 3, " total", "strace", "-f", "-c", "-o", file)
}
