package words

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/metric"
)

var (
	// standsFor is a part of a path that stands for a name.
	standsFor = regexp.MustCompile(`^[A-Z]+(\[\])?$`)
	// index is one in a path: of a list, or a name that is no identifier.
	index = regexp.MustCompile(`\[[0-9]*\]|\["([^"]*)"\]`)
)

// Figure says what a path in a result is, such as phase.load.op.get.response.p99, with names of that result or those of the list; a first dot, as jq has
// it, is left out. Of an object it names the fields. "result", "experiment" and "comparison" have the fields of the whole.
func Figure(path string) (Explanation, bool) {
	ofRun, ofExperiment, ofComparison := metric.Paths()
	switch path {
	case "result":
		return Explanation{Code: path, Means: "what --out writes of a run.", More: fieldsOf(ofRun, "")}, true
	case "experiment":
		return Explanation{Code: path, Means: "what --out writes of an experiment.", More: fieldsOf(ofExperiment, "")}, true
	case "comparison":
		return Explanation{Code: path, Means: "what runs compare --format json writes, besides what it has in common with an experiment.", More: fieldsOf(ofComparison, "")}, true
	}
	all := slices.Concat(ofRun, ofExperiment, ofComparison)
	named := index.ReplaceAllStringFunc(strings.TrimPrefix(path, "."), func(i string) string {
		if name := index.FindStringSubmatch(i)[1]; name != "" {
			return "." + strings.ReplaceAll(name, ".", "_")
		}
		return "[]"
	})
	p := pathOf(all, strings.Split(named, "."))
	if p == nil {
		return Explanation{}, false
	}
	kind := "It is " + p.Type
	if like, ok := strings.CutPrefix(p.Type, "as "); ok {
		kind = "It has the fields of " + like
	}
	if p.Unit != "" {
		kind += ", in " + p.Unit
	}
	return Explanation{Code: path, Means: p.Says + ".", More: append([]string{kind + "."}, fieldsOf(all, p.Path+".")...)}, true
}

// fieldsOf returns a line for each path that follows a beginning, without those below it.
func fieldsOf(all []metric.Path, at string) (lines []string) {
	above := "\n"
	for _, p := range all {
		name, ok := strings.CutPrefix(p.Path, at)
		if ok && !strings.HasPrefix(name, above) {
			lines = append(lines, name+": "+cmp.Or(p.Says, p.Type))
			above = name + "."
		}
	}
	return lines
}

// pathOf returns the listed path that a path is, the one with fewest names that stand for others, or that of the path whose fields it has; nil if there
// is none.
func pathOf(all []metric.Path, path []string) (best *metric.Path) {
	fewest := len(path) + 1
	for i := range all {
		if n := standsIn(strings.Split(all[i].Path, "."), path); n >= 0 && n < fewest {
			best, fewest = &all[i], n
		}
	}
	for i := len(path) - 1; i > 0 && best == nil; i-- {
		above := pathOf(all, path[:i])
		if above == nil {
			continue
		}
		like, ok := strings.CutPrefix(above.Type, "as ")
		if !ok {
			return nil
		}
		like, _, _ = strings.Cut(like, ",") // or absent
		like, _, _ = strings.Cut(like, " ") // or null
		return pathOf(all, slices.Concat(strings.Split(like, "."), path[i:]))
	}
	return best
}

// standsIn returns how many parts of a listed path stand for those of a path; -1 if it is another path.
func standsIn(listed, path []string) (n int) {
	if len(listed) != len(path) {
		return -1
	}
	for i, part := range listed {
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
