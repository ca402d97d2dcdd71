package redis

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// rules map replies to a command that a plan words to outcomes.
type rules struct {
	usual bool // null is a miss, everything else is ok
	only  bool // there is a list of ok replies, so that a reply in no list is an error
	list  []rule
	errs  []errorRule
}

// errorRule is the outcome of error replies that begin with a word.
type errorRule struct {
	word    string
	outcome driver.Outcome
}

// rule is one word of an expectation.
type rule struct {
	outcome driver.Outcome
	word    string // a key of expected
	number  int64  // if word is ""
	is      func(r reply) bool
}

// expected maps the words for replies, other than whole numbers, to tests.
var expected = map[string]func(r reply) bool{
	"null": func(r reply) bool { return r.missing() },
	"empty": func(r reply) bool {
		return !r.missing() && (r.aggregate() || r.kind == bulk) && r.integer <= 0 && len(r.text) == 0
	},
	"integer": func(r reply) bool { return r.kind == integer },
	"text":    func(r reply) bool { return r.kind == bulk },
	"status":  func(r reply) bool { return r.kind == status },
	"array":   func(r reply) bool { return !r.missing() && (r.kind == array || r.kind == set) },
	"map":     func(r reply) bool { return r.kind == mapping },
	"number": func(r reply) bool {
		return r.kind == scalar && len(r.text) > 0 && r.text[0] != 't' && r.text[0] != 'f'
	},
	"true":  func(r reply) bool { return r.kind == scalar && string(r.text) == "t" },
	"false": func(r reply) bool { return r.kind == scalar && string(r.text) == "f" },
}

const writeExpected = `write "null", "empty", "integer", "text", "status", "array", "map", "number", "true", "false" or a whole number such as "0"`

const writeErrors = `write the first word of an error reply in capitals, such as "KEYNOTFOUND"`

// aggregate reports whether values follow, or could.
func (r *reply) aggregate() bool { return r.kind == array || r.kind == set || r.kind == mapping }

// expects reads an expectation. Numbers and empty replies are tested before kinds, since they have a kind too.
func (a *ask) expects(e *Expect) error {
	a.rules = rules{usual: e == nil}
	if a.verb == driver.Delete && e == nil { // 0 means that the key did not exist, as in the driver's own delete
		a.rules = rules{list: []rule{{outcome: driver.Miss, number: 0}}}
	}
	if e == nil {
		return nil
	}
	a.rules.only = len(e.OK) > 0
	var errs []error
	for _, l := range []struct {
		name    string
		outcome driver.Outcome
		words   []string
	}{{"ok", driver.OK, e.OK}, {"miss", driver.Miss, e.Miss}, {"conflict", driver.Conflict, e.Conflict}, {"quorum_failed", driver.QuorumFailed, e.QuorumFailed}, {"error", driver.Error, e.Error}} {
		for _, word := range l.words {
			if isErrorWord(word) || l.outcome == driver.QuorumFailed {
				errs = append(errs, a.rules.expectError(l.name, l.outcome, word))
				continue
			}
			r := rule{outcome: l.outcome, word: word, is: expected[word]}
			if r.is == nil {
				n, err := strconv.ParseInt(word, 10, 64)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s has %.40q: %s", l.name, word, writeExpected))
					continue
				}
				r.word, r.number = "", n
			}
			if i := slices.IndexFunc(a.rules.list, func(o rule) bool { return o.word == r.word && o.number == r.number }); i >= 0 {
				errs = append(errs, fmt.Errorf("%s has %q a second time: write it in one list, once", l.name, word))
			}
			a.rules.list = append(a.rules.list, r)
		}
	}
	slices.SortStableFunc(a.rules.list, func(x, y rule) int { return x.rank() - y.rank() })
	return errors.Join(errs...)
}

// isErrorWord reports whether a word of an expectation is the first one of error replies: these are in capitals.
var isErrorWord = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`).MatchString

// expectError adds a word of the named list to the words that error replies may begin with.
func (u *rules) expectError(list string, outcome driver.Outcome, word string) error {
	switch {
	case !isErrorWord(word):
		return fmt.Errorf("%s has %.40q: %s", list, word, writeErrors)
	case outcome == driver.OK || outcome == driver.Error:
		return fmt.Errorf("%s has %.40q, the word of an error reply: write it in miss, conflict or quorum_failed, or leave it out if it is an error", list, word)
	case slices.ContainsFunc(u.errs, func(r errorRule) bool { return r.word == word }):
		return fmt.Errorf("%s has %q a second time: write it in one list, once", list, word)
	}
	u.errs = append(u.errs, errorRule{word, outcome})
	return nil
}

// failure returns the outcome of an error reply.
func (u *rules) failure(text []byte) driver.Outcome {
	if len(u.errs) > 0 {
		first, _, _ := bytes.Cut(text, []byte(" "))
		for _, r := range u.errs {
			if string(first) == r.word {
				return r.outcome
			}
		}
	}
	return driver.Error
}

// rank orders rules: specific ones before general ones.
func (r rule) rank() int {
	if r.word == "" || r.word == "empty" || r.word == "null" {
		return 0
	}
	return 1
}

// outcome returns the outcome of a reply that is not an error reply.
func (u *rules) outcome(r *reply) driver.Outcome {
	for i := range u.list {
		l := &u.list[i]
		if l.word == "" && r.kind == integer && r.integer == l.number || l.word != "" && l.is(*r) {
			return l.outcome
		}
	}
	switch {
	case r.missing():
		return driver.Miss
	case u.only:
		return driver.Error
	}
	return driver.OK
}

// kinds are the messages for unexpected replies.
var kinds = [...][]byte{
	status: []byte("a reply that is not expected: a status"), integer: []byte("a reply that is not expected: an integer"),
	bulk: []byte("a reply that is not expected: text"), null: []byte("a reply that is not expected: null"), array: []byte("a reply that is not expected: an array"),
	scalar: []byte("a reply that is not expected: a number or a boolean"), mapping: []byte("a reply that is not expected: a map"),
	set: []byte("a reply that is not expected: a set"), attribute: nil,
}

// lostScript begins the error of a server that no longer has a script: it was restarted, or its scripts were flushed.
var lostScript = []byte("NOSCRIPT ")

// worded is a codec for a target with ops that the plan words itself.
type worded struct {
	codec
	asks asks
}

var (
	_ driver.Resumer = (*codec)(nil)
	_ driver.Layout  = (*worded)(nil)
	_ driver.Skimmer = (*worded)(nil)
)

// asks are the forms of a target by verb; nil for a verb that the driver words.
type asks [driver.NumVerbs]*ask

// newAsks compiles forms for a run.
func newAsks(link driver.Link) (all asks, err error) {
	for _, f := range link.Forms {
		a, err := compile(f)
		if err != nil {
			return all, fmt.Errorf("op %q: %w", f.Name, err)
		}
		for i := range a.args {
			if a.args[i], err = a.args[i].Disclosed(link.Secrets); err != nil {
				return all, fmt.Errorf("op %q: %w", f.Name, err)
			}
		}
		a.lay(link.Run)
		all[f.Verb] = a
	}
	return all, nil
}

// scripts returns the texts of all scripts, each once.
func (all *asks) scripts() []string {
	var texts []string
	for _, a := range all {
		if a != nil && a.script != "" && !slices.Contains(texts, a.script) {
			texts = append(texts, a.script)
		}
	}
	return texts
}

// AppendRequest appends the command of the form, if the verb has one.
func (c *worded) AppendRequest(dst []byte, req *driver.Request) []byte {
	if a := c.asks[req.Verb]; a != nil {
		return a.append(dst, req)
	}
	return c.codec.AppendRequest(dst, req)
}

// Offsets implements driver.Layout.
func (c *worded) Offsets(req *driver.Request) (keyAt, valueAt int) {
	if a := c.asks[req.Verb]; a != nil {
		return a.offsets(req)
	}
	return c.codec.Offsets(req)
}

// Skim implements driver.Skimmer.
func (c *worded) Skim(b []byte, verb driver.Verb, most int) (n, took int) {
	if a := c.asks[verb]; a != nil {
		return a.skim(b, most)
	}
	return c.codec.Skim(b, verb, most)
}

// Outline implements driver.Skimmer.
func (c *worded) Outline(b []byte, verb driver.Verb) int {
	if a := c.asks[verb]; a != nil {
		return a.outline(&c.codec, b)
	}
	return c.codec.Outline(b, verb)
}

// Parse reads one reply.
func (c *worded) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	if a := c.asks[verb]; a != nil {
		return a.parse(&c.codec, b, reply)
	}
	return c.codec.Parse(b, verb, reply)
}

// skim takes replies that are evidently ok: texts, statuses and integers.
func (a *ask) skim(b []byte, most int) (n, took int) {
	if !a.rules.usual || a.captures != nil {
		return 0, 0
	}
	for n < most && took < len(b) {
		if b[took] == '$' {
			more, size := skimBulks(b[took:], most-n)
			if more == 0 {
				break
			}
			n, took = n+more, took+size
			continue
		}
		if b[took] != ':' && b[took] != '+' {
			break
		}
		r, size, err := readValue(b[took:])
		if size == 0 || err != nil || r.kind == errorReply {
			break
		}
		n, took = n+1, took+size
	}
	return n, took
}

// outline implements Outline of driver.Skimmer.
func (a *ask) outline(c *codec, b []byte) int {
	if !a.rules.usual || a.captures != nil {
		return 0
	}
	return c.Outline(b, driver.Get)
}

// parse reads a reply of any kind, whole.
func (a *ask) parse(c *codec, b []byte, reply *driver.Reply) (int, error) {
	if a.block || a.selects {
		return a.parseAll(c, b, reply)
	}
	if a.rules.usual && a.captures == nil {
		if value, n := shortBulk(b); n > 0 {
			*reply = driver.Reply{Value: value} // ok
			return n, nil
		}
	}
	*reply = driver.Reply{}
	r, n, err := c.read(b)
	if n == 0 || err != nil {
		return 0, err
	}
	var within []byte
	if r.elements() > 0 {
		if n, within, err = through(b, n, r.elements(), c.read); n == 0 || err != nil {
			return 0, err
		}
	}
	if r.kind == errorReply {
		if a.script != "" && bytes.HasPrefix(r.text, lostScript) {
			return 0, errors.New("NOSCRIPT: the server has forgotten the script; a new connection loads it again")
		}
		if reply.Outcome = a.rules.failure(r.text); reply.Outcome != driver.Miss {
			reply.Message = c.told(r.text)
		}
		return n, nil
	}
	if within != nil { // part of the request was not done, whatever else the reply holds
		reply.Outcome, reply.Message = driver.Error, c.told(within)
		return n, nil
	}
	if reply.Outcome = a.rules.outcome(&r); reply.Outcome == driver.Error {
		reply.Message = kinds[r.kind]
	}
	if r.kind == bulk {
		reply.Value = r.text
	}
	if reply.Outcome == driver.OK && a.captures != nil {
		a.captures.Find(reply, a.op, func(element int) ([]byte, string) { return part(b, element, c.read) })
	}
	return n, nil
}

// through returns how many bytes a reply takes, given a header of at bytes with left values after it, including all nested values; 0 if it is
// incomplete; and the first error among them. It takes no more memory for nested values, however deep.
func through(b []byte, at int, left int64, read reader) (n int, failed []byte, err error) {
	p := driver.Progress{At: at, Left: left, Seen: left}
	failed, whole, err := walk(b, &p, read)
	if !whole || err != nil {
		return 0, nil, err
	}
	return p.At, failed, nil
}

// walk continues through the values of a reply. It returns the first error among those that it passes, and whether it has reached the end.
func walk(b []byte, p *driver.Progress, read reader) (failed []byte, whole bool, err error) {
	for ; p.Left > 0; p.Left-- {
		r, n, err := read(b[p.At:])
		if n == 0 || err != nil {
			return nil, false, err
		}
		if r.kind == errorReply && failed == nil {
			failed = r.text
		}
		inner := r.elements()
		if p.Seen += inner; p.Seen > maxElements {
			return nil, false, fmt.Errorf("reply of more than %d values: got %s", maxElements, quote(b))
		}
		p.Left += inner
		p.At += n
	}
	return failed, true, nil
}

// Resume implements driver.Resumer.
func (c *codec) Resume(b []byte, p *driver.Progress) (bool, error) {
	if p.At == 0 {
		r, n, err := c.read(b)
		if n == 0 || err != nil {
			return false, err
		}
		*p = driver.Progress{At: n, Left: r.elements(), Seen: r.elements()}
	}
	_, whole, err := walk(b, p, c.read)
	return whole, err
}

// facts says why the server's description of a command rules it out as a request for a load; "" if it does not.
func (a *ask) facts(arity int64, flags []string) string {
	words := int64(len(a.args))
	switch {
	case arity > 0 && words != arity, arity < 0 && words < -arity:
		least := ""
		if arity < 0 {
			least, arity = "at least ", -arity
		}
		return fmt.Sprintf("it has %d words, and takes %s%d, its name included", words, least, arity)
	case slices.Contains(flags, "pubsub"):
		return subscribes
	case slices.Contains(flags, "blocking") && !strings.HasPrefix(strings.ToUpper(a.args[0].String()), "XREAD"):
		return blocks
	}
	return ""
}
