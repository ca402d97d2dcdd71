// Package form holds the grammar of placeholders, with which a plan writes requests in its own words. It is the same for every driver.
//
//	placeholder    | stands for
//	---------------+---------------------------------------------------------
//	{key}          | the key of the op
//	{value}        | its value, which makes the op one that stores
//	{run}          | the id of the run
//	{n}            | the number of the op within its stream, from 0
//	{field.NAME}   | a field of the dataset's record, as plain text: without JSON's quotes
//	{row.NAME}     | a column of the scenario's row
//	{captured.NAME}| what an earlier op of the scenario, or of the session's setup, captured
//	{secret.NAME}  | a secret, looked up where the load runs
//	{{ and }}      | a brace
//
// All other text is sent byte for byte. A driver that puts a placeholder where some bytes have a meaning, as in a URL, says how they are written there
// ([Escape]). A driver whose protocol has parameters, such as SQL, makes a template of each parameter.
package form

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Kind is the kind of a part of a template.
type Kind uint8

// The kinds.
const (
	Text Kind = iota // text that stands for itself
	Key
	Value
	Run
	N
	Field
	Noted  // in the request's Bag
	Secret // before it is disclosed, it stands for its placeholder, so that it can be shown
)

// placeholders are the ones with a fixed name.
var placeholders = map[string]Kind{"key": Key, "value": Value, "run": Run, "n": N}

// Escape appends a byte as it is written at some place, such as a URL's path.
type Escape func(dst []byte, c byte) []byte

// Part is a piece of a template: text, or a placeholder.
type Part struct {
	Kind   Kind
	Text   string // the text of Text and Secret; the name of a Field or of what is Noted
	Escape Escape // of what a placeholder stands for; nil if it is sent as it is
}

// Template is text with placeholders, split into parts. No two Text parts are adjacent, and none is empty. It is immutable, so it is safe for
// concurrent use. The zero value is the empty text.
type Template []Part

const write = "write {key}, {value}, {run}, {n}, {field.NAME}, {row.NAME}, {captured.NAME} or {secret.NAME}, and {{ or }} for a brace"

// Parse reads a template. The error gives the position in characters, from 1, and says what to write.
func Parse(text string) (Template, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("not UTF-8: %.40q", text)
	}
	var t Template
	var plain strings.Builder
	flush := func() {
		t = t.Add(Part{Kind: Text, Text: plain.String()})
		plain.Reset()
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

// place returns the number of the character at a byte offset, from 1.
func place(text string, at int) int { return utf8.RuneCountInString(text[:at]) + 1 }

// placeholder parses the text between braces.
func placeholder(name string) (Part, error) {
	if kind, ok := placeholders[name]; ok {
		return Part{Kind: kind}, nil
	}
	switch kind, of, _ := strings.Cut(name, "."); {
	case of == "":
	case kind == "field":
		return Part{Kind: Field, Text: of}, nil
	case kind == "row" || kind == "captured":
		return Part{Kind: Noted, Text: name}, nil
	case kind == "secret" && len(driver.SecretsIn("{"+name+"}")) == 1:
		return Part{Kind: Secret, Text: "{" + name + "}"}, nil
	}
	return Part{}, fmt.Errorf("unknown placeholder {%.40s}", name)
}

// String returns the template's text, as Parse reads it.
func (t Template) String() string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.String())
	}
	return b.String()
}

// String returns the part as written in a template.
func (p Part) String() string {
	switch p.Kind {
	case Text:
		return strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text)
	case Field:
		return "{field." + p.Text + "}"
	case Noted:
		return "{" + p.Text + "}"
	case Secret:
		return p.Text
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

// Stores reports whether the output contains any part of the op's value.
func (t Template) Stores() bool { return t.Count(Value)+t.Count(Field) > 0 }

// Names appends the texts of the template's parts of a kind, with repeats, such as the names of fields.
func (t Template) Names(dst []string, kind Kind) []string {
	for _, p := range t {
		if p.Kind == kind {
			dst = append(dst, p.Text)
		}
	}
	return dst
}

// Add returns the template with other parts at its end. It may reuse the template's array.
func (t Template) Add(parts ...Part) Template {
	for _, p := range parts {
		switch last := len(t) - 1; {
		case p.Kind == Text && p.Text == "":
		case p.Kind == Text && last >= 0 && t[last].Kind == Text:
			t[last].Text += p.Text
		default:
			t = append(t, p)
		}
	}
	return t
}

// Escaped returns the template for a place where what its placeholders stand for is escaped and, if quoted, so is its text.
func (t Template) Escaped(escape Escape, quoted bool) Template {
	out := slices.Clone(t)
	for i := range out {
		if p := &out[i]; p.Kind != Text {
			p.Escape = escape
		} else if quoted {
			p.Text = string(escape.from([]byte(p.Text), 0))
		}
	}
	return out
}

// from escapes the end of dst, from a byte on.
func (e Escape) from(dst []byte, at int) []byte {
	end := len(dst)
	for _, c := range dst[at:] {
		dst = e(dst, c)
	}
	return dst[:at+copy(dst[at:], dst[end:])]
}

// Disclosed returns the template with its secrets.
func (t Template) Disclosed(lookUp func(name string) (string, error)) (Template, error) {
	out, wrong := slices.Clone(t), error(nil)
	for i := range out {
		if out[i].Kind == Secret {
			secret, err := lookUp(driver.SecretsIn(out[i].Text)[0])
			out[i].Text, wrong = secret, errors.Join(wrong, err)
		}
	}
	return out, wrong
}

// With returns the template with each {run} replaced by text.
func (t Template) With(run string) Template {
	var out Template
	for _, p := range t {
		if p.Kind == Run {
			p = Part{Kind: Text, Text: run}
		}
		out = out.Add(p)
	}
	return out
}

// Append appends the template's output for a request, whose Value must be set if the template [Template.Stores]. It allocates only to grow dst.
func (t Template) Append(dst []byte, req *driver.Request, run string) []byte {
	for i := range t {
		dst = t[i].Append(dst, req, run)
	}
	return dst
}

// Append appends the part's output for a request, as [Template.Append] does. A field is empty if the value is not a record.
func (p *Part) Append(dst []byte, req *driver.Request, run string) []byte {
	if p.Escape == nil || p.Kind == Noted && req.Bag == nil { // as it is written, for people
		return p.append(dst, req, run)
	}
	return p.Escape.from(p.append(dst, req, run), len(dst))
}

func (p *Part) append(dst []byte, req *driver.Request, run string) []byte {
	switch p.Kind {
	case Text, Secret:
		return append(dst, p.Text...)
	case Noted:
		if req.Bag != nil {
			return append(dst, req.Bag.Get(p.Text)...)
		}
		return append(dst, p.String()...)
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
