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

// The first endpoint of the ring is a home, too: 0 in a memo is "not asked for yet".
func TestMemoKeepsTheFirstEndpoint(t *testing.T) {
	asked := 0
	m := newMemo(counting{NewRing(endpoints(2)), &asked}, 100, 1)
	firsts := 0
	for range 2 {
		for i := range uint64(100) {
			if m.home(&Op{Index: i, Key: fmt.Append(nil, i)}) == 0 {
				firsts++
			}
		}
	}
	require.Equal(t, 100, asked)
	require.Positive(t, firsts)
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

// A program that Remembers keeps so many keys, at one endpoint each; without a call it keeps none.
func TestPlainRemembersWhatItIsTold(t *testing.T) {
	p := NewPlain(NewRing(endpoints(4)), false)
	require.Empty(t, p.place.known)
	p.Remember(7)
	require.Len(t, p.place.known, 7)
	require.Len(t, NewNWR(NWR{N: 3, W: 1, R: 1, Keys: 7}, NewRing(endpoints(4))).place.known, 21)
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

// A tally is all that an executor needs to keep of an op.
func TestTallyIsAllThereIsOfAnOp(t *testing.T) {
	p := NewNWR(NWR{N: 3, W: 2, R: 2}, NewRing(endpoints(4)))
	for _, verb := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
		require.True(t, p.AsksAll(verb))
		tally := p.Tally()
		require.True(t, tally.Running())
		k, done, _ := p.Count(&tally, verb, driver.OK)
		require.EqualValues(t, 1, k)
		require.False(t, done)
		require.True(t, tally.Running())
		k, done, outcome := p.Count(&tally, verb, driver.OK)
		require.EqualValues(t, 2, k)
		require.True(t, done)
		require.Equal(t, driver.OK, outcome)
		require.False(t, tally.Running())
		require.False(t, tally.Expire(), "it was decided")
		k, done, _ = p.Count(&tally, verb, driver.Error)
		require.Zero(t, k)
		require.False(t, done, "it was decided before")

		tally = p.Tally()
		require.True(t, tally.Expire())
		require.False(t, tally.Running())
		require.False(t, tally.Expire(), "once")
		_, done, _ = p.Count(&tally, verb, driver.OK)
		require.False(t, done)
	}
	reads := NewNWR(NWR{N: 3, W: 2, R: 2, GetsAskR: true}, NewRing(endpoints(4)))
	require.False(t, reads.AsksAll(driver.Get))
	require.True(t, reads.AsksAll(driver.Put))
	require.True(t, reads.AsksAll(driver.Delete))
}

// Each slot of a program has its own state and order, in whatever order the slots come.
func TestSlotsOfProgramsAreApart(t *testing.T) {
	ring := NewRing(endpoints(8))
	for name, p := range map[string]Program{
		"nwr":   NewNWR(NWR{N: 3, W: 2, R: 2, GetsAskR: true}, ring),
		"batch": NewBatch(ring),
		"plain": NewPlain(ring, false),
	} {
		slots := []int32{4, 0, 5, 1, 63, 2}
		ops := map[int32]*Op{}
		for _, slot := range slots {
			key := fmt.Appendf(nil, "key %d", slot)
			o := &Op{Slot: slot, Verb: driver.Get, Key: key, Batch: []driver.Item{{Key: key}}}
			ops[slot] = o
			p.Start(nil, o)
		}
		for _, slot := range slots {
			o := ops[slot]
			next, step := p.On(nil, Event{Kind: Lost, Op: o})
			if name != "nwr" {
				require.True(t, step.Done && step.Settled, "%s, slot %d", name, slot)
				continue
			}
			require.False(t, step.Done)
			require.Len(t, next, 1)
			require.Equal(t, ring.Place(nil, o.Key, 3)[2], next[0].Endpoint, "slot %d: its own third endpoint", slot)
		}
	}
}

// The names that an executor writes beside a count of events.
func TestEventKindsHaveNames(t *testing.T) {
	require.Equal(t, []string{"reply", "timeout", "lost", "refused", "op_timeout"},
		[]string{Replied.String(), RequestTimeout.String(), Lost.String(), Refused.String(), OpTimeout.String()})
	require.Equal(t, 5, NumEventKinds)
}

// Ops that all ask the same endpoints spread their first requests evenly over them, by the seed.
func TestShuffleIsPinned(t *testing.T) {
	order := func(seed uint64, stream uint32, n uint64) []int {
		all := []int{0, 1, 2, 3, 4}
		shuffle(all, seed, &Op{Stream: stream, N: n})
		return all
	}
	// Fisher and Yates by hand, from the words of splitmix64.
	want := func(seed uint64, stream uint32, n uint64) []int {
		next := func(x uint64) uint64 {
			x += 0x9E3779B97F4A7C15
			x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
			x = (x ^ x>>27) * 0x94D049BB133111EB
			return x ^ x>>31
		}
		x := next(next(next(seed)^uint64(stream)) ^ n)
		all := []int{0, 1, 2, 3, 4}
		for left := len(all); left > 1; left-- {
			x = next(x)
			j := int(float64(x>>32) / (1 << 32) * float64(left))
			all[left-1], all[j] = all[j], all[left-1]
		}
		return all
	}
	for n := range uint64(200) {
		require.Equal(t, want(7, 3, n), order(7, 3, n))
	}
	require.NotEqual(t, order(7, 3, 1), order(7, 4, 1))
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
