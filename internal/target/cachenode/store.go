package cachenode

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// entryOverhead is the cost of an entry beyond the bytes of its key and value: the entry itself, and its places in the map and the order.
const entryOverhead = 96

// databases is how many key spaces SELECT offers; Redis' default.
const databases = 16

// store holds the keys of all databases under one memory bound, with LRU eviction. The order is exact and common to all databases. An expired key is
// removed when somebody looks for it, or when it is the least recently used.
type store struct {
	bound int64     // of used, in bytes
	epoch time.Time // zero of entries' expiry

	mu        sync.Mutex
	keys      [databases]map[string]*entry
	mortal    [databases]int // entries that expire
	order     scanOrder
	recent    entry // root of a ring: next is the most recently used entry, prev the least
	used      int64 // sum of all entries' cost, and of lent values that were replaced or removed meanwhile
	evictions uint64
	hits      uint64
	misses    uint64
}

// entry is one key. Its value is replaced but never modified, so that it can be read without the lock.
type entry struct {
	prev, next *entry
	db         int
	key        string
	value      []byte
	expires    time.Duration // since the store's epoch; 0 for never
	place      int           // in the scan order
	loan       *loan         // the value's loan; nil if it is not lent
}

// loan counts the connections that are sending a value. The value takes its room until the last of them is done.
type loan struct {
	size    int64
	readers int
	gone    bool // the value is no longer in the store
}

// storeStats are a store's figures at one point in time.
type storeStats struct {
	used                    int64
	evictions, hits, misses uint64
	keys, mortal            [databases]int
}

func newStore(bound int64) *store {
	s := &store{bound: bound, epoch: time.Now()}
	s.reset()
	return s
}

// reset empties the store; the caller holds the lock or is its only user.
func (s *store) reset() {
	for i := range s.keys {
		s.keys[i] = make(map[string]*entry)
	}
	s.mortal = [databases]int{}
	s.order.reset()
	s.recent.next, s.recent.prev = &s.recent, &s.recent
	s.used = 0
}

func cost(key, value int) int64 { return int64(key) + int64(value) + entryOverhead }

// get returns the key's value, which the caller must not change. A large value is lent: its room is not reused before done is called.
func (s *store) get(db int, key []byte) (value []byte, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(db, key)
	if e == nil {
		s.misses++
		return nil, nil, false
	}
	s.hits++
	s.touch(e)
	if len(e.value) > maxKept {
		done = s.lend(e)
	}
	return e.value, done, true
}

// lend lends a value to the caller until it calls the returned function, once.
func (s *store) lend(e *entry) (done func()) {
	if e.loan == nil {
		e.loan = &loan{size: int64(len(e.value))}
	}
	l := e.loan
	l.readers++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.readers--; l.readers == 0 && l.gone {
			s.used -= l.size
		}
	}
}

// release subtracts an entry's value from the memory in use: at once or, if a reply is still sending it, when that is done.
func (s *store) release(e *entry) {
	if e.loan != nil && e.loan.readers > 0 {
		e.loan.gone = true
	} else {
		s.used -= int64(len(e.value))
	}
	e.loan = nil
}

// find returns the key's entry, nil if there is none or it has expired; the caller holds the lock.
func (s *store) find(db int, key []byte) *entry {
	e := s.keys[db][string(key)]
	if e != nil && e.expires != 0 && time.Since(s.epoch) >= e.expires {
		s.remove(e)
		return nil
	}
	return e
}

// left returns how long the key has left; 0 means that it does not expire. known is false if there is no such key.
func (s *store) left(db int, key []byte) (left time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(db, key)
	switch {
	case e == nil:
		return 0, false
	case e.expires == 0:
		return 0, true
	}
	return max(e.expires-time.Since(s.epoch), 1), true
}

// cost returns what a key and its value count for, in bytes.
func (s *store) cost(db int, key []byte) (size int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(db, key)
	if e == nil {
		return 0, false
	}
	return cost(len(e.key), len(e.value)), true
}

// expire sets a key's lifetime, or deletes the key if that is not above 0. It reports whether the key was there.
func (s *store) expire(db int, key []byte, after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(db, key)
	switch {
	case e == nil:
		return false
	case after <= 0:
		s.remove(e)
	default:
		s.setExpiry(e, after)
	}
	return true
}

// setExpiry sets an entry's lifetime; 0 is for ever.
func (s *store) setExpiry(e *entry, after time.Duration) {
	if e.expires != 0 {
		s.mortal[e.db]--
		e.expires = 0
	}
	if after > 0 {
		s.mortal[e.db]++
		e.expires = time.Since(s.epoch) + after
	}
}

// maxScanBytes is how many bytes of keys end a scan early.
const maxScanBytes = 64 << 10

// scan visits up to count entries from a cursor on, 0 for the first. It returns the keys among them that are in one database, and the cursor to go on
// from, 0 at the end.
func (s *store) scan(db int, cursor uint64, count int) (keys []string, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	bytes := 0
	next = s.order.walk(cursor, count, func(e *entry) (goOn bool) {
		if e.db == db && (e.expires == 0 || now < e.expires) {
			keys = append(keys, e.key)
			bytes += len(e.key)
		}
		return bytes < maxScanBytes
	})
	return keys, next
}

// set stores copies of key and value for a while, 0 for ever. It reports false, and changes nothing but evictions, if they exceed the bound, alone or
// with values being sent.
func (s *store) set(db int, key, value []byte, after time.Duration) bool {
	if cost(len(key), len(value)) > s.bound {
		return false
	}
	value = append(make([]byte, 0, len(value)), value...)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.put(db, key, value)
	if e == nil {
		return false
	}
	s.setExpiry(e, after)
	return true
}

// add adds to the number that is the key's value, 0 if there is none, and returns the sum, or why there is none. The key's expiry does not change.
func (s *store) add(db int, key []byte, by int64) (sum int64, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(db, key); e != nil {
		n, ok := parseNumber(e.value)
		if !ok {
			return 0, notInteger
		}
		sum = n
	}
	if by > 0 && sum > math.MaxInt64-by || by < 0 && sum < math.MinInt64-by {
		return 0, overflow
	}
	sum += by
	value := strconv.AppendInt(nil, sum, 10)
	if cost(len(key), len(value)) > s.bound || s.put(db, key, value) == nil {
		return 0, outOfMemory
	}
	return sum, ""
}

// put stores a value, which it keeps, under the key, and returns the entry, nil if there is no room. key and value alone are within the bound. The
// caller holds the lock.
func (s *store) put(db int, key, value []byte) *entry {
	e := s.find(db, key)
	if e == nil {
		need := cost(len(key), len(value))
		if !s.makeRoom(need, nil) {
			return nil
		}
		e = &entry{db: db, key: string(key), value: value}
		e.prev, e.next = e, e
		s.keys[db][e.key] = e
		s.order.add(e)
		s.used += need
		s.touch(e)
		return e
	}
	s.touch(e) // first, so that it is evicted last
	grown := int64(len(value))
	if e.loan == nil || e.loan.readers == 0 {
		grown -= int64(len(e.value))
	}
	if !s.makeRoom(grown, e) {
		return nil
	}
	s.release(e)
	s.used += int64(len(value))
	e.value = value
	return e
}

// del reports whether the key was there.
func (s *store) del(db int, key []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(db, key)
	if e != nil {
		s.remove(e)
	}
	return e != nil
}

func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.recent.next; e != &s.recent; e = e.next {
		s.release(e)
		s.used -= cost(len(e.key), 0)
	}
	lent := s.used
	s.reset()
	s.used = lent
}

func (s *store) stats() storeStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := storeStats{used: s.used, evictions: s.evictions, hits: s.hits, misses: s.misses, mortal: s.mortal}
	for i := range s.keys {
		st.keys[i] = len(s.keys[i])
	}
	return st
}

// makeRoom evicts entries until need more bytes are within the bound. It reports false if that would mean evicting keep.
func (s *store) makeRoom(need int64, keep *entry) bool {
	for s.used+need > s.bound {
		last := s.recent.prev
		if last == &s.recent || last == keep {
			return false
		}
		s.remove(last)
		s.evictions++
	}
	return true
}

func (s *store) remove(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	delete(s.keys[e.db], e.key)
	s.setExpiry(e, 0)
	s.order.remove(e)
	s.release(e)
	s.used -= cost(len(e.key), 0)
}

// touch makes e the most recently used entry.
func (s *store) touch(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = &s.recent, s.recent.next
	e.prev.next, e.next.prev = e, e
}
