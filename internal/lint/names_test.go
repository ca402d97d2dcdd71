package lint_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// inTree is a path of this repository in a page; * stands for any name.
var inTree = regexp.MustCompile("(?:^|[\\s`(\"])((?:\\./)?(?:bench|cmd|deploy|docs|grafana|internal|pkg|plans|tools)/[A-Za-z0-9_*/.-]+)")

// names finds paths in pages that do not exist.
func names(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if path.Ext(name) == ".md" {
			found = append(found, m.lines(name, m.gone)...)
		}
	}
	return found
}

// gone returns the paths in a line of a page that do not exist.
func (m *module) gone(line string) []string {
	var found []string
	for _, match := range inTree.FindAllStringSubmatch(line, -1) {
		name := path.Clean(strings.TrimRight(strings.TrimSuffix(match[1], "/..."), "."))
		if there, err := fs.Glob(m.fsys, name); err != nil || len(there) == 0 {
			found = append(found, name+": is not there")
		}
	}
	return found
}
