package footprint

import (
	"fmt"
	"io"
	"math"

	"github.com/loadgen/loadgen/internal/result/quantity"
)

// Text writes what an item takes, what this many items would take, if any, and how many a memory has room for: the given one or, if that is 0, the
// server's own limit.
func (p *Footprint) Text(w io.Writer, items int64, memory int64) error {
	last := len(p.Items) - 1
	lines := [][2]string{{"an item", fmt.Sprintf(
		"%s, 95 %% confidence: the slope of %s over %d fills, up to %s", with(p.Item, p.ItemHalf), p.fields.Memory, len(p.Items), quantity.Count(uint64(p.Items[last]), "item"))}}
	switch {
	case math.IsNaN(p.Beside):
	case p.Beside-p.Besides > 0:
		lines = append(lines, [2]string{"", fmt.Sprintf("%s %s (%s)", with(p.Beside, p.Besides), p.fields.Says, p.fields.Beside)})
	default:
		lines = append(lines, [2]string{"", p.fields.Beside + " did not grow with the items: there was room already"})
	}
	fixed := size(max(p.Fixed, 0))
	if p.fields.Table {
		fixed += ", and the table of keys: 8 to 16 bytes an item, by where its doubling stands"
	}
	lines = append(lines, [2]string{"fixed", fixed})
	if items > 0 {
		says := with(p.Of(float64(items)))
		if table := p.table(float64(items)); table > 0 {
			says += ", of which the table of keys has " + size(table)
		}
		lines = append(lines, [2]string{quantity.Count(uint64(items), "item"), says})
	}
	label := "in " + size(float64(memory))
	if memory == 0 {
		memory, label = int64(p.Limit), "in its "+size(p.Limit)
	}
	if memory > 0 {
		n, least, most := p.Within(float64(memory))
		says := fmt.Sprintf("%s, %s to %s", quantity.Count(uint64(n), "item"), quantity.Thousands(uint64(least)), quantity.Thousands(uint64(most)))
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

// with writes bytes with half of their interval.
func with(v, half float64) string { return size(max(v, 0)) + " ± " + size(half) }

// size writes bytes in the largest binary unit that fits.
func size(v float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return quantity.Digits(v) + " " + units[i]
}
