package web

import (
	"bytes"
	"errors"
	"regexp"
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

// oneSegment matches .NAME, [INDEX], ["NAME"] or ['NAME'].
var (
	oneSegment = regexp.MustCompile(`^(?:\.([A-Za-z_\x{80}-\x{10ffff}][0-9A-Za-z_\x{80}-\x{10ffff}]*)|\[(?:(0|-?[1-9][0-9]*)|"((?:[^"\\]|\\["\\])+)"|'((?:[^'\\]|\\['\\])+)')\])`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`)
)

// parsePath reads a path such as $.a[0]['b'].
func parsePath(text string) (p path, err error) {
	rest, ok := strings.CutPrefix(text, "$")
	for ok && rest != "" {
		m := oneSegment.FindStringSubmatch(rest)
		if ok = m != nil; ok {
			s := segment{name: gjson.Escape(m[1] + unescape.Replace(m[3]+m[4]))}
			if m[2] != "" {
				s.index, err = strconv.Atoi(m[2])
			}
			p, rest = append(p, s), rest[len(m[0]):]
		}
	}
	if !ok || err != nil {
		return nil, errors.New(writePath)
	}
	return p, nil
}

// find returns the value in a JSON text. Whether the rest of the text is JSON is not looked at: that would cost sixfold, and bodies that are cut off are
// found by their length.
func (p path) find(text []byte) gjson.Result {
	var at gjson.Result
	if len(p) > 0 && p[0].name != "" && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		at, p = gjson.GetBytes(text, p[0].name), p[1:] // without a copy of the text
	} else {
		at = gjson.ParseBytes(text)
	}
	for _, s := range p {
		name := s.name
		switch {
		case name != "" && at.IsObject():
		case name == "" && at.IsArray():
			if s.index < 0 {
				s.index += int(at.Get("#").Int())
			}
			name = strconv.Itoa(s.index)
		default:
			return gjson.Result{}
		}
		at = at.Get(name)
	}
	return at
}
