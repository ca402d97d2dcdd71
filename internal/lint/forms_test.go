package lint_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// use is something that only a few places may do.
type use struct {
	what    string // as findings call it
	is      func(*module, ast.Node) bool
	allowed map[string]string // package or file, and why
}

// find returns the uses outside the allowed places, and the allowed places without a use.
func (u use) find(m *module) []string {
	var found []string
	used := map[string]bool{}
	for _, f := range m.code() {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if n == nil || !u.is(m, n) {
				return true
			}
			used[f.path], used[f.dir] = true, true
			if u.allowed[f.path] == "" && u.allowed[f.dir] == "" {
				found = append(found, m.finding(n.Pos(), "%s", u.what))
			}
			return true
		})
	}
	for place := range u.allowed {
		exists := slices.ContainsFunc(m.files, func(f *file) bool { return f.path == place || f.dir == place })
		if exists && !used[place] {
			found = append(found, fmt.Sprintf("%s: exempt without need: %s", place, u.what))
		}
	}
	return found
}

// selects returns a test for names of an imported package.
func selects(pkg string, names ...string) func(*module, ast.Node) bool {
	return func(m *module, n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		return ok && slices.Contains(names, s.Sel.Name) && m.imported(s) == pkg
	}
}

func goroutines(m *module) []string {
	return use{
		what: "goroutine: only packages that say who waits for them start any",
		is: func(_ *module, n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				method, ok := call.Fun.(*ast.SelectorExpr)
				return ok && method.Sel.Name == "Go" // of a wait group or an error group
			}
			_, ok := n.(*ast.GoStmt)
			return ok
		},
		allowed: map[string]string{
			"internal/command":            "signals and the progress display",
			"internal/target/cachenode":   "a goroutine for each connection; children's pipes",
			"internal/fleet/hook":         "a supervisor's pipes, and the ends of what is below it",
			"internal/fleet/coord":        "a goroutine for each worker",
			"internal/load/engine":        "event loops and blocking sessions",
			"internal/fleet/runner":       "what ends a run early, a worker that is a child, and waiting for those that come",
			"internal/target/observe":     "a goroutine for each server that is asked",
			"internal/result/prom":        "the server of a page",
			"internal/result/push":        "what is pushed regularly",
			"internal/result/live":        "renderings of a page, one at a time",
			"internal/fleet/rpc":          "a goroutine for each direction of a stream, one that carries orders out",
			"internal/load/sockets":       "two goroutines for each connection that blocks",
			"internal/target/drivers/log": "one for each log that is synced by time",
		},
	}.find(m)
}

func clock(m *module) []string {
	return use{
		what: "reads the clock: times come from the engine",
		is:   selects("time", "Now", "Since", "Until"),
		allowed: map[string]string{
			"bench":                       "deadlines",
			"internal/command":            "the start of a run",
			"internal/target/adapter":     "the time of a PING, and the limit of all checks",
			"internal/target/cachenode":   "delays, stalls and deadlines of a server",
			"internal/fleet/hook":         "deadlines of what has to end",
			"internal/fleet/coord":        "the run clock",
			"internal/load/engine":        "due, start and end of ops",
			"internal/target/capture":     "how long a pass of a comparison took, and deadlines of servers",
			"internal/load/bareclient":    "how long an exchange took",
			"internal/fleet/identity":     "how long a certificate holds, and a silent connection is borne",
			"internal/fleet/rpc":          "heartbeats, leases and how clocks stand to each other",
			"internal/fleet/runner":       "the start of a run, and how long variants have taken",
			"internal/count/selfcheck":    "what time costs on a machine",
			"internal/target/drivers/log": "for how long acknowledged entries are at risk, and ops wait for a sync",
			"pkg/pmem":                    "how long fences take that wait for a device",
			"pkg/pmlog":                   "for how long the writers of a group wait",
			"internal/result/push":        "when figures are sent",
			"internal/result/live":        "how long a rendering took, and deadlines of streams",
		},
	}.find(m)
}

func unsafes(m *module) []string {
	return use{
		what: "imports unsafe",
		is: func(_ *module, n ast.Node) bool {
			spec, ok := n.(*ast.ImportSpec)
			return ok && spec.Path.Value == `"unsafe"`
		},
		allowed: map[string]string{
			"internal/load/sockets/epoll_linux.go":       "buffers of raw system calls, which do not park the loop's thread",
			"internal/load/engine/hold.go":               "go:linkname: what keeps the runtime from preempting a goroutine",
			"internal/load/engine/meter_linux.go":        "the buffer of a raw system call, which does not park the loop's thread",
			"internal/load/bareclient/exchange_linux.go": "buffers of raw system calls",
			"internal/load/machine/suspend_linux.go":     "results of raw system calls",
			"pkg/pmem/writer_linux.go":                   "whole 8-byte stores; which faults are those of a mapping",
		},
	}.find(m)
}

func exit(m *module) []string {
	fatal := selects("log", "Fatal", "Fatalf", "Fatalln")
	osExit := selects("os", "Exit")
	return use{
		what:    "ends the process: return an error, or an exit code to main",
		is:      func(m *module, n ast.Node) bool { return osExit(m, n) || fatal(m, n) },
		allowed: map[string]string{"pkg/loadgen/loadgen.go": "main, for programs with drivers of their own", "bench/main.go": "main"},
	}.find(m)
}

func inits(m *module) []string {
	return use{
		what: "func init: what a package needs is set where it is used",
		is: func(_ *module, n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			return ok && f.Recv == nil && f.Name.Name == "init"
		},
	}.find(m)
}

// bubbles finds tests in virtual time that do not call servertest.Bubble, which the race detector survives.
func bubbles(m *module) []string {
	var found []string
	for _, f := range m.files {
		if f.dir == "internal/servertest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Test" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "synctest" {
				found = append(found, m.finding(n.Pos(), "synctest.Test: call servertest.Bubble"))
			}
			return true
		})
	}
	return found
}

// skips finds tests that skip themselves without servertest.Require, which names the missing part and fails if the part is required.
func skips(m *module) []string {
	var found []string
	for _, f := range m.files {
		if f.dir == "internal/servertest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
				found = append(found, m.finding(n.Pos(), "%s: call servertest.Require", s.Sel.Name))
			}
			return true
		})
	}
	return found
}

// variables finds package variables that change. Variables that are set only where they are declared are constants in all but name: sentinel errors,
// tables, compiled patterns, results of sync.OnceValue.
func variables(m *module) []string {
	var found []string
	for _, f := range m.code() {
		for _, decl := range f.syntax.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					found = append(found, m.variable(d, spec.(*ast.ValueSpec))...)
				}
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, e := range changed(n) {
				if name := m.packageVariable(e); name != "" {
					found = append(found, m.finding(e.Pos(), "changes the package variable %s", name))
				}
			}
			return true
		})
	}
	return found
}

// variable finds what is wrong with the declaration of a package variable.
func (m *module) variable(d *ast.GenDecl, spec *ast.ValueSpec) []string {
	var found []string
	embedded := d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
	if len(spec.Values) == 0 && !embedded {
		found = append(found, m.finding(spec.Pos(), "package variable %s without a value: it can only be there to change", spec.Names[0].Name))
	}
	ast.Inspect(spec, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if ok && (m.imported(s) == "sync" && !strings.HasPrefix(s.Sel.Name, "OnceValue") || m.imported(s) == "sync/atomic") {
			found = append(found, m.finding(s.Pos(), "package variable %s changes: it is a %s.%s", spec.Names[0].Name, m.imported(s), s.Sel.Name))
		}
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

// changed returns the operands that a statement or expression changes, or whose address it takes.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if _, whole := n.X.(*ast.Ident); whole && n.Op == token.AND { // the address of an element is allowed: it saves copying a table's row
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.Ident)
		if ok && slices.Contains([]string{"clear", "copy", "delete"}, f.Name) && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVariable returns the name of the package variable that e is, or is part of; "" if it is none.
func (m *module) packageVariable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if v := m.info.Uses[e]; v != nil && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return v.Name()
		}
	case *ast.SelectorExpr:
		if from := m.imported(e); from != "" {
			return from + "." + e.Sel.Name
		}
		return m.packageVariable(e.X)
	case *ast.IndexExpr:
		return m.packageVariable(e.X)
	case *ast.SliceExpr:
		return m.packageVariable(e.X)
	case *ast.StarExpr:
		return m.packageVariable(e.X)
	case *ast.ParenExpr:
		return m.packageVariable(e.X)
	}
	return ""
}
