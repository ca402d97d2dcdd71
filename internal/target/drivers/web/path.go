package web

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// path is a singular query of JSONPath (RFC 9535, section 2.3.5.1): it names at most one value.
type path []segment

// segment is a member's name or, if that is "", an index, which counts from the end if it is negative.
type segment struct {
	name  string // escaped for gjson, where . * ? | # and @ have a meaning
	index int
}

const writePath = `write names and indexes such as $.items[0].id or $["a b"]: not *, .., a slice or a filter, which may find several`

// parsePath reads a path such as $.a[0]['b'].
func parsePath(text string) (p path, err error) {
	rest, ok := strings.CutPrefix(text, "$")
	for ok && rest != "" {
		var s segment
		if s, rest, ok = parseSegment(rest); ok {
			p = append(p, s)
		}
	}
	if !ok {
		return nil, errors.New(writePath)
	}
	return p, nil
}

// parseSegment reads the first segment.
func parseSegment(text string) (s segment, rest string, ok bool) {
	if name, dotted := strings.CutPrefix(text, "."); dotted {
		end := strings.IndexFunc(name, func(r rune) bool { return r < 0x80 && r != '_' && !alphanumeric(byte(r)) })
		if end < 0 {
			end = len(name)
		}
		return segment{name: gjson.Escape(name[:end])}, name[end:], end > 0 && (name[0] < '0' || name[0] > '9')
	}
	if text[0] != '[' || len(text) < 3 {
		return s, "", false
	}
	quote := text[1]
	if quote != '"' && quote != '\'' {
		number, rest, closed := strings.Cut(text[1:], "]")
		index, err := strconv.Atoi(number)
		return segment{index: index}, rest, closed && err == nil && strconv.Itoa(index) == number
	}
	var name []byte
	for at := 2; at < len(text); at++ {
		switch c := text[at]; {
		case c == quote:
			rest, ok = strings.CutPrefix(text[at+1:], "]")
			return segment{name: gjson.Escape(string(name))}, rest, ok && len(name) > 0
		case c == '\\' && at+1 < len(text) && (text[at+1] == quote || text[at+1] == '\\'):
			at++
			name = append(name, text[at])
		case c == '\\':
			return s, "", false
		default:
			name = append(name, c)
		}
	}
	return s, "", false
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// find returns the value in a JSON text. Whether the rest of the text is JSON is not looked at: that would cost sixfold, and bodies that are cut off are
// found by their length.
func (p path) find(text []byte) (at gjson.Result) {
	text = bytes.TrimLeft(text, " \t\r\n")
	for i, s := range p {
		name, of := s.name, byte('{')
		if name == "" {
			name, of = strconv.Itoa(s.index), '['
		}
		if i > 0 && (at.Raw == "" || at.Raw[0] != of) || i == 0 && (len(text) == 0 || text[0] != of) {
			return gjson.Result{}
		}
		switch {
		case s.name == "" && s.index < 0:
			if i == 0 {
				at = gjson.ParseBytes(text)
			}
			all := at.Array()
			if at = (gjson.Result{}); len(all)+s.index >= 0 {
				at = all[len(all)+s.index]
			}
		case i == 0:
			at = gjson.GetBytes(text, name)
		default:
			at = at.Get(name)
		}
	}
	if len(p) == 0 {
		return gjson.ParseBytes(text)
	}
	return at
}
