package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A mutant is a source file in which the bytes from start to end are replaced.
type mutant struct {
	file       string // relative to the module
	function   string // empty outside functions
	line       int
	start, end int
	was, now   string // on one line, for its name
	with       string // the replacement
	nth        int    // among those with the same name, from 1
	text       []byte // of the whole file, unchanged
}

// name identifies a mutant as long as the surrounding code stays the same; lines may move.
func (m mutant) name() string {
	name := fmt.Sprintf("%s %s: %s => %s", m.file, m.function, m.was, m.now)
	if m.nth > 1 {
		name += fmt.Sprintf(" #%d", m.nth)
	}
	return name
}

func (m mutant) apply() []byte {
	return bytes.Join([][]byte{m.text[:m.start], []byte(m.with), m.text[m.end:]}, nil)
}

// diff returns the changed lines.
func (m mutant) diff() string {
	from := bytes.LastIndexByte(m.text[:m.start], '\n') + 1
	to := len(m.text)
	if i := bytes.IndexByte(m.text[m.end:], '\n'); i >= 0 {
		to = m.end + i
	}
	now := string(m.text[from:m.start]) + m.with + string(m.text[m.end:to])
	return lines("-", string(m.text[from:to])) + lines("+", now)
}

func lines(mark, text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(&b, "\t%s%s\n", mark, line)
		}
	}
	return b.String()
}

// source is a package and everything that can be changed in it.
type source struct {
	root, path string // the module's directory, absolute; the package's, relative to it
	mutants    []mutant
}

// load parses a package's files that are built here, except for tests and generated files.
func load(ctx context.Context, root, pkg string) (*source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-json=Dir,GoFiles", pkg)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", pkg, err)
	}
	var listed struct {
		Dir     string
		GoFiles []string
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, fmt.Errorf("list %s: %w", pkg, err)
	}
	s := &source{root: root}
	if s.path, err = filepath.Rel(root, listed.Dir); err != nil {
		return nil, err
	}
	for _, name := range listed.GoFiles {
		text, err := os.ReadFile(filepath.Join(listed.Dir, name))
		if err != nil {
			return nil, err
		}
		found, err := mutate(filepath.Join(s.path, name), text)
		if err != nil {
			return nil, err
		}
		s.mutants = append(s.mutants, found...)
	}
	return s, nil
}

// mutate returns every mutant of a file.
func mutate(file string, text []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	v := &visitor{file: file, text: text, set: set, seen: map[string]int{}}
	ast.PreorderStack(tree, nil, v.visit)
	return v.found, nil
}

type visitor struct {
	file  string
	text  []byte
	set   *token.FileSet
	seen  map[string]int
	found []mutant
}

func (v *visitor) source(n ast.Node) string {
	return string(v.text[v.offset(n.Pos()):v.offset(n.End())])
}

func (v *visitor) offset(p token.Pos) int { return v.set.Position(p).Offset }

// replace adds a mutant with other text in place of a node.
func (v *visitor) replace(stack []ast.Node, n ast.Node, with string) {
	v.add(stack, n, n.Pos(), n.End(), brief(v.source(n)), with, brief(with))
}

func (v *visitor) add(stack []ast.Node, at ast.Node, from, to token.Pos, was, with, now string) {
	m := mutant{
		file: v.file, function: enclosing(stack), line: v.set.Position(at.Pos()).Line,
		start: v.offset(from), end: v.offset(to), was: was, now: now, with: with, text: v.text,
	}
	v.seen[m.name()]++
	m.nth = v.seen[m.name()]
	v.found = append(v.found, m)
}

// brief returns text on one line of at most 100 characters.
func brief(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > 100 {
		return string(line[:99]) + "…"
	}
	return string(line)
}

// enclosing returns the name of the function around a node, as T.Method.
func enclosing(stack []ast.Node) string {
	for _, n := range stack {
		f, ok := n.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv == nil || len(f.Recv.List) == 0 {
			return f.Name.Name
		}
		t := f.Recv.List[0].Type
		if s, ok := t.(*ast.StarExpr); ok {
			t = s.X
		}
		if i, ok := t.(*ast.IndexExpr); ok {
			t = i.X
		}
		if id, ok := t.(*ast.Ident); ok {
			return id.Name + "." + f.Name.Name
		}
		return f.Name.Name
	}
	return "-"
}

func (v *visitor) visit(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BinaryExpr:
		v.binary(n, stack)
	case *ast.BasicLit:
		v.literal(n, stack)
	case *ast.Ident:
		v.boolean(n, stack)
	case *ast.IfStmt:
		if !compares(n.Cond) { // whose operator is inverted below
			v.replace(stack, n.Cond, "!("+v.source(n.Cond)+")")
		}
		v.empty(stack, n.Body, "if "+v.source(n.Cond))
		if e, ok := n.Else.(*ast.BlockStmt); ok {
			v.empty(stack, e, "else of "+v.source(n.Cond))
		}
	case *ast.CaseClause:
		v.clause(n, stack)
		v.statements(n.Body, append(stack, n))
	case *ast.CommClause:
		v.statements(n.Body, append(stack, n))
	case *ast.BlockStmt:
		v.statements(n.List, append(stack, n))
	case *ast.AssignStmt:
		if now, ok := assigned(n.Tok); ok {
			v.replace(stack, n, v.source(n.Lhs[0])+" "+now.String()+" "+v.source(n.Rhs[0]))
		}
	case *ast.IncDecStmt:
		now := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		v.replace(stack, n, v.source(n.X)+now)
	case *ast.ReturnStmt:
		v.dropError(n, stack)
	}
	return true
}

func compares(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && b.Op != token.LAND && b.Op != token.LOR
}

// binary changes an operator, and leaves out each clause of a condition.
func (v *visitor) binary(n *ast.BinaryExpr, stack []ast.Node) {
	if capacity(n, stack) {
		return
	}
	x, y := v.source(n.X), v.source(n.Y)
	for _, op := range operators(n.Op) {
		now := x + " " + op.String() + " " + y
		if len(stack) > 0 {
			if _, ok := stack[len(stack)-1].(*ast.BinaryExpr); ok {
				now = "(" + now + ")"
			}
		}
		v.replace(stack, n, now)
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		v.replace(stack, n, x)
		v.replace(stack, n, y)
	}
}

func operators(op token.Token) []token.Token {
	switch op {
	case token.LSS:
		return []token.Token{token.LEQ, token.GEQ}
	case token.LEQ:
		return []token.Token{token.LSS, token.GTR}
	case token.GTR:
		return []token.Token{token.GEQ, token.LEQ}
	case token.GEQ:
		return []token.Token{token.GTR, token.LSS}
	case token.EQL:
		return []token.Token{token.NEQ}
	case token.NEQ:
		return []token.Token{token.EQL}
	case token.LAND:
		return []token.Token{token.LOR}
	case token.LOR:
		return []token.Token{token.LAND}
	case token.ADD:
		return []token.Token{token.SUB}
	case token.SUB:
		return []token.Token{token.ADD}
	case token.MUL:
		return []token.Token{token.QUO}
	case token.QUO, token.REM:
		return []token.Token{token.MUL}
	case token.SHL:
		return []token.Token{token.SHR}
	case token.SHR:
		return []token.Token{token.SHL}
	case token.AND:
		return []token.Token{token.OR}
	case token.OR, token.XOR, token.AND_NOT:
		return []token.Token{token.AND}
	}
	return nil
}

func assigned(op token.Token) (token.Token, bool) {
	now, ok := map[token.Token]token.Token{
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN, token.REM_ASSIGN: token.MUL_ASSIGN,
		token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
		token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN,
	}[op]
	return now, ok
}

// literal changes a number by one, up and down. It leaves the capacity given to make alone: that changes no result.
func (v *visitor) literal(n *ast.BasicLit, stack []ast.Node) {
	if capacity(n, stack) {
		return
	}
	switch n.Kind {
	case token.INT:
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			v.replace(stack, n, strconv.FormatInt(i+1, 10))
			v.replace(stack, n, strconv.FormatInt(i-1, 10))
		}
	case token.FLOAT:
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			v.replace(stack, n, strconv.FormatFloat(f+1, 'g', -1, 64))
			v.replace(stack, n, strconv.FormatFloat(f-1, 'g', -1, 64))
		}
	}
}

func capacity(n ast.Node, stack []ast.Node) bool {
	for _, s := range stack {
		if c, ok := s.(*ast.CallExpr); ok && len(c.Args) == 3 && c.Args[2].Pos() <= n.Pos() && n.End() <= c.Args[2].End() {
			if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "make" {
				return true
			}
		}
	}
	return false
}

func (v *visitor) boolean(n *ast.Ident, stack []ast.Node) {
	switch n.Name {
	case "true":
		v.replace(stack, n, "false")
	case "false":
		v.replace(stack, n, "true")
	}
}

// empty removes what a branch does.
func (v *visitor) empty(stack []ast.Node, body *ast.BlockStmt, head string) {
	if len(body.List) > 0 && !panics(body.List[0]) {
		v.add(stack, body, body.Lbrace, body.Rbrace+1, brief(head)+" { "+brief(v.source(body.List[0]))+" }", "{}", "{}")
	}
}

// clause removes what a case does.
func (v *visitor) clause(n *ast.CaseClause, stack []ast.Node) {
	if len(n.Body) == 0 || panics(n.Body[0]) {
		return
	}
	head := brief(string(v.text[v.offset(n.Case) : v.offset(n.Colon)+1]))
	last := n.Body[len(n.Body)-1]
	v.add(stack, n.Body[0], n.Body[0].Pos(), last.End(), head+" "+brief(v.source(n.Body[0])), "", head)
}

// statements removes each statement that is executed for its effect. A statement that panics guards against a bug, not an input.
func (v *visitor) statements(list []ast.Stmt, stack []ast.Node) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.BranchStmt, *ast.ReturnStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s) {
				continue
			}
		default:
			continue
		}
		if !panics(s) && !only(s, stack) && !result(s, stack) {
			v.add(stack, s, s.Pos(), s.End(), brief(v.source(s)), "", "nothing")
		}
	}
}

// only reports whether a statement is a branch's only one. The branch is then emptied as a whole.
func only(s ast.Stmt, stack []ast.Node) bool {
	body := stack[len(stack)-1]
	if c, ok := body.(*ast.CaseClause); ok {
		return len(c.Body) == 1
	}
	b, ok := body.(*ast.BlockStmt)
	if !ok || len(stack) < 2 || len(b.List) != 1 {
		return false
	}
	_, ok = stack[len(stack)-2].(*ast.IfStmt)
	return ok
}

// result reports whether a statement is a function's final return, without which it does not compile.
func result(s ast.Stmt, stack []ast.Node) bool {
	r, ok := s.(*ast.ReturnStmt)
	if !ok || len(r.Results) == 0 || len(stack) < 2 {
		return false
	}
	body, ok := stack[len(stack)-1].(*ast.BlockStmt)
	if !ok || body.List[len(body.List)-1] != s {
		return false
	}
	switch stack[len(stack)-2].(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

func blank(s *ast.AssignStmt) bool {
	for _, l := range s.Lhs {
		if id, ok := l.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

func panics(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	c, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

// dropError returns nil instead of an error.
func (v *visitor) dropError(n *ast.ReturnStmt, stack []ast.Node) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	text := v.source(last)
	if text == "err" || strings.HasPrefix(text, "fmt.Errorf(") || strings.HasPrefix(text, "errors.") {
		v.replace(append(stack, n), last, "nil")
	}
}
