package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// JSON is a JSON text whose strings are templates. A plan writes it as an object or a list.
type JSON string

var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// Template returns the text as a template in which what stands for a placeholder is escaped as within its string.
func (j JSON) Template() (t Template, err error) {
	if !json.Valid([]byte(j)) {
		return nil, errors.New("it is not JSON")
	}
	at := 0
	for _, m := range jsonString.FindAllStringIndex(string(j), -1) {
		var text string
		_ = json.Unmarshal([]byte(j[m[0]:m[1]]), &text) // it is valid
		parts, err := Parse(text)
		if err != nil {
			return nil, err
		}
		t = t.Add(Part{Text: string(j[at : m[0]+1])}).Add(parts.Escaped(inString, true)...)
		at = m[1] - 1
	}
	return t.Add(Part{Text: string(j[at:])}), nil
}

// inString is the Escape of a JSON string (RFC 8259, section 7).
func inString(dst []byte, c byte) []byte {
	switch {
	case c < ' ':
		return fmt.Appendf(dst, `\u%04x`, c)
	case c == '"' || c == '\\':
		dst = append(dst, '\\')
	}
	return append(dst, c)
}

// File is a file whose content is part of the plan. A plan names it by its path.
type File struct {
	Path string `cty:"path" json:"path"`
	Type string `cty:"type" json:"type"` // such as image/png
	Data string `cty:"data" json:"data"` // in base64
}
