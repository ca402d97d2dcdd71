package op

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// counting is a placement that counts how often it is asked.
type counting struct {
	Placement
	asked *int
}

func (c counting) Home(key []byte) int {
	*c.asked++
	return c.Placement.Home(key)
}

func (c counting) Place(dst []int, key []byte, n int) []int {
	*c.asked++
	return c.Placement.Place(dst, key, n)
}

func endpoints(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	return names
}

// A memo takes at most 4 MiB, has a byte for an endpoint, and is not used if there is just one.
func TestMemoIsBounded(t *testing.T) {
	const most = 4_194_304
	for _, c := range []struct {
		endpoints int
		keys      int64
		n         int
		want      int64 // bytes
	}{
		{5, 10, 3, 30},
		{5, most, 1, most},
		{5, most + 1, 1, 0},
		{5, most / 2, 2, most},
		{5, most/2 + 1, 2, 0},
		{2, 10, 1, 10},
		{1, 10, 1, 0},
		{255, 10, 1, 10},
		{256, 10, 1, 0},
		{5, 0, 3, 0},
	} {
		m := newMemo(NewRendezvous(endpoints(c.endpoints)), c.keys, c.n)
		require.EqualValues(t, c.want, len(m.known), "%+v", c)
	}
}

// The highest endpoints that a memo can hold come back unchanged, and the placement is asked once for each key.
func TestMemoAsksOnce(t *testing.T) {
	const keys = 20
	asked := 0
	ring := NewRing(endpoints(255))
	place := counting{ring, &asked}
	home, several := newMemo(place, keys, 1), newMemo(place, keys, 3)
	most := 0
	for range 3 {
		for i := range uint64(keys) {
			o := &Op{Index: i, Key: fmt.Appendf(nil, "key:%012d", i)}
			require.Equal(t, ring.Home(o.Key), home.home(o))
			got := make([]int, 3)
			several.of(got, o)
			require.Equal(t, ring.Place(nil, o.Key, 3), got)
			most = max(most, got[0], got[1], got[2])
		}
	}
	require.Equal(t, 2*keys, asked)
	require.Greater(t, most, 127, "some of the endpoints need the upper half of a byte")

	for range 3 {
		beyond := &Op{Index: keys, Key: []byte("beyond")}
		require.Equal(t, ring.Home(beyond.Key), home.home(beyond))
		got := make([]int, 3)
		several.of(got, beyond)
		require.Equal(t, ring.Place(nil, beyond.Key, 3), got)
	}
	require.Equal(t, 2*keys+6, asked, "keys beyond those it was told of are asked for each time")
}

// A program that Remembers keeps so many keys, at one endpoint each, and asks the same endpoints as before; without a call it keeps none.
func TestPlainRemembersWhatItIsTold(t *testing.T) {
	ring := NewRing(endpoints(4))
	p, several := NewPlain(ring, false), NewNWR(NWR{N: 3, W: 1, R: 1, Keys: 7}, ring)
	require.Empty(t, p.place.known)
	p.Remember(7)
	require.Len(t, p.place.known, 7)
	require.Len(t, several.place.known, 21)
	order := make([]int, 3)
	for i := range uint64(14) {
		o := &Op{Index: i % 7, Key: fmt.Appendf(nil, "key:%012d", i%7)}
		require.Equal(t, ring.Home(o.Key), p.Home(o))
		several.Place(order, o)
		require.Equal(t, ring.Place(nil, o.Key, 3), order)
	}
}

// A look-up on the ring begins at its bucket, at most a few points before the one it wants.
func TestRingBucketsAreShort(t *testing.T) {
	for _, n := range []int{2, 3, 4, 100} {
		r := NewRing(endpoints(n))
		require.GreaterOrEqual(t, len(r.first), len(r.points))
		require.Less(t, len(r.first), 2*len(r.points))
		passed, before := 0, 0
		for b, p := range r.first {
			require.GreaterOrEqual(t, int(p), before)
			passed, before = max(passed, int(p)-before), int(p)
			from := uint64(b) << r.shift
			require.True(t, p == 0 || uint64(r.points[p-1].hash) < from, "bucket %d", b)
			require.True(t, int(p) == len(r.points) || uint64(r.points[p].hash) >= from, "bucket %d", b)
		}
		require.Less(t, passed, 16)
		require.GreaterOrEqual(t, before, len(r.points)-16, "the last bucket is at the end of the circle")
	}
}

// If all endpoints are asked and each holds every key, they take turns at being the first.
func TestEndpointsThatHoldAllTakeTurns(t *testing.T) {
	p := NewNWR(NWR{N: 3, W: 1, R: 1, Seed: 1}, NewRing(endpoints(3)))
	first := [3]int{}
	order := make([]int, 3)
	for n := range uint64(3000) {
		p.Place(order, &Op{Verb: driver.Put, N: n, Key: []byte("key")})
		require.ElementsMatch(t, []int{0, 1, 2}, order)
		first[order[0]]++
	}
	for _, n := range first { // binomial(3000, 1/3): sd 26
		require.InDelta(t, 1000, n, 5*26)
	}
}

// What is kept by slot has room for the highest slot and no more, and keeps what it had.
func TestGrownHasRoomForTheIndex(t *testing.T) {
	for _, c := range []struct {
		had  []int
		i    int32
		want []int
	}{
		{nil, 0, []int{0}},
		{nil, 2, []int{0, 0, 0}},
		{[]int{7, 8}, 0, []int{7, 8}},
		{[]int{7, 8}, 1, []int{7, 8}},
		{[]int{7, 8}, 2, []int{7, 8, 0}},
		{[]int{7, 8}, 4, []int{7, 8, 0, 0, 0}},
	} {
		require.Equal(t, c.want, grown(c.had, c.i), "%v to %d", c.had, c.i)
	}
}

// Home and Place agree on every placement, and on one endpoint.
func TestHomeIsTheFirstOfPlace(t *testing.T) {
	for _, n := range []int{1, 2, 3, 20} {
		for name, place := range map[string]Placement{"ketama": NewRing(endpoints(n)), "rendezvous": NewRendezvous(endpoints(n))} {
			require.Equal(t, n, place.Endpoints())
			seen := map[int]bool{}
			for i := range 2000 {
				key := fmt.Appendf(nil, "key:%012d", i)
				home := place.Home(key)
				require.Equal(t, []int{home}, place.Place(nil, key, 1), "%s of %d", name, n)
				seen[home] = true
			}
			require.Len(t, seen, n, "%s: each endpoint holds keys", name)
		}
	}
}
