package rundir

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
)

// Limits for reading a directory that somebody else may have filled.
const (
	maxText    = 32 << 20 // bytes of a JSON file
	maxPlan    = 16 << 20 // bytes of a plan, and of the tables that it describes
	maxProbe   = 1 << 20  // bytes of a line of observations
	maxDecoded = 64 << 20 // bytes of the decoded value, as weighing counts them
	maxString  = 1 << 20  // bytes of a text
	maxNumber  = 400      // digits
	maxDepth   = 64       // nesting of objects and arrays
)

// readJSON reads a file of a run into v, within the limits above.
func readJSON(path string, v any) error {
	b, err := safefile.Read(path, maxText)
	if err != nil {
		return err
	}
	if err := decode(b, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// readable says whether a value's JSON stays within the limits above.
func readable(path string, b []byte, v any) error {
	err := weigh(b, reflect.TypeOf(v), false)
	if len(b) > maxText {
		err = fmt.Errorf("at most %d MiB are read", maxText>>20)
	}
	if err != nil {
		return fmt.Errorf("%s is written whole, but has %d MiB, and loadgen does not read it again: %w: run fewer phases, levels or observations at a time",
			path, len(b)>>20, err)
	}
	return nil
}

// decode is json.Unmarshal for untrusted JSON, in which two bytes can ask for a slice element of hundreds of bytes.
func decode(b []byte, v any) error {
	if err := weigh(b, reflect.TypeOf(v), false); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// weigh checks that a text is JSON, and that decoding it into a type stays within the limits above. nil stands for a type that keeps nothing. If plain,
// its texts must not contain characters that a terminal or a page would obey.
func weigh(b []byte, t reflect.Type, plain bool) error {
	if !json.Valid(b) {
		return json.Unmarshal(b, new(json.RawMessage)) // says what is wrong
	}
	w := weighing{text: b, left: maxDecoded, plain: plain}
	return w.value(t, 0)
}

// weighing scans a valid JSON text along with the type it will be decoded into, and adds up the memory that takes. It stores nothing but its depth.
type weighing struct {
	text  []byte
	at    int
	left  int64 // bytes
	plain bool
	known map[reflect.Type]map[string]reflect.Type
}

var (
	errMuch = fmt.Errorf("decoding it would take more than %d MiB", maxDecoded>>20)
	errLong = fmt.Errorf("a text of more than %d bytes, or a number of more than %d digits", maxString, maxNumber)
	errDeep = fmt.Errorf("objects and arrays nested more than %d deep", maxDepth)
)

// take counts bytes.
func (w *weighing) take(n int64) error {
	if w.left -= n; w.left < 0 {
		return errMuch
	}
	return nil
}

// next skips white space and returns the next byte without consuming it; 0 at the end.
func (w *weighing) next() byte {
	for ; w.at < len(w.text); w.at++ {
		if c := w.text[w.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// value weighs a value for a type; nil means that the value is not kept.
func (w *weighing) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
		if err := w.take(int64(t.Size())); err != nil {
			return err
		}
	}
	if t != nil && ownDecoder(t) {
		t = reflect.TypeFor[string]()
	}
	switch w.next() {
	case '{', '[':
		return w.items(t, depth)
	case '"':
		text, err := w.string()
		if err != nil || t == nil {
			return err
		}
		return w.take(int64(len(text)))
	}
	return w.word()
}

// word skips a number, or true, false or null.
func (w *weighing) word() error {
	for from := w.at; w.at < len(w.text) && strings.IndexByte(" \n\t\r,]}", w.text[w.at]) < 0; w.at++ {
		if w.at-from > maxNumber {
			return errLong
		}
	}
	return nil
}

// ownDecoder says whether a type decodes itself; such a type keeps at most the text.
func ownDecoder(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// items weighs the elements of an array or the members of an object. Those of a slice count twice: while it grows, it leaves as much again as garbage.
// So do those of a map, which has room for as many again.
func (w *weighing) items(t reflect.Type, depth int) error {
	var fields map[string]reflect.Type
	var element reflect.Type
	var size int64
	object, end := w.text[w.at] == '{', w.text[w.at]+2 // in ASCII
	if t != nil {
		switch kind := t.Kind(); {
		case object && kind == reflect.Struct:
			fields = w.fieldsOf(t)
		case object && kind == reflect.Map:
			element, size = t.Elem(), 2*int64(t.Elem().Size()+t.Key().Size())
		case object && kind == reflect.Interface:
			element, size = t, 2*int64(t.Size()+reflect.TypeFor[string]().Size())
		case !object && kind == reflect.Slice:
			element, size = t.Elem(), 2*int64(t.Elem().Size())
		case !object && kind == reflect.Array:
			element = t.Elem()
		case kind == reflect.Interface:
			element, size = t, 2*int64(t.Size())
		}
	}
	w.at++
	for c := w.next(); c != end; {
		of := element
		if object {
			w.next()
			name, err := w.string()
			if err != nil {
				return err
			}
			w.next()
			w.at++ // the colon
			if fields != nil {
				of = fields[folded(name)]
			} else if element != nil {
				w.left -= int64(len(name))
			}
		}
		if err := w.take(size); err != nil {
			return err
		}
		if err := w.value(of, depth+1); err != nil {
			return err
		}
		if c = w.next(); c == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}

// string returns the current string, and consumes it.
func (w *weighing) string() (string, error) {
	from, escaped := w.at, false
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at++
	quoted := w.text[from:w.at]
	if len(quoted) > maxString {
		return "", errLong
	}
	text := string(quoted[1 : len(quoted)-1])
	if escaped {
		if err := json.Unmarshal(quoted, &text); err != nil {
			return "", err
		}
	}
	if w.plain && strings.ContainsFunc(text, quantity.Obeyed) {
		return "", fmt.Errorf("a text with control characters, or some that turn the direction of writing: %q", text[:min(len(text), 80)])
	}
	return text, nil
}

// fieldsOf returns the types of a struct's fields by JSON name, folded as encoding/json compares names.
func (w *weighing) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, known := w.known[t]; known {
		return fields
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if _, outer := fields[folded(name)]; !outer || len(f.Index) == 1 {
			fields[folded(name)] = f.Type
		}
	}
	if w.known == nil {
		w.known = map[reflect.Type]map[string]reflect.Type{}
	}
	w.known[t] = fields
	return fields
}

// folded returns the same text for names that differ in case only.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}
