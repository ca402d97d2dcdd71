package display

// Table is a table of an experiment's variants that the plan describes.
type Table struct {
	Name      string
	Transpose bool // variants are columns
	Columns   []Column
	Expected  []Expected // rows below the variants'
}

// Column is a figure of each variant.
type Column struct {
	Name  string
	Title string // Name when nothing is said
	Unit  string // "" for none
	Value string // an expression over the result, as an assert's
	Error bool   // beside the mean of several runs, half of its 99.9 % confidence interval
	File  string
	Line  int
}

// Expected is figures that were not measured here, to be shown beside those that were.
type Expected struct {
	Name   string
	Source string             // where they are from
	Values map[string]float64 // in base units, by column
}
