package lint_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// declaration is an exported name that a file declares.
type declaration struct {
	name   string
	at     token.Pos
	method bool
	doc    string // its comment's text
	begins bool   // the comment must begin with the name, because it is about nothing else
}

// declarations returns the exported names of a file, methods of exported types included.
func declarations(f *file) []declaration {
	var list []declaration
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				list = append(list, declaration{d.Name.Name, d.Pos(), d.Recv != nil, d.Doc.Text(), true})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				list = append(list, specified(d, spec)...)
			}
		}
	}
	return list
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// specified returns the exported names of a type, const or var declaration. In a group, the group's comment or one at the end of the line is enough.
func specified(d *ast.GenDecl, spec ast.Spec) []declaration {
	group := d.Lparen.IsValid()
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			return []declaration{{spec.Name.Name, spec.Pos(), false, spec.Doc.Text() + d.Doc.Text(), !group}}
		}
	case *ast.ValueSpec:
		var list []declaration
		for _, name := range spec.Names {
			if name.IsExported() {
				list = append(list, declaration{name.Name, name.Pos(), false, spec.Doc.Text() + spec.Comment.Text() + d.Doc.Text(), !group && len(spec.Names) == 1})
			}
		}
		return list
	}
	return nil
}

// plain are methods that need no comment, because an interface of the standard library says everything about them.
var plain = []string{"Error", "Is", "String", "Unwrap", "Len", "Less", "Swap", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

var leadingArticle = regexp.MustCompile(`^(A|An|The) `)

// comments finds packages and exported names without a doc comment, and comments that do not begin with what they are about.
func comments(m *module) []string {
	found := m.packageComments()
	for _, f := range m.files {
		if ast.IsGenerated(f.syntax) || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, d := range declarations(f) {
			first, _, _ := strings.Cut(leadingArticle.ReplaceAllString(d.doc, ""), " ")
			first = strings.TrimSuffix(strings.TrimRight(first, ",.:\n"), "'s")
			switch {
			case d.method && slices.Contains(plain, d.name):
			case strings.TrimSpace(d.doc) == "":
				found = append(found, m.finding(d.at, "%s has no comment", d.name))
			case d.begins && first != d.name:
				found = append(found, m.finding(d.at, "the comment of %s does not begin with its name", d.name))
			}
		}
	}
	return found
}

// packageComments finds packages without a comment, or whose comment does not begin with the package's name.
func (m *module) packageComments() []string {
	var found []string
	for _, dir := range m.packages {
		doc, name := "", ""
		for _, f := range m.files {
			if f.dir == dir && !strings.HasSuffix(f.path, "_test.go") {
				doc, name = doc+f.syntax.Doc.Text(), f.syntax.Name.Name
			}
		}
		begin := "Package " + name + " "
		if name == "main" {
			begin = path.Base(dir) + " "
		}
		if !strings.HasPrefix(strings.ToLower(doc), strings.ToLower(begin)) {
			found = append(found, fmt.Sprintf("%s: no package comment that begins with %q", dir, strings.TrimSpace(begin)))
		}
	}
	return found
}
