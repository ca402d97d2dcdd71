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

// rows are the layers from low to high: a package imports only from rows above its own in this table. Names are those below internal/, but for pkg, cmd,
// bench and docs.
var rows = [][]string{
	{"base/reason", "base/varint", "base/listen", "base/panics", "plan/compress", "base/exit", "docs", "pkg/driver"},
	{"count/stat", "fleet/hook", "fleet/identity", "plan/dialect", "plan/pace", "plan/rowfile", "plan/values", "result/push", "base/quantity", "result/report/chart", "base/safefile", "pkg/driver/form", "pkg/driver/localfile", "pkg/hist", "pkg/pmem"},
	{"count/measure", "load/policy", "plan/op", "plan/keyfile", "plan/trace", "pkg/plan", "pkg/pmlog"},
	{"load/worker", "load/machine", "load/sockets", "plan/workload", "target/drivers/*"},
	{"plan/reuse", "result/run"},
	{"result/footprint", "result/metric"},
	{"result/judge", "result/experiment/comparison", "result/expr", "result/pgexport", "result/report/words", "result/rundir", "result/timeline", "target/cachenode", "target/drivers", "target/observe"},
	{"fleet/coord", "fleet/deploy", "fleet/rpc/loadgenpb", "load/bareclient", "load/engine", "result/live", "result/prom", "result/report/tables"},
	{"count/selfcheck", "fleet/rpc", "result/experiment", "result/report", "result/report/page"},
	{"fleet/runner"},
	{"command"},
	{"bench", "bench/five", "cmd/loadgen"},
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

// row returns the index of a package's row, or -1.
func row(dir string) int {
	return slices.IndexFunc(rows, func(row []string) bool {
		return slices.ContainsFunc(row, func(pattern string) bool {
			ok, err := path.Match(pattern, strings.TrimPrefix(dir, "internal/"))
			return ok && err == nil
		})
	})
}

func layers(m *module) []string {
	var found []string
	for _, dir := range m.packages {
		if _, ok := testSupport[dir]; !ok && row(dir) < 0 {
			found = append(found, fmt.Sprintf("%s: in no layer: give it a row in the table of internal/lint and of CONTRIBUTING.md", dir))
		}
	}
	for _, f := range m.files {
		if f.test {
			continue
		}
		for dir, at := range m.imports(f) {
			if _, ok := testSupport[dir]; ok {
				found = append(found, m.finding(at, "imports %s, which is for tests", dir))
			} else if row(dir) < 0 {
				found = append(found, m.finding(at, "imports %s, which is in no layer", dir))
			} else if here := row(f.dir); here >= 0 && row(dir) >= here {
				found = append(found, m.finding(at, "imports %s, which is not below %s", dir, f.dir))
			}
		}
	}
	return found
}

// TestContributingShowsTheLayers compares the table for people with the one above.
func TestContributingShowsTheLayers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	require.NoError(t, err)
	var shown [][]string
	for _, line := range regexp.MustCompile(`(?m)^\| [0-9]+ \|.*$`).FindAllString(string(page), -1) {
		var row []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			row = append(row, name[1])
		}
		shown = append(shown, row)
	}
	require.Equal(t, len(rows), len(shown))
	for i := range rows {
		require.ElementsMatch(t, rows[i], shown[i], "row %d", i+1)
	}
}

// TestContributingNamesEachPackage checks that the table of themes has every package once: those of a theme by their names below its folder.
func TestContributingNamesEachPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	require.NoError(t, err)
	var named []string
	for _, line := range regexp.MustCompile(`(?m)^\| \*\*([a-z]+)\*\*.*$`).FindAllStringSubmatch(string(page), -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line[0], -1) {
			switch first, _, _ := strings.Cut(name[1], "/"); first {
			case "pkg", "cmd", "bench", "docs":
				named = append(named, name[1])
			case "internal":
				named = append(named, strings.TrimPrefix(name[1], "internal/"))
			default:
				named = append(named, line[1]+"/"+name[1])
			}
		}
	}
	require.ElementsMatch(t, slices.Concat(rows...), named)
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
	return b.String()
}
