package lint_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the source of a Go module.
type module struct {
	fsys     fs.FS
	path     string // as its go.mod says
	fset     *token.FileSet
	files    []*file  // Go files, sorted by path
	texts    []string // paths of all text files
	packages []string // directories that hold Go files other than tests
	info     types.Info
}

// file is a Go file.
type file struct {
	path   string // slash-separated, from the module's root
	dir    string
	test   bool // a _test file, or part of a package for tests only
	syntax *ast.File
}

// text matches the files that people read.
var text = regexp.MustCompile(`(^|/)(Makefile|run|[^/]*\.(go|s|md|hcl|sh|mod|ya?ml|html|css|js|proto))$`)

// load reads the module with the given root.
func load(t *testing.T, fsys fs.FS) *module {
	t.Helper()
	m := &module{fsys: fsys, fset: token.NewFileSet(), info: types.Info{Uses: map[*ast.Ident]types.Object{}}}
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return m.enter(name)
		case text.MatchString(name):
			m.texts = append(m.texts, name)
			return m.add(name)
		}
		return nil
	}))
	name := moduleLine.FindStringSubmatch(m.requirements())
	require.NotEmpty(t, name, m.requirements())
	m.path = name[1]
	m.resolve()
	return m
}

// enter skips directories without source of the module.
func (m *module) enter(dir string) error {
	base := path.Base(dir)
	if base == "testdata" || base == "bin" || len(base) > 1 && base[0] == '.' && base != ".ci" {
		return fs.SkipDir
	}
	return nil
}

// add parses the file if it is a Go file of this module.
func (m *module) add(name string) error {
	if path.Ext(name) != ".go" || m.foreign(path.Dir(name)) {
		return nil
	}
	src, err := fs.ReadFile(m.fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(m.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{path: name, dir: path.Dir(name), syntax: syntax}
	_, support := testSupport[f.dir]
	f.test = support || strings.HasSuffix(name, "_test.go")
	m.files = append(m.files, f)
	if !strings.HasSuffix(name, "_test.go") && !slices.Contains(m.packages, f.dir) {
		m.packages = append(m.packages, f.dir)
	}
	return nil
}

// foreign reports whether a directory belongs to another module.
func (m *module) foreign(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(m.fsys, path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// resolve finds what the identifiers of each package mean, as far as that can be known without the packages it imports.
func (m *module) resolve() {
	for _, dir := range m.packages {
		var files []*ast.File
		for _, f := range m.files {
			if f.dir == dir && !strings.HasSuffix(f.path, "_test.go") {
				files = append(files, f.syntax)
			}
		}
		conf := types.Config{Importer: hollow{}, Error: func(error) {}} // unknown imported names are errors
		_, _ = conf.Check(path.Join(m.path, dir), m.fset, files, &m.info)
	}
}

// hollow imports packages without their contents.
type hollow struct{}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

func (hollow) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(majorVersion.ReplaceAllString(name, "")))
	p.MarkComplete()
	return p, nil
}

// finding formats a finding at a place in a Go file.
func (m *module) finding(at token.Pos, format string, args ...any) string {
	p := m.fset.Position(at)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// imports returns the directories of this module that a file imports, with the places of the imports.
func (m *module) imports(f *file) map[string]token.Pos {
	list := map[string]token.Pos{}
	for _, spec := range f.syntax.Imports {
		if dir, own := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), m.path+"/"); own {
			list[dir] = spec.Pos()
		}
	}
	return list
}

// imported returns the path of the package that e selects a name from, or "".
func (m *module) imported(e *ast.SelectorExpr) string {
	if x, ok := e.X.(*ast.Ident); ok {
		if name, ok := m.info.Uses[x].(*types.PkgName); ok {
			return name.Imported().Path()
		}
	}
	return ""
}

// code returns the Go files that are neither tests nor generated.
func (m *module) code() []*file {
	return slices.DeleteFunc(slices.Clone(m.files), func(f *file) bool { return f.test || ast.IsGenerated(f.syntax) })
}
