package conditions

// Dataset is which keys and values were used.
type Dataset struct {
	Name       string  `json:"name"`
	Keys       int64   `json:"keys"`  // in the space, or in each session's pool
	Scope      string  `json:"scope"` // "shared" or "session"
	Pick       string  `json:"pick"`
	Skew       float64 `json:"skew"`        // s of zipf(s) and latest(s), else 0
	ValueBytes int     `json:"value_bytes"` // of the largest
	Values     string  `json:"values"`      // how they differ from text of that size, "" when they do not

	File       *KeyFile   `json:"file"`        // that has the keys; nil: they are made
	ValuesFile *ValueFile `json:"values_file"` // that has the values; likewise
}

// PerSession says whether each session had a pool of keys of its own.
func (d *Dataset) PerSession() bool { return d.Scope == "session" }

// KeyFile is the file that a dataset has its keys from.
type KeyFile struct {
	Path   string `json:"path"`
	Form   string `json:"form"`
	Field  string `json:"field"`
	SHA256 string `json:"sha256"`
}

// ValueFile is the file that a dataset has its values from. Sizes are without the header of a checked value.
type ValueFile struct {
	KeyFile
	Encoding     string  `json:"encoding"`
	Pick         string  `json:"pick"`
	Values       int64   `json:"values"` // how many there are
	LeastBytes   int     `json:"least_bytes"`
	LargestBytes int     `json:"largest_bytes"`
	MeanBytes    float64 `json:"mean_bytes"`
}
