package op

// memo is a placement that remembers where keys live: hashing a key takes longer than everything else a program does for an op. It covers the keys of
// one key space, by index, and belongs to one program.
type memo struct {
	Placement
	n     int
	known []uint8 // n entries for each index: the endpoint plus one; 0 if it was not looked up yet
}

// mostKnown bounds the memory of a memo, in bytes.
const mostKnown = 4 << 20

// newMemo returns a memo of n endpoints for each of that many keys. It remembers nothing if there are too many keys or endpoints. A key with an index
// of keys or more is always looked up.
func newMemo(place Placement, keys int64, n int) memo {
	m := memo{Placement: place, n: n}
	if keys <= mostKnown/int64(n) && place.Endpoints() > 1 && place.Endpoints() < 1<<8 {
		m.known = make([]uint8, keys*int64(n))
	}
	return m
}

// of sets dst to the endpoints that hold an op's key, as many as dst has room for.
func (m *memo) of(dst []int, o *Op) {
	if o.Index >= uint64(len(m.known)/m.n) {
		m.Place(dst[:0], o.Key, m.n)
		return
	}
	known := m.known[int(o.Index)*m.n:][:m.n]
	if known[0] == 0 {
		m.Place(dst[:0], o.Key, m.n)
		for i, e := range dst {
			known[i] = uint8(e + 1)
		}
		return
	}
	for i, e := range known {
		dst[i] = int(e) - 1
	}
}

// home returns the endpoint that holds an op's key. The memo's n is 1.
func (m *memo) home(o *Op) int {
	if o.Index >= uint64(len(m.known)) {
		return m.Home(o.Key)
	}
	known := &m.known[o.Index]
	if *known == 0 {
		*known = uint8(m.Home(o.Key) + 1)
	}
	return int(*known) - 1
}
