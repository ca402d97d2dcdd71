package metric

import (
	_ "embed"
	"slices"
	"strings"
)

// Path is a path in the JSON of a run, an experiment or a comparison.
type Path struct {
	Path string // parts in capitals stand for names, [] for the elements of a list
	Type string // such as "number or null"; "as PATH" for an object with the fields of that path
	Unit string // "" if it is no quantity
	Says string // its meaning, without the full stop
}

// table has a line for each path: path, type, unit and meaning between tabs. Units and meanings that the lists of this package have are left out.
//
//go:embed paths.tsv
var table string

// Paths returns the paths of a run, of an experiment and of a comparison, in their order there. Of a comparison's, it leaves out those that mean the
// same in an experiment.
func Paths() (ofRun, ofExperiment, ofComparison []Path) {
	listed := map[string]Path{}
	add(listed, "phase.NAME.", Phase())
	add(listed, "phase.NAME.op.VERB.", Op())
	add(listed, "phase.NAME.series[].", Row())
	parts := [][]Path{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") { // the name of a part
			parts = append(parts, nil)
			continue
		}
		fields := slices.Concat(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), make([]string, 3))
		p := Path{Path: fields[0], Type: fields[1], Unit: fields[2], Says: fields[3]}
		if p.Says == "" {
			p.Unit, p.Says = listed[p.Path].Unit, listed[p.Path].Says
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], p)
	}
	return parts[0], parts[1], parts[2]
}

// add enters a list's metrics, under the path of what has them.
func add[T any](listed map[string]Path, at string, metrics []Of[T]) {
	for _, m := range metrics {
		listed[at+m.Name] = Path{Unit: m.Unit, Says: m.Says}
	}
}
