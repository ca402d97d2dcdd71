package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
)

// differenceView holds the findings about a metric.
type differenceView struct {
	Name string
	Text []string
}

// maxNamed bounds the variants that a sentence lists with their ratios.
const maxNamed = 8

// ratios says how variants compare with the baseline: each of a few, or of many their number, from the lowest ratio to the highest.
func ratios(c *tables.Comparison, variants []int, name func(variant string) string) string {
	times := " ×"
	if c.Figures[0].Share() {
		times = " points"
	}
	ratio := func(i int) string { return c.Text(i, "ratio") + c.Figures[i].Validity.Mark() }
	if len(variants) > maxNamed {
		sorted := slices.SortedFunc(slices.Values(variants), func(a, b int) int { return cmp.Compare(c.Figures[a].Above(), c.Figures[b].Above()) })
		return quantity.Count(len(variants), "variant") + " (" + ratio(sorted[0]) + " to " + ratio(sorted[len(sorted)-1]) + times + ")"
	}
	var each []string
	for _, i := range variants {
		each = append(each, name(c.Figures[i].Variant)+" ("+ratio(i)+times+", spread "+c.Text(i, "spread")+")")
	}
	return strings.Join(each, ", ")
}

// metricName returns the name of a metric in a sentence.
func metricName(path string) string {
	m, known := metric.Named(path)
	if !known {
		return path
	}
	return m.Words()
}

// nameOf names a phase's op.
func nameOf(f run.Figure) string {
	if f.Phase == f.Op {
		return f.Op
	}
	return f.Phase + ", " + f.Op
}

// newDifferenceView sums up the findings about a metric.
func newDifferenceView(x *run.Experiment, c *tables.Comparison) differenceView {
	f := c.Figures[0]
	d := differenceView{Name: nameOf(f) + ": " + metricName(f.Metric)}
	var higher, lower, alone, little []int
	var same, none, mdes, unknown, whys []string
	brief, _ := tables.Briefly(x)
	for i := range c.Figures {
		f := &c.Figures[i]
		switch {
		case f.Variant == x.Baseline:
		case f.Code == "set_by_load":
			d.Text = append(d.Text, f.Finding)
		case f.Differs && f.Above() > 0:
			higher = append(higher, i)
		case f.Differs:
			lower = append(lower, i)
		case f.Code == "differs_alone":
			alone = append(alone, i)
		case f.Code == "differs_little":
			little = append(little, i)
		case f.Code == "same":
			same = append(same, brief(f.Variant))
		case f.Undecided():
			unknown = append(unknown, brief(f.Variant))
			if f.Code != "undecided" || f.P != nil { // else the answer says why
				whys = append(whys, strings.TrimPrefix(f.Finding, "cannot tell"))
			}
		default:
			none = append(none, brief(f.Variant))
			mdes = append(mdes, strings.TrimPrefix(f.Finding, "no difference shown"))
		}
	}
	for _, of := range []struct {
		how      string
		variants []int
	}{{"higher", higher}, {"lower", lower}, {"by themselves, not among all comparisons", alone}, {"by less than matters", little}} {
		if of.variants != nil {
			d.Text = append(d.Text, of.how+": "+ratios(c, of.variants, brief))
		}
	}
	if same != nil {
		d.Text = append(d.Text, "the same, within what matters: "+tables.Some(same, "variant"))
	}
	which := func(some []string, in string) string {
		if others := len(c.Figures) - 1; len(some) == others && others > 1 {
			return in + "any of the " + quantity.Thousands(others)
		}
		return tables.Some(some, "variant")
	}
	if none != nil {
		d.Text = append(d.Text, "no difference shown: "+which(none, "in ")+tables.JoinAlike(mdes)[0])
	}
	if unknown != nil {
		text := "cannot tell of " + which(unknown, "")
		for _, why := range tables.JoinAlike(whys) {
			if !strings.HasPrefix(why, " ") {
				why = "; " + why
			}
			text += why
		}
		d.Text = append(d.Text, text)
	}
	return d
}

// sustained says in plain words what the baseline achieved, and how far the others are from that.
func sustained(x *run.Experiment, c *tables.Comparison) []string {
	var sentences []string
	brief, _ := tables.Briefly(x)
	base := slices.IndexFunc(c.Figures, func(f run.Figure) bool { return f.Variant == x.Baseline })
	if base < 0 || c.Figures[0].Metric != "rate" {
		return nil
	}
	if f := &c.Figures[base]; f.Score == nil {
		sentences = append(sentences, "The baseline "+brief(x.Baseline)+" has no rate: "+f.Nulls["score"]+".")
	} else {
		sentences = append(sentences, "The baseline "+brief(x.Baseline)+" sustained "+c.Text(base, "score")+f.Validity.Mark()+" a second.")
	}
	least, most := -1, -1
	for i := range c.Figures {
		if i == base || c.Figures[i].Ratio == nil {
			continue
		}
		if least < 0 || *c.Figures[i].Ratio < *c.Figures[least].Ratio {
			least = i
		}
		if most < 0 || *c.Figures[i].Ratio > *c.Figures[most].Ratio {
			most = i
		}
	}
	times := func(i int) string {
		return c.Text(i, "ratio") + c.Figures[i].Validity.Mark() + " (" + brief(c.Figures[i].Variant) + ")"
	}
	switch {
	case least < 0:
	case least == most:
		sentences = append(sentences, brief(c.Figures[least].Variant)+" sustained "+c.Text(least, "ratio")+c.Figures[least].Validity.Mark()+" times that.")
	default:
		sentences = append(sentences, "The others sustained from "+times(least)+" to "+times(most)+" times that.")
	}
	return sentences
}
