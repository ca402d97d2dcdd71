package cachenode

import "sync"

// entryOverhead is what an entry costs beside the bytes of its key and value: the entry itself and its place in the map.
const entryOverhead = 96

// databases is how many key spaces SELECT chooses from; Redis' default.
const databases = 16

// store holds the keys of all databases under one memory bound, least recently used first out. The order is exact and common to
// all databases.
type store struct {
	bound int64 // of used, in bytes

	mu        sync.Mutex
	keys      [databases]map[string]*entry
	recent    entry // root of a ring: next is the most recently used entry, prev the least
	used      int64 // sum of all entries' cost
	evictions uint64
	hits      uint64
	misses    uint64
}

// entry is one key. Its value is replaced, never written to, so that it can be read without the lock.
type entry struct {
	prev, next *entry
	db         int
	key        string
	value      []byte
}

// storeStats are a store's figures at one moment.
type storeStats struct {
	used                    int64
	evictions, hits, misses uint64
	keys                    [databases]int
}

func newStore(bound int64) *store {
	s := &store{bound: bound}
	s.reset()
	return s
}

// reset empties the store; the caller holds the lock or is its only user.
func (s *store) reset() {
	for i := range s.keys {
		s.keys[i] = make(map[string]*entry)
	}
	s.recent.next, s.recent.prev = &s.recent, &s.recent
	s.used = 0
}

func cost(key, value int) int64 { return int64(key) + int64(value) + entryOverhead }

// get returns the key's value, which the caller must not change.
func (s *store) get(db int, key []byte) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[db][string(key)]
	if e == nil {
		s.misses++
		return nil, false
	}
	s.hits++
	s.touch(e)
	return e.value, true
}

// set stores copies of key and value. It reports false, and changes nothing, when they alone are beyond the bound.
func (s *store) set(db int, key, value []byte) bool {
	need := cost(len(key), len(value))
	if need > s.bound {
		return false
	}
	value = append(make([]byte, 0, len(value)), value...)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[db][string(key)]
	if e == nil {
		s.makeRoom(need)
		e = &entry{db: db, key: string(key), value: value}
		e.prev, e.next = e, e
		s.keys[db][e.key] = e
		s.used += need
		s.touch(e)
		return true
	}
	s.touch(e) // first, so that the last one evicted would be e itself; there is room before it comes to that
	grown := int64(len(value) - len(e.value))
	s.makeRoom(grown)
	s.used += grown
	e.value = value
	return true
}

// del reports whether the key was there.
func (s *store) del(db int, key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[db][string(key)]
	if e != nil {
		s.remove(e)
	}
	return e != nil
}

func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

func (s *store) stats() storeStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := storeStats{used: s.used, evictions: s.evictions, hits: s.hits, misses: s.misses}
	for i := range s.keys {
		st.keys[i] = len(s.keys[i])
	}
	return st
}

// makeRoom evicts until need more bytes are within the bound.
func (s *store) makeRoom(need int64) {
	for s.used+need > s.bound {
		s.remove(s.recent.prev)
		s.evictions++
	}
}

func (s *store) remove(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	delete(s.keys[e.db], e.key)
	s.used -= cost(len(e.key), len(e.value))
}

// touch makes e the most recently used.
func (s *store) touch(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = &s.recent, s.recent.next
	e.prev.next, e.next.prev = e, e
}
