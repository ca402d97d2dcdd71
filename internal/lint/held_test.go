package lint_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// heldFrom is where the engine's loops are held against the scheduler (hold.go there). A held goroutine that parks ends the process.
const heldFrom, heldRoot = "internal/load/engine", "loop.cycle"

// letGo are the methods of hold after which, to the end of the block, a loop is not held.
var letGo = []string{"release", "lend"}

// unheld are functions, and types with all their methods, that are in a held loop's call graph but may park.
var unheld = map[string]string{
	"internal/load/engine.clients":   "a joint with a blocking transport",
	"internal/load/engine.blocking":  "a transport of loops that are not held: engine.go holds those of sockets",
	"internal/load/engine.thread":    "likewise",
	"internal/load/engine.timed":     "likewise",
	"internal/load/sockets.Pipes":    "likewise: its loops run on the blocking executor",
	"internal/load/engine.lease":     "what its field holds is machine.Suspended, which reads two clocks by raw system calls",
	"internal/plan/values.Record":    "what its fields hold are closures of that package, which draw and append, and encoders of its own, which share nothing and take no lock once there is a first one",
	"internal/load/engine.wallClock": "sleep is called by transports that are not held; now reads the clock",
}

// harmless are packages whose functions do not park, and single functions of other packages that do not.
var harmless = map[string]bool{
	"bytes": true, "cmp": true, "encoding/binary": true, "errors": true, "hash": true, "hash/crc32": true, "hash/fnv": true, "iter": true,
	"maps": true, "math": true, "math/bits": true, "math/rand/v2": true, "slices": true, "strconv": true, "strings": true, "sync/atomic": true,
	"unicode": true, "unicode/utf8": true, "unsafe": true, "golang.org/x/sys/unix": true, "syscall": true,
	"time.Since": true, "time.Now": true, "time.Duration": true, "time.Time": true,
	"crypto/md5.Sum": true, "os.NewSyscallError": true,
	"net/netip.AddrPort": true, "net/netip.Addr": true,
}

// heldLoops finds what can park while a loop is held: locks, channel operations, and functions of other modules that are not known to be harmless.
// Calls of functions stored in fields are findings too, since nothing is known about them.
func heldLoops(m *module) []string {
	h := &heldGraph{m: m, packages: map[string]*types.Package{}, bodies: map[*types.Func]*ast.FuncDecl{}, seen: map[*types.Func]bool{}, used: map[string]bool{}}
	h.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := h.Import(path.Join(m.path, heldFrom)); err != nil {
		return []string{err.Error()}
	}
	for f := range h.bodies {
		if h.name(f) == heldFrom+"."+heldRoot {
			h.enter(f, "")
		}
	}
	if len(h.seen) == 0 {
		h.found = append(h.found, fmt.Sprintf("%s: there is no %s, where loops are held", heldFrom, heldRoot))
	}
	for name := range unheld {
		if !h.used[name] {
			h.found = append(h.found, fmt.Sprintf("unheld: %s: nothing needs this exception", name))
		}
	}
	slices.Sort(h.found)
	return slices.Compact(h.found)
}

// heldGraph walks the functions that a held loop can call. An interface's method stands for all implementations in this module.
type heldGraph struct {
	m        *module
	info     types.Info
	packages map[string]*types.Package
	bodies   map[*types.Func]*ast.FuncDecl
	seen     map[*types.Func]bool
	used     map[string]bool // entries of unheld
	found    []string
}

// Import checks a package of the module from its source, and reads any other from its compiled form.
func (h *heldGraph) Import(name string) (*types.Package, error) {
	dir, own := strings.CutPrefix(name, h.m.path+"/")
	if !own {
		return compiled().Import(name)
	}
	if p := h.packages[name]; p != nil {
		return p, nil
	}
	var files []*ast.File
	for _, f := range h.m.files {
		if f.dir == dir && !strings.HasSuffix(f.path, "_test.go") && h.builds(f) {
			files = append(files, f.syntax)
		}
	}
	p, err := (&types.Config{Importer: h}).Check(name, h.m.fset, files, &h.info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	h.packages[name] = p
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				h.bodies[h.info.Defs[fn.Name].(*types.Func)] = fn
			}
		}
	}
	return p, nil
}

// builds reports whether a file is part of this machine's build.
func (h *heldGraph) builds(f *file) bool {
	ctx := build.Default
	ctx.JoinPath = path.Join
	ctx.OpenFile = func(name string) (io.ReadCloser, error) { return h.m.fsys.Open(name) }
	ok, err := ctx.MatchFile(f.dir, path.Base(f.path))
	return ok && err == nil
}

// compiled imports other modules' packages from the build cache.
var compiled = sync.OnceValue(func() types.Importer {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+heldFrom)
	list.Dir, list.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0") // with cgo, all of it would be compiled anew
	out, err := list.Output()
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		return os.Open(files[name])
	})
})

// name returns a function's package and name, with its type if it is a method.
func (h *heldGraph) name(f *types.Func) string {
	return strings.TrimPrefix(f.Pkg().Path(), h.m.path+"/") + "." + typeOf(f) + f.Name()
}

// typeOf returns the name of a method's type and a dot; "" for a function.
func typeOf(f *types.Func) string {
	recv := f.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name() + "."
	}
	return ""
}

// reach follows a function that is called, or mentioned, at a place.
func (h *heldGraph) reach(f *types.Func, at token.Pos, way string) {
	f = f.Origin()
	switch {
	case f.Pkg() == nil: // error.Error
		h.report(at, way, "has an error say what it is")
	case !strings.HasPrefix(f.Pkg().Path(), h.m.path+"/"):
		pkg := f.Pkg().Path()
		name := pkg + "." + typeOf(f) + f.Name()
		if !harmless[pkg] && !harmless[name] && !harmless[pkg+"."+strings.TrimSuffix(typeOf(f), ".")] {
			h.report(at, way, "calls "+name)
		}
	case f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()):
		for _, impl := range h.implementations(f) {
			h.enter(impl, way)
		}
	default:
		h.enter(f, way)
	}
}

// implementations returns the module's methods that a call of an interface's method may reach.
func (h *heldGraph) implementations(f *types.Func) (list []*types.Func) {
	iface := f.Signature().Recv().Type().Underlying().(*types.Interface)
	for _, p := range h.packages {
		for _, name := range p.Scope().Names() {
			t, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok || types.IsInterface(t.Type()) {
				continue
			}
			if ptr := types.NewPointer(t.Type()); types.Implements(ptr, iface) {
				if impl, _, _ := types.LookupFieldOrMethod(ptr, true, p, f.Name()); impl != nil {
					list = append(list, impl.(*types.Func))
				}
			}
		}
	}
	return list
}

// enter walks a function of the module, unless it may park.
func (h *heldGraph) enter(f *types.Func, way string) {
	name := h.name(f)
	for _, exception := range []string{name, strings.TrimSuffix(strings.TrimSuffix(name, f.Name()), ".")} {
		if _, ok := unheld[exception]; ok {
			h.used[exception] = true
			return
		}
	}
	decl := h.bodies[f]
	if h.seen[f] || decl == nil {
		return
	}
	h.seen[f] = true
	way = strings.TrimPrefix(way+" > "+typeOf(f)+f.Name(), " > ")
	h.statements(decl.Body.List, way)
}

// statements walks a block's statements up to where the loop is let go.
func (h *heldGraph) statements(list []ast.Stmt, way string) {
	for _, s := range list {
		if h.letsGo(s) {
			return
		}
		h.walk(s, way)
	}
}

func (h *heldGraph) letsGo(s ast.Stmt) bool {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := h.info.Uses[sel.Sel].(*types.Func)
	return ok && typeOf(f) == "hold." && slices.Contains(letGo, f.Name())
}

func (h *heldGraph) walk(n ast.Node, way string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			h.statements(n.List, way)
			return false
		case *ast.CaseClause:
			for _, e := range n.List {
				h.walk(e, way)
			}
			h.statements(n.Body, way)
			return false
		case *ast.GoStmt:
			return false // the loop does not wait for it
		case *ast.SelectStmt:
			h.choice(n, way)
			return false
		case *ast.SendStmt:
			h.report(n.Arrow, way, "sends on a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				h.report(n.OpPos, way, "receives from a channel")
			}
		case *ast.RangeStmt:
			if _, ok := h.info.TypeOf(n.X).Underlying().(*types.Chan); ok {
				h.report(n.For, way, "receives from a channel")
			}
		case *ast.CallExpr:
			h.stored(n, way)
		case *ast.Ident:
			if f, ok := h.info.Uses[n].(*types.Func); ok {
				h.reach(f, n.Pos(), way)
			}
		}
		return true
	})
}

// choice walks a select, which does not wait if it has a default.
func (h *heldGraph) choice(s *ast.SelectStmt, way string) {
	waits := !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil })
	if waits {
		h.report(s.Select, way, "waits in a select without a default")
	}
	for _, c := range s.Body.List {
		h.statements(c.(*ast.CommClause).Body, way)
	}
}

// stored reports a call of a function that a field or a package's variable holds.
func (h *heldGraph) stored(call *ast.CallExpr, way string) {
	name, ok := call.Fun.(*ast.Ident)
	if sel, selects := call.Fun.(*ast.SelectorExpr); selects {
		name, ok = sel.Sel, true
	}
	if !ok {
		return
	}
	switch v, _ := h.info.Uses[name].(*types.Var); {
	case v == nil:
	case v.IsField():
		h.report(call.Pos(), way, "calls what the field "+v.Name()+" holds")
	case v.Parent() == v.Pkg().Scope():
		h.report(call.Pos(), way, "calls the variable "+v.Name())
	}
}

func (h *heldGraph) report(at token.Pos, way, what string) {
	h.found = append(h.found, h.m.finding(at, "a held loop %s, and may park: let it go first, or do without (%s)", what, way))
}
