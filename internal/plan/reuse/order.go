package reuse

// order holds keys, by their hashes, in the order in which they were last used. A Fenwick tree sums their sizes (Fenwick, Software: Practice and
// Experience 24(3), 1994).
type order struct {
	at    map[uint64]int // places by key
	all   []used         // by place, from 1, the oldest first
	first int            // no key is at a place before it
	bytes int64          // size of all keys
}

// used is a key; one that was taken has a size of −1.
type used struct {
	hash uint64
	size int64
	sum  int64 // at place i, of the sizes at the places i−(i&−i)+1 to i
}

func newOrder() *order { return &order{at: map[uint64]int{}, all: make([]used, 1), first: 1} }

// use makes a key the newest, of size 1, and drops the oldest beyond the room. It reports whether the order held the key.
func (o *order) use(hash uint64, room int) bool {
	_, _, known := o.take(hash)
	if o.push(hash, 1); len(o.at) > room {
		o.pop()
	}
	return known
}

// take removes a key. It returns the key's size, and that with the sizes of all keys used after it.
func (o *order) take(hash uint64) (size, distance int64, known bool) {
	at, known := o.at[hash]
	if !known {
		return 0, 0, false
	}
	size, distance = o.all[at].size, o.bytes
	for i := at - 1; i > 0; i &= i - 1 {
		distance -= o.all[i].sum
	}
	for i := at; i < len(o.all); i += i & -i {
		o.all[i].sum -= size
	}
	o.all[at].size = -1
	o.bytes -= size
	delete(o.at, hash)
	return size, distance, true
}

// pop removes the oldest key.
func (o *order) pop() (hash uint64, size int64) {
	for o.all[o.first].size < 0 {
		o.first++
	}
	hash = o.all[o.first].hash
	size, _, _ = o.take(hash)
	return hash, size
}

// push makes a key the newest that the order does not hold.
func (o *order) push(hash uint64, size int64) {
	if len(o.all) > 4*len(o.at)+64 {
		o.keep(func(uint64) bool { return true })
	}
	place, sum := len(o.all), size
	for i := place - 1; i > place&(place-1); i &= i - 1 {
		sum += o.all[i].sum
	}
	o.all, o.at[hash] = append(o.all, used{hash, size, sum}), place
	o.bytes += size
}

// keep drops the other keys, and the places without one.
func (o *order) keep(which func(hash uint64) bool) {
	all := o.all[o.first:]
	o.all, o.first, o.bytes = o.all[:1], 1, 0
	for _, u := range all {
		if u.size >= 0 && which(u.hash) {
			o.push(u.hash, u.size)
		} else if u.size >= 0 {
			delete(o.at, u.hash)
		}
	}
}
