package plan

import (
	"fmt"
	"math"
)

// nodeEntryBytes is the overhead of an entry of a built-in node, beside its key and value.
const nodeEntryBytes = 96

// Evicts says in words what happens when a phase puts more keys into built-in nodes than they can hold. It returns "" when they fit, or when
// that is unknown, as with values of different sizes or other endpoints than built-in nodes.
func (p *Plan) Evicts(ph *Phase) string {
	t, d := p.Target(ph.Target), p.Dataset(ph.Dataset)
	if t.Builtin == nil || ph.Populate == nil && !ph.fills() || d.Values.Sizes != nil || d.Values.File != nil || d.Keys.File != nil {
		return ""
	}
	keys, copies := float64(d.Keys.Count), 1.0
	if d.Keys.PerSession() {
		keys *= float64(ph.Sessions())
	}
	if t.Replication != nil {
		copies = float64(t.Replication.N)
	}
	entry := float64(len(fmt.Sprintf(d.Keys.Format, d.Keys.Count-1)) + d.Values.Size + nodeEntryBytes)
	room := float64(t.Builtin.Memory) * float64(t.Builtin.Nodes)
	if keys*copies*entry <= room {
		return ""
	}
	return fmt.Sprintf("%.0f keys with values of %d bytes take %s on built-in nodes, which have %s: they evict the others, and gets of these miss. Give builtin more memory, or "+
		"the dataset at most %.0f keys", keys, d.Values.Size, mebibytes(keys*copies*entry), mebibytes(room), max(1, math.Floor(room/copies/entry)))
}

func mebibytes(n float64) string { return fmt.Sprintf("%.0f MiB", n/(1<<20)) }
