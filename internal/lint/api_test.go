package lint_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestAPI: a program with drivers of its own builds on what these packages export. docs/drivers.md lists what changed in it.
func TestAPI(t *testing.T) {
	var b bytes.Buffer
	for _, dir := range []string{"pkg/loadgen", "pkg/driver", "pkg/driver/form", "pkg/driver/localfile", "pkg/driver/drivertest"} {
		fset := token.NewFileSet()
		names, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		require.NoError(t, err)
		var files []*ast.File
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				f, err := parser.ParseFile(fset, name, nil, 0)
				require.NoError(t, err)
				files = append(files, f)
			}
		}
		p, err := doc.NewFromFiles(fset, files, dir)
		require.NoError(t, err)
		b.WriteString("package " + p.Name + "\n\n")
		show(t, fset, &b, p.Consts, p.Vars, nil)
		show(t, fset, &b, nil, nil, p.Funcs)
		for _, typ := range p.Types {
			show(t, fset, &b, append([]*doc.Value{{Decl: typ.Decl}}, typ.Consts...), typ.Vars, append(typ.Funcs, typ.Methods...))
		}
	}
	golden := filepath.Join("testdata", "api.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "the API of drivers: add a line to docs/drivers.md, then go test ./internal/lint -run TestAPI -update")
}

// show writes declarations without bodies.
func show(t *testing.T, fset *token.FileSet, b *bytes.Buffer, consts, vars []*doc.Value, funcs []*doc.Func) {
	t.Helper()
	var decls []ast.Decl
	for _, v := range append(consts, vars...) {
		decls = append(decls, v.Decl)
	}
	for _, f := range funcs {
		f.Decl.Body = nil
		decls = append(decls, f.Decl)
	}
	for _, d := range decls {
		require.NoError(t, format.Node(b, fset, d))
		b.WriteString("\n\n")
	}
}
