package footprint

import (
	"fmt"
	"io"
	"math"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// Figures are a footprint as programs read it. All sizes are bytes; halves are of 95 % intervals.
type Figures struct {
	Field       string   `json:"field"` // of the server
	ItemBytes   float64  `json:"item_bytes"`
	ItemHalf    float64  `json:"item_half"`
	FixedBytes  float64  `json:"fixed_bytes"`
	Beside      string   `json:"beside"`       // another figure of the same memory; "" if there is none
	BesideBytes *float64 `json:"beside_bytes"` // per item, by that figure
	BesideHalf  *float64 `json:"beside_half"`
	Points      []point  `json:"points"`

	Items    float64  `json:"items"`     // the number asked about; 0 for none
	Takes    *float64 `json:"takes"`     // memory that these items take
	Half     *float64 `json:"half"`      // half of its interval
	Memory   float64  `json:"memory"`    // the memory asked about, or the server's limit; 0 without either
	Fit      *float64 `json:"fit"`       // number of items that it has room for
	FitLeast *float64 `json:"fit_least"` // bounds of Fit, by those of the bytes per item
	FitMost  *float64 `json:"fit_most"`
}

// point is a measurement.
type point struct {
	Items float64 `json:"items"`
	Bytes float64 `json:"bytes"`
}

// Figures returns the figures that Text writes.
func (p *Footprint) Figures(items int64, memory int64) *Figures {
	f := &Figures{
		Field: p.fields.Memory, ItemBytes: p.Item, ItemHalf: p.ItemHalf, FixedBytes: p.Fixed, Beside: p.fields.Beside,
		Items: float64(items), Memory: float64(memory),
	}
	if !math.IsNaN(p.Beside) {
		f.BesideBytes, f.BesideHalf = &p.Beside, &p.Besides
	}
	for i := range p.Items {
		f.Points = append(f.Points, point{p.Items[i], p.Memory[i]})
	}
	if items > 0 {
		takes, half := p.Of(float64(items))
		f.Takes, f.Half = &takes, &half
	}
	if memory == 0 {
		f.Memory = p.Limit
	}
	if f.Memory > 0 {
		n, least, most := p.Within(f.Memory)
		f.Fit, f.FitLeast, f.FitMost = &n, &least, &most
	}
	return f
}

// Text writes how much memory an item takes, how much the given number of items would take, unless that is 0, and how many items a memory has room
// for: the given one or, if that is 0, the server's own limit.
func (p *Footprint) Text(w io.Writer, items int64, memory int64) error {
	f, last := p.Figures(items, memory), len(p.Items)-1
	lines := [][2]string{{"an item", fmt.Sprintf(
		"%s, 95 %% confidence: the slope of %s over %d fills, up to %s", with(p.Item, p.ItemHalf), p.fields.Memory, len(p.Items), quantity.Count(uint64(p.Items[last]), "item"))}}
	switch {
	case math.IsNaN(p.Beside):
	case p.Beside > 0 && p.Beside+p.Besides < p.Item-p.ItemHalf:
		lines = append(lines, [2]string{"", p.fields.Beside + " grew by less than the items take: there was room already"})
	case p.Beside-p.Besides > 0:
		lines = append(lines, [2]string{"", fmt.Sprintf("%s %s (%s)", with(p.Beside, p.Besides), p.fields.Says, p.fields.Beside)})
	default:
		lines = append(lines, [2]string{"", p.fields.Beside + " did not grow with the items: there was room already"})
	}
	fixed := Size(max(p.Fixed, 0))
	if keys := p.fields.keys; keys != nil {
		fixed += ", and the table of keys: " + keys.says + " bytes an item, by where its doubling stands"
	}
	lines = append(lines, [2]string{"fixed", fixed})
	if f.Takes != nil {
		says := with(*f.Takes, *f.Half)
		if table := p.table(float64(items)); table > 0 {
			says += ", of which the table of keys has " + Size(table)
		}
		lines = append(lines, [2]string{quantity.Count(uint64(items), "item"), says})
	}
	if f.Fit != nil {
		label := "in " + Size(f.Memory)
		if memory == 0 {
			label = "in its " + Size(f.Memory)
		}
		says := fmt.Sprintf("%s, %s to %s", quantity.Count(uint64(*f.Fit), "item"), quantity.Thousands(uint64(*f.FitLeast)), quantity.Thousands(uint64(*f.FitMost)))
		if p.fields.Less != "" {
			says += "; " + p.fields.Less
		}
		lines = append(lines, [2]string{label, says})
	}
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// with writes bytes with half of their interval, which is rounded outward: it covers what was rounded off the bytes, too.
func with(v, half float64) string {
	v = max(v, 0)
	half += math.Abs(v - math.Round(v/place(v))*place(v))
	return Size(v) + " ± " + Size(math.Ceil(half/place(half)-1e-9)*place(half))
}

// place returns the value of the last digit that Size shows.
func place(v float64) float64 {
	unit := 1.0
	for v >= 1024*unit {
		unit *= 1024
	}
	switch {
	case v < 9.995*unit:
		return unit / 100
	case v < 99.95*unit:
		return unit / 10
	}
	return unit
}

// Size writes bytes in the largest binary unit that fits.
func Size(v float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return quantity.Digits(v) + " " + units[i]
}
