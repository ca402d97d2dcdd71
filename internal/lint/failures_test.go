package lint_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// failuresPage names the tests of each fault.
const failuresPage = "docs/failures.md"

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	faultRow = regexp.MustCompile(`(?m)^\| .*\|$`)
)

// failures finds faults without a test, and names of tests, in all pages, that do not exist.
func failures(m *module) []string {
	tests := map[string]bool{}
	for _, f := range m.files {
		for _, d := range f.syntax.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && strings.HasSuffix(f.path, "_test.go") {
				tests[function.Name.Name] = true
			}
		}
	}
	var found []string
	for _, name := range m.texts {
		if path.Ext(name) == ".md" {
			found = append(found, m.lines(name, func(line string) (unknown []string) {
				for _, match := range testName.FindAllStringSubmatch(line, -1) {
					if !tests[match[1]] {
						unknown = append(unknown, match[1]+" is no test")
					}
				}
				return unknown
			})...)
		}
	}
	return append(found, untested(m)...)
}

// untested lists the rows of the page of faults that have no test, except for its head.
func untested(m *module) []string {
	page, err := fs.ReadFile(m.fsys, failuresPage)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for i, row := range faultRow.FindAllString(string(page), -1) {
		if fault, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |"); i > 0 && !testName.MatchString(row) {
			found = append(found, fmt.Sprintf("%s: %q names no test", failuresPage, fault))
		}
	}
	return found
}
