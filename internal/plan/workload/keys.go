package workload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/loadgen/loadgen/pkg/plan"
)

// numbers is the number of key numbers for pools: all that have up to twelve digits.
const numbers = 1e12

// absent is the first number that no key of a dataset and no inserted key has: the former are below 10¹², and no load lasts long enough to
// insert that many.
const absent = 1e13

// pick is a way to choose a key from a space or a pool.
type pick uint8

const (
	uniform pick = iota
	zipfian
	walk // op n takes the n-th key of the stream's part
	hotspot
	ycsb
	latest
	stride // op n takes the n-th of the keys that the session writes
	owned  // a write goes to a key of the session
)

// keySpace turns indices into keys.
type keySpace struct {
	format     keyFormat
	pick       pick
	drawn      pick   // for owned: how the keys of gets are drawn
	writers    uint64 // the number of sessions, if each key has one writer: session s writes the keys whose index is s modulo this number
	count      uint64 // indices in the space, or in each session's pool
	perSession bool
	origin     uint64 // number of index 0, of session 0
	wrap       uint64 // modulus of key numbers
	zipf       zipf
	scramble   permutation
	growth     growth // for latest
	hot        uint64 // for hotspot: number of hot keys
	hotOps     uint64 // for hotspot: 2⁶⁴ × the share of ops on hot keys; the largest number if all ops are
}

// newKeySpace returns the keys of a step.
func newKeySpace(p *plan.Plan, ph *plan.Phase, data *plan.Dataset, step Step) (keySpace, error) {
	kind := step.Kind
	format, err := formatOf(&data.Keys, step.Files[data.Name].Keys)
	if err != nil {
		return keySpace{}, err
	}
	if data.Keys.Count < 1 {
		return keySpace{}, fmt.Errorf("a count of %d keys", data.Keys.Count)
	}
	k := keySpace{format: format, pick: walk, count: uint64(data.Keys.Count), wrap: math.MaxUint64}
	k.perSession = data.Keys.PerSession()
	switch {
	case kind == Setup && len(ph.SetupSteps) > 0:
		k.pick = uniform
	case kind == Setup && !k.perSession:
		return keySpace{}, errors.New("setup puts pools; a shared key range is put by a populate phase")
	case kind == Populate && k.perSession:
		return keySpace{}, errors.New("populate puts a shared key range; pools are put by a phase's setup")
	case kind == Load:
		if err := k.setPick(p, data); err != nil {
			return keySpace{}, err
		}
		if k.pick == latest {
			if k.growth, err = newGrowth(p, ph, step.Level); err != nil {
				return keySpace{}, err
			}
		}
	}
	if data.Keys.OneWriter() && kind != Clear {
		if err := k.divide(ph.Sessions()); err != nil {
			return keySpace{}, err
		}
	}
	if k.perSession {
		if err := k.layPools(p, ph, data); err != nil {
			return keySpace{}, err
		}
	}
	if kind == Clear && k.perSession { // pools are adjacent, so they make one range
		k.count *= uint64(p.Pools(data.Name))
		k.perSession = false
	}
	return k, nil
}

// setPick prepares the dataset's own way of choosing keys.
func (k *keySpace) setPick(p *plan.Plan, data *plan.Dataset) error {
	switch {
	case data.Keys.Uniform():
		k.pick = uniform
	case data.Keys.InOrder():
		k.pick = walk
	case data.Keys.Zipf(), data.Keys.Latest():
		if !(data.Keys.Skew > 0) || math.IsInf(data.Keys.Skew, 1) {
			return fmt.Errorf("%s(%v): the skew is not a positive number", data.Keys.Pick, data.Keys.Skew)
		}
		k.pick = zipfian
		if data.Keys.YCSB() {
			k.pick = ycsb
		}
		if data.Keys.Latest() {
			k.pick = latest
		}
		k.zipf = newZipf(data.Keys.Skew, data.Keys.Count)
		k.scramble = newPermutation(seedOf(p.Seed, "scramble", data.Name), data.Keys.Count)
	case data.Keys.Hotspot():
		k.pick = hotspot
		if hot := data.Keys.Hot(); !(data.Keys.HotOps > 0 && data.Keys.HotOps <= 1) || hot < 1 || hot >= data.Keys.Count {
			return fmt.Errorf("%s of %d keys leaves no keys that are hot, or none that are not", data.Keys.Picking(), data.Keys.Count)
		}
		k.hot, k.hotOps = uint64(data.Keys.Hot()), word(data.Keys.HotOps)
		k.scramble = newPermutation(seedOf(p.Seed, "scramble", data.Name), data.Keys.Count)
	default:
		return fmt.Errorf("keys cannot be picked by %q", data.Keys.Pick)
	}
	return nil
}

// divide gives each key to one of the phase's sessions, which alone writes it.
func (k *keySpace) divide(sessions int) error {
	k.writers = uint64(sessions)
	switch {
	case k.perSession || k.pick == latest:
		return errors.New("a single writer for each key of session pools, or for the latest keys")
	case k.writers < 1 || k.writers > k.count:
		return fmt.Errorf("%d sessions to write %d keys, each of which has one writer", sessions, k.count)
	case k.pick == walk:
		k.pick = stride
	default:
		k.pick, k.drawn = owned, k.pick
	}
	return nil
}

// nearest returns the index, among those that the session writes, that is nearest to the given one.
func (k *keySpace) nearest(index, session uint64) uint64 {
	index += session - index%k.writers
	if index >= k.count {
		index -= k.writers
	}
	return index
}

// layPools places the pools of a dataset next to each other among the key numbers.
func (k *keySpace) layPools(p *plan.Plan, ph *plan.Phase, data *plan.Dataset) error {
	n := max(ph.Sessions(), p.Pools(data.Name))
	if k.count > numbers/uint64(max(n, 1)) {
		return fmt.Errorf("%d pools of %d keys are more than the %.0e keys that can be told apart", n, k.count, float64(numbers))
	}
	k.wrap = numbers
	base, _ := bits.Mul64(seedOf(p.Seed, "pools", data.Name), numbers/2)
	k.origin = numbers/2 + base
	return nil
}

// pool returns the number of a session's key with index 0, before wrapping.
func (k *keySpace) pool(session int) uint64 {
	if !k.perSession {
		return k.origin
	}
	return k.origin + uint64(session)*k.count
}

// popular picks an index in [0, count) by zipf.
func (k *keySpace) popular(random *rand.PCG) uint64 {
	return k.scramble.at(k.zipf.rank(random) - 1)
}

// warm picks an index in [0, count) by hotspot.
func (k *keySpace) warm(random *rand.PCG) uint64 {
	if random.Uint64() < k.hotOps {
		return k.scramble.at(below(random, k.hot))
	}
	return k.scramble.at(k.hot + below(random, k.count-k.hot))
}

// appendKey appends the key with the given index in the pool that starts at the given number.
func (k *keySpace) appendKey(dst []byte, pool, index uint64) []byte {
	return k.format.Append(dst, k.number(pool, index))
}

// number returns the number of the key with the given index in the pool that starts at the given number.
func (k *keySpace) number(pool, index uint64) uint64 {
	number := pool + index
	if number >= k.wrap { // once is enough: origin and the number added to it are each below wrap
		number -= k.wrap
	}
	return number
}

// share returns ⌊count·i/parts⌋ for i ≤ parts: the start of part i of a range.
func share(count uint64, i, parts int) uint64 {
	hi, lo := bits.Mul64(count, uint64(i))
	quotient, _ := bits.Div64(hi, lo, uint64(parts)) // i ≤ parts, so it fits
	return quotient
}

// appendAbsent appends a key that is never put: its number is above those of all datasets. There are as many such keys as keys.
func (k *keySpace) appendAbsent(dst []byte, pool, index uint64) []byte {
	return k.format.Append(dst, absent+k.number(pool, index))
}
