package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

const (
	mostLooked   = 1 << 20 // bytes of a body that is looked at
	mostQuoted   = 64      // bytes of a response in a message
	mostSelector = 200     // bytes
	mostCookies  = 50      // of a scenario, as browsers have at least (RFC 6265, section 6.1)
	mostCookie   = 4 << 10 // bytes of one
)

// selector names a part of a response.
type selector struct {
	text string // as in the plan
	kind string // json, header, cookie or body
	name string // of a header or a cookie
	path path
	re   *regexp.Regexp // of a body; nil for all of it
}

const writeSelector = `write "json $.a.b", "header NAME", "cookie NAME", "body", or "body REGEXP", whose first group counts`

func parseSelector(text string) (s selector, err error) {
	kind, rest, _ := strings.Cut(text, " ")
	s = selector{text: text, kind: kind, name: rest}
	switch {
	case len(text) > mostSelector:
		err = fmt.Errorf("%d bytes: write at most %d", len(text), mostSelector)
	case kind == "json":
		s.path, err = parsePath(rest)
	case kind == "body" && rest != "":
		s.re, err = regexp.Compile(rest)
	case text == "body", (kind == "header" || kind == "cookie") && token(rest):
	default:
		err = errors.New(writeSelector)
	}
	return s, err
}

// check is what a form expects of a part of a response.
type check struct {
	selector
	number int            // of its name among the form's checks, from 1
	equal  form.Template  // what it should be, unless one of the next two is set
	match  *regexp.Regexp // what it should match
	absent bool           // it should not be there
	shown  string         // equal, for people: without secrets
}

// capture is a part of a response that the scenario keeps.
type capture struct {
	selector
	as string // its name
}

// expects reads what is expected, besides statuses: what should be equal, then what should match, each by name, then what should be absent.
func (w *wording) expects(e *Expect, parse func(attribute, text string) form.Template, wrong func(string, ...any)) {
	add := func(attribute, text string) *check {
		s, err := parseSelector(text)
		if err != nil {
			wrong("%s has %.80q: %w", attribute, text, err)
		}
		if !slices.Contains(w.names, text) {
			w.names = append(w.names, text)
		}
		w.checks = append(w.checks, check{selector: s, number: slices.Index(w.names, text) + 1})
		return &w.checks[len(w.checks)-1]
	}
	for _, text := range slices.Sorted(maps.Keys(e.Equal)) {
		c := add("equal", text)
		c.equal, c.shown = parse("equal", e.Equal[text]), e.Equal[text]
	}
	for _, text := range slices.Sorted(maps.Keys(e.Match)) {
		re, err := regexp.Compile(e.Match[text])
		if err != nil {
			wrong("match of %.80q: %w", text, err)
		}
		add("match", text).match = re
	}
	for _, text := range e.Absent {
		add("absent", text).absent = true
	}
	if len(w.names) > driver.MaxChecks {
		wrong("expect has %d checks: write at most %d", len(w.names), driver.MaxChecks)
	}
}

// catches reads what is captured.
func (w *wording) catches(all map[string]string, wrong func(string, ...any)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, err := parseSelector(all[name])
		if err != nil {
			wrong("capture %s = %.80q: %w", name, all[name], err)
		} else if err = form.CheckCapture(name); err != nil {
			wrong("%w", err)
		}
		w.captures = append(w.captures, capture{s, name})
	}
}

// looks reports whether the body of a response is looked at.
func (w *wording) looks() bool {
	body := func(s *selector) bool { return s.kind == "json" || s.kind == "body" }
	return slices.ContainsFunc(w.checks, func(c check) bool { return body(&c.selector) }) ||
		slices.ContainsFunc(w.captures, func(c capture) bool { return body(&c.selector) })
}

// found is what a selector finds.
type found struct {
	text []byte // valid until the next request
	is   string // what it is, if it is not plain text: "missing", "a list", "the number "
}

// plain reports whether there is text to compare.
func (f *found) plain() bool { return f.is == "" || len(f.text) > 0 }

// none reports whether there is nothing. A JSON null is nothing.
func (f *found) none() bool { return strings.HasPrefix(f.is, missing) }

const missing = "missing"

// find looks for a part of the response.
func (c *client) find(s *selector) (f found) {
	there := true
	switch s.kind {
	case "json":
		return findJSON(s.path, c.looked)
	case "header":
		f.text = c.response.Header.Peek(s.name)
		there = len(f.text) > 0
	case "cookie":
		there = false
		for name, line := range c.response.Header.Cookies() {
			if string(name) == s.name {
				value, _, _ := bytes.Cut(line[len(name):], []byte(";"))
				f.text, there = bytes.Trim(bytes.TrimPrefix(value, []byte("=")), `"`), true
			}
		}
	default:
		if f.text = c.looked; s.re != nil {
			groups := s.re.FindSubmatch(c.looked)
			if there = groups != nil; there {
				f.text = groups[min(1, len(groups)-1)]
			}
		}
	}
	if !there {
		f.is = missing
	}
	return f
}

func findJSON(p path, body []byte) (f found) {
	switch v := p.find(body); {
	case v.Type == gjson.String:
		f.text = []byte(v.Str)
	case v.Type == gjson.Number:
		f = found{[]byte(v.Raw), "the number "} // v.Str would have 1 for 1.0
	case v.IsBool():
		f = found{[]byte(v.Raw), "the bool "}
	case v.IsArray():
		f.is = "a list"
	case v.IsObject():
		f.is = "an object"
	case v.Raw == "null":
		f.is = missing + ": it is null"
	case len(bytes.TrimSpace(body)) == 0:
		f.is = missing + ": the body is empty"
	case bytes.IndexByte([]byte("{["), bytes.TrimSpace(body)[0]) < 0:
		f.is = missing + ": the body is not JSON"
	default:
		f.is = missing
	}
	return f
}

// look checks a response that is otherwise ok, and captures what its scenario is to keep.
func (c *client) look(w *wording, req *driver.Request, reply *driver.Reply) {
	if err := c.unpack(); err != nil {
		c.refuse(reply, "%s: %v", w.op, err)
		return
	}
	for i := range w.checks {
		if says := c.failed(w, &w.checks[i], req); says != "" {
			c.found.Failed = w.checks[i].number
			c.refuse(reply, "%s: %s %s", w.op, w.checks[i].text, says)
			return
		}
	}
	for i := range w.captures {
		f := c.find(&w.captures[i].selector)
		if err := form.Capture(&c.found.Bag, w.op, w.captures[i].text, w.captures[i].as, f.text, f.is); err != nil {
			c.refuse(reply, "%v", err)
			return
		}
	}
}

// show gives a reply what was found in it.
func (c *client) show(reply *driver.Reply) {
	if c.found.Failed > 0 || c.found.Hops > 0 || len(c.found.Bag) > 0 {
		reply.Found = &c.found
	}
}

// failed says how a response fails a check; "" if it does not.
func (c *client) failed(w *wording, check *check, req *driver.Request) string {
	f := c.find(&check.selector)
	switch {
	case check.absent && f.none():
	case check.absent:
		return "is there: " + c.quote(w, &f, req)
	case check.match != nil && !(f.plain() && check.match.Match(f.text)):
		return fmt.Sprintf("is %s, which does not match %q", c.quote(w, &f, req), check.match)
	case check.match == nil:
		c.body = check.equal.Append(c.body[:0], req, c.run)
		if f.plain() && bytes.Equal(c.body, f.text) {
			return ""
		}
		return fmt.Sprintf("is %s, not “%s”", c.quote(w, &f, req), check.shown)
	}
	return ""
}

// quote shows the beginning of what was found, without secrets and what the scenario has captured; nothing of a response from which something is to be
// captured.
func (c *client) quote(w *wording, f *found, req *driver.Request) string {
	if !f.plain() {
		return f.is
	}
	if len(w.captures) > 0 {
		return f.is + "“…”"
	}
	text := string(f.text)
	hide := func(what string) {
		if what != "" {
			text = strings.ReplaceAll(text, what, "…")
		}
	}
	for _, secret := range c.secrets {
		hide(secret)
	}
	if req.Bag != nil {
		for _, n := range *req.Bag {
			hide(n.Text)
		}
	}
	if len(text) > mostQuoted {
		text = strings.ToValidUTF8(text[:mostQuoted], "") + "…"
	}
	return f.is + "“" + text + "”"
}

// unpack makes ready the body that is looked at.
func (c *client) unpack() (err error) {
	switch encoding := string(c.response.Header.ContentEncoding()); {
	case encoding == "" || encoding == "identity" || len(c.value) == 0:
		c.looked = c.value
		return nil
	case encoding != "gzip":
		return fmt.Errorf("a body in the encoding %.40q, which cannot be looked at: write Accept-Encoding = \"gzip\" in headers, or leave it out", encoding)
	case c.unzip == nil:
		c.unzip, err = gzip.NewReader(bytes.NewReader(c.value))
	default:
		err = c.unzip.Reset(bytes.NewReader(c.value))
	}
	if err == nil {
		c.looked, err = io.ReadAll(io.LimitReader(c.unzip, mostLooked+1))
	}
	if err == nil && len(c.looked) > mostLooked {
		err = errTooLong
	}
	return err
}

var errTooLong = fmt.Errorf("a body of more than %v, too long to be looked at", driver.Size(mostLooked))

// remember takes the cookies of a response.
func (c *client) remember(target int) error {
	for name, line := range c.response.Header.Cookies() {
		cookie, err := http.ParseSetCookie(string(line))
		if err != nil || len(cookie.Name)+len(cookie.Value) > mostCookie {
			return fmt.Errorf("a cookie %.40q of %d bytes that is not one, or too long", name, len(line))
		}
		n := driver.Noted{Name: "cookie." + cookie.Name, Target: target, Text: cookie.Value}
		said, err := http.ParseTime(string(c.response.Header.Peek("Date")))
		if cookie.MaxAge < 0 || err == nil && !cookie.Expires.IsZero() && !cookie.Expires.After(said) {
			n.Text = "" // it is over: a cookie without a value is not sent
		}
		c.found.Bag.Put(n)
		if c.jar.Put(n); len(c.jar) > mostCookies {
			return fmt.Errorf("more than %d cookies", mostCookies)
		}
	}
	return nil
}

// appendCookies appends the header with the cookies of a request.
func (c *client) appendCookies(dst []byte) []byte {
	before := "Cookie: "
	for i := range c.jar {
		if n := &c.jar[i]; n.Text != "" {
			dst = append(append(append(append(dst, before...), n.Name[len("cookie."):]...), '='), n.Text...)
			before = "; "
		}
	}
	if before == "; " {
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// fill puts the cookies of the request's scenario into the jar.
func (c *client) fill(req *driver.Request) {
	c.jar = c.jar[:0]
	if req.Bag == nil {
		return
	}
	for _, n := range *req.Bag {
		if n.Target == req.Target && strings.HasPrefix(n.Name, "cookie.") {
			c.jar = append(c.jar, n)
		}
	}
}
