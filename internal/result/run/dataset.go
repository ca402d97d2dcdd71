package run

// Dataset describes the keys and values used.
type Dataset struct {
	Name       string  `json:"name"`
	Keys       int64   `json:"keys"`  // number of keys in the key space, or in each session's pool
	Scope      string  `json:"scope"` // "shared" or "session"
	Pick       string  `json:"pick"`
	Skew       float64 `json:"skew"`        // s of zipf(s) and latest(s), otherwise 0
	ValueBytes int     `json:"value_bytes"` // of the largest value
	Values     string  `json:"values"`      // how they differ from text of that size; "" if they do not

	File       *KeyFile   `json:"file"`        // source of the keys; nil if they are generated
	ValuesFile *ValueFile `json:"values_file"` // source of the values; nil if they are generated
}

// PerSession says whether each session had its own pool of keys.
func (d *Dataset) PerSession() bool { return d.Scope == "session" }

// KeyFile is the file from which a dataset took its keys.
type KeyFile struct {
	Path   string `json:"path"`
	Form   string `json:"form"`
	Field  string `json:"field"`
	SHA256 string `json:"sha256"`
}

// ValueFile is the file from which a dataset took its values. Sizes exclude the header of a checked value.
type ValueFile struct {
	KeyFile
	Encoding     string  `json:"encoding"`
	Pick         string  `json:"pick"`
	Values       int64   `json:"values"` // number of values
	LeastBytes   int     `json:"least_bytes"`
	LargestBytes int     `json:"largest_bytes"`
	MeanBytes    float64 `json:"mean_bytes"`
}
