package plan

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// vegetaForm is the form of a file of vegeta targets. Each target, a whole request, is a key.
const vegetaForm = "vegeta"

// keyFile reads which file holds the keys, and counts the keys in it.
func (b *block) keyFile(k *Keys) {
	b.without("the keys are those of the file", "Leave it out.", "count", "format")
	f := &EntryFile{}
	k.File, k.Count = f, 1
	b.entryFile(f, "key")
	if b.r.keys != nil && b.r.readable(b.Path, f) {
		facts, err := b.r.keys(f.Path, f.Form, f.Field)
		if err == nil {
			f.SHA256, f.Length, f.Bytes, k.Count = facts.SHA256, facts.Length, facts.Bytes, facts.Count
			f.Server, f.Line = facts.Server, facts.Line
			return
		}
		b.Bad("file", err.Error(), "")
	}
	b.r.Wrong[b.Path+".count"] = true // unknown
}

// entryFile reads a file's path and form, and which field of its lines to use; field is the default.
func (b *block) entryFile(f *EntryFile, field string) {
	f.Form = "lines"
	b.Text("file", &f.Path)
	b.Text("form", &f.Form)
	if f.Form != "lines" && f.Form != vegetaForm {
		f.Field = field
	}
	if v, ok := b.As("field", cty.String, fmt.Sprintf("Write the name of a column or field, or a column's number: field = %q.", field)); ok {
		f.Field = v.AsString()
	}
}

// readable reports whether it is clear where the entries are. Mistakes are reported later.
func (r *resolver) readable(path string, f *EntryFile) bool {
	known := (f.Form == "lines" || f.Form == vegetaForm) && f.Field == "" || (f.Form == "csv" || f.Form == "json") && f.Field != ""
	return known && f.Path != "" && !r.Wrong[path+".file"] && !r.Wrong[path+".form"] && !r.Wrong[path+".field"]
}

// withoutFile reports arguments that say how to read a file when no file is given.
func (b *block) withoutFile(kind string, names ...string) {
	b.without("no file of "+kind, fmt.Sprintf("Write file = %q, or leave it out.", kind+".txt"), names...)
}

// entryFile checks the file of a dataset's keys or values; count is their number.
func (v *validator) entryFile(at part, f *EntryFile, kind string, count int64) {
	forms, whole := []string{"lines", "csv", "json"}, f.Form == "lines"
	if kind == "keys" {
		forms, whole = append(forms, vegetaForm), whole || f.Form == vegetaForm
	}
	v.oneOf(at, "form", f.Form, forms...)
	field := strings.TrimSuffix(kind, "s")
	switch {
	case f.Path == "" || len(f.Path) > dialect.MaxString:
		v.fault(fmt.Sprintf("%s: file = %s", at.where, dialect.Quote(f.Path)), fmt.Sprintf("Write the path of a file: file = %q.", kind+".txt"), at.path+".file")
	case whole && f.Field != "":
		v.fault(fmt.Sprintf("%s: field beside form = %q", at.where, f.Form), `Leave field out, or write form = "csv" or form = "json".`, at.path+".field", at.path+".form")
	case !whole && (f.Field == "" || len(f.Field) > dialect.MaxString):
		v.fault(fmt.Sprintf("%s: field = %s", at.where, dialect.Quote(f.Field)), fmt.Sprintf("Write the name of a column or field, or a column's number: field = %q.", field), at.path+".field")
	case f.SHA256 != "" && (!sha256Pattern.MatchString(f.SHA256) || f.Bytes < count) || f.Length < 0:
		v.fault(at.where+": impossible attributes of the file", "Check the plan's text again.", at.path+".file")
	}
}

// keyFile checks the file of a dataset's keys.
func (v *validator) keyFile(at part, k *Keys) {
	f := k.File
	if f == nil {
		return
	}
	v.entryFile(at, f, "keys", k.Count)
	if k.PerSession() {
		v.fault(at.where+": session pools of a file's keys", `Write scope = "shared": sessions share the keys of a file.`, at.path+".scope")
	}
	if k.Pick == latestPick {
		v.fault(at.where+": latest with a file's keys", `Write another pick: latest adds keys, and a file has no more.`, at.path+".pick")
	}
}

// requested checks that keys that are whole requests go only to ops that send them, and to their own server, and that such ops have such keys.
func (v *validator) requested(ph *Phase, t *Target, d *Dataset, at part) {
	file := "dataset." + d.Name + ".keys.file"
	whole := d.Keys.File != nil && d.Keys.File.Form == vegetaForm
	if tr := ph.Trace(); tr != nil && tr.Form == requestsForm {
		for _, op := range ph.opsOn(t, d) {
			if !v.sendsKeys(t, op) {
				v.fault(fmt.Sprintf("%s: op %s of a trace of whole requests", at.where, dialect.Quote(op)),
					fmt.Sprintf("Write op %q { request { form = %q } } in target %q, as the plan that loadgen trace import writes.", op, requestsForm, t.Name), at.path)
			}
		}
		return
	}
	for _, op := range ph.opsOn(t, d) {
		switch sends := v.sendsKeys(t, op); {
		case whole && !sends:
			v.fault(fmt.Sprintf("%s: op %s with the keys of dataset %q, which are whole requests", at.where, dialect.Quote(op), d.Name),
				fmt.Sprintf("Write op \"replay\" { request { form = %q } } in a target of driver web, and ops = { replay = 1 }.", vegetaForm), at.path, file)
		case sends && !whole:
			v.fault(fmt.Sprintf("%s: op %s sends keys that are whole requests, which those of dataset %q are not", at.where, dialect.Quote(op), d.Name),
				fmt.Sprintf("Write form = %q and the file of the requests in its keys.", vegetaForm), file, at.path)
		}
	}
	if f := d.Keys.File; whole && f.Server != "" && !t.is(f.Server) {
		v.fault(fmt.Sprintf("%s:%d: the requests are for %s, which is not what target %q is", f.Path, f.Line, dialect.Printable(f.Server), t.Name),
			"Write that host and port as the only one of its endpoints, and tls {} if, and only if, the URLs are of https; or have the file name the target's.",
			"target."+t.Name+".endpoints", file)
	}
}

// sendsKeys reports whether a target's op sends keys that are whole requests.
func (v *validator) sendsKeys(t *Target, op string) bool {
	former, ok := driverNamed(v.drivers, t.Driver).(form.Former)
	o := t.Op(op)
	if !ok || o == nil || reflect.TypeOf(o.Form) != reflect.TypeOf(former.NewForm()) {
		return false
	}
	w, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form})
	return err == nil && w.Requests
}

// is reports whether a target has exactly one endpoint, and that is the given server, as in http://HOST:PORT.
func (t *Target) is(server string) bool {
	scheme := "http"
	if t.TLS != nil {
		scheme = "https"
	}
	return len(t.Endpoints) == 1 && scheme+"://"+strings.ToLower(t.Endpoints[0]) == server
}

// listed checks a phase whose dataset takes its keys from a file.
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
		if local, ok := driverNamed(v.drivers, t.Driver).(localfile.Driver); ok && !localfile.Keyed(local) {
			v.fault(fmt.Sprintf("%s: keys of a file on driver %q", at.where, t.Driver), "Write count instead of file: a log has slots and no keys.", file, at.path)
		}
	}
}

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

// valueFile reads which file holds the values, and the number and sizes of the values in it.
func (b *block) valueFile(d *Values) {
	b.without("the values are those of the file", "Leave it out.", "size", "fill", "compressibility", "record")
	f := &ValueFile{Encoding: "text", Pick: Random, Count: 1}
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

// valueFile checks the file of a dataset's values.
func (v *validator) valueFile(at part, d *Values) {
	f := d.File
	if f == nil {
		return
	}
	v.entryFile(at, &f.EntryFile, "values", f.Count)
	v.oneOf(at, "encoding", f.Encoding, "text", "base64")
	v.oneOf(at, "pick", f.Pick, Random, ByKey)
	path := at.path + ".file"
	switch {
	case d.Record != nil || d.Sizes != nil || d.Compressibility != nil:
		v.fault(at.where+": values of a file and other values", "Write one of them.", path)
	case f.Count < 1 || f.Least < 0 || f.Least > f.Largest || d.Size != d.header()+f.Largest || f.SHA256 != "" && (f.Mean() < float64(f.Least) || f.Mean() > float64(f.Largest)):
		v.fault(at.where+": impossible attributes of the file", "Check the plan's text again.", path)
	}
}
