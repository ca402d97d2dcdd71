package engine

import (
	"bytes"

	"github.com/loadgen/loadgen/pkg/driver"
)

// lru is a cache of bounded size that a loop keeps: the entry that was used longest ago goes first. Its size is that of keys and values. Entries are
// used again, so that a full cache leaves no garbage.
type lru struct {
	most    int64 // bytes
	entries int   // the most entries; 0 for any number
	wipes   bool  // drop all entries when there is no room for another
	size    int64
	n       int
	at      map[uint64]int32 // the first entry with a hash
	slab    []entry
	free    []int32
	newest  int32 // −1 if there are no entries
	oldest  int32

	evictions, cleared uint64
}

// entry is a key and its value.
type entry struct {
	hash         uint64
	bytes        []byte // the key followed by the value
	key          int    // the key's length
	until        int64  // when it expires, on the run clock
	chain        int32  // the next entry with this hash; −1 if there is none
	newer, older int32
}

// newLRU returns a cache without room.
func newLRU(wipes bool) *lru {
	return &lru{wipes: wipes, at: map[uint64]int32{}, newest: -1, oldest: -1}
}

// find returns the entry of a key; −1 if there is none.
func (c *lru) find(hash uint64, key []byte) int32 {
	i, there := c.at[hash]
	if !there {
		return -1
	}
	for i >= 0 && !bytes.Equal(c.slab[i].bytes[:c.slab[i].key], key) {
		i = c.slab[i].chain
	}
	return i
}

// get returns the value of a key, which is valid until the next call.
func (c *lru) get(key []byte, now int64) (value []byte, there bool) {
	i := c.find(driver.KeyHash(key), key)
	if i < 0 {
		return nil, false
	}
	e := &c.slab[i]
	if e.until <= now {
		c.drop(i)
		return nil, false
	}
	c.unlink(i)
	c.link(i)
	return e.bytes[e.key:], true
}

// put keeps a value, unless it is larger than the cache.
func (c *lru) put(key []byte, value *driver.Value, until int64) bool {
	hash := driver.KeyHash(key)
	if i := c.find(hash, key); i >= 0 {
		c.drop(i)
	}
	need := int64(len(key) + value.Size)
	if need > c.most {
		return false
	}
	for c.size+need > c.most || c.entries > 0 && c.n >= c.entries {
		if c.wipes {
			c.clear()
			break
		}
		c.drop(c.oldest)
		c.evictions++
	}
	if len(c.free) == 0 {
		c.slab = append(c.slab, entry{})
		c.free = append(c.free, int32(len(c.slab)-1))
	}
	i := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	e := &c.slab[i]
	e.hash, e.key, e.until = hash, len(key), until
	e.bytes = value.AppendTo(append(e.bytes[:0], key...))
	e.chain = -1
	if first, there := c.at[hash]; there {
		e.chain = first
	}
	c.at[hash] = i
	c.link(i)
	c.n++
	c.size += int64(len(e.bytes))
	return true
}

// remove drops a key, and reports whether it was there.
func (c *lru) remove(key []byte) bool {
	i := c.find(driver.KeyHash(key), key)
	if i >= 0 {
		c.drop(i)
	}
	return i >= 0
}

// clear drops all entries.
func (c *lru) clear() {
	for c.newest >= 0 {
		c.drop(c.newest)
	}
	c.cleared++
}

func (c *lru) drop(i int32) {
	e := &c.slab[i]
	switch first := c.at[e.hash]; {
	case first != i:
		for c.slab[first].chain != i {
			first = c.slab[first].chain
		}
		c.slab[first].chain = e.chain
	case e.chain >= 0:
		c.at[e.hash] = e.chain
	default:
		delete(c.at, e.hash)
	}
	c.unlink(i)
	c.n--
	c.size -= int64(len(e.bytes))
	c.free = append(c.free, i)
}

// link makes an entry the newest.
func (c *lru) link(i int32) {
	c.slab[i].newer, c.slab[i].older = -1, c.newest
	if c.newest >= 0 {
		c.slab[c.newest].newer = i
	} else {
		c.oldest = i
	}
	c.newest = i
}

func (c *lru) unlink(i int32) {
	e := &c.slab[i]
	if e.newer >= 0 {
		c.slab[e.newer].older = e.older
	} else {
		c.newest = e.older
	}
	if e.older >= 0 {
		c.slab[e.older].newer = e.newer
	} else {
		c.oldest = e.newer
	}
}

// resize changes the bounds, and drops what no longer fits.
func (c *lru) resize(most int64, entries int) {
	c.most, c.entries = most, entries
	for c.n > 0 && (c.size > most || entries > 0 && c.n > entries) {
		c.drop(c.oldest)
		c.evictions++
	}
}
