package form

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

const mostCaptured = 8 << 10 // bytes

var captureName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// Captures are the parts of replies to an op that its scenario keeps. S is a driver's selector of a part.
type Captures[S any] []capture[S]

type capture[S any] struct {
	name, text string
	noted      string // its name in a Bag
	selector   S
}

// ParseCaptures reads selectors by the names of what they find.
func ParseCaptures[S any](all map[string]string, parse func(text string) (S, error)) (c Captures[S], err error) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		selector, wrong := parse(all[name])
		if wrong != nil {
			wrong = fmt.Errorf("capture %s = %.80q: %w", name, all[name], wrong)
		} else if !captureName.MatchString(name) {
			wrong = fmt.Errorf("capture has the name %.80q: write a letter, then up to 63 letters, digits, _ and -", name)
		}
		err = errors.Join(err, wrong)
		c = append(c, capture[S]{name, all[name], "captured." + name, selector})
	}
	return c, err
}

// Find enters what the selectors find into the Findings of an op's reply, which becomes an error if one finds no text. find returns a text, which is
// copied, and what it is if it is none, such as "missing".
func (c Captures[S]) Find(reply *driver.Reply, op string, find func(S) (text []byte, is string)) {
	if reply.Found == nil {
		reply.Found = new(driver.Findings)
	}
	for _, it := range c {
		text, is := find(it.selector)
		switch {
		case len(text) > mostCaptured:
			is = fmt.Sprintf("longer than %v", driver.Size(mostCaptured))
		case len(text) > 0:
			reply.Found.Bag.Put(driver.Noted{Name: it.noted, Text: string(text)})
			continue
		case is == "":
			is = "empty"
		}
		reply.Outcome, reply.Value = driver.Error, nil
		reply.Message = fmt.Appendf(nil, "%s: %s, captured as %s, is %s", op, it.text, it.name, is)
		return
	}
}
