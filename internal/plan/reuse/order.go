package reuse

// order holds keys, by their hashes, in the order in which they were last used. A Fenwick tree sums their sizes (Fenwick, Software: Practice and
// Experience 24(3), 1994).
type order struct {
	at    map[uint64]int32 // places by key
	all   []used           // by place, from 1, the oldest first
	sums  []int64          // sums[i] is of the sizes at the places i−(i&−i)+1 to i
	next  int32            // place of the next key
	first int32            // no key is at a place before it
	bytes int64            // size of all keys
}

// used is a key; one that was taken has a size of −1.
type used struct {
	hash uint64
	size int64
}

// newOrder returns an order for up to most keys, and one beyond them.
func newOrder(most int) *order {
	return &order{at: map[uint64]int32{}, all: make([]used, 2*most+2), sums: make([]int64, 2*most+2), next: 1, first: 1}
}

func (o *order) keys() int { return len(o.at) }

// take removes a key. It returns the key's size, and that with the sizes of all keys used after it.
func (o *order) take(hash uint64) (size, distance int64, known bool) {
	i, known := o.at[hash]
	if !known {
		return 0, 0, false
	}
	size, distance = o.all[i].size, o.bytes
	for j := i - 1; j > 0; j &= j - 1 {
		distance -= o.sums[j]
	}
	o.remove(i)
	return size, distance, true
}

// pop removes the oldest key.
func (o *order) pop() (hash uint64, size int64) {
	for o.all[o.first].size < 0 {
		o.first++
	}
	oldest := o.all[o.first]
	o.remove(o.first)
	return oldest.hash, oldest.size
}

func (o *order) remove(i int32) {
	delete(o.at, o.all[i].hash)
	o.add(i, -o.all[i].size)
	o.all[i].size = -1
}

// push makes a key the newest that the order does not hold.
func (o *order) push(hash uint64, size int64) {
	if int(o.next) == len(o.all) {
		o.keep(func(uint64) bool { return true })
	}
	o.all[o.next], o.at[hash] = used{hash, size}, o.next
	o.add(o.next, size)
	o.next++
}

func (o *order) add(i int32, size int64) {
	o.bytes += size
	for ; int(i) < len(o.sums); i += i & -i {
		o.sums[i] += size
	}
}

// keep moves the keys together that are to be kept, and drops the others.
func (o *order) keep(which func(hash uint64) bool) {
	kept := o.all[1:1]
	for _, u := range o.all[o.first:o.next] {
		if u.size >= 0 && which(u.hash) {
			kept = append(kept, u)
		}
	}
	clear(o.at)
	clear(o.sums)
	o.first, o.next, o.bytes = 1, 1, 0
	for _, u := range kept {
		o.push(u.hash, u.size)
	}
}
