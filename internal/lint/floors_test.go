package lint_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// floorsOf is the package whose files are listed below.
const floorsOf = "internal/load/engine"

// floors are the groups of the engine's files, from the top to the bottom. A file names package-level things of its own group and of those below it.
var floors = [][]string{
	{ // steps: what a worker is told, and who carries it out
		"choose", "cluster", "dial", "engine", "group", "limits", "localfiles", "neighbours", "orders", "patience", "planfiles", "policy", "secrets", "side", "transports",
		"usage",
	},
	{"bulk", "closed", "fills", "inside", "joint", "open", "programs", "quorum", "replay", "rerun", "runs", "sampling", "scenes", "tape"}, // ways and feeds: how ops begin and end
	{"connect", "guard", "outlet", "output", "partial", "reader", "replies", "skip", "wire", "writer"},                                    // wire: requests and replies as bytes
	{"blocking", "callcontext", "timed"}, // blocking: requests that a client, or a timer, answers
	{"thread"},                           // files: ops of the loop's own thread
	{"away", "clock", "events", "gate", "heap", "hold", "lane", "ledger", "lease", "loop", "lru", "meter", "pin", "queue", "said", "seal", "states", "stop", "timers", "way"}, // loop: what all share
	{"doc"},
}

// upward are the names from higher floors that files use all the same, and why.
var upward = map[string]string{
	"lane: programs":        "a pointer: a request that has ended calls its op's program directly",
	"lane: routes":          "a pointer: a lane's places in a cluster",
	"lane: side":            "a pointer to the target that a lane leads to",
	"loop: closedFeed":      "fields by value: the next op costs no call through an interface",
	"loop: fills":           "nil but for phases that fill on a miss",
	"loop: inside":          "the targets inside the loop: it tells them from sockets, and empties what they count into its own",
	"loop: openFeed":        "likewise",
	"loop: openStream":      "likewise",
	"loop: reading":         "likewise",
	"loop: sampling":        "nil but for phases that want samples, which a comparison tells; an interface would hide that",
	"loop: scenes":          "likewise: nil but for scenarios",
	"loop: wire":            "the transport whose turn is called directly",
	"queue: batch":          "a pointer: what a quorum's replies settle",
	"states: programs":      "the reference that a state's op ends by",
	"states: scene":         "a pointer: the scenario that an op belongs to",
	"wire: side":            "what a connection's token leads to, for errors",
	"programs: noEnd":       "texts of redirects, which clusters make",
	"programs: strangeNode": "likewise",
}

// floorOf returns the group of a file; -1 if it has none.
func floorOf(name string) int {
	return slices.IndexFunc(floors, func(group []string) bool { return slices.Contains(group, name) })
}

// stem is a file's name without its ending, and without the system it is for.
func stem(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".go"), "_")
	return name
}

// storeys finds references upward between the groups of the engine's files.
func storeys(m *module) []string {
	var found []string
	declared := map[string]string{}
	files := map[string]*ast.File{}
	for _, f := range m.code() {
		if f.dir != floorsOf {
			continue
		}
		if floorOf(stem(f.path)) < 0 {
			found = append(found, f.path+": on no floor: list it in internal/lint/floors_test.go")
		}
		src, err := fs.ReadFile(m.fsys, f.path)
		if err != nil {
			return []string{err.Error()}
		}
		resolved, err := parser.ParseFile(token.NewFileSet(), f.path, src, 0)
		if err != nil {
			return []string{err.Error()}
		}
		files[f.path] = resolved
		for name := range resolved.Scope.Objects {
			declared[name] = stem(f.path)
		}
	}
	used := map[string]bool{}
	for file, syntax := range files {
		here := stem(file)
		for _, id := range syntax.Unresolved {
			there, ok := declared[id.Name]
			if !ok || floorOf(there) >= floorOf(here) {
				continue
			}
			if key := here + ": " + id.Name; upward[key] != "" {
				used[key] = true
			} else {
				found = append(found, fmt.Sprintf("%s: names %s of %s.go, which is on a higher floor", file, id.Name, there))
			}
		}
	}
	for key := range upward {
		if in, _, _ := strings.Cut(key, ":"); !used[key] && slices.ContainsFunc(m.files, func(f *file) bool { return f.dir == floorsOf && stem(f.path) == in }) {
			found = append(found, key+": nothing needs this exception of a floor")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
