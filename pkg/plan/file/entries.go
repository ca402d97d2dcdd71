// Package file is what a plan says of the files that it names, and what reading them has found: keys and values of datasets, and traces.
package file

import "fmt"

// EntryFile is a file whose lines have the keys, or the values, of a dataset. Where the load runs, each worker reads it, and holds what it takes from it.
type EntryFile struct {
	Path   string `json:"path"`             // as the plan has it
	Form   string `json:"form"`             // "lines", "csv" or "json"; of keys "vegeta", too
	Field  string `json:"field"`            // of csv a column's name or its number from 1, of json a field's name; of lines ""
	SHA256 string `json:"sha256"`           // of the file, in lower-case hex
	Length int64  `json:"length,omitempty"` // of the file, in bytes; 0: older plans do not say
	Bytes  int64  `json:"bytes"`            // that its entries take
	Server string `json:"server,omitempty"` // of vegeta's targets, which are all for it: http://HOST:PORT or https://HOST:PORT
	Line   int64  `json:"line,omitempty"`   // of the first of these
}

// ValueFile is a file whose values are those of a dataset.
type ValueFile struct {
	EntryFile
	Encoding string `json:"encoding"` // "text" or "base64"
	Pick     string `json:"pick"`     // Random or ByKey
	Count    int64  `json:"count"`
	Least    int    `json:"least_bytes"`   // of the smallest value, without a header
	Largest  int    `json:"largest_bytes"` // of the largest, likewise
}

// The ways in which a put chooses among the values of a file.
const (
	Random = "random" // each as likely, by the put's seed
	ByKey  = "key"    // the one with the key's number, counted from the front again where there are fewer
)

// entryBytes is what a value takes beside its own bytes where it is held.
const entryBytes = 4

// Mean returns how many bytes the values have on average, without a header.
func (f *ValueFile) Mean() float64 { return float64(f.Bytes)/float64(f.Count) - entryBytes }

// Paired says whether each key has a value of its own: the one with its number, counted from the front again where there are fewer.
func (f *ValueFile) Paired() bool { return f.Pick == ByKey }

// Summary says which values they are, as results do.
func (f *ValueFile) Summary() string {
	form := fmt.Sprintf("%d of %s", f.Count, f.Path)
	if f.Paired() {
		form += " by the key's number"
	}
	return form
}

// EntryFacts are what a file of keys, or of values, was found to hold.
type EntryFacts struct {
	SHA256  string
	Length  int64 // of the file, in bytes
	Count   int64
	Bytes   int64 // that the entries take where they are held
	Least   int   // bytes of the smallest
	Largest int   // bytes of the largest

	Server string // of vegeta's targets, as in an [EntryFile], and
	Line   int64  // the same
}
