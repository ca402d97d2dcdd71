// Package footprint computes how much memory an item takes in a store, and how much more items would take, from the server's own figure of its memory
// after each of several fills, while nothing is under way.
//
//	memory(n) = fixed + item·n + table(n)
//
// The table is a hash table of keys. It doubles once it is full, and its size is known for Redis and for Valkey from 8.1 on. What is subtracted from
// each figure is the form with which the figures lie straightest, or nothing: many servers speak Redis' protocol. The rest is a straight line, fitted
// by least squares. The slope's 95 % interval is by Student's t, and wider by what pages and slabs may hide.
package footprint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/servers"
)

// Fields names the figures of a server that show how much memory its items take.
type Fields struct {
	servers.Store
	keys *table // of one of its nodes; nil if it has none, or that is not known yet
}

// Effective reports whether a figure is the memory of a store's process or container, and not the memory that the store itself counts.
func Effective(figure string) bool {
	return figure == "used_memory_rss" || slices.Contains(servers.OfProcess(), figure)
}

// Of returns the figures of a driver's servers; false if they have none.
func Of(driver string) (f Fields, known bool) {
	f.Store = servers.Of(driver).Store
	return f, f.Memory != ""
}

// Names lists the figures to observe.
func (f Fields) Names() []string {
	names := append([]string{f.Memory, f.Beside, f.Limit}, f.Lost...)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Points returns how many items to have in a store at each measurement, the last of them at most most. A hash table that doubles moves its entries
// step by step until it is about 0.8 full. The points are chosen where it has moved them all.
func Points(most int64) (all []int64) {
	full := int64(1) << max(0, bits.Len64(uint64(most))-1) // a power of two, most < 2·full
	if float64(most) >= 0.95*float64(2*full) {
		full *= 2
	}
	for _, table := range []int64{full / 4, full / 2, full} {
		all = append(all, table*85/100, table*95/100)
	}
	return all
}

// Footprint is the memory that items take.
type Footprint struct {
	Items  []float64 // number of items at each measurement
	Memory []float64 // the server's memory at each measurement

	Item, ItemHalf  float64 // bytes per item, and half of the 95 % interval
	Fixed           float64 // bytes without any item
	Beside, Besides float64 // bytes per item by the other figure, and half of its interval; NaN if there is none
	Limit           float64 // the server's own limit; 0 for none

	fields Fields
}

// New reads the figures of an observation before each of some phases of a run: the connections of the phase before it are closed then. items is how
// many items the store had.
func New(r *run.Run, observation string, phases []string, items []int64, f Fields) (*Footprint, error) {
	p := &Footprint{fields: f, Beside: math.NaN()}
	var beside []float64
	for i, name := range phases {
		ph := r.Phase[name]
		if ph == nil {
			return nil, fmt.Errorf("phase %s was not run", name)
		}
		seen := ph.Observe[observation]
		memory := seen[f.Memory].Before
		if memory == nil {
			return nil, fmt.Errorf("the server does not tell %s", f.Memory)
		}
		for _, name := range f.Lost {
			if lost := seen[name].Delta; lost != nil && *lost > 0 {
				return nil, fmt.Errorf("the server dropped %.0f items (%s): it has too little memory for this many", *lost, name)
			}
		}
		p.Items, p.Memory = append(p.Items, float64(items[i])), append(p.Memory, *memory)
		if other := seen[f.Beside].Before; other != nil {
			beside = append(beside, *other)
		}
		if limit := seen[f.Limit].Before; limit != nil {
			p.Limit = *limit
		}
	}
	if len(p.Items) < leastPoints {
		return nil, errors.New("fewer than five measurements")
	}
	forms, lines := f.forms(), []stat.Line{}
	for _, form := range forms {
		lines = append(lines, form.line(p.Items, p.Memory, 1))
	}
	best, l := straightest(lines)
	p.fields, p.Item, p.ItemHalf, p.Fixed = forms[best], l.Slope, l.Half, l.At0
	if len(beside) == len(p.Items) {
		l := stat.LineThrough(p.Items, beside, 0.05)
		p.Beside, p.Besides = l.Slope, l.Half
	}
	if p.Item-p.ItemHalf <= 0 {
		still := ""
		if f.Still != "" {
			still = ": " + f.Still
		}
		return nil, fmt.Errorf("%s does not grow with the items: from %s to %s%s", f.Memory, quantity.Bytes(int64(p.Memory[0])), quantity.Bytes(int64(p.Memory[len(p.Memory)-1])), still)
	}
	return p, nil
}

// forms lists what tables of keys the servers may have, the likeliest first.
func (f Fields) forms() []Fields {
	if !f.Table {
		return []Fields{f}
	}
	var all []Fields
	for _, keys := range []*table{slots(), buckets(64), buckets(72), nil} {
		f.keys = keys
		all = append(all, f)
	}
	return all
}

// straightest returns which of the lines for some forms is the store's: the first, unless another is twice as straight. Its interval covers the slopes
// of all that are half as straight.
func straightest(lines []stat.Line) (best int, l stat.Line) {
	for i := range lines {
		if lines[i].Half < lines[best].Half/2 {
			best = i
		}
	}
	l = lines[best]
	for _, other := range lines {
		if other.Half < 2*lines[best].Half {
			l.Half = max(l.Half, math.Abs(other.Slope-l.Slope))
		}
	}
	return best, l
}

// line fits a line to the memory of that many nodes, which share the items, less their tables of keys. If each reading is wrong by up to half of the
// largest step, the slope is wrong by at most Σ|x−x̄|·step/2 ÷ Σ(x−x̄)², which for evenly spaced readings is 1.5 steps over their range; the worst case is
// that all readings below the middle are too high and all above it too low. Student's t takes readings for independent, which those on one page are not.
func (f Fields) line(items, memory []float64, nodes int) stat.Line {
	rest := make([]float64, len(items))
	for i, n := range items {
		rest[i] = memory[i] - f.KeyTable(n, nodes)
	}
	l, step := stat.LineThrough(items, rest, 0.05), 0.0
	for i := 1; i < len(items); i++ {
		step = max(step, rest[i]-rest[i-1]-l.Slope*(items[i]-items[i-1]))
	}
	l.Half += 1.5 * step / (items[len(items)-1] - items[0])
	return l
}

// KeyTable returns the bytes of the tables of keys of that many nodes, which share n items evenly.
func (f Fields) KeyTable(n float64, nodes int) float64 {
	each := n / float64(nodes)
	if f.keys == nil || each < 1 {
		return 0
	}
	return float64(nodes) * f.keys.bytes(each)
}

// PerItem is the memory that an item takes, by figures that were read while a store filled.
type PerItem struct {
	Item, Half float64 // bytes per item, and half of the 95 % interval
	Fixed      float64 // bytes without any item
	Points     int     // number of readings used
	Keys       float64 // bytes of the table of keys with all items; 0 if there is none
}

// leastPoints is the fewest readings for a slope.
const leastPoints = 5

// ErrSame is returned for a memory that does not grow.
var ErrSame = errors.New("it does not grow with the items")

// Rising returns the memory that an item takes, from readings of the number of items in that many nodes, and of their memory, while the store filled up
// to a number of items. Readings while a table of keys moves its entries are left out. It fails if fewer than five are left, and with ErrSame if the
// memory does not grow.
func (f Fields) Rising(items, memory []float64, all float64, nodes int) (is PerItem, err error) {
	var lines []stat.Line
	var points []PerItem
	var ends [2]float64
	forms := f.forms()
	for i, form := range forms {
		var x, y []float64
		moves := cmp.Or(form.keys, forms[0].keys) // whether there is a table is told by the readings that tell its size
		for i, n := range items {
			if n > 0 && (moves == nil || moves.settled(n/float64(nodes))) && (len(x) == 0 || n > x[len(x)-1]) {
				x, y = append(x, n), append(y, memory[i])
			}
		}
		switch {
		case len(x) >= leastPoints:
			lines, points = append(lines, form.line(x, y, nodes)), append(points, PerItem{Points: len(x), Keys: form.KeyTable(all, nodes)})
			ends = [2]float64{y[0], y[len(y)-1]}
		case i == 0:
			return is, fmt.Errorf("%s while the store filled, of %d needed: write a shorter every, populate { sessions = 1, pipeline = 1 }, or more keys", quantity.Count(uint64(len(x)), "usable probe"), leastPoints)
		}
	}
	best, l := straightest(lines)
	is = points[best]
	is.Item, is.Half, is.Fixed = l.Slope, l.Half, l.At0
	switch {
	case is.Item-is.Half > 0:
		return is, nil
	case f.Still != "" && ends[0] == ends[1]:
		return PerItem{}, fmt.Errorf("%w: %s", ErrSame, f.Still)
	}
	return PerItem{}, ErrSame
}

// table returns the bytes of the table of keys with n items.
func (p *Footprint) table(n float64) float64 { return p.fields.KeyTable(n, 1) }

// Of returns the memory that this many items take, and half of its interval.
func (p *Footprint) Of(items float64) (bytes, half float64) {
	return p.Fixed + p.Item*items + p.table(items), p.ItemHalf * items
}

// Within returns how many items a memory has room for, and the bounds of that number by the slope's bounds.
func (p *Footprint) Within(memory float64) (items, least, most float64) {
	fit := func(each float64) float64 {
		low, high := 0.0, memory/each
		for high-low >= 1 {
			if mid := math.Floor((low + high + 1) / 2); p.Fixed+each*mid+p.table(mid) <= memory {
				low = mid
			} else {
				high = mid - 1
			}
		}
		return low
	}
	return fit(p.Item), fit(p.Item + p.ItemHalf), fit(p.Item - p.ItemHalf)
}
