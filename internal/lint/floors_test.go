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

// storeyed is a package whose files stand on floors, from the top to the bottom. A file names package-level things of its own floor and of those below
// it.
type storeyed struct {
	floors [][]string
	upward map[string]string // names from higher floors that files use all the same, and why
}

var packagesWithFloors = map[string]storeyed{
	"internal/load/engine": {floors: engineFloors, upward: upwardInEngine},
	"internal/result/judge": {
		floors: [][]string{
			{"phase"},                              // puts the stages together
			{"level", "cause", "search", "belief"}, // verdict: of levels, and which rate is next
			{"doubts", "busy", "entries", "late", "lost", "servers", "shortfall", "witness"}, // doubts
			{"figures", "cache", "connections", "counted", "device", "event", "finer", "generator", "growth", "latency", "log", "observe", "peritem", "requests", "shape", "staleness", "steady", "targets", "verify"}, // figures
			{"rate", "offered", "stall"}, // rates
			{"counts", "end", "observation", "plateau", "series", "span", "warmup"}, // counts
			{"quantile", "text"}, // what all share
			{"doc"},
		},
		upward: map[string]string{
			"counts: Aim":   "what a search's next level is for: part of what a phase left behind",
			"counts: End":   "why a search ended, likewise",
			"counts: Level": "the levels of a search likewise",
		},
	},
}

var engineFloors = [][]string{
	{ // steps: what a worker is told, and who carries it out
		"choose", "cluster", "device", "dial", "engine", "group", "limits", "localfiles", "names", "neighbours", "orders", "patience", "planfiles", "policy", "refresher", "secrets",
		"side", "transports", "usage", "watch",
	},
	{"bulk", "closed", "fills", "follow", "followed", "inside", "joint", "open", "programs", "quorum", "replay", "rerun", "runs", "sampling", "scenes", "tape", "tries"}, // ways and feeds: how ops begin and end
	{"connect", "giveup", "guard", "outlet", "output", "partial", "reader", "replies", "skip", "wire", "writer"},                                                         // wire: requests and replies as bytes
	{"blocking", "callcontext", "timed"}, // blocking: requests that a client, or a timer, answers
	{"thread"},                           // files: ops of the loop's own thread
	{"away", "churn", "clock", "events", "gate", "heap", "hold", "lane", "ledger", "lease", "loop", "lru", "meter", "pin", "queue", "room", "said", "seal", "states", "stop", "timers", "way"}, // loop: what all share
	{"doc"},
}

var upwardInEngine = map[string]string{
	"lane: programs":        "a pointer: a request that has ended calls its op's program directly",
	"lane: routes":          "a pointer: a lane's places in a cluster",
	"lane: side":            "a pointer to the target that a lane leads to",
	"loop: closedFeed":      "fields by value: the next op costs no call through an interface",
	"loop: fills":           "nil but for phases that fill on a miss",
	"loop: follower":        "nil but for phases whose writes are compared with what is read",
	"loop: inside":          "the targets inside the loop: it tells them from sockets, and empties what they count into its own",
	"loop: openFeed":        "likewise",
	"loop: openStream":      "likewise",
	"loop: reading":         "likewise",
	"loop: sampling":        "nil but for phases that want samples, which a comparison tells; an interface would hide that",
	"loop: scenes":          "likewise: nil but for scenarios",
	"loop: wire":            "the transport whose turn is called directly",
	"queue: batch":          "a pointer: what a quorum's replies settle",
	"states: followed":      "by value: what is known of an op, if its loop follows ops",
	"states: programs":      "the reference that a state's op ends by",
	"states: scene":         "a pointer: the scenario that an op belongs to",
	"wire: side":            "what a connection's token leads to, for errors",
	"programs: noEnd":       "texts of redirects, which clusters make",
	"programs: strangeNode": "likewise",
}

// floorOf returns the floor of a file; -1 if it has none.
func (p storeyed) floorOf(name string) int {
	return slices.IndexFunc(p.floors, func(group []string) bool { return slices.Contains(group, name) })
}

// stem is a file's name without its ending, and without the system it is for.
func stem(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".go"), "_")
	return name
}

// storeys finds references upward between the floors of packages.
func storeys(m *module) (found []string) {
	for dir, p := range packagesWithFloors {
		found = append(found, p.storeys(m, dir)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (p storeyed) storeys(m *module, dir string) (found []string) {
	declared := map[string]string{}
	files := map[string]*ast.File{}
	for _, f := range m.code() {
		if f.dir != dir {
			continue
		}
		if p.floorOf(stem(f.path)) < 0 {
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
			if !ok || p.floorOf(there) >= p.floorOf(here) {
				continue
			}
			if key := here + ": " + id.Name; p.upward[key] != "" {
				used[key] = true
			} else {
				found = append(found, fmt.Sprintf("%s: names %s of %s.go, which is on a higher floor", file, id.Name, there))
			}
		}
	}
	for key := range p.upward {
		if in, _, _ := strings.Cut(key, ":"); !used[key] && slices.ContainsFunc(m.files, func(f *file) bool { return f.dir == dir && stem(f.path) == in }) {
			found = append(found, key+": nothing needs this exception of a floor")
		}
	}
	return found
}
