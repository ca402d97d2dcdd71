package plan

import "fmt"

// EntryFile is a file whose lines hold the keys, or the values, of a dataset. Each worker reads it where the load runs, and keeps the entries
// in memory.
type EntryFile struct {
	Path   string `json:"path"`             // as written in the plan
	Form   string `json:"form"`             // "lines", "csv" or "json"; for keys also "vegeta"
	Field  string `json:"field"`            // csv: a column's name, or its number from 1; json: a field's name; else ""
	SHA256 string `json:"sha256"`           // of the file, in lower-case hex
	Length int64  `json:"length,omitempty"` // of the file, in bytes; 0 if unknown, in older plans
	Bytes  int64  `json:"bytes"`            // memory that the entries take
	Server string `json:"server,omitempty"` // the one server of all vegeta targets: http://HOST:PORT or https://HOST:PORT
	Line   int64  `json:"line,omitempty"`   // line of the first vegeta target
}

// ValueFile is a file of a dataset's values.
type ValueFile struct {
	EntryFile
	Encoding string `json:"encoding"` // "text" or "base64"
	Pick     string `json:"pick"`     // Random or ByKey
	Count    int64  `json:"count"`
	Least    int    `json:"least_bytes"`   // size of the smallest value, without header
	Largest  int    `json:"largest_bytes"` // size of the largest, without header
}

// How a put chooses among the values of a file.
const (
	Random = "random" // all equally likely, by the put's seed
	ByKey  = "key"    // the value with the key's number, modulo the number of values
)

// entryBytes is a value's overhead in memory, beside its own bytes.
const entryBytes = 4

// Mean returns the mean size of the values in bytes, without header.
func (f *ValueFile) Mean() float64 { return float64(f.Bytes)/float64(f.Count) - entryBytes }

// Paired reports whether each key has its own value: the one with its number, modulo the number of values.
func (f *ValueFile) Paired() bool { return f.Pick == ByKey }

// Summary describes the values, for results.
func (f *ValueFile) Summary() string {
	form := fmt.Sprintf("%d of %s", f.Count, f.Path)
	if f.Paired() {
		form += " by the key's number"
	}
	return form
}

// EntryFacts describes the content of a file of keys or of values.
type EntryFacts struct {
	SHA256  string
	Length  int64 // of the file, in bytes
	Count   int64
	Bytes   int64 // memory that the entries take
	Least   int   // bytes of the smallest entry
	Largest int   // bytes of the largest entry

	Columns []string // of rows, by name

	Server string // as in an [EntryFile]
	Line   int64  // as in an [EntryFile]
}
