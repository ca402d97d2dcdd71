package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

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
	kind string // json, header, cookie or body
	name string // of a header or a cookie
	path path
	re   *regexp.Regexp // of a body; nil for all of it
}

const writeSelector = `write "json $.a.b", "header NAME", "cookie NAME", "body", or "body REGEXP", whose first group counts`

func parseSelector(text string) (s selector, err error) {
	kind, rest, _ := strings.Cut(text, " ")
	s = selector{kind: kind, name: rest}
	switch {
	case len(text) > mostSelector:
		err = fmt.Errorf("%d bytes: write at most %d", len(text), mostSelector)
	case kind == "json":
		s.path, err = parsePath(rest)
	case kind == "body" && rest != "":
		s.re, err = regexp.Compile(rest)
	case text == "body", (kind == "header" || kind == "cookie") && httpguts.ValidHeaderFieldName(rest):
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

// look reads what a form looks at in responses: what should be equal, then what should match, each by name, then what should be absent; and captures.
func (w *wording) look(f *Form, parse func(attribute, text string) form.Template, wrong func(string, ...any)) {
	selected := func(text string) (selector, error) {
		s, err := parseSelector(text)
		if s.kind == "json" || s.kind == "body" {
			w.holds = mostLooked
		}
		return s, err
	}
	add := func(attribute, text string, c check) {
		var err error
		if c.selector, err = selected(text); err != nil {
			wrong("%s has %.80q: %w", attribute, text, err)
		}
		if !slices.Contains(w.names, text) {
			w.names = append(w.names, text)
		}
		c.number = slices.Index(w.names, text) + 1
		w.checks = append(w.checks, c)
	}
	e := cmp.Or(f.Expect, new(Expect))
	for _, text := range slices.Sorted(maps.Keys(e.Equal)) {
		add("equal", text, check{equal: parse("equal", e.Equal[text]), shown: e.Equal[text]})
	}
	for _, text := range slices.Sorted(maps.Keys(e.Match)) {
		re, err := regexp.Compile(e.Match[text])
		if err != nil {
			wrong("match of %.80q: %w", text, err)
		}
		add("match", text, check{match: re})
	}
	for _, text := range e.Absent {
		add("absent", text, check{absent: true})
	}
	if len(w.names) > driver.MaxChecks {
		wrong("expect has %d checks: write at most %d", len(w.names), driver.MaxChecks)
	}
	var err error
	if w.captures, err = form.ParseCaptures(f.Capture, selected); err != nil {
		wrong("%w", err)
	}
}

const missing = "missing"

// find looks for a part of the response. It returns the text, valid until the next request, and what it is, if it is not plain text: "missing", "a list",
// "the number ".
func (c *client) find(s selector) (text []byte, is string) {
	switch s.kind {
	case "json":
		return findJSON(s.path, c.looked)
	case "header":
		if text = c.response.Header.Peek(s.name); len(text) > 0 {
			return text, ""
		}
	case "cookie":
		for _, line := range c.response.Header.Cookies() {
			if cookie, err := http.ParseSetCookie(string(line)); err == nil && cookie.Name == s.name {
				return []byte(cookie.Value), ""
			}
		}
	default:
		if s.re == nil {
			return c.looked, ""
		}
		if groups := s.re.FindSubmatch(c.looked); groups != nil {
			return groups[min(1, len(groups)-1)], ""
		}
	}
	return nil, missing
}

func findJSON(p path, body []byte) (text []byte, is string) {
	switch v := p.find(body); {
	case v.Type == gjson.String:
		return []byte(v.Str), ""
	case v.Type == gjson.Number:
		return []byte(v.Raw), "the number " // v.Str would have 1 for 1.0
	case v.IsBool():
		return []byte(v.Raw), "the bool "
	case v.IsArray():
		return nil, "a list"
	case v.IsObject():
		return nil, "an object"
	case v.Raw == "null": // is nothing
		return nil, missing + ": it is null"
	}
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return nil, missing + ": the body is empty"
	case body[0] != '{' && body[0] != '[':
		return nil, missing + ": the body is not JSON"
	}
	return nil, missing
}

// inspect checks a response that is otherwise ok, and captures what its scenario is to keep.
func (c *client) inspect(w *wording, req *driver.Request, reply *driver.Reply) {
	if err := c.unpack(); err != nil {
		c.refuse(reply, "%s: %v", w.op, err)
		return
	}
	for i := range w.checks {
		check := &w.checks[i]
		if says := c.failed(w, check, req); says != "" {
			c.found.Failed = check.number
			c.refuse(reply, "%s: %s %s", w.op, w.names[check.number-1], says)
			return
		}
	}
	w.captures.Find(reply, w.op, c.find)
}

// failed says how a response fails a check; "" if it does not.
func (c *client) failed(w *wording, check *check, req *driver.Request) string {
	text, is := c.find(check.selector)
	plain := is == "" || len(text) > 0
	switch {
	case check.absent && strings.HasPrefix(is, missing):
	case check.absent:
		return "is there: " + c.quote(w, text, is, req)
	case check.match != nil && !(plain && check.match.Match(text)):
		return fmt.Sprintf("is %s, which does not match %q", c.quote(w, text, is, req), check.match)
	case check.match == nil:
		if c.body = check.equal.Append(c.body[:0], req, c.run); !plain || !bytes.Equal(c.body, text) {
			return fmt.Sprintf("is %s, not “%s”", c.quote(w, text, is, req), check.shown)
		}
	}
	return ""
}

// quote shows the beginning of what was found, without secrets and what the scenario has captured; nothing of a response from which something is to be
// captured.
func (c *client) quote(w *wording, found []byte, is string, req *driver.Request) string {
	switch {
	case is != "" && found == nil:
		return is
	case w.captures != nil:
		return is + "“…”"
	}
	hidden := slices.Clip(c.secrets)
	if req.Bag != nil {
		for _, n := range *req.Bag {
			hidden = append(hidden, n.Text)
		}
	}
	text := string(found)
	for _, what := range hidden {
		if what != "" {
			text = strings.ReplaceAll(text, what, "…")
		}
	}
	if len(text) > mostQuoted {
		text = strings.ToValidUTF8(text[:mostQuoted], "") + "…"
	}
	return is + "“" + text + "”"
}

// unpack makes ready the body that is looked at.
func (c *client) unpack() (err error) {
	switch encoding := string(c.response.Header.ContentEncoding()); {
	case encoding == "" || encoding == "identity" || len(c.value) == 0:
		c.looked = c.value
		return nil
	case encoding != "gzip":
		return fmt.Errorf("a body in the encoding %.40q, which cannot be looked at: write Accept-Encoding = \"gzip\" in headers, or leave it out", encoding)
	}
	c.response.SetBodyRaw(c.value)
	if c.looked, err = c.response.BodyGunzipWithLimit(mostLooked); errors.Is(err, fasthttp.ErrBodyTooLarge) {
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
	if c.jar = c.jar[:0]; req.Bag != nil {
		c.jar = slices.DeleteFunc(append(c.jar, *req.Bag...), func(n driver.Noted) bool { return n.Target != req.Target || !strings.HasPrefix(n.Name, "cookie.") })
	}
}
