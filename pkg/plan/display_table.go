package plan

// Table is a plan's table of an experiment's variants.
type Table struct {
	Name      string
	Transpose bool // variants are columns
	Columns   []Column
	Expected  []Expected // rows below those of variants
}

// Column is a figure of each variant.
type Column struct {
	Name  string
	Title string // Name by default
	Unit  string // "" for none
	Value string // an expression over the result, like an assert's
	Error bool   // show half of the 99.9 % confidence interval beside the mean of several runs
	File  string
	Line  int
}

// Expected is a row of figures from elsewhere, to be shown beside the measured ones.
type Expected struct {
	Name   string
	Source string             // where the figures are from
	Values map[string]float64 // in base units, by column
}
