// Package form holds the grammar of placeholders, in which a plan words what a driver is asked: the same in every driver.
//
//	placeholder    | stands for
//	---------------+---------------------------------------------------------
//	{key}          | the key of the op
//	{value}        | its value, which makes the op one that stores
//	{run}          | the id of the run
//	{n}            | the number of the op within its stream, from 0
//	{field.NAME}   | a field of the dataset's record, as plain text: without the quotes that JSON has
//	{{ and }}      | a brace
//
// All other text stands for itself, and goes out byte for byte. A driver that puts a placeholder where some bytes have a meaning, as in a URL,
// escapes it part by part ([Part.Append]); one with parameters of its own, as SQL has, makes a template of each.
package form

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Kind is what a part of a template is.
type Kind uint8

// The kinds.
const (
	Text Kind = iota // that stands for itself
	Key
	Value
	Run
	N
	Field
)

// placeholders are those whose names are whole.
var placeholders = map[string]Kind{"key": Key, "value": Value, "run": Run, "n": N}

// Part is a piece of a template: text, or a placeholder.
type Part struct {
	Kind Kind
	Text string // of Text; the name of a Field
}

// Template is text with placeholders, in its parts; two of Text do not stand side by side, and none is empty. It does not change, so any number
// of goroutines may use it. The zero value is of no text.
type Template []Part

const write = "write {key}, {value}, {run}, {n} or {field.NAME}, and {{ or }} for a brace"

// Parse reads a template. The error names the place by its character, from 1, and says what to write.
func Parse(text string) (Template, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("not UTF-8: %.40q", text)
	}
	var t Template
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			t = append(t, Part{Kind: Text, Text: plain.String()})
			plain.Reset()
		}
	}
	for at := 0; at < len(text); {
		c, rest := text[at], text[at+1:]
		switch {
		case c != '{' && c != '}':
			plain.WriteByte(c)
			at++
		case strings.HasPrefix(rest, string(c)):
			plain.WriteByte(c)
			at += 2
		case c == '}':
			return nil, fmt.Errorf("the } at character %d closes nothing; %s", place(text, at), write)
		default:
			name, _, closed := strings.Cut(rest, "}")
			if !closed {
				return nil, fmt.Errorf("the { at character %d is not closed; %s", place(text, at), write)
			}
			p, err := placeholder(name)
			if err != nil {
				return nil, fmt.Errorf("%w at character %d; %s", err, place(text, at), write)
			}
			flush()
			t = append(t, p)
			at += len(name) + len("{}")
		}
	}
	flush()
	return t, nil
}

// place is the number of the character at a byte.
func place(text string, at int) int { return utf8.RuneCountInString(text[:at]) + 1 }

// placeholder reads what stands between braces.
func placeholder(name string) (Part, error) {
	if kind, ok := placeholders[name]; ok {
		return Part{Kind: kind}, nil
	}
	if field, ok := strings.CutPrefix(name, "field."); ok && field != "" {
		return Part{Kind: Field, Text: field}, nil
	}
	return Part{}, fmt.Errorf("unknown placeholder {%.40s}", name)
}

// String returns the text of which the template is made.
func (t Template) String() string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.String())
	}
	return b.String()
}

// String returns the part as a template has it.
func (p Part) String() string {
	switch p.Kind {
	case Text:
		return strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text)
	case Field:
		return "{field." + p.Text + "}"
	}
	for name, kind := range placeholders {
		if kind == p.Kind {
			return "{" + name + "}"
		}
	}
	return ""
}

// Count returns how many parts are of a kind.
func (t Template) Count(kind Kind) int {
	n := 0
	for _, p := range t {
		if p.Kind == kind {
			n++
		}
	}
	return n
}

// Stores says whether what the template makes has a part of the op's value.
func (t Template) Stores() bool { return t.Count(Value)+t.Count(Field) > 0 }

// Fields appends the names of the record's fields that the template has, each as often as it stands there.
func (t Template) Fields(dst []string) []string {
	for _, p := range t {
		if p.Kind == Field {
			dst = append(dst, p.Text)
		}
	}
	return dst
}

// With returns the template with text in the place of all {run}.
func (t Template) With(run string) Template {
	var out Template
	for _, p := range t {
		if p.Kind == Run {
			p = Part{Kind: Text, Text: run}
		}
		last := len(out) - 1
		switch {
		case p.Kind == Text && p.Text == "":
		case p.Kind == Text && last >= 0 && out[last].Kind == Text:
			out[last].Text += p.Text
		default:
			out = append(out, p)
		}
	}
	return out
}

// Append appends what the template makes of a request, whose Value is there if the template [Template.Stores]. It allocates nothing but
// room in dst.
func (t Template) Append(dst []byte, req *driver.Request, run string) []byte {
	for i := range t {
		dst = t[i].Append(dst, req, run)
	}
	return dst
}

// Append appends what the part makes of a request, as that of a template. A field of what is no record is empty.
func (p *Part) Append(dst []byte, req *driver.Request, run string) []byte {
	switch p.Kind {
	case Text:
		return append(dst, p.Text...)
	case Key:
		return append(dst, req.Key...)
	case Value:
		return req.Value.AppendTo(dst)
	case Run:
		return append(dst, run...)
	case N:
		return strconv.AppendUint(dst, req.N, 10)
	case Field:
		if f, ok := req.Value.Maker.(Fielder); ok {
			return f.AppendField(dst, req.Value.Seed, p.Text)
		}
	}
	return dst
}
