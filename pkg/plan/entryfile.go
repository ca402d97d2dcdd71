package plan

import (
	"fmt"
	"strings"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/zclconf/go-cty/cty"
)

// EntryFile is a file whose lines have the keys, or the values, of a dataset. Where the load runs, each worker reads it, and holds what it takes from it.
type EntryFile struct {
	Path   string `json:"path"`             // as the plan has it
	Form   string `json:"form"`             // "lines", "csv" or "json"
	Field  string `json:"field"`            // of csv a column's name or its number from 1, of json a field's name; of lines ""
	SHA256 string `json:"sha256"`           // of the file, in lower-case hex
	Length int64  `json:"length,omitempty"` // of the file, in bytes; 0: older plans do not say
	Bytes  int64  `json:"bytes"`            // that its entries take
}

// EntryFacts are what a file of keys, or of values, was found to hold.
type EntryFacts struct {
	SHA256  string
	Length  int64 // of the file, in bytes
	Count   int64
	Bytes   int64 // that the entries take where they are held
	Least   int   // bytes of the smallest
	Largest int   // bytes of the largest
}

// keyFile reads where keys are, and from there how many they are.
func (b *block) keyFile(k *Keys) {
	for _, name := range []string{"count", "format"} {
		if b.Has(name) {
			b.Value(name)
			b.Bad(name, "the keys are those of the file", "Leave it out.")
		}
	}
	f := &EntryFile{}
	k.File, k.Count = f, 1
	b.entryFile(f, "key")
	if b.r.keys != nil && b.r.readable(b.Path, f) {
		facts, err := b.r.keys(f.Path, f.Form, f.Field)
		if err == nil {
			f.SHA256, f.Length, f.Bytes, k.Count = facts.SHA256, facts.Length, facts.Bytes, facts.Count
			return
		}
		b.Bad("file", err.Error(), "")
	}
	b.r.Wrong[b.Path+".count"] = true // it is not known
}

// entryFile reads where a file is and which part of its lines is meant, by default the field of that name.
func (b *block) entryFile(f *EntryFile, field string) {
	f.Form = "lines"
	b.Text("file", &f.Path)
	b.Text("form", &f.Form)
	if f.Form != "lines" {
		f.Field = field
	}
	if v, ok := b.As("field", cty.String, fmt.Sprintf("Write the name of a column or field, or a column's number: field = %q.", field)); ok {
		f.Field = v.AsString()
	}
}

// readable says whether it is clear where the entries are; what is not is reported later.
func (r *resolver) readable(path string, f *EntryFile) bool {
	for _, name := range []string{"file", "form", "field"} {
		if r.Wrong[path+"."+name] {
			return false
		}
	}
	known := f.Form == "lines" && f.Field == "" || (f.Form == "csv" || f.Form == "json") && f.Field != ""
	return known && f.Path != ""
}

// withoutFile reports arguments that say how to read a file that is not there.
func (b *block) withoutFile(kind string, names ...string) {
	for _, name := range names {
		if b.Has(name) {
			b.Value(name)
			b.Bad(name, "no file of "+kind, fmt.Sprintf("Write file = %q, or leave it out.", kind+".txt"))
		}
	}
}

// entryFile checks where the keys or values of a dataset are, of which there are so many.
func (v *validator) entryFile(at part, f *EntryFile, kind string, count int64) {
	v.oneOf(at, "form", f.Form, "lines", "csv", "json")
	field := strings.TrimSuffix(kind, "s")
	switch {
	case f.Path == "" || len(f.Path) > lang.MaxString:
		v.fault(fmt.Sprintf("%s: file = %s", at.where, lang.Quote(f.Path)), fmt.Sprintf("Write the path of a file: file = %q.", kind+".txt"), at.path+".file")
	case f.Form == "lines" && f.Field != "":
		v.fault(fmt.Sprintf("%s: a field of lines that are %s", at.where, kind), `Leave field out, or write form = "csv" or form = "json".`, at.path+".field", at.path+".form")
	case f.Form != "lines" && (f.Field == "" || len(f.Field) > lang.MaxString):
		v.fault(fmt.Sprintf("%s: field = %s", at.where, lang.Quote(f.Field)), fmt.Sprintf("Write the name of a column or field, or a column's number: field = %q.", field), at.path+".field")
	case f.SHA256 != "" && (!sha256Pattern.MatchString(f.SHA256) || f.Bytes < count) || f.Length < 0:
		v.fault(at.where+": what it says of the file cannot be", "Check the plan's text again.", at.path+".file")
	}
}

// keyFile checks where a dataset has its keys from.
func (v *validator) keyFile(at part, k *Keys) {
	f := k.File
	if f == nil {
		return
	}
	v.entryFile(at, f, "keys", k.Count)
	if k.Scope == "session" {
		v.fault(at.where+": session pools of a file's keys", `Write scope = "shared": sessions share the keys of a file.`, at.path+".scope")
	}
	if k.Pick == "latest" {
		v.fault(at.where+": latest with a file's keys", `Write another pick: latest adds keys, and a file has no more.`, at.path+".pick")
	}
}

// listed checks a phase whose dataset has its keys from a file.
func (v *validator) listed(ph *Phase, d *Dataset, at part) {
	if d.Keys.File == nil {
		return
	}
	file := "dataset." + d.Name + ".keys.file"
	if ph.HitRatio != nil {
		v.fault(fmt.Sprintf("%s: hit_ratio with the keys of a file of dataset %q", at.where, d.Name),
			"Leave hit_ratio out, or write count instead of file: keys that nobody puts are made by a format.", at.path+".hit_ratio", file)
	}
	if t := v.plan.Target(ph.Target); t != nil {
		if _, local := driverNamed(v.drivers, t.Driver).(localfile.Driver); local {
			v.fault(fmt.Sprintf("%s: keys of a file on driver %q", at.where, t.Driver), "Write count instead of file: a log has slots and no keys.", file, at.path)
		}
	}
}
