package pmlog

import "fmt"

// Shape holds the facts in the header of a log.
type Shape struct {
	Layout  string   // append, array or channel
	Clean   bool     // the log was closed properly
	Era     uint64   // counts its creation, recoveries and clears
	Cleared uint64   // the era of the last clear; 1 if never cleared
	Wrong   [2]error // what is wrong with each copy of the header; one good copy is enough
}

// ShapeOf reads the header of a log: of a channel, that in its side file. It writes nothing. The error is ErrCorrupt if no copy of the header is valid.
func ShapeOf(r Region) (Shape, error) {
	hs, wrong, err := readHeaders(r)
	if err != nil {
		return Shape{Wrong: wrong}, err
	}
	return Shape{Layout: hs.layout.String(), Clean: hs.clean, Era: hs.era, Cleared: hs.generation, Wrong: wrong}, nil
}

// SalvageAppend opens a log that OpenAppend refuses because records are missing, for reading only: the log reaches to the last record that is whole,
// and its Reader returns ErrCorrupt once for those missing between others. It writes nothing.
func SalvageAppend(r Region) (*Append, error) {
	heads, err := openHeaders(r, appendLayout)
	if err != nil {
		return nil, fmt.Errorf("salvage an append log: %w", err)
	}
	l := newAppend(r, heads)
	for off := l.end; off+recordHeader <= l.size; {
		rec, p, valid, err := l.at(&l.read, off, l.heads.era)
		if err != nil {
			return nil, fmt.Errorf("salvage an append log: %w", err)
		}
		if !valid || rec.seq < l.next {
			off += l.padding
			continue
		}
		off += span(int64(len(p)), l.padding)
		l.end, l.next = off, rec.seq+1
	}
	return l, nil
}
