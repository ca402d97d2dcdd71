package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// logFile is the size in bytes of the files that all write to; logs.hcl has it, too.
const logFile = 64 << 20

// logCell is the work of one comparison of log files: one thread appends entries of one size to one file.
type logCell struct {
	peer   string // "fio" or "mashona"
	layout string // layout of loadgen's log
	sync   string
	size   int    // bytes of an entry
	place  string // "memory", or "disk" for the file system of temporary files
	engine string // fio's engine, with the option that makes it force each write
}

func (c logCell) String() string {
	return fmt.Sprintf("%s/%s/%s/%d/%s", c.peer, c.layout, c.sync, c.size, c.place)
}

// logCells returns all comparisons of log files.
func logCells() (all []logCell) {
	for _, place := range []string{"memory", "disk"} {
		for _, size := range []int{1024, 1801, 1 << 20} {
			all = append(all, logCell{peer: "mashona", layout: "append", sync: "msync", size: size, place: place})
		}
	}
	for _, size := range []int{1024, 64 << 10, 1 << 20} {
		all = append(all,
			logCell{"fio", "raw", "none", size, "memory", "--ioengine=mmap"},
			logCell{"fio", "raw", "clwb", size, "memory", "--ioengine=libpmem --sync=1"},            // through the caches
			logCell{"fio", "raw", "clwb", size, "memory", "--ioengine=libpmem --sync=1 --direct=1"}, // past them, like loadgen
			logCell{"fio", "raw", "fdatasync", size, "disk", "--ioengine=psync --fdatasync=1"})
	}
	return all
}

// writer is a program that writes entries, with its command line and a function that reads its pace from its output.
type writer struct {
	name string
	argv []string
	env  []string // in addition to this process'
	pace func(output string) (pace, error)
}

// pace is the number of entries per second that a program wrote.
type pace struct {
	op    float64 // entries per second over the reported time of its writes
	whole float64 // entries per second over the whole time
}

// ownWriter returns the writer for a build of loadgen.
func (b *bench) ownWriter(c *logCell, cl *client, dir string) *writer {
	return &writer{
		name: cl.name,
		argv: []string{
			cl.exe, "coordinator", "run", "bench/logs.hcl", "--log-root", dir, "--runs", filepath.Join(b.dir, "runs"), "--out", resultIn(b.dir),
			"-var", "layout=" + c.layout, "-var", "sync=" + c.sync, "-var", "size=" + strconv.Itoa(c.size),
			"-var", fmt.Sprintf("seconds=%g", b.o.duration.Seconds()),
		},
		pace: func(string) (pace, error) { // the others time only the op, which is the service time
			_, op, err := lastPhase(b.dir)
			if err == nil && (op.Service.Mean == nil || op.RateWall == nil) {
				err = fmt.Errorf("%s has no times", resultIn(b.dir))
			}
			if err != nil {
				return pace{}, err
			}
			return pace{1 / *op.Service.Mean, *op.RateWall}, nil
		},
	}
}

// peerWriter returns the writer for the program that a cell compares with, or an error that says why there is none.
func (b *bench) peerWriter(c *logCell, dir string) (*writer, error) {
	if b.o.against != "" {
		return b.ownWriter(c, &b.clients[1], dir), nil
	}
	path := filepath.Join(dir, peerFile)
	if c.peer == "mashona" {
		classes, err := mashonaClasses()
		return &writer{
			name: "Mashona 1.1.0",
			argv: []string{
				"java", "-cp", classes, "bench/Appends.java", path, strconv.Itoa(logFile), strconv.Itoa(c.size),
				fmt.Sprintf("%g", b.o.duration.Seconds()),
			},
			pace: paceOfMashona,
		}, err
	}
	exe, err := exec.LookPath("fio")
	w := &writer{
		name: "fio",
		argv: slices.Concat([]string{exe}, strings.Fields(c.engine), []string{
			"--rw=write", "--bs=" + strconv.Itoa(c.size), "--size=" + strconv.Itoa(logFile), "--filename=" + path, "--name=bench", "--thread=1",
			"--overwrite=1", "--time_based", fmt.Sprintf("--runtime=%dms", b.o.duration.Milliseconds()), "--output-format=json",
		}),
		pace: paceOfFio,
	}
	if c.sync == "clwb" { // the same instructions as loadgen, though the file is not in persistent memory
		w.env = []string{"PMEM_IS_PMEM_FORCE=1"}
	}
	return w, err
}

// paceOfMashona reads the last figures that Appends.java prints: during earlier ones, the compiler was still running.
func paceOfMashona(output string) (p pace, err error) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	_, err = fmt.Sscanf(lines[len(lines)-1], "appended %f/s, %f/s with clears", &p.op, &p.whole)
	if err != nil {
		err = fmt.Errorf("it printed no paces: %q: %w", output, err)
	}
	return p, err
}

// paceOfFio reads fio's output. The time of a write includes the sync that it waited for. fio reads the processor's time stamp counter, which does
// not wait for stores that are still in progress after an SFENCE: with libpmem, compare only the pace over the whole time.
func paceOfFio(output string) (pace, error) {
	type times struct {
		Latency struct {
			Mean float64 `json:"mean"`
		} `json:"lat_ns"`
		Rate float64 `json:"iops"`
	}
	var r struct {
		Jobs []struct{ Write, Sync times }
	}
	_, text, _ := strings.Cut(output, "{\n")
	if err := json.Unmarshal([]byte("{"+text), &r); err != nil || len(r.Jobs) == 0 || r.Jobs[0].Write.Latency.Mean == 0 {
		return pace{}, fmt.Errorf("it printed no times: %q", output)
	}
	job := r.Jobs[0]
	return pace{1e9 / (job.Write.Latency.Mean + job.Sync.Latency.Mean), job.Write.Rate}, nil
}

// mashonaClasses returns a class path with the library, which make test-servers fetches.
func mashonaClasses() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", err
	}
	jars := []string{cached("mashona-logwriting-1.1.0.jar"), cached("jboss-logging-3.4.1.Final.jar")}
	for _, jar := range jars {
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("%w; make test-servers fetches it", err)
		}
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}

// peerFile is the name of the other program's file.
const peerFile = "bench.log"

// logs compares loadgen's log files with other programs'.
func (b *bench) logs(ctx context.Context, cells []logCell) error {
	for _, version := range [][]string{{"fio", "--version"}, {"java", "-version"}} {
		fmt.Fprintf(b.w, "version: %s\n", firstLine(ctx, version[0], version[1]))
	}
	dirs := map[string]string{"disk": b.dir}
	memory, err := os.MkdirTemp("/dev/shm", "loadgen-bench-")
	if err == nil {
		dirs["memory"] = memory
		defer func() { _ = os.RemoveAll(memory) }() // temporary
	}
	for _, c := range cells {
		dir := dirs[c.place]
		if dir == "" {
			fmt.Fprintf(b.w, "\n%s: left out: %v\n", c, err)
			continue
		}
		theirs, err := b.peerWriter(&c, dir)
		if err != nil {
			fmt.Fprintf(b.w, "\n%s: left out: %v\n", c, err)
			continue
		}
		if err := b.logCell(ctx, &c, dir, theirs); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// logCell runs loadgen and another program in turn, forwards and backwards, and prints their paces and the ratios of adjacent runs.
func (b *bench) logCell(ctx context.Context, c *logCell, dir string, theirs *writer) error {
	ours := b.ownWriter(c, &b.clients[0], dir)
	pair := []*writer{ours, theirs}
	paces := map[*writer][]pace{}
	for range b.o.pairs {
		for _, w := range pair {
			p, err := b.write(ctx, dir, w)
			if err != nil {
				return err
			}
			paces[w] = append(paces[w], p)
		}
		slices.Reverse(pair)
	}
	fmt.Fprintf(b.w, "\n%s: entries of %d B to a file of %d MiB, one thread; %d rounds, %s\n", c, c.size, logFile>>20, b.o.pairs, fileSystem(dir))
	b.paces(c, paces[ours], paces[theirs], theirs.name, "by the time of a write", func(p pace) float64 { return p.op })
	b.paces(c, paces[ours], paces[theirs], theirs.name, "by all time", func(p pace) float64 { return p.whole })
	for _, w := range []*writer{ours, theirs} {
		fmt.Fprintf(b.w, "  $ %s\n", quoted(slices.Concat(w.env, w.argv)))
	}
	return nil
}

// paces prints one of the rates of both programs.
func (b *bench) paces(c *logCell, ours, theirs []pace, name, by string, rate func(pace) float64) {
	var own, other, shares []float64
	for i := range ours {
		own, other = append(own, rate(ours[i])), append(other, rate(theirs[i]))
		shares = append(shares, own[i]/other[i])
	}
	fmt.Fprintf(b.w, "  %s: loadgen %.0f/s (%.1f MB/s), %s %.0f/s (%.1f MB/s), loadgen's / its %s\n", by,
		median(own), median(own)*float64(c.size)/1e6, name, median(other), median(other)*float64(c.size)/1e6, spread(shares))
}

// write runs a program once and returns its pace.
func (b *bench) write(ctx context.Context, dir string, w *writer) (p pace, err error) {
	cmd := exec.CommandContext(ctx, w.argv[0], w.argv[1:]...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), w.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("%s: %w\n%s", strings.Join(w.argv, " "), err, out)
	}
	if p, err = w.pace(string(out)); err != nil {
		return p, err
	}
	if err := os.Remove(filepath.Join(dir, peerFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, err
	}
	return p, nil
}

// fileSystem returns the type of a directory's file system.
func fileSystem(dir string) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return err.Error()
	}
	if name := map[int64]string{unix.TMPFS_MAGIC: "tmpfs", unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs"}[int64(stat.Type)]; name != "" {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", stat.Type)
}
