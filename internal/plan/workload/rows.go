package workload

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// rows are a file's records, of which each scenario takes one.
type rows struct {
	names []string // row.NAME, by column
	set   *keyfile.Set
	count uint64
	pick  string
	once  bool // each row is taken once, in order
}

func newRows(of *plan.Rows, set *keyfile.Set) (*rows, error) {
	if of == nil {
		return nil, nil
	}
	if set == nil || of.Count == 0 || int64(set.Len()) != of.Count*int64(len(of.Columns)) {
		return nil, fmt.Errorf("the %d rows of %s are not at hand", of.Count, of.Path)
	}
	r := &rows{set: set, count: uint64(of.Count), pick: of.Pick, once: of.Once()}
	for _, name := range of.Columns {
		r.names = append(r.names, "row."+name)
	}
	return r, nil
}

// of returns how many rows stream i takes, if each is taken once: row r belongs to stream r modulo streams.
func (r *rows) of(i, streams int) uint64 {
	return uint64(max(0, int(r.count)-i+streams-1) / streams)
}

// draw returns the row of a stream's next scenario.
func (r *rows) draw(st *Stream) uint64 {
	switch r.pick {
	case plan.SessionRows:
		return uint64(st.number) % uint64(st.source.sessions) % r.count
	case plan.SequenceRows:
		return (st.n*uint64(st.source.streams) + uint64(st.number)) % r.count
	}
	return below(&st.random, r.count)
}

// AppendRow appends the fields of the row that the stream's last scenario takes, if it takes one.
func (st *Stream) AppendRow(bag driver.Bag) driver.Bag {
	if r := st.source.rows; r != nil {
		for i, name := range r.names {
			bag = append(bag, driver.Noted{Name: name, Text: r.set.Text(st.row*uint64(len(r.names)) + uint64(i))})
		}
	}
	return bag
}
