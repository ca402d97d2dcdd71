package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const small = `package small

func within(i, n int) bool {
	if i < 0 || i >= n {
		return false
	}
	return true
}

func first(p [2]int) int { return p[0] }
`

func TestEveryOperatorIsChanged(t *testing.T) {
	for body, want := range map[string][]string{
		"if a < b { c() }":          {"a < b => a <= b", "a < b => a >= b", "if a < b { c() } => {}"},
		"if f() { c(); d() }":       {"f() => !(f())", "if f() { c() } => {}", "c() => nothing", "d() => nothing"},
		"if x { a() } else { b() }": {"else of x { b() } => {}"},
		"_ = a && b":                {"a && b => a || b", "a && b => a", "a && b => b"},
		"_ = a + b*c":               {"a + b*c => a - b*c", "b*c => (b / c)"},
		"n := 7; _ = n":             {"7 => 8", "7 => 6"},
		"n += 2":                    {"n += 2 => n -= 2", "n += 2 => nothing"},
		"n++":                       {"n++ => n--", "n++ => nothing"},
		"x = true":                  {"true => false", "x = true => nothing"},
		"return 1, err":             {"err => nil"},
		"return errors.New(\"x\")":  {`errors.New("x") => nil`},
		"for { continue }":          {"continue => nothing"},
		"switch x { case 1: a() }":  {"case 1: a() => case 1:"},
	} {
		t.Run(body, func(t *testing.T) {
			found, err := mutate("f.go", []byte("package p\nfunc f() {\n"+body+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, m := range found {
				names = append(names, strings.TrimPrefix(m.name(), "f.go f: "))
			}
			for _, w := range want {
				if !slices.Contains(names, w) {
					t.Errorf("no mutant %q among %q", w, names)
				}
			}
		})
	}
}

func TestWhatCannotMatterIsLeftAlone(t *testing.T) {
	for _, body := range []string{`_ = make([]byte, 0, 512)`, `panic("never")`, `_, _ = a, b`} {
		found, err := mutate("f.go", []byte("package p\nfunc f() {\n"+body+"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			if !strings.HasPrefix(m.was, "0") { // make's length counts
				t.Errorf("%s: %s", body, m.name())
			}
		}
	}
}

// module writes a module of one package with the given test.
func module(t *testing.T, test string) string {
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small\n\ngo 1.26.0\n", "small.go": small, "small_test.go": test} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const half = `package small

import "testing"

func TestWithin(t *testing.T) {
	if !within(0, 3) || within(3, 3) || first([2]int{5, 6}) != 5 {
		t.Fatal()
	}
}
`

func TestSurvivorsAreNamed(t *testing.T) {
	root := module(t, half)
	known := filepath.Join(t.TempDir(), "equivalent.txt")
	write := func(format string, args ...any) {
		if err := os.WriteFile(known, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(o options) (string, bool) {
		o.root, o.equivalent, o.share = root, known, 1
		var out strings.Builder
		ok, err := check(t.Context(), &out, o, ".")
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), ok
	}

	write("# none\n")
	out, ok := run(options{})
	if ok || !strings.Contains(out, "small.go:4: survived: small.go within: i < 0 || i >= n => i >= n\n\t-\tif i < 0 || i >= n {\n\t+\tif i >= n {\n") {
		t.Errorf("the clause that no test reaches is not named:\n%s", out)
	}

	if strings.Contains(out, "first: 2") {
		t.Errorf("what a function takes was not changed:\n%s", out)
	}

	write("small.go within: i < 0 || i >= n => i >= n\n\tOnly for this test.\n")
	if out, _ := run(options{}); strings.Contains(out, "=> i >= n\n") || !strings.Contains(out, "1 known equivalents") {
		t.Errorf("a listed mutant was run:\n%s", out)
	}

	write("small.go within: i < 0 || i >= n => i < 0\n\tNot so: a test notices.\n")
	if out, ok := run(options{equivalents: true}); ok || !strings.Contains(out, "killed by TestWithin") {
		t.Errorf("a listed mutant that a test kills is not named:\n%s", out)
	}

	write("small.go gone: a => b\n\tOnce.\n")
	if out, ok := run(options{n: 1}); ok || !strings.Contains(out, "no such mutant any more: small.go gone: a => b") {
		t.Errorf("a stale entry is not named:\n%s", out)
	}
}

const never = `package small

func reached(a int) int { return a }

func never(a int) int {
	switch {
	case a > 3:
		return 4
	default:
		return 5
	}
}
`

const onlyOne = `package small

import "testing"

func TestReached(t *testing.T) {
	if reached(2) != 2 {
		t.Fatal()
	}
}
`

// moduleOf writes a module of one package and an empty list of equivalents, and returns options that name both.
func moduleOf(t *testing.T, code, test string) options {
	root := module(t, test)
	known := filepath.Join(t.TempDir(), "equivalent.txt")
	for name, text := range map[string]string{filepath.Join(root, "small.go"): code, known: "# none\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return options{root: root, equivalent: known, share: 1}
}

// What no test reaches survives. Mutants there that do not compile are not counted either: here, each case without its return.
func TestWhatIsNeverReachedSurvives(t *testing.T) {
	var out strings.Builder
	ok, err := check(t.Context(), &out, moduleOf(t, never, onlyOne), ".")
	if err != nil {
		t.Fatal(err)
	}
	if want := ".: 0 of 8 mutants killed (0.0 %), 0 of them by the deadline; 8 of the survivors never reached; 2 did not compile"; ok || !strings.Contains(out.String(), want) {
		t.Errorf("not %q:\n%s", want, out.String())
	}
}

// cancelling cancels at the first line that is written to it.
type cancelling struct {
	strings.Builder
	cancel context.CancelFunc
}

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return c.Builder.Write(p)
}

func TestAnInterruptLeavesTheFigureSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := cancelling{cancel: cancel}
	if ok, err := check(ctx, &out, moduleOf(t, never, onlyOne), "."); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", ok, err)
	}
	if !strings.Contains(out.String(), "\n.: interrupted: 0 of 1 mutants killed") {
		t.Errorf("no figure of the first mutant:\n%s", out.String())
	}
}

func TestReasonsAreWanted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "equivalent.txt")
	for _, text := range []string{"a.go f: x => y\n", "a.go f: x => y\nb.go f: x => y\n\tWhy.\n", "\tWhy.\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readEquivalents(file, "."); err == nil {
			t.Errorf("accepted: %q", text)
		}
	}
}
