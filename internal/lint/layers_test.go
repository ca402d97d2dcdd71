package lint_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// themes are the floors of the house, from low to high: a package imports only from its own theme and from those below. Inside a theme, the compiler
// refuses circles. Those that are not a folder below internal/ are named by themeOf.
var themes = []string{"base", "pkg", "plan", "count", "load", "target", "result", "fleet", "command", "outside"}

// themeOf returns the theme of a package, as an index of themes, or -1.
func themeOf(dir string) int {
	first, rest, _ := strings.Cut(dir, "/")
	theme, _, _ := strings.Cut(rest, "/")
	switch {
	case dir == "docs":
		theme = "base"
	case dir == "pkg/plan":
		theme = "plan"
	case first == "bench" || first == "cmd" || dir == "pkg/loadgen":
		theme = "outside"
	case first == "pkg":
		theme = "pkg"
	case first != "internal":
		return -1
	}
	return slices.Index(themes, theme)
}

// testSupport are the packages that only tests import. They may import anything, and the rules for code do not bind them.
var testSupport = map[string]string{
	"internal/faultproxy":          "a network that fails on demand",
	"internal/lint":                "this package",
	"internal/servertest":          "starts real servers",
	"pkg/driver/drivertest":        "the conformance suite of drivers",
	"pkg/driver/drivertest/ticket": "the worked example of a driver",
	"pkg/pmem/pmemtest":            "what a loss of power leaves of files",
}

func layers(m *module) []string {
	var found []string
	for _, dir := range m.packages {
		if _, ok := testSupport[dir]; !ok && themeOf(dir) < 0 {
			found = append(found, fmt.Sprintf("%s: of no theme: internal/lint and CONTRIBUTING.md list them", dir))
		}
	}
	for _, f := range m.files {
		if _, ok := testSupport[f.dir]; ok || f.test {
			continue
		}
		for dir, at := range m.imports(f) {
			if _, ok := testSupport[dir]; ok {
				found = append(found, m.finding(at, "imports %s, which is for tests", dir))
			} else if themeOf(dir) > themeOf(f.dir) {
				found = append(found, m.finding(at, "imports %s, whose theme is above that of %s", dir, f.dir))
			}
		}
	}
	return found
}

// requireTable checks that CONTRIBUTING's table has the themes in their order, and each package once, in the row of its theme.
func (m *module) requireTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	require.NoError(t, err)
	var order, named []string
	for _, line := range regexp.MustCompile(`(?m)^\| \*\*([a-z]+)\*\*.*$`).FindAllStringSubmatch(string(page), -1) {
		order = append(order, line[1])
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line[0], -1) {
			dir := name[1]
			if themeOf(dir) < 0 {
				dir = path.Join("internal", line[1], dir)
			}
			require.Equal(t, line[1], themes[themeOf(dir)], dir)
			named = append(named, strings.TrimSuffix(dir, "/*"))
		}
	}
	require.Equal(t, themes, order)
	packages := slices.DeleteFunc(slices.Clone(m.packages), func(dir string) bool {
		_, ok := testSupport[dir]
		return ok || path.Dir(dir) == listing
	})
	require.ElementsMatch(t, append(packages, listing), named)
}

// maxArrows bounds the packages of this module that a package imports, on average. More imports make a part harder to take out, to test and to
// understand by itself. golang.org/x/perf has 1.6, pprof 1.9.
const maxArrows = 3.0

// listing is the package that only lists all drivers. Each driver would count as an import, yet none makes it harder to understand.
const listing = "internal/target/drivers"

// arrows counts imports between packages. It leaves out those of the command, since a command is where the parts meet, and of the list of drivers.
func arrows(m *module) []string {
	if average := m.arrows(); average >= maxArrows {
		return []string{fmt.Sprintf("%.2f imports of the module's own packages in each, on average; %.1f is too many", average, maxArrows)}
	}
	return nil
}

func (m *module) arrows() float64 {
	total := 0
	graph := m.graph()
	for _, below := range graph {
		total += len(below)
	}
	return float64(total) / float64(len(graph))
}

// graph returns the packages of the module that each package imports.
func (m *module) graph() map[string][]string {
	graph := map[string][]string{}
	for _, f := range m.files {
		if f.test || f.dir == listing || f.dir == "internal/command" {
			continue
		}
		below := slices.Concat(graph[f.dir], slices.Collect(maps.Keys(m.imports(f))))
		slices.Sort(below)
		graph[f.dir] = slices.Compact(below)
	}
	return graph
}

// exports counts the exported names of each package, without methods and fields.
func (m *module) exports() map[string]int {
	count := map[string]int{}
	for _, f := range m.code() {
		for _, d := range declarations(f) {
			if !d.method {
				count[f.dir]++
			}
		}
	}
	return count
}

// shape describes the module in figures.
func (m *module) shape() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.2f imports of the module's own packages in each, on average\n", m.arrows())
	exported := m.exports()
	graph := m.graph()
	for _, dir := range slices.Sorted(maps.Keys(graph)) {
		fmt.Fprintf(&b, "%-28s %2d imports, %2d exported names\n", dir, len(graph[dir]), exported[dir])
	}
	b.WriteString(m.themesShape())
	return b.String()
}

// themesShape draws the graph of themes: each with those that it imports, and how many of its files' imports lead there; then the pairs that import each
// other, and the themes that reach themselves.
func (m *module) themesShape() string {
	count := map[[2]int]int{} // from a theme to another
	for _, f := range m.files {
		if _, ok := testSupport[f.dir]; ok || f.test || themeOf(f.dir) < 0 {
			continue
		}
		for dir := range m.imports(f) {
			if to := themeOf(dir); to >= 0 && to != themeOf(f.dir) {
				count[[2]int{themeOf(f.dir), to}]++
			}
		}
	}
	var b strings.Builder
	pairs, circular := 0, 0
	for from, name := range themes {
		fmt.Fprintf(&b, "%-8s ->", name)
		for to := range themes {
			if n := count[[2]int{from, to}]; n > 0 {
				fmt.Fprintf(&b, " %s %d", themes[to], n)
				if to < from && count[[2]int{to, from}] > 0 {
					pairs++
				}
			}
		}
		b.WriteString("\n")
		reached, way := map[int]bool{}, []int{from}
		for len(way) > 0 {
			at := way[0]
			way = way[1:]
			for to := range themes {
				if count[[2]int{at, to}] > 0 && !reached[to] {
					reached[to] = true
					way = append(way, to)
				}
			}
		}
		if reached[from] {
			circular++
		}
	}
	fmt.Fprintf(&b, "%d pairs of themes import each other; %d themes are part of a circle\n", pairs, circular)
	return b.String()
}
