package form

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// JSON is a JSON text whose strings are templates. A plan writes it as an object or a list.
type JSON string

// Template returns the text as a template for [Part.AppendJSON].
func (j JSON) Template() (t Template, err error) {
	if !json.Valid([]byte(j)) {
		return nil, errors.New("it is not JSON")
	}
	for rest := string(j); rest != ""; {
		at := strings.IndexByte(rest, '"')
		if at < 0 {
			return t.Add(Part{Text: rest}), nil
		}
		end := at + 1
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		var text string
		if err = json.Unmarshal([]byte(rest[at:end+1]), &text); err != nil {
			return nil, err
		}
		parts, err := Parse(text)
		if err != nil {
			return nil, err
		}
		t = t.Add(Part{Text: rest[:at+1]})
		for _, p := range parts {
			if p.Kind == Text {
				p.Text = string(appendInJSON(nil, p.Text))
			}
			t = t.Add(p)
		}
		t, rest = t.Add(Part{Text: `"`}), rest[end+1:]
	}
	return t, nil
}

// AppendJSON is Append for a part of a JSON text: what stands for a placeholder is escaped as within its string.
func (p *Part) AppendJSON(dst []byte, req *driver.Request, run string) []byte {
	from := len(dst)
	dst = p.Append(dst, req, run)
	if p.Kind == Text || !slices.ContainsFunc(dst[from:], escaped) {
		return dst
	}
	return appendInJSON(dst[:from], string(dst[from:]))
}

func escaped(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// appendInJSON appends a text as it stands in a JSON string (RFC 8259, section 7).
func appendInJSON(dst []byte, text string) []byte {
	for _, c := range []byte(text) {
		switch {
		case c < ' ':
			dst = append(append(dst, `\u00`...), "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		case escaped(c):
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
