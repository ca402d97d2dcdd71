// Mutants checks whether a package's tests can fail. It changes the code in one small way at a time (negates a condition, leaves out a clause,
// changes a constant by one, removes a statement), runs the tests on each changed copy, and names the changes that no test noticed.
//
//	go run ./mutants [flags] PACKAGE…     # in this module; packages are relative to -root, as ./internal/op
//
// The tree is never modified: the tests run in a copy of it, with an overlay (go help build, -overlay). Mutants inside functions are built together,
// each as a copy of its function that an environment variable selects, and each runs against the tests that reach that function. Others, such as
// mutants of constants, are built one by one. -seed draws a sample of -n mutants, so that a figure can be reproduced. Mutants that do not compile are
// not counted. A mutant that the tests never reach survives without being run. One whose tests miss the deadline is killed, and counted separately.
// An interrupt (SIGINT) ends the sample and prints the figure so far.
//
// A mutant that cannot change what the package does is listed in equivalent.txt with its reason, and is not drawn. An entry that names no mutant of
// the current code fails the run; -equivalents runs the listed ones instead of a sample, and fails for those that a test kills.
//
// Exit status: 0 if at least -share of the sample was killed, 1 if not or if an entry is stale, 2 for errors.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// neighbours returns the packages whose tests also exercise a package: judge's for the data it fills into a run, coord's because it uses judge, and
// rpc's because it carries coord's and measure's messages.
func neighbours(pkg string) []string {
	switch filepath.Clean(pkg) {
	case "internal/run":
		return []string{"./internal/judge", "./internal/coord"}
	case "internal/judge":
		return []string{"./internal/coord"}
	case "internal/coord":
		return []string{"./internal/rpc"}
	}
	return nil
}

type options struct {
	root        string
	with        string
	equivalent  string
	only        string
	run         string
	seed        uint64
	n           int
	parallel    int
	deadline    time.Duration
	memory      int
	share       float64
	list        bool
	equivalents bool
	verbose     bool
}

func main() {
	o := options{}
	flag.StringVar(&o.root, "root", "..", "the module whose packages are mutated")
	flag.StringVar(&o.with, "with", "", "packages whose tests run beside the package's own, separated by commas (default: see neighbours)")
	flag.StringVar(&o.equivalent, "equivalent", "mutants/equivalent.txt", "the file of mutants that change nothing, with their reasons")
	flag.StringVar(&o.only, "only", "", "draw only mutants whose name or place (FILE:LINE) matches this regular expression")
	flag.StringVar(&o.run, "run", "", "run only the tests that match this regular expression, as go test does")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.IntVar(&o.n, "n", 40, "mutants per package that are run; 0 is all of them")
	flag.IntVar(&o.parallel, "p", 1, "mutants tested at the same time")
	flag.DurationVar(&o.deadline, "timeout", 0, "deadline of each mutant's tests (default: 20s and five times what the package's tests took)")
	flag.IntVar(&o.memory, "memory", 8, "GiB of address space that each process may take: a mutant may ask for memory without end; 0 is no limit")
	flag.Float64Var(&o.share, "share", 0.95, "share of the mutants that has to be killed")
	flag.BoolVar(&o.list, "list", false, "list the mutants instead of running them")
	flag.BoolVar(&o.equivalents, "equivalents", false, "run the listed equivalents, all of which have to survive")
	flag.BoolVar(&o.verbose, "v", false, "print the killed ones, too")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] PACKAGE…   (packages relative to -root, as ./internal/op)")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := limit(o.memory); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	good := true
	for _, pkg := range flag.Args() {
		ok, err := check(ctx, os.Stdout, o, pkg)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		good = good && ok
	}
	if !good {
		os.Exit(1)
	}
}

// limit bounds the address space of this process and its children.
func limit(gib int) error {
	if gib == 0 {
		return nil
	}
	most := syscall.Rlimit{Cur: uint64(gib) << 30, Max: uint64(gib) << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &most); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	return nil
}

// check mutates one package and reports whether enough of its mutants were killed.
func check(ctx context.Context, w io.Writer, o options, pkg string) (bool, error) {
	p, err := load(ctx, o.root, pkg)
	if err != nil {
		return false, err
	}
	known, err := readEquivalents(o.equivalent, p.path)
	if err != nil {
		return false, err
	}
	stale := known.stale(p.mutants)
	for _, name := range stale {
		fmt.Fprintf(w, "%s: no such mutant any more: %s\n", o.equivalent, name)
	}
	drawn, err := draw(o, p, known)
	if err != nil {
		return false, err
	}
	if o.list {
		for _, m := range drawn {
			fmt.Fprintf(w, "%s:%d: %s\n", m.file, m.line, m.name())
		}
		return len(stale) == 0, nil
	}
	with := neighbours(pkg)
	if o.with != "" {
		with = strings.Split(o.with, ",")
	}
	t, err := newTester(ctx, o, p, append([]string{pkg}, with...))
	if err != nil {
		return false, err
	}
	defer t.close()
	var total tally
	for list := range slices.Chunk(drawn, atOnce) {
		if !o.equivalents && o.n > 0 {
			if total.counted() >= o.n {
				break
			}
			list = list[:min(len(list), o.n-total.counted()+o.n/3+10)] // some do not compile
		}
		built, err := newSchema(ctx, t, p, list)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return false, err
		}
		test(ctx, w, o, t, built, list, &total)
	}
	interrupted := ""
	if ctx.Err() != nil {
		interrupted = "interrupted: "
	}
	fmt.Fprintf(w, "%s: %s%s, seed %d, %d known equivalents\n", p.path, interrupted, total, o.seed, len(known))
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if o.equivalents {
		return len(stale) == 0 && total.killed() == 0, nil
	}
	return len(stale) == 0 && total.share() >= o.share, nil
}

// draw returns the mutants in the order in which to try them.
func draw(o options, p *source, known equivalents) ([]mutant, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	var drawn []mutant
	for _, m := range p.mutants {
		if known.has(m) == o.equivalents && only.MatchString(fmt.Sprintf("%s:%d: %s", m.file, m.line, m.name())) {
			drawn = append(drawn, m)
		}
	}
	if !o.list {
		rng := rand.New(rand.NewPCG(o.seed, 0))
		rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	}
	return drawn, nil
}

// tally counts how mutants ended.
type tally struct{ failed, hung, survived, unreached, broken int }

func (t tally) killed() int { return t.failed + t.hung }

func (t tally) counted() int { return t.killed() + t.survived }

func (t tally) share() float64 { return float64(t.killed()) / float64(max(1, t.counted())) }

func (t tally) String() string {
	return fmt.Sprintf("%d of %d mutants killed (%.1f %%), %d of them by the deadline; %d of the survivors never reached; %d did not compile",
		t.killed(), t.counted(), 100*t.share(), t.hung, t.unreached, t.broken)
}

// test runs mutants until o.n are counted, and prints the survivors.
func test(ctx context.Context, w io.Writer, o options, t *tester, built *schema, drawn []mutant, total *tally) {
	var (
		mu      sync.Mutex // guards the variables below
		next    int
		running int
	)
	take := func() (mutant, bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || next == len(drawn) || o.n > 0 && !o.equivalents && total.counted()+running >= o.n {
			return mutant{}, false
		}
		next++
		running++
		return drawn[next-1], true
	}
	var all sync.WaitGroup
	for i := range max(1, o.parallel) {
		all.Go(func() {
			for m, ok := take(); ok; m, ok = take() {
				end, by := t.try(ctx, built, i, m)
				mu.Lock()
				running--
				if ctx.Err() == nil {
					total.add(end)
					tell(w, o, m, end, by)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func (t *tally) add(e outcome) {
	switch e {
	case failed:
		t.failed++
	case hung:
		t.hung++
	case unreached:
		t.unreached++
		t.survived++
	case survived:
		t.survived++
	case broken:
		t.broken++
	}
}

// tell prints the outcome of a mutant: for a survivor its diff; for a killed one (with -v, or if it was listed as equivalent) the test that killed
// it.
func tell(w io.Writer, o options, m mutant, e outcome, by string) {
	switch {
	case e == survived || e == unreached:
		if !o.equivalents || o.verbose {
			fmt.Fprintf(w, "%s:%d: %s: %s\n%s", m.file, m.line, e, m.name(), m.diff())
		}
	case o.verbose || o.equivalents && e != broken:
		fmt.Fprintf(w, "%s:%d: %s%s: %s\n", m.file, m.line, e, by, m.name())
	}
}

// equivalents are the names of a package's mutants that change nothing.
type equivalents []string

func (e equivalents) has(m mutant) bool { return slices.Contains(e, m.name()) }

// stale returns the names that no mutant has.
func (e equivalents) stale(all []mutant) (stale []string) {
	names := map[string]bool{}
	for _, m := range all {
		names[m.name()] = true
	}
	for _, name := range e {
		if !names[name] {
			stale = append(stale, name)
		}
	}
	return stale
}

// readEquivalents returns the entries of the files in the directory dir. An entry is a mutant's name at the start of a line, and indented below it
// the reason why no test can notice. Empty lines and lines that begin with # are for readers.
func readEquivalents(file, dir string) (equivalents, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var known equivalents
	name, reasoned := "", true
	for i, line := range strings.Split(string(text), "\n") {
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case indented && name == "":
			return nil, fmt.Errorf("%s:%d: a reason without a mutant above it", file, i+1)
		case indented:
			reasoned = true
		case !reasoned:
			return nil, fmt.Errorf("%s:%d: give the reason of %q, indented below it", file, i, name)
		default:
			name, reasoned = line, false
			if path, _, _ := strings.Cut(line, " "); filepath.Dir(path) == dir {
				known = append(known, name)
			}
		}
	}
	if !reasoned {
		return nil, fmt.Errorf("%s: give the reason of %q, indented below it", file, name)
	}
	return known, nil
}
