package plan

import "slices"

// Table is a plan's table of an experiment's variants.
type Table struct {
	Name      string
	Transpose bool     // variants are columns
	Variants  []string // the variants that have a row; empty for all
	Columns   []Column
	Expected  []Expected // rows below those of variants
}

// Column is a figure of each variant.
type Column struct {
	Name       string
	Title      string  // Name by default
	Unit       string  // "" for none
	Value      string  // an expression over the result, like an assert's
	Confidence float64 // show half of the interval of this confidence beside the mean of several runs: 0.95; 0 for none
	Ratio      string  // RatioToBaseline or RatioToBound shows the figure as a multiple of that variant's; "" shows the figure itself
	File       string  `json:"-"`
	Line       int     `json:"-"`
}

// The variants that a column's ratio may refer to.
const (
	RatioToBaseline = "baseline"
	RatioToBound    = "bound"
)

// Shows reports whether a variant has a row.
func (t *Table) Shows(variant string) bool { return shows(t.Variants, variant) }

// Shown returns the tables that show a variant: only their figures need to be in its result.
func Shown(tables []Table, variant string) []Table {
	return slices.DeleteFunc(slices.Clone(tables), func(t Table) bool { return !t.Shows(variant) })
}

// shows reports whether a table or chart with a list of variants, which may be empty, shows one of them.
func shows(listed []string, variant string) bool {
	return len(listed) == 0 || slices.Contains(listed, variant)
}

// Expected is a row of figures from elsewhere, shown beside the measured ones.
type Expected struct {
	Name   string
	Source string             // where the figures are from
	Values map[string]float64 // in base units, by column
}
