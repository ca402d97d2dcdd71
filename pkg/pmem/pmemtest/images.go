package pmemtest

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
)

// Image holds bytes that a crash may leave in all files of a trace, concatenated. Its bytes are valid until the next image is made.
type Image struct {
	Bytes []byte
	Hash  uint64 // equal for equal bytes, in this process
}

// Regions returns the files of an image, for recovery. What is written to them is durable at once.
func (t *Trace) Regions(image []byte) []*Memory {
	list := make([]*Memory, len(t.regions))
	for i, r := range t.regions {
		list[i] = &Memory{image[r.begin:][:r.size]}
	}
	return list
}

// version is a line with some of its stores.
type version struct {
	b    [lineSize]byte
	hash uint64
}

// Images visits the images that a crash now may leave: all of them if there are at most limit, otherwise limit random ones. It ends when visit
// returns false.
//
//go:norace
func (t *Trace) Images(limit int, rng *rand.Rand, visit func(Image) bool) {
	versions := make([][]version, len(t.dirty))
	total, base := 1, t.baseHash()
	for i, l := range t.dirty {
		v := version{hash: t.lineHash(l.at, t.durable[l.at:][:lineSize])}
		copy(v.b[:], t.durable[l.at:])
		base ^= v.hash
		versions[i] = append(versions[i], v)
		for _, w := range l.words {
			w.apply(v.b[:])
			v.hash = t.lineHash(l.at, v.b[:])
			versions[i] = append(versions[i], v)
		}
		total = min(total*len(versions[i]), limit+1)
	}
	image, choice := make([]byte, len(t.durable)), make([]int, len(t.dirty))
	for n := range min(total, limit) {
		if total > limit {
			draw(rng, choice, versions)
		} else {
			count(n, choice, versions)
		}
		copy(image, t.durable)
		hash := base
		for i, l := range t.dirty {
			v := &versions[i][choice[i]]
			copy(image[l.at:], v.b[:])
			hash ^= v.hash
		}
		if !visit(Image{image, hash}) {
			return
		}
	}
}

// count writes the digits of n into choice.
//
//go:norace
func count(n int, choice []int, versions [][]version) {
	for i, v := range versions {
		choice[i], n = n%len(v), n/len(v)
	}
}

// draw chooses a version of each line. Images with nearly all stores, or nearly none, are as likely as any in between.
//
//go:norace
func draw(rng *rand.Rand, choice []int, versions [][]version) {
	kind := rng.IntN(4)
	odd := rng.IntN(len(choice))
	for i, v := range versions {
		switch {
		case kind == 0 || kind > 1 && i == odd:
			choice[i] = rng.IntN(len(v))
		case kind == 1:
			choice[i] = rng.IntN(2) * (len(v) - 1)
		case kind == 2:
			choice[i] = len(v) - 1
		default:
			choice[i] = 0
		}
	}
}

// baseHash returns the hash of what is durable.
//
//go:norace
func (t *Trace) baseHash() uint64 {
	var hash uint64
	for at := int64(0); at < int64(len(t.durable)); at += lineSize {
		hash ^= t.lineHash(at, t.durable[at:][:lineSize])
	}
	return hash
}

// lineHash returns the hash of a line at its offset.
//
//go:norace
func (t *Trace) lineHash(at int64, line []byte) uint64 {
	var b [8 + lineSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(at))
	copy(b[8:], line)
	return maphash.Bytes(seed, b[:])
}
