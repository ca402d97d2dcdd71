package redis

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// capture is a part of a reply that the scenario keeps.
type capture struct {
	as, text string
	element  int // of an array; −1 for the reply itself
}

var replyPart = regexp.MustCompile(`^reply(?:\[(0|[1-9][0-9]{0,5})\])?$`)

// catches reads what is captured.
func (a *ask) catches(all map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := capture{as: name, text: all[name], element: -1}
		part := replyPart.FindStringSubmatch(c.text)
		if part == nil {
			return fmt.Errorf(`capture %s = %.80q: write "reply", or "reply[0]" for an element of an array`, name, c.text)
		}
		if err := form.CheckCapture(name); err != nil {
			return err
		}
		if part[1] != "" {
			c.element, _ = strconv.Atoi(part[1])
		}
		a.captures = append(a.captures, c)
	}
	return nil
}

// catch captures parts of a complete reply.
func (a *ask) catch(b []byte, reply *driver.Reply, read reader) {
	found := new(driver.Findings)
	for _, c := range a.captures {
		text, is := part(b, c.element, read)
		if err := form.Capture(&found.Bag, a.op, c.text, c.as, text, is); err != nil {
			*reply = driver.Reply{Outcome: driver.Error, Message: []byte(err.Error())}
			return
		}
	}
	reply.Found = found
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
