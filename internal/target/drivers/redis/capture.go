package redis

import (
	"errors"
	"regexp"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

var replyPart = regexp.MustCompile(`^reply(?:\[(0|[1-9][0-9]{0,5})\])?$`)

// parsePart reads which element of an array is captured; −1 for the reply itself.
func parsePart(text string) (element int, err error) {
	part := replyPart.FindStringSubmatch(text)
	switch {
	case part == nil:
		return 0, errors.New(`write "reply", or "reply[0]" for an element of an array`)
	case part[1] == "":
		return -1, nil
	}
	return strconv.Atoi(part[1])
}

// part returns the text of a reply or of an element of it, or what it is instead.
func part(b []byte, element int, read reader) (text []byte, is string) {
	r, at, _ := read(b)
	if element >= 0 {
		if r.kind != array && r.kind != set || int64(element) >= r.elements() {
			return nil, "missing"
		}
		if element > 0 {
			p := driver.Progress{At: at, Left: int64(element)}
			_, _, _ = walk(b, &p, read) // the reply is complete
			at = p.At
		}
		r, _, _ = read(b[at:])
	}
	switch {
	case r.missing():
		return nil, "missing: it is null"
	case r.kind == integer:
		return strconv.AppendInt(nil, r.integer, 10), ""
	case r.aggregate():
		return nil, "a list"
	}
	return r.text, ""
}
