package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/compress"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/plan/values"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Values says what a put, an append or a write stores.
type Values struct {
	Size            int               `json:"size_bytes"`                // of the largest value
	Sizes           *Sizes            `json:"sizes,omitempty"`           // nil if all values have one size
	Checked         bool              `json:"checked"`                   // the value's first bytes hold writer, key, version, checksum and run
	Fill            string            `json:"fill"`                      // "text", or a byte such as "0xff"; see parseFill
	Record          map[string]string `json:"record,omitempty"`          // values are records with fields of these types, see internal/plan/values; if nil, Fill applies
	Encoding        string            `json:"encoding,omitempty"`        // of the record: "packed" or "dictionary"; "" for a JSON object
	Compression     string            `json:"compression,omitempty"`     // of the record: "gzip" or "zstd"; "" for none
	Elements        int64             `json:"elements,omitempty"`        // most elements of a growing record field; 0 if none grows
	File            *ValueFile        `json:"file,omitempty"`            // source of the values; nil if they are generated
	Compressibility *float64          `json:"compressibility,omitempty"` // share of a value that compresses away; the rest is random bytes. If nil, Fill applies

	TTL time.Duration `json:"ttl_ns"` // how long after a put the store drops the value by itself; 0 for never
}

// Sizes says how the sizes of values differ. The largest is Values.Size.
type Sizes struct {
	Kind   string       `json:"kind"`
	Least  int          `json:"least_bytes,omitempty"`
	Median int          `json:"median_bytes,omitempty"` // of lognormal, before truncation to the least and largest size
	Sigma  float64      `json:"sigma,omitempty"`        // of lognormal: standard deviation of the size's natural logarithm
	List   []SizeWeight `json:"list,omitempty"`         // in ascending order
}

// SizeWeight is a size and its weight, relative to the sum of weights.
type SizeWeight struct {
	Size   int     `json:"size_bytes"`
	Weight float64 `json:"weight"`
}

// The distributions of value sizes.
const (
	UniformSizes   = "uniform"   // sizes from Least to Values.Size are equally likely
	LognormalSizes = "lognormal" // truncated to the least possible size and Values.Size
	ListedSizes    = "list"      // the sizes in List, by weight
)

const (
	maxSigma     = 10.0
	maxSizesList = 100
)

const writeSizes = `Write a size such as "200B", "uniform(100B, 10KiB)", "lognormal(1KiB, 0.8, 64KiB)" for median, sigma and maximum, or { "32B" = 9, "1KiB" = 1 } for sizes and their weights.`

// values reads a values block.
func (b *block) values(d *Values) {
	b.Expect([]string{"size", "checked", "fill", "compressibility", "record", "compression", "ttl", "file", "form", "field", "encoding", "pick"}, nil)
	switch {
	case b.Has("file"):
		b.valueFile(d)
	case b.Has("record"):
		b.record(d)
	case b.Require("size", `Write size = "200B", or how large a value is, or file = "values.txt".`):
		b.sizes(d)
	}
	if d.File == nil {
		b.withoutFile("values", "form", "field", "pick")
	}
	b.encoding(d)
	b.Flag("checked", &d.Checked)
	b.Text("fill", &d.Fill)
	var share float64
	if b.Share("compressibility", &share) {
		d.Compressibility = &share
	}
	b.Duration("ttl", &d.TTL)
	if d.TTL == 0 {
		b.notZero("ttl", "0 is no time to live", "Write how long a value lives, or leave it out: it then lives until it is deleted.")
	}
}

// record reads the types of a record's fields.
func (b *block) record(d *Values) {
	const write = `Write the types of fields by their names: record = { id = "uuid", visits = "int" }.`
	b.without("a record has its own", "Leave it out.", "size", "fill", "compressibility")
	v, ok := b.Value("record")
	if !ok {
		return
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		b.Bad("record", dialect.Describe(v), write)
		return
	}
	d.Record = map[string]string{}
	for it := v.ElementIterator(); it.Next(); {
		name, kind := it.Element()
		if kind.IsNull() || kind.Type() != cty.String {
			b.Bad("record", fmt.Sprintf("the type of %s is %s", dialect.Quote(name.AsString()), dialect.Describe(kind)), write)
			return
		}
		d.Record[name.AsString()] = kind.AsString()
	}
}

// encoding reads how records are written.
func (b *block) encoding(d *Values) {
	for _, one := range []struct {
		name  string
		words []string // the first is the default
		to    *string
	}{
		{"encoding", []string{values.JSON, values.Packed, values.Dictionary}, &d.Encoding},
		{"compression", []string{compress.None, compress.Gzip, compress.Zstd}, &d.Compression},
	} {
		word := one.words[0]
		switch {
		case !b.Has(one.name) || d.File != nil && one.name == "encoding": // the encoding of a file is another argument
			continue
		case !b.Has("record"):
			b.without("no record", `Write record = { id = "uuid", visits = "int" }, or leave it out: only records are encoded.`, one.name)
			continue
		}
		switch b.Text(one.name, &word); slices.Index(one.words, word) {
		case 0:
		case -1:
			b.Bad(one.name, "unknown "+dialect.Quote(word), fmt.Sprintf(`Write "%s".`, strings.Join(one.words, `" or "`)))
		default:
			*one.to = word
		}
	}
}

// without reports arguments that conflict with another.
func (b *block) without(why, write string, names ...string) {
	for _, name := range names {
		if b.Has(name) {
			b.Value(name)
			b.Bad(name, why, write)
		}
	}
}

// sizes reads one size or a distribution of sizes.
func (b *block) sizes(d *Values) {
	v, ok := b.Value("size")
	switch {
	case !ok:
	case v.Type().IsObjectType() || v.Type().IsMapType():
		b.listed(d, v)
	case v.Type() == cty.String && strings.Contains(v.AsString(), "("):
		if err := d.called(v.AsString()); err != nil {
			b.Mistaken("size", err)
		}
	default:
		dialect.Size(b.Block, "size", &d.Size)
	}
}

// listed reads sizes and their weights.
func (b *block) listed(d *Values, v cty.Value) {
	d.Sizes = &Sizes{Kind: ListedSizes}
	for it := v.ElementIterator(); it.Next(); {
		k, w := it.Element()
		size, err := bytesOf(k.AsString())
		switch {
		case err != nil:
			b.Mistaken("size", err)
			return
		case w.IsNull() || w.Type() != cty.Number:
			b.Bad("size", fmt.Sprintf("the weight of %s is %s", dialect.Quote(k.AsString()), dialect.Describe(w)), writeSizes)
			return
		}
		weight, _ := w.AsBigFloat().Float64()
		d.Sizes.List = append(d.Sizes.List, SizeWeight{size, weight})
		d.Size = max(d.Size, size)
	}
	slices.SortFunc(d.Sizes.List, func(x, y SizeWeight) int { return cmp.Compare(x.Size, y.Size) })
}

// called reads "uniform(…)" or "lognormal(…)".
func (d *Values) called(text string) error {
	word, rest, _ := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	args := strings.Split(inner, ",")
	var err error
	switch {
	case closed && word == UniformSizes && len(args) == 2:
		d.Sizes = &Sizes{Kind: word}
		if d.Sizes.Least, err = bytesOf(args[0]); err == nil {
			d.Size, err = bytesOf(args[1])
		}
	case closed && word == LognormalSizes && len(args) == 3:
		d.Sizes = &Sizes{Kind: word}
		var unit string
		d.Sizes.Sigma, unit, err = dialect.CutNumber(strings.TrimSpace(args[1]))
		if err != nil || unit != "" {
			return &dialect.Mistake{What: dialect.Quote(text) + " has no sigma", Write: writeSizes}
		}
		if d.Sizes.Median, err = bytesOf(args[0]); err == nil {
			d.Size, err = bytesOf(args[2])
		}
	default:
		return &dialect.Mistake{What: "unknown sizes " + dialect.Quote(text), Write: writeSizes}
	}
	return err
}

// bytesOf reads a size, which may be a number of bytes without a unit.
func bytesOf(text string) (int, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	n, err := dialect.ParseSize(text)
	return int(n), err
}

// header returns the size of a value's header in bytes.
func (d *Values) header() int {
	if d.Checked {
		return driver.HeaderSize
	}
	return 0
}

// Marked reports whether values are text that begins with a mark ([driver.MarkSize]).
func (d *Values) Marked() bool { return !d.Checked && d.text() }

// text reports whether values are text, after any header.
func (d *Values) text() bool {
	return d.File == nil && d.Record == nil && d.Compressibility == nil && (d.Fill == "" || d.Fill == "text")
}

// Value returns what all values of the dataset have in common, with the largest of their sizes. For values from a file it sets no maker: the
// reader of the file does.
func (d *Values) Value() (driver.Value, error) {
	fill, err := parseFill(d.Fill)
	if d.Compressibility != nil {
		fill = driver.Fill{Mixed: true, Zeros: uint16(math.Round(*d.Compressibility * 1000))}
	}
	var maker driver.Maker
	if d.Record != nil {
		if maker, err = values.New(d.Record, d.Encoding, d.Compression); err != nil {
			return driver.Value{}, err
		}
	}
	return driver.Value{Size: d.Size, Maker: maker, Checked: d.Checked, Fill: fill, TTL: uint32(d.TTL / time.Millisecond)}, err
}

// LeastSize returns a lower bound on the size of values.
func (d *Values) LeastSize() int {
	switch {
	case d.File != nil:
		return d.header() + d.File.Least
	case d.Record != nil:
		return d.header() + 1
	case d.Sizes == nil:
		return d.Size
	case d.Sizes.Kind == ListedSizes && len(d.Sizes.List) > 0:
		return d.Sizes.List[0].Size
	case d.Sizes.Kind == UniformSizes:
		return d.Sizes.Least
	}
	return min(d.header(), driver.ShortHeader)
}

// Drawn returns the sizes of values that differ in size, those of a lognormal distribution from least on; nil if they are of one size.
func (d *Values) Drawn(least int) (*driver.Sizes, error) {
	switch s := d.Sizes; {
	case s == nil:
		return nil, nil
	case s.Kind == UniformSizes:
		return driver.UniformSizes(s.Least, d.Size)
	case s.Kind == LognormalSizes:
		return driver.LognormalSizes(float64(s.Median), s.Sigma, least, d.Size)
	case s.Kind == ListedSizes:
		var sizes []int
		var weights []float64
		for _, one := range s.List {
			sizes, weights = append(sizes, one.Size), append(weights, one.Weight)
		}
		return driver.ListedSizes(sizes, weights)
	}
	return nil, fmt.Errorf("sizes cannot be %q", d.Sizes.Kind)
}

// Form describes, for results, how values differ from text of one size; "" when they do not.
func (d *Values) Form() string {
	var parts []string
	switch s := d.Sizes; {
	case s == nil:
	case s.Kind == UniformSizes:
		parts = append(parts, fmt.Sprintf("uniform(%s, %s)", dialect.SizeText(int64(s.Least)), dialect.SizeText(int64(d.Size))))
	case s.Kind == LognormalSizes:
		parts = append(parts, fmt.Sprintf("lognormal(%s, %g, %s)", dialect.SizeText(int64(s.Median)), s.Sigma, dialect.SizeText(int64(d.Size))))
	default:
		parts = append(parts, fmt.Sprintf("one of %d sizes", len(s.List)))
	}
	if d.File != nil {
		parts = append(parts, d.File.Summary())
	}
	if d.Record != nil {
		parts = append(parts, d.recordForm())
	}
	if d.Compressibility != nil {
		parts = append(parts, fmt.Sprintf("%g%% of which compresses away", *d.Compressibility*100))
	}
	return strings.Join(parts, ", ")
}

// recordForm describes records and how they are written.
func (d *Values) recordForm() string {
	text := fmt.Sprintf("records of %d fields", len(d.Record))
	switch d.Encoding {
	case "":
		text += " as JSON"
	case values.Packed:
		text += ", packed"
	default:
		text += ", packed by " + d.Encoding
	}
	if d.Compression != "" {
		text += ", compressed by " + d.Compression
	}
	return text
}

// values checks a dataset's values.
func (v *validator) values(at part, d *Values) {
	if d.Record != nil {
		v.record(at, d)
	} else if d.Encoding != "" || d.Compression != "" {
		v.fault(at.where+": an encoding without a record", "Leave it out.", at.path+".encoding", at.path+".compression")
	}
	v.valueFile(at, d)
	v.holds(at, "size", int64(d.Size), 0, maxValueSize)
	if _, err := parseFill(d.Fill); err != nil {
		v.fault(fmt.Sprintf("%s: fill = %s: %v", at.where, dialect.Quote(d.Fill), err), `Write "text", or a byte such as "0xff".`, at.path+".fill")
	}
	if c := d.Compressibility; c != nil && !(*c >= 0 && *c <= 1) {
		v.fault(fmt.Sprintf("%s: compressibility = %g", at.where, *c), `Write a share from 0 to 1, or "50%".`, at.path+".compressibility")
	}
	if d.Compressibility != nil && d.Fill != "" && d.Fill != "text" {
		v.fault(at.where+": both fill and compressibility", "Write one of them.", at.path+".compressibility", at.path+".fill")
	}
	if ttl := d.TTL; ttl != 0 && (ttl < time.Millisecond || ttl > maxTTL || ttl%time.Millisecond != 0) {
		v.fault(fmt.Sprintf("%s: ttl = %q", at.where, ttl.String()), `Write a duration of whole milliseconds, up to "720h": "30s".`, at.path+".ttl")
	}
	if d.Sizes != nil {
		v.sizes(at, d)
	}
	if least := d.LeastSize(); d.Checked && least < driver.ShortHeader {
		v.fault(fmt.Sprintf("%s: a checked value of %d bytes", at.where, least),
			fmt.Sprintf("Write size = %d or more: that is what writer, version and checksum take. Replicated targets check all values.", driver.ShortHeader),
			at.path+".size", at.path+".checked")
	}
}

// record checks the types of fields, and that the size fits the longest record.
func (v *validator) record(at part, d *Values) {
	path := at.path + ".record"
	r, err := values.New(d.Record, d.Encoding, d.Compression)
	switch {
	case err != nil:
		what, write, _ := strings.Cut(err.Error(), "; write")
		v.fault(fmt.Sprintf("%s: record: %s", at.where, what), "Write"+write+".", path)
	case r.Grows() != (d.Elements > 0):
		v.fault(fmt.Sprintf("%s: record: a field that grows to %d elements", at.where, d.Elements),
			"Write iterations in the closed loads that put the record: it has as many elements as its key was put.", path)
	case r.Grows() && d.header()+int(min(r.Bound(d.Elements), 2*maxValueSize)) > maxValueSize:
		v.fault(fmt.Sprintf("%s: record: %d elements are more than %s", at.where, d.Elements, dialect.SizeText(maxValueSize)),
			"Write fewer iterations in the loads that put it, or shorter elements.", path)
	case d.Size != d.header()+int(r.Bound(d.Elements)):
		v.fault(fmt.Sprintf("%s: %d bytes for records of up to %d", at.where, d.Size, d.header()+int(r.Bound(d.Elements))), "Leave size out.", path, at.path+".checked")
	case d.Sizes != nil || d.Compressibility != nil:
		v.fault(at.where+": records and other values", "Write one of them.", path)
	}
}

// sizes checks a distribution of sizes.
func (v *validator) sizes(at part, d *Values) {
	s, path := d.Sizes, at.path+".size"
	v.oneOf(at, "size", s.Kind, UniformSizes, LognormalSizes, ListedSizes)
	if s.Kind == ListedSizes {
		v.sizeList(at, d)
	}
	switch {
	case s.Kind == UniformSizes && (s.Least < 0 || s.Least > d.Size):
		v.fault(fmt.Sprintf("%s: sizes from %d to %d bytes", at.where, s.Least, d.Size), "Write the smaller size first.", path)
	case s.Kind == LognormalSizes && (s.Median < 1 || s.Median > d.Size):
		v.fault(fmt.Sprintf("%s: a median of %d bytes of sizes up to %d", at.where, s.Median, d.Size), "Write median, sigma and maximum, such as lognormal(1KiB, 0.8, 64KiB).", path)
	case s.Kind == LognormalSizes && !(s.Sigma > 0 && s.Sigma <= maxSigma):
		v.fault(fmt.Sprintf("%s: a sigma of %g", at.where, s.Sigma), fmt.Sprintf("Write a number above 0 and up to %g: the standard deviation of the size's natural logarithm.", maxSigma), path)
	case s.Kind == LognormalSizes && d.Checked && d.Size < driver.ShortHeader:
		v.fault(fmt.Sprintf("%s: checked values of up to %d bytes", at.where, d.Size), fmt.Sprintf("Write a maximum of %d bytes or more.", driver.ShortHeader), path)
	}
	if s.Kind != UniformSizes && s.Least != 0 || s.Kind != LognormalSizes && (s.Median != 0 || s.Sigma != 0) || s.Kind != ListedSizes && len(s.List) > 0 {
		v.fault(at.where+": sizes of two kinds", "Write one.", path)
	}
}

// sizeList checks sizes and their weights.
func (v *validator) sizeList(at part, d *Values) {
	path, last := at.path+".size", -1
	if n := len(d.Sizes.List); n < 1 || n > maxSizesList {
		v.fault(fmt.Sprintf("%s: %d sizes", at.where, n), fmt.Sprintf("Write from 1 to %d.", maxSizesList), path)
		return
	}
	for _, s := range d.Sizes.List {
		switch {
		case s.Size <= last:
			v.fault(fmt.Sprintf("%s: the size %s twice", at.where, dialect.SizeText(int64(s.Size))), "Write it once.", path)
		case !(s.Weight > 0 && s.Weight <= maxWeightOf):
			v.fault(fmt.Sprintf("%s: the weight of %s is %g", at.where, dialect.SizeText(int64(s.Size)), s.Weight), "Write a weight above 0 and up to 1e9.", path)
		}
		last = s.Size
	}
	if last != d.Size {
		v.fault(fmt.Sprintf("%s: a size of %d bytes that is not the largest of the list", at.where, d.Size), "Write the list alone.", path)
	}
}

// parseFill reads what values are filled with: "text" (or "") for letters and digits, or a byte such as "0xff".
func parseFill(text string) (driver.Fill, error) {
	if text == "" || text == "text" {
		return driver.Fill{}, nil
	}
	b, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 8)
	if err != nil || !strings.HasPrefix(text, "0x") {
		return driver.Fill{}, errors.New(`neither "text" nor a byte`)
	}
	return driver.Fill{Alike: true, Byte: byte(b)}, nil
}
