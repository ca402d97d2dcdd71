package lint_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// unracedList has a line for each package that tools/test.sh tests without the race detector, as "./internal/count/stat".
const unracedList = "tools/unraced.txt"

// threaded are packages whose importers may use several goroutines, or memory that the race detector's build checks (unsafe).
var threaded = map[string]bool{
	"net/http": true, "net/http/httptest": true, "os/exec": true, "os/signal": true, "sync": true, "sync/atomic": true, "testing/synctest": true, "unsafe": true,
}

// sequential are packages of other modules that start no goroutine. All others might.
var sequential = []string{
	"github.com/HdrHistogram/hdrhistogram-go", "github.com/agext/levenshtein", "github.com/hashicorp/hcl/v2", "github.com/stretchr/testify/require", "github.com/zclconf/go-cty/cty", "pgregory.net/rapid",
}

// starters are functions that run their argument on another goroutine.
var starters = map[string]bool{
	"AddCleanup": true, "AfterFunc": true, "Eventually": true, "EventuallyWithT": true, "Interruptible": true, "Never": true, "Parallel": true,
	"RunParallel": true, "SetFinalizer": true,
}

// unraced checks that the list has exactly those packages whose own code and tests start no goroutine and share nothing with one.
func unraced(m *module) []string {
	var found []string
	listed := map[string]bool{}
	if text, err := fs.ReadFile(m.fsys, unracedList); err == nil {
		for line := range strings.Lines(string(text)) {
			listed[strings.TrimPrefix(strings.TrimSpace(line), "./")] = true
		}
	}
	why := m.threads()
	for _, dir := range m.packages {
		reason := m.concurrent(dir, why)
		switch {
		case listed[dir] && reason != "":
			found = append(found, fmt.Sprintf("%s: take ./%s out: %s", unracedList, dir, reason))
		case !listed[dir] && reason == "":
			found = append(found, fmt.Sprintf("%s: add ./%s: nothing in it runs on two goroutines", unracedList, dir))
		}
		delete(listed, dir)
	}
	for dir := range maps.Keys(listed) {
		found = append(found, fmt.Sprintf("%s: there is no package ./%s", unracedList, dir))
	}
	return append(found, m.parts()...)
}

// parts returns the calls of servertest.Whole outside tests. tools/test.sh runs the tests that call it once more, by name.
func (m *module) parts() (found []string) {
	for _, f := range m.files {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") && fn.Recv == nil {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Whole" {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "servertest" {
						found = append(found, m.finding(s.Pos(), "servertest.Whole is asked by a test itself: tools/test.sh runs it again by its name"))
					}
				}
				return true
			})
		}
	}
	return found
}

// threads returns the files that involve goroutines, and where.
func (m *module) threads() map[*file]string {
	why := map[*file]string{}
	for _, f := range m.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if n != nil && why[f] == "" && m.shared(n) {
				why[f] = m.finding(n.Pos(), "it may run on several goroutines")
			}
			return why[f] == ""
		})
	}
	return why
}

// shared reports whether a node starts a goroutine or is meant for sharing between several.
func (m *module) shared(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt, *ast.ChanType:
		return true
	case *ast.SelectorExpr:
		return starters[n.Sel.Name]
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		return ok && method.Sel.Name == "Go" // of a wait group or an error group
	case *ast.ImportSpec:
		name := strings.Trim(n.Path.Value, `"`)
		host, _, _ := strings.Cut(name, "/")
		foreign := strings.Contains(host, ".") && !strings.HasPrefix(name, m.path+"/")
		known := slices.ContainsFunc(sequential, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
		return threaded[name] || foreign && !known
	}
	return false
}

// concurrent returns why a package's code or its tests may run on several goroutines, or "". What its imports start is raced by their own tests.
func (m *module) concurrent(dir string, why map[*file]string) string {
	for _, f := range m.files {
		if f.dir == dir && why[f] != "" {
			return why[f]
		}
	}
	return ""
}
