package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// atOnce is how many mutants are built into one program.
const atOnce = 300

// schema is test programs with many mutants each, so that compiling and linking happen once. A function with mutants has one extra copy for each, and
// the environment says which copy to call. A mutant's tests are those that reach its function.
type schema struct {
	t       *tester
	numbers map[string]int // by a mutant's name, from 1; 0: it does not compile
	reach   [][]tested     // by package: its tests
	binary  []string       // by package
	env     []string
	marks   int // functions that report being reached
}

// tested is a test, how long it takes, and which functions it reaches.
type tested struct {
	name  string
	takes time.Duration
	marks map[string]bool
	any   bool // it fails under observation, so it may reach anything
}

const (
	variable = "LOADGEN_MUTANT" // the number of the mutant, or −1 to record the functions that are reached
	noted    = "LOADGEN_MUTANT_REACHED"
)

// selector is the file added to each mutated package.
const selector = `package %s

import (
	mutantos "os"
	mutantatomic "sync/atomic"
)

var mutant__ = mutantos.Getenv("LOADGEN_MUTANT")

var mutantSeen__ [1 << 16]mutantatomic.Bool

var mutantNumber__ = func() (n int) {
	sign := 1
	for _, c := range mutant__ {
		if c == '-' {
			sign = -1
			continue
		}
		n = 10*n + int(c-'0')
	}
	return sign * n
}()

func mutantReach__(i int, name string) {
	if mutantSeen__[i].Swap(true) {
		return
	}
	if f, err := mutantos.OpenFile(mutantos.Getenv("LOADGEN_MUTANT_REACHED"), mutantos.O_WRONLY|mutantos.O_APPEND|mutantos.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteString(name + "\n")
		_ = f.Close()
	}
}
`

// newSchema builds the mutants inside functions. Those that do not compile are found by the compiler's errors and left out.
func newSchema(ctx context.Context, t *tester, p *source, list []mutant) (*schema, error) {
	s := &schema{t: t, numbers: map[string]int{}}
	byFile := map[string][]mutant{}
	for _, m := range list {
		if m.function != "-" {
			byFile[m.file] = append(byFile[m.file], m)
			s.numbers[m.name()] = len(s.numbers) + 1
		}
	}
	for range 20 {
		s.marks = 0
		copies, err := s.write(p, byFile)
		if err != nil {
			return nil, err
		}
		out, err := s.build(ctx)
		if err == nil {
			return s, s.measure(ctx)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		dropped := 0
		for _, m := range broke(out, copies) {
			if s.numbers[m] > 0 {
				s.numbers[m] = 0
				dropped++
			}
		}
		if dropped == 0 {
			return nil, fmt.Errorf("build mutants: %w\n%s", err, out)
		}
	}
	return nil, errors.New("build mutants: there is always one more that does not compile")
}

// placed says which lines of a changed file belong to a mutant.
type placed struct {
	file     string
	from, to int
	name     string
}

// write writes the changed files and the overlay.
func (s *schema) write(p *source, byFile map[string][]mutant) ([]placed, error) {
	replace := map[string]string{}
	var copies []placed
	var pkg string
	for file, list := range byFile {
		text, at, name, err := s.rewrite(file, list)
		if err != nil {
			return nil, err
		}
		changed := filepath.Join(s.t.tmp, "schema-"+filepath.Base(file))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(s.t.root, file)], pkg = changed, name
		copies = append(copies, at...)
	}
	if pkg != "" {
		chosen := filepath.Join(s.t.tmp, "schema-selector.go")
		if err := os.WriteFile(chosen, fmt.Appendf(nil, selector, pkg), 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(s.t.root, p.path, "mutants_selector.go")] = chosen
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(s.t.tmp, "schema.json")
	s.env = []string{"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay)}
	return copies, os.WriteFile(overlay, text, 0o600)
}

// rewrite returns a file whose functions choose between themselves and their mutants, which follow them.
func (s *schema) rewrite(file string, list []mutant) (text []byte, copies []placed, pkg string, err error) {
	src := list[0].text
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, "", err
	}
	f := rewriter{set: set, src: src}
	var edits []edit
	var more bytes.Buffer
	line := bytes.Count(src, []byte("\n")) + 1
	inBodies := map[string]bool{}
	for _, d := range tree.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		var cases strings.Builder
		for _, m := range list {
			n := s.numbers[m.name()]
			if n == 0 || m.start < f.at(d.Body.Lbrace) || m.end > f.at(d.Body.Rbrace)+1 {
				continue
			}
			inBodies[m.name()] = true
			cases.WriteString(f.choice(d, n))
			changed := "\n" + f.changed(d, n, m) + "\n"
			more.WriteString(changed)
			lines := strings.Count(changed, "\n")
			copies = append(copies, placed{file: file, from: line, to: line + lines, name: m.name()})
			line += lines
		}
		if cases.Len() > 0 {
			mark := fmt.Sprintf(" switch mutantNumber__ { case -1: mutantReach__(%d, %q); %s};", min(s.marks, 1<<16-1), mark(file, d), cases.String())
			s.marks++
			edits = append(edits, f.named(d)...)
			edits = append(edits, edit{f.at(d.Body.Lbrace) + 1, f.at(d.Body.Lbrace) + 1, mark})
		}
	}
	for _, m := range list { // no copy can have other parameters or results: such mutants are built one by one
		if s.numbers[m.name()] > 0 && !inBodies[m.name()] {
			delete(s.numbers, m.name())
		}
	}
	return append(apply(src, edits), more.Bytes()...), copies, tree.Name.Name, nil
}

// mark names a function in the tests' reports of what they reach.
func mark(file string, d *ast.FuncDecl) string { return file + " " + enclosing([]ast.Node{d}) }

// rewriter cuts out the text of a function.
type rewriter struct {
	set *token.FileSet
	src []byte
}

func (f rewriter) at(p token.Pos) int { return f.set.Position(p).Offset }

func (f rewriter) text(n ast.Node) string { return string(f.src[f.at(n.Pos()):f.at(n.End())]) }

type edit struct {
	from, to int
	with     string
}

func apply(src []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, src[at:]...)
}

// named gives names to a function's receiver and parameters that lack one.
func (f rewriter) named(d *ast.FuncDecl) (edits []edit) {
	i := 0
	for _, list := range []*ast.FieldList{d.Recv, d.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			if len(field.Names) == 0 {
				edits = append(edits, edit{f.at(field.Type.Pos()), f.at(field.Type.Pos()), fmt.Sprintf("p%d__ ", i)})
				i++
			}
			for _, name := range field.Names {
				if name.Name == "_" {
					edits = append(edits, edit{f.at(name.Pos()), f.at(name.End()), fmt.Sprintf("p%d__", i)})
				}
				i++
			}
		}
	}
	return edits
}

// choice returns the case for a mutant: a call of its copy with the same arguments.
func (f rewriter) choice(d *ast.FuncDecl, n int) string {
	i, receiver := 0, ""
	var args []string
	for part, list := range []*ast.FieldList{d.Recv, d.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			names := []string{""}
			if len(field.Names) > 0 {
				names = names[:0]
				for _, name := range field.Names {
					names = append(names, name.Name)
				}
			}
			for _, name := range names {
				if name == "" || name == "_" {
					name = fmt.Sprintf("p%d__", i)
				}
				i++
				if part == 0 {
					receiver = name + "."
					continue
				}
				if _, ok := field.Type.(*ast.Ellipsis); ok {
					name += "..."
				}
				args = append(args, name)
			}
		}
	}
	call := receiver + twinName(d, n) + f.types(d) + "(" + strings.Join(args, ", ") + ")"
	if d.Type.Results != nil && len(d.Type.Results.List) > 0 {
		return fmt.Sprintf("case %d: return %s; ", n, call)
	}
	return fmt.Sprintf("case %d: %s; return; ", n, call)
}

func twinName(d *ast.FuncDecl, n int) string { return d.Name.Name + "__" + strconv.Itoa(n) }

// types returns a function's own type parameters, as arguments.
func (f rewriter) types(d *ast.FuncDecl) string {
	if d.Type.TypeParams == nil {
		return ""
	}
	var names []string
	for _, field := range d.Type.TypeParams.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// changed returns the function with the mutant in it, under its own name.
func (f rewriter) changed(d *ast.FuncDecl, n int, m mutant) string {
	begin := f.at(d.Type.Func)
	name := f.at(d.Name.Pos())
	end := f.at(d.Name.End())
	var b strings.Builder
	if d.Doc != nil {
		for _, c := range d.Doc.List {
			if strings.HasPrefix(c.Text, "//go:") {
				b.WriteString(c.Text + "\n")
			}
		}
	}
	b.Write(f.src[begin:name])
	b.WriteString(twinName(d, n))
	b.Write(f.src[end:m.start])
	b.WriteString(m.with)
	b.Write(f.src[m.end : f.at(d.Body.Rbrace)+1])
	return b.String()
}

// build builds the test programs.
func (s *schema) build(ctx context.Context) ([]byte, error) {
	s.binary = nil
	for i, pkg := range s.t.packages {
		name := filepath.Join(s.t.tmp, fmt.Sprintf("schema%d.test", i))
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-ldflags=-s -w", "-o", name, pkg)
		cmd.Dir, cmd.Env = s.t.root, append(os.Environ(), s.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return out, err
		}
		s.binary = append(s.binary, name)
	}
	return nil, nil
}

var compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// broke returns the mutants that compiler errors are in.
func broke(out []byte, copies []placed) (names []string) {
	for _, e := range compileError.FindAllSubmatch(out, -1) {
		line, _ := strconv.Atoi(string(e[2]))
		for _, c := range copies {
			if filepath.Base(c.file) == strings.TrimPrefix(filepath.Base(string(e[1])), "schema-") && line > c.from && line <= c.to {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// measure runs each test once, to see what it reaches and how long it takes.
func (s *schema) measure(ctx context.Context) error {
	for i := range s.binary {
		out, err := s.run(ctx, time.Minute, i, nil, "-test.list="+cmp.Or(s.t.run, "."))
		if err != nil {
			return fmt.Errorf("list tests: %w\n%s", err, out)
		}
		var tests []tested
		for name := range strings.Lines(string(out)) {
			if name = strings.TrimSpace(name); !regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(name) {
				continue
			}
			reached := filepath.Join(s.t.tmp, "reached")
			_ = os.Remove(reached)
			began := time.Now()
			_, watched := s.run(ctx, 10*time.Minute, i, []string{variable + "=-1", noted + "=" + reached}, "-test.run=^"+name+"$")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			text, err := os.ReadFile(reached)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			it := tested{name: name, takes: time.Since(began), marks: map[string]bool{}, any: watched != nil}
			for mark := range strings.Lines(string(text)) {
				it.marks[strings.TrimSpace(mark)] = true
			}
			tests = append(tests, it)
		}
		slices.SortStableFunc(tests, func(a, b tested) int { return int(a.takes - b.takes) })
		s.reach = append(s.reach, tests)
	}
	return nil
}

// run runs a package's test program.
func (s *schema) run(ctx context.Context, limit time.Duration, i int, env []string, args ...string) ([]byte, error) {
	dir := filepath.Join(s.t.root, filepath.FromSlash(s.t.packages[i]))
	return s.t.command(ctx, limit, dir, slices.Concat(s.env, env), s.binary[i], append([]string{"-test.failfast", "-test.timeout=30m"}, args...)...)
}

// try tests a built-in mutant: the quickest tests that reach its function first, all in one process.
func (s *schema) try(ctx context.Context, m mutant, number int) (outcome, string) {
	env := []string{variable + "=" + strconv.Itoa(number)}
	where := m.file + " " + m.function
	end := unreached // coverage says nothing about the conditions of a switch's cases
	for i := range s.binary {
		var names []string
		takes := time.Duration(0)
		for _, it := range s.reach[i] {
			if it.marks[where] || it.any {
				names, takes = append(names, it.name), takes+it.takes
			}
		}
		for quick := range slices.Chunk(names, max(1, (len(names)+1)/2)) {
			end = survived
			limit := s.t.limit
			if limit == 0 {
				limit = 20*time.Second + 5*takes
			}
			out, err := s.run(ctx, limit, i, env, "-test.run=^("+strings.Join(quick, "|")+")$")
			switch {
			case err == nil:
			case errors.Is(err, errDeadline):
				return hung, ""
			default:
				if by := failure.FindSubmatch(out); by != nil {
					return failed, " by " + string(by[1])
				}
				return failed, ""
			}
		}
	}
	return end, ""
}
