package words

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/docs"
)

var (
	// figureRow is a row of docs/result.md: path, type, unit, meaning.
	figureRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\| ([^|]*) \\| (.*) \\|$")
	// likeRow is the type of a row that has the fields of another.
	likeRow = regexp.MustCompile("^as `([^`]+)`")
	// standsFor is a part of a path that stands for a name.
	standsFor = regexp.MustCompile(`^[A-Z]+(\[\])?$`)
	// index is one in a path: of a list, or a name that is no identifier.
	index = regexp.MustCompile(`\[[0-9]+\]|\["([^"]*)"\]`)
)

// Figure returns what docs/result.md says of a path in a result, such as phase.load.op.get.response.p99, with names of that result or those of the page.
func Figure(path string) (Explanation, bool) {
	page, err := docs.Pages.ReadFile("result.md")
	if err != nil {
		panic("words: " + err.Error()) // it is embedded
	}
	parts := strings.Split(index.ReplaceAllStringFunc(path, func(i string) string {
		if name := index.FindStringSubmatch(i)[1]; name != "" {
			return "." + strings.ReplaceAll(name, ".", "_")
		}
		return "[]"
	}), ".")
	row := figureOf(figureRow.FindAllStringSubmatch(string(page), -1), parts)
	if row == nil {
		return Explanation{}, false
	}
	e := Explanation{Code: path, Means: plainly(row[4]) + "."}
	kind := strings.ReplaceAll(strings.TrimSpace(row[2]), "`", "")
	if unit := strings.TrimSpace(row[3]); unit != "" {
		kind += ", in " + unit
	}
	e.More = []string{"It is " + kind + "."}
	return e, true
}

// figureOf returns the row of a path, the one with fewest names that stand for others, or that of the path whose fields it has; nil if there is none.
func figureOf(rows [][]string, path []string) (best []string) {
	fewest := len(path) + 1
	for _, row := range rows {
		if n := standsIn(strings.Split(row[1], "."), path); n >= 0 && n < fewest {
			best, fewest = row, n
		}
	}
	for i := len(path) - 1; i > 0 && best == nil; i-- {
		row := figureOf(rows, path[:i])
		if row == nil {
			continue
		}
		like := likeRow.FindStringSubmatch(row[2])
		if like == nil {
			return nil
		}
		return figureOf(rows, slices.Concat(strings.Split(like[1], "."), path[i:]))
	}
	return best
}

// standsIn returns how many parts of a row's path stand for those of a path; -1 if it is another path.
func standsIn(row, path []string) (n int) {
	if len(row) != len(path) {
		return -1
	}
	for i, part := range row {
		switch {
		case part == path[i]:
		case standsFor.MatchString(part) && strings.HasSuffix(part, "[]") == strings.HasSuffix(path[i], "[]"):
			n++
		default:
			return -1
		}
	}
	return n
}
