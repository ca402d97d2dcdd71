package workload

import (
	"encoding/binary"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Alike reports whether all ops of the source have the same verb, ask only for keys of the dataset, which have the same length and differ only
// in their last 16 bytes, and, if they store, have values that differ only in their seeds. [Stream.Stamp] makes such ops in bulk.
func (s *Source) Alike() bool {
	last := s.keys.origin + (s.keys.count - 1)
	if s.keys.perSession {
		last = s.keys.wrap - 1
	}
	stores := s.mix.verbs[0].Stores()
	return s.mix.n == 1 && !(stores && s.varied) && !s.misses && s.keys.pick != latest && last < s.keys.format.limit
}

// Stamp makes the next ops of a stream whose ops are alike, one per element of seeds, or fewer if the stream ends, and returns their number.
// It writes their keys to b: the first key ends at b[end], each further one stride bytes later. It writes only the last 16 bytes of each key,
// since those before are the same in all keys of the source. If ops have values, it writes their seeds to seeds.
func (st *Stream) Stamp(b []byte, end, stride int, seeds []uint64) int {
	s := st.source
	seeds = seeds[:min(uint64(len(seeds)), st.end-st.n)]
	stores := st.Verb().Stores()
	at := end - stampSize
	for i := range seeds {
		var index uint64
		switch s.keys.pick { // as in pick, inlined: the call takes a twentieth of the loop's share of such an op
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
			seeds[i] = st.seed()
		}
		st.n++
	}
	return len(seeds)
}

// stampSize is the number of last bytes in which keys differ.
const stampSize = 16

// Verb returns the verb of a stream whose ops are alike.
func (st *Stream) Verb() driver.Verb { return st.source.mix.verbs[0] }

// At returns the stream's number and that of its next op; more is false if there is none.
func (st *Stream) At() (number uint32, n uint64, more bool) { return st.number, st.n, st.n < st.end }
