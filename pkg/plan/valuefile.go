package plan

import (
	"fmt"
)

// The ways in which a put chooses among the values of a file.
const (
	randomValue = "random" // each as likely, by the put's seed
	keysValue   = "key"    // the one with the key's number, counted from the front again where there are fewer
)

// ValueFile is a file whose values are those of a dataset.
type ValueFile struct {
	EntryFile
	Encoding string `json:"encoding"` // "text" or "base64"
	Pick     string `json:"pick"`     // randomValue or keysValue
	Count    int64  `json:"count"`
	Least    int    `json:"least_bytes"`   // of the smallest value, without a header
	Largest  int    `json:"largest_bytes"` // of the largest, likewise
}

// entryBytes is what a value takes beside its own bytes where it is held.
const entryBytes = 4

// Mean returns how many bytes the values have on average, without a header.
func (f *ValueFile) Mean() float64 { return float64(f.Bytes)/float64(f.Count) - entryBytes }

// Paired says whether each key has a value of its own: the one with its number, counted from the front again where there are fewer.
func (f *ValueFile) Paired() bool { return f.Pick == keysValue }

// form says which values they are, as results do.
func (f *ValueFile) form() string {
	form := fmt.Sprintf("%d of %s", f.Count, f.Path)
	if f.Paired() {
		form += " by the key's number"
	}
	return form
}

// valueFile reads where values are, and from there how many they are and how large.
func (b *block) valueFile(d *Values) {
	b.without("the values are those of the file", "size", "fill", "compressibility", "record")
	f := &ValueFile{Encoding: "text", Pick: randomValue, Count: 1}
	d.File = f
	b.entryFile(&f.EntryFile, "value")
	b.Text("encoding", &f.Encoding)
	b.Text("pick", &f.Pick)
	if b.r.values == nil || !b.r.readable(b.Path, &f.EntryFile) || b.r.Wrong[b.Path+".encoding"] || f.Encoding != "text" && f.Encoding != "base64" {
		return
	}
	facts, err := b.r.values(f.Path, f.Form, f.Field, f.Encoding)
	if err != nil {
		b.Bad("file", err.Error(), "")
		return
	}
	f.SHA256, f.Length, f.Bytes, f.Count, f.Least, f.Largest = facts.SHA256, facts.Length, facts.Bytes, facts.Count, facts.Least, facts.Largest
}

// valueFile checks where a dataset has its values from.
func (v *validator) valueFile(at part, d *Values) {
	f := d.File
	if f == nil {
		return
	}
	v.entryFile(at, &f.EntryFile, "values", f.Count)
	v.oneOf(at, "encoding", f.Encoding, "text", "base64")
	v.oneOf(at, "pick", f.Pick, randomValue, keysValue)
	path := at.path + ".file"
	switch {
	case d.Record != nil || d.Sizes != nil || d.Compressibility != nil:
		v.fault(at.where+": values of a file and other values", "Write one of them.", path)
	case f.Count < 1 || f.Least < 0 || f.Least > f.Largest || d.Size != d.header()+f.Largest || f.SHA256 != "" && (f.Mean() < float64(f.Least) || f.Mean() > float64(f.Largest)):
		v.fault(at.where+": what it says of the file cannot be", "Check the plan's text again.", path)
	}
}
