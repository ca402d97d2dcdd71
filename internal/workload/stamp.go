package workload

import (
	"encoding/binary"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Alike says whether all ops of the source have one verb, keys of one length that are there, which differ in their last 16 bytes only, and, if
// it stores, values that differ in their seeds only. Such ops need not be made one by one: [Stream.Stamp].
func (s *Source) Alike() bool {
	last := s.keys.origin + (s.keys.count - 1)
	if s.keys.perSession {
		last = s.keys.wrap - 1
	}
	stores := s.mix.verbs[0].Stores()
	return s.mix.n == 1 && !(stores && s.varied) && !s.misses && s.keys.pick != latest && last < s.keys.format.limit
}

// Stamp makes the next ops of a stream whose ops are alike, as many as there are seeds or fewer when it ends, and returns how many. What
// [Stream.Next] would have had in their Key it writes to b: the end of the first key is at b[end], those of the others follow every stride
// bytes. Of each key it writes the last 16 bytes; those before them are the same in all keys of the source. The seeds of values it writes to
// seeds, where ops have values.
func (st *Stream) Stamp(b []byte, end, stride int, seeds []uint64) int {
	s := st.source
	seeds = seeds[:min(uint64(len(seeds)), st.end-st.n)]
	stores := st.Verb().Stores()
	at := end - stampSize
	for i := range seeds {
		var index uint64
		switch s.keys.pick { // as in pick, which as a call takes a twentieth of the loop's part of such an op
		case uniform:
			index = below(&st.random, s.keys.count)
		case zipfian:
			index = s.keys.popular(&st.random)
		case walk:
			index = st.from + st.n
		default:
			index = st.other(st.Verb())
		}
		upper, lower := s.keys.format.words(s.keys.number(st.pool, index))
		key := b[at : at+stampSize]
		binary.LittleEndian.PutUint64(key, upper)
		binary.LittleEndian.PutUint64(key[8:], lower)
		at += stride
		if stores {
			seeds[i] = st.random.Uint64()
		}
		st.n++
	}
	return len(seeds)
}

// stampSize is how much of a key differs from others.
const stampSize = 16

// Verb returns that of the ops of a stream whose ops are alike.
func (st *Stream) Verb() driver.Verb { return st.source.mix.verbs[0] }

// At returns the stream's number and that of its next op; more is false where there is none.
func (st *Stream) At() (number uint32, n uint64, more bool) { return st.number, st.n, st.n < st.end }
