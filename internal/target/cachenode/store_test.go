package cachenode

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveStore is the simplest equivalent of a store: a list, most recently used last.
type naiveStore struct {
	bound     int
	list      []naiveEntry
	evictions int
}

type naiveEntry struct {
	db         int
	key, value string
}

func (s *naiveStore) take(db int, key string) (naiveEntry, bool) {
	i := slices.IndexFunc(s.list, func(e naiveEntry) bool { return e.db == db && e.key == key })
	if i < 0 {
		return naiveEntry{}, false
	}
	e := s.list[i]
	s.list = slices.Delete(s.list, i, i+1)
	return e, true
}

func (s *naiveStore) get(db int, key string) (string, bool) {
	e, ok := s.take(db, key)
	if ok {
		s.list = append(s.list, e)
	}
	return e.value, ok
}

func (s *naiveStore) set(db int, key, value string) bool {
	if len(key)+len(value)+96 > s.bound {
		return false
	}
	s.take(db, key)
	s.list = append(s.list, naiveEntry{db, key, value})
	for s.used() > s.bound {
		s.list = s.list[1:]
		s.evictions++
	}
	return true
}

func (s *naiveStore) used() (n int) {
	for _, e := range s.list {
		n += len(e.key) + len(e.value) + 96
	}
	return n
}

func TestStoreIsAnExactLRU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(0, 1500).Draw(t, "bound")
		got, want := newStore(int64(bound)), &naiveStore{bound: bound}
		hits, misses := 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			db := rapid.IntRange(0, 2).Draw(t, "db")
			key := "k" + strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "key"))
			switch rapid.SampledFrom([]string{"get", "set", "set", "set", "del", "flush"}).Draw(t, "command") {
			case "get":
				value, _, ok := got.get(db, []byte(key))
				wantValue, wantOK := want.get(db, key)
				require.Equal(t, wantOK, ok)
				require.Equal(t, wantValue, string(value))
				if ok {
					hits++
				} else {
					misses++
				}
			case "set":
				value := bytes.Repeat([]byte("v"), rapid.IntRange(0, 400).Draw(t, "size"))
				require.Equal(t, want.set(db, key, string(value)), got.set(db, []byte(key), value, 0))
			case "del":
				_, there := want.take(db, key)
				require.Equal(t, there, got.del(db, []byte(key)))
			case "flush":
				if rapid.IntRange(0, 9).Draw(t, "sure") == 0 {
					want.list = nil
					got.flush()
				}
			}
			st := got.stats()
			require.LessOrEqual(t, st.used, int64(bound))
			require.Equal(t, int64(want.used()), st.used)
			require.Equal(t, uint64(want.evictions), st.evictions)
			require.Equal(t, [2]uint64{uint64(hits), uint64(misses)}, [2]uint64{st.hits, st.misses})
			keys := 0
			for _, n := range st.keys {
				keys += n
			}
			require.Equal(t, len(want.list), keys)
		}
		i := 0
		for e := got.recent.prev; e != &got.recent; e = e.prev {
			require.Equal(t, want.list[i], naiveEntry{e.db, e.key, string(e.value)})
			i++
		}
	})
}

// TestStoreCopies pins that neither side sees the other's later changes.
func TestStoreCopies(t *testing.T) {
	s := newStore(1 << 20)
	key, value := []byte("key"), []byte("value")
	require.True(t, s.set(0, key, value, 0))
	read, _, _ := s.get(0, key)
	key[0], value[0] = 'x', 'x'
	require.True(t, s.set(0, []byte("key"), []byte("other"), 0))
	require.Equal(t, "value", string(read))
	again, _, ok := s.get(0, []byte("key"))
	require.True(t, ok)
	require.Equal(t, "other", string(again))
}

func TestKeysExpire(t *testing.T) {
	s := newStore(1 << 20)
	left := func(key string) time.Duration {
		left, known := s.left(0, []byte(key))
		if !known {
			return -1
		}
		return left
	}
	later := func(d time.Duration) { s.epoch = s.epoch.Add(-d) }
	for _, key := range []string{"a", "b", "c"} {
		require.True(t, s.set(0, []byte(key), []byte("v"), 0))
	}
	require.True(t, s.set(0, []byte("d"), []byte("v"), 3*time.Minute))
	require.True(t, s.expire(0, []byte("a"), time.Minute))
	require.True(t, s.expire(0, []byte("b"), time.Minute))
	require.True(t, s.expire(0, []byte("c"), -1))
	require.False(t, s.expire(0, []byte("c"), time.Minute), "it is gone")
	require.InDelta(t, time.Minute, left("a"), float64(time.Second))
	require.Equal(t, 3, s.stats().mortal[0])
	require.True(t, s.set(0, []byte("b"), []byte("w"), 0))
	require.Zero(t, left("b"), "a new value lives for ever")

	later(time.Minute)
	require.Equal(t, time.Duration(-1), left("a"))
	_, _, ok := s.get(0, []byte("d"))
	require.True(t, ok)
	later(2 * time.Minute)
	_, _, ok = s.get(0, []byte("d"))
	require.False(t, ok)
	require.False(t, s.del(0, []byte("d")))
	require.Equal(t, 1, s.stats().keys[0])
	require.Zero(t, s.stats().mortal[0])
	require.Equal(t, cost(1, 1), s.stats().used)
}

// TestScanMeetsEveryKeyOnce scans while keys come and go: keys that are there all the time are visited once, no other more than once.
func TestScanMeetsEveryKeyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore(1 << 20)
		key := func(i int) []byte { return []byte(strconv.Itoa(i)) }
		const keys = 300
		steady := map[string]bool{}
		for i := range keys {
			s.set(0, key(i), nil, 0)
			steady[strconv.Itoa(i)] = true
		}
		met := map[string]int{}
		count := rapid.IntRange(1, 50).Draw(t, "count")
		for cursor, n := uint64(0), 0; n == 0 || cursor != 0; n++ {
			var found []string
			found, cursor = s.scan(0, cursor, count)
			for _, k := range found {
				met[k]++
			}
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				i := rapid.IntRange(0, keys-1).Draw(t, "key")
				delete(steady, strconv.Itoa(i))
				s.del(0, key(i))
				if rapid.Bool().Draw(t, "again") && n < 20 {
					s.set(0, key(keys+i), nil, 0)
				}
			}
		}
		for k := range steady {
			if met[k] != 1 {
				t.Fatalf("%s was met %d times", k, met[k])
			}
		}
		for i, p := range s.order.places {
			if p.entry != nil && p.entry.place != i {
				t.Fatalf("%s is at %d and not at %d", p.entry.key, i, p.entry.place)
			}
		}
		if len(s.order.places)-s.order.gone != s.stats().keys[0] {
			t.Fatalf("%d places, %d of them gone, for %d keys", len(s.order.places), s.order.gone, s.stats().keys[0])
		}
	})
}
