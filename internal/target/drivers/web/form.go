package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
	"golang.org/x/net/http/httpguts"
)

// Form is the content of an op block of a web target.
type Form struct {
	Request Request `hcl:"request,block" json:"request"`
	Expect  *Expect `hcl:"expect,block" json:"expect,omitempty"`

	Capture map[string]string `hcl:"capture,optional" json:"capture,omitempty"` // selectors by the names of what they find
}

// Request says what to send.
type Request struct {
	Form    string            `hcl:"form,optional" json:"form,omitempty"` // "vegeta" if the key is the request and the other fields are empty; "" if the other fields are the request
	Method  string            `hcl:"method,optional" json:"method"`
	Path    string            `hcl:"path,optional" json:"path"` // a template, including any query; the text of a placeholder is escaped
	Headers map[string]string `hcl:"headers,optional" json:"headers,omitempty"`
	Body    string            `hcl:"body,optional" json:"body,omitempty"`
	JSON    form.JSON         `hcl:"json,optional" json:"json,omitempty"`     // instead of a body, as are the next two
	Fields  map[string]string `hcl:"fields,optional" json:"fields,omitempty"` // of an HTML form
	Parts   []Part            `hcl:"part,block" json:"part,omitempty"`        // of a form with files
	Basic   string            `hcl:"basic,optional" json:"basic,omitempty"`   // USER:PASSWORD
	Follow  int               `hcl:"follow,optional" json:"follow,omitempty"` // the most redirects to follow, on the same origin
}

// Part is a part of a multipart body (RFC 7578).
type Part struct {
	Name string     `hcl:"name,label" json:"name"`
	Text string     `hcl:"text,optional" json:"text,omitempty"`
	File *form.File `hcl:"file,optional" json:"file,omitempty"`
}

// harmless matches headers whose values are no secrets, and tokenIn a query that looks like one.
var (
	harmless  = regexp.MustCompile(`(?i)^(accept|accept-.*|content-type|content-language|user-agent|range|if-.*|cache-control|pragma|origin|dnt)$`)
	tokenIn   = regexp.MustCompile(`(?i)[?&;]([a-z0-9_.-]*(?:token|secret|pass|passwd|password|pwd|api[_-]?key|access[_-]?key|signature|session|session[_-]?id|jwt|auth)|key|sig|sid)=[^&{]`)
	elsewhere = regexp.MustCompile(`\{(captured|row)\.`) // in a template: what a plan does not hold
	private   = regexp.MustCompile(`(?i)auth|cookie|token|secret|passw|key|session`)
)

// Harmless says whether the value of a header is no secret.
func Harmless(name string) bool { return harmless.MatchString(name) }

// Exposed names the headers and query parameters that look like secrets and are in clear.
func (f *Form) Exposed() (names []string) {
	r := f.Request
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if private.MatchString(name) && !harmless.MatchString(name) && len(driver.SecretsIn(r.Headers[name])) == 0 && !elsewhere.MatchString(r.Headers[name]) {
			names = append(names, "header "+name)
		}
	}
	for _, match := range tokenIn.FindAllStringSubmatch(r.Path, -1) {
		names = append(names, match[1]+" in the path")
	}
	return names
}

// Expect says which statuses mean which outcome; each list replaces the usual one. What is ok by its status is an error if one of the checks fails.
type Expect struct {
	OK       []int `hcl:"ok,optional" json:"ok,omitempty"`
	Miss     []int `hcl:"miss,optional" json:"miss,omitempty"`
	Conflict []int `hcl:"conflict,optional" json:"conflict,omitempty"`

	Equal  map[string]string `hcl:"equal,optional" json:"equal,omitempty"`   // templates by selector
	Match  map[string]string `hcl:"match,optional" json:"match,omitempty"`   // regular expressions by selector
	Absent []string          `hcl:"absent,optional" json:"absent,omitempty"` // selectors
}

// vegetaForm is the form in which keys are whole requests, from a file of vegeta's targets.
const vegetaForm = "vegeta"

// usual are the requests of a store of keys.
var usual = [...]*Form{
	driver.Get:    {Request: Request{Method: "GET", Path: "/{key}"}},
	driver.Put:    {Request: Request{Method: "PUT", Path: "/{key}", Body: "{value}"}},
	driver.Delete: {Request: Request{Method: "DELETE", Path: "/{key}"}},
}

// header is one header of a request.
type header struct {
	name  string
	value form.Template
}

// wording is a compiled form.
type wording struct {
	whole    bool // keys are requests; of the fields below, only fixed, outcomes and the last two are used
	method   string
	path     form.Template
	headers  []header
	body     form.Template
	basic    form.Template
	follow   int
	led      bool                // the path is what was captured, as it is
	gets     bool                // replies have the body
	holds    int                 // the most bytes of a body that is needed; 0 if it is not
	outcomes [600]driver.Outcome // by status

	op       string // its name
	checks   []check
	names    []string // of the checks, each once
	captures form.Captures[selector]
	keeps    bool // it checks, captures, keeps cookies or follows redirects

	start string // beginning of the head, up to the path
	fixed string // part of the head, from the path to the form's headers

	userAgent, authorization string // lines added to a whole request that has none of its own
}

const (
	mostHeaders = 50
	mostText    = 8 << 10 // bytes of the text of a path or header
)

// taken are headers that the driver writes itself.
var taken = map[string]string{
	"host": "write host = \"…\" in the target", "content-length": "leave it out: it is the body's", "transfer-encoding": "leave it out: bodies have a length",
	"connection": "leave it out: connections stay open", "expect": "leave it out: bodies follow at once",
	"upgrade": "leave it out: requests are of HTTP/1.1", "trailer": "leave it out: bodies have a length", "te": "leave it out: bodies have a length",
}

// compile makes a wording from a form, or reports everything that is wrong with it.
func compile(f *Form, verb driver.Verb) (*wording, error) {
	if f.Request.Form != "" {
		return compileWhole(f, verb)
	}
	w := &wording{method: f.Request.Method, follow: f.Request.Follow}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	parse := parsing(wrong)
	if !httpguts.ValidHeaderFieldName(w.method) || len(w.method) > 32 || w.method != strings.ToUpper(w.method) || w.method == "CONNECT" {
		wrong("method = %.60q: write GET, PUT, POST, DELETE, HEAD or another method of the server's, in capitals; not CONNECT", w.method)
	}
	w.path = parse("path", f.Request.Path)
	w.led = len(w.path) == 1 && w.path[0].Kind == form.Noted
	if len(f.Request.Path) > mostText || !w.led && !strings.HasPrefix(f.Request.Path, "/") || strings.ContainsFunc(f.Request.Path, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
		wrong("path = %.60q: write a path that begins with / and is escaped as in a URL, of at most %d bytes", f.Request.Path, mostText)
	}
	if w.path.Count(form.Value) > 0 {
		wrong("path = %.60q: write {value} in the body: a path has no room for it", f.Request.Path)
	}
	w.headers = readHeaders(f.Request.Headers, parse, wrong)
	w.content(&f.Request, parse, wrong)
	if w.body != nil && (w.method == "GET" || w.method == "HEAD") {
		wrong("body of a %s: leave it out, or write method = \"POST\"", w.method)
	}
	if w.basic = parse("basic", f.Request.Basic); w.basic != nil && (!strings.Contains(f.Request.Basic, ":") || w.has("Authorization")) {
		wrong("basic = %.60q: write USER:PASSWORD, and no Authorization in headers", f.Request.Basic)
	}
	if w.follow < 0 || w.follow > mostHops {
		wrong("follow = %d: write how many redirects to follow, up to %d", w.follow, mostHops)
	}
	readStatuses(w, f.Expect, verb, wrong)
	w.look(f, parse, wrong)
	return w, errors.Join(errs...)
}

const mostHops = 20

// content reads the body of requests.
func (w *wording) content(r *Request, parse func(attribute, text string) form.Template, wrong func(string, ...any)) {
	kind, kinds := "", 0
	if r.Body != "" {
		w.body, kinds = parse("body", r.Body), kinds+1
	}
	if r.JSON != "" {
		t, err := r.JSON.Template()
		if err != nil {
			wrong("json has %w", err)
		}
		w.body, kind, kinds = t, "application/json", kinds+1
	}
	if len(r.Fields) > 0 {
		w.body, kind, kinds = form.Template{}, "application/x-www-form-urlencoded", kinds+1
		for i, name := range slices.Sorted(maps.Keys(r.Fields)) {
			w.body = w.body.Add(form.Part{Text: "&"[:min(i, 1)] + url.QueryEscape(name) + "="}).Add(parse("fields", r.Fields[name])...)
		}
	}
	if len(r.Parts) > 0 {
		kind, kinds = w.multipart(r.Parts, parse, wrong), kinds+1
	}
	switch {
	case kinds > 1:
		wrong("request has several of body, json, fields and part: write one")
	case kind != "" && len(r.Parts) > 0 && w.has("Content-Type"):
		wrong("headers has Content-Type beside part: leave it out: it names the boundary of the parts")
	case kind != "" && !w.has("Content-Type"):
		w.headers = append(w.headers, header{"Content-Type", form.Template{{Text: kind}}})
	}
}

// multipart makes a body of parts, and returns its type.
func (w *wording) multipart(parts []Part, parse func(attribute, text string) form.Template, wrong func(string, ...any)) string {
	all, _ := json.Marshal(parts)                                 // they are from JSON
	boundary := fmt.Sprintf("loadgen%x", sha256.Sum256(all))[:39] // which occurs in no part
	w.body = form.Template{}
	for _, p := range parts {
		head := fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=%q", boundary, p.Name)
		content := parse("part", p.Text)
		if !plain(p.Name) || p.Name == "" || (p.File != nil) == (p.Text != "") {
			wrong("part %.60q: write part \"NAME\" { file = \"photo.png\" } or { text = \"…\" }", p.Name)
		}
		if p.File != nil {
			data, err := base64.StdEncoding.DecodeString(p.File.Data)
			if err != nil {
				wrong("part %.60q: %w", p.Name, err)
			}
			head += fmt.Sprintf("; filename=%q\r\nContent-Type: %s", filepath.Base(p.File.Path), p.File.Type)
			content = form.Template{{Text: string(data)}}
		}
		w.body = w.body.Add(form.Part{Text: head + "\r\n\r\n"}).Add(content...).Add(form.Part{Text: "\r\n"})
	}
	w.body = w.body.Add(form.Part{Text: "--" + boundary + "--\r\n"})
	return "multipart/form-data; boundary=" + boundary
}

// has reports whether a form has a header of its own.
func (w *wording) has(name string) bool {
	return slices.ContainsFunc(w.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// escapes says how what placeholders stand for is written in an attribute's text, so that no key ends a line or reaches beyond its part of a path.
var escapes = map[string]form.Escape{
	"path":    percent(func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-._~/:@", c) >= 0 }),
	"headers": percent(func(c byte) bool { return c >= ' ' && c < 0x7f }),
	"fields":  percent(func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-._~", c) >= 0 }),
}

// percent returns the Escape that makes %XX of each byte that may does not allow.
func percent(may func(byte) bool) form.Escape {
	const digits = "0123456789ABCDEF"
	return func(dst []byte, c byte) []byte {
		if may(c) {
			return append(dst, c)
		}
		return append(dst, '%', digits[c>>4], digits[c&15])
	}
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// parsing returns a function that parses the text of an attribute.
func parsing(wrong func(string, ...any)) func(attribute, text string) form.Template {
	return func(attribute, text string) form.Template {
		t, err := form.Parse(text)
		if err != nil {
			wrong("%s = %.60q: %w", attribute, text, err)
		}
		return t.Escaped(escapes[attribute], attribute == "fields")
	}
}

// compileWhole makes a wording from a form whose keys are requests.
func compileWhole(f *Form, verb driver.Verb) (*wording, error) {
	w := &wording{whole: true}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.Request.Form != vegetaForm {
		wrong("form = %.60q: write %q, for keys that are requests of a file, or leave it out", f.Request.Form, vegetaForm)
	}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[Request]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("hcl"), ","); name != "form" && !reflect.ValueOf(f.Request).Field(i).IsZero() {
			wrong("%s beside form: leave it out: requests are those of the file", name)
		}
	}
	if !verb.Own() {
		wrong("form = %.60q of a %v: give the op a name of its own, as in op \"replay\": a request may do anything", f.Request.Form, verb)
	}
	readStatuses(w, f.Expect, verb, wrong)
	w.look(f, parsing(wrong), wrong)
	return w, errors.Join(errs...)
}

// templates returns all templates of a wording.
func (w *wording) templates() []*form.Template {
	all := []*form.Template{&w.path, &w.body, &w.basic}
	for i := range w.headers {
		all = append(all, &w.headers[i].value)
	}
	for i := range w.checks {
		all = append(all, &w.checks[i].equal)
	}
	return all
}

// disclose puts the secrets into the templates.
func (w *wording) disclose(lookUp func(name string) (string, error)) error {
	var errs []error
	for _, t := range w.templates() {
		var err error
		*t, err = t.Disclosed(lookUp)
		errs = append(errs, err)
	}
	for _, h := range w.headers {
		for _, p := range h.value {
			if p.Kind == form.Secret && (!plain(p.Text) || len(p.Text) > mostText/2) {
				errs = append(errs, fmt.Errorf("a secret in header %q holds what no header may: write printable characters on one line", h.name))
			}
		}
	}
	return errors.Join(errs...)
}

// readHeaders reads a form's headers, sorted by name.
func readHeaders(all map[string]string, parse func(attribute, text string) form.Template, wrong func(string, ...any)) (headers []header) {
	if len(all) > mostHeaders {
		wrong("headers has %d entries: write at most %d", len(all), mostHeaders)
		return nil
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, lower := all[name], strings.ToLower(name)
		remedy, own := taken[lower]
		switch {
		case !httpguts.ValidHeaderFieldName(name) || len(name) > 100:
			wrong("headers has %.60q: write a header's name, of letters, digits and -", name)
		case own:
			wrong("headers has %q: %s", name, remedy)
		case seen[lower]:
			wrong("headers has %q twice: write it once", name)
		case len(text) > mostText || !plain(text):
			wrong("headers has %.60q for %q: write printable ASCII characters, at most %d", text, name, mostText)
		default:
			t := parse("headers", text)
			if t.Count(form.Value) > 0 {
				wrong("headers has {value} for %q: write it in the body: a header has no room for it", name)
			}
			headers = append(headers, header{name, t})
		}
		seen[lower] = true
	}
	return headers
}

// readStatuses records which status means which outcome.
func readStatuses(w *wording, e *Expect, verb driver.Verb, wrong func(string, ...any)) {
	e = cmp.Or(e, new(Expect))
	for status := range w.outcomes {
		switch {
		case e.OK == nil && status/100 == 2:
			w.outcomes[status] = driver.OK
		case e.Miss == nil && (status == 404 || status == 410) && (verb == driver.Get || verb == driver.Delete): // of others, an error
			w.outcomes[status] = driver.Miss
		case e.Conflict == nil && (status == 409 || status == 412):
			w.outcomes[status] = driver.Conflict
		default:
			w.outcomes[status] = driver.Error
		}
	}
	named := map[int]bool{}
	for _, list := range []struct {
		name    string
		written []int
		outcome driver.Outcome
	}{{"ok", e.OK, driver.OK}, {"miss", e.Miss, driver.Miss}, {"conflict", e.Conflict, driver.Conflict}} {
		for _, status := range list.written {
			switch {
			case status < 200 || status > 599:
				wrong("%s has the status %d: write one from 200 to 599", list.name, status)
				continue
			case named[status]:
				wrong("%s has the status %d, which another list has, too: write it once", list.name, status)
			}
			named[status], w.outcomes[status] = true, list.outcome
		}
	}
}

func (w *wording) outcome(status int) driver.Outcome {
	if status < 0 || status >= len(w.outcomes) {
		return driver.Error
	}
	return w.outcomes[status]
}

// head sets the parts that all requests of a client have in common.
func (w *wording) head(c *client) {
	w.start = w.method + " "
	w.fixed = " HTTP/1.1\r\nHost: " + c.host + "\r\n"
	if w.whole {
		w.userAgent, w.authorization = "User-Agent: loadgen\r\n", ""
		if c.authorization != "" {
			w.authorization = "Authorization: " + c.authorization + "\r\n"
		}
		return
	}
	if !w.has("User-Agent") {
		w.fixed += "User-Agent: loadgen\r\n"
	}
	if c.authorization != "" && w.basic == nil && !w.has("Authorization") {
		w.fixed += "Authorization: " + c.authorization + "\r\n"
	}
}

// appendLine appends the beginning of a request: its method and path.
func (w *wording) appendLine(dst []byte, req *driver.Request, run string) []byte {
	dst = append(dst, w.start...)
	if w.led {
		if w.leads(req) {
			return append(dst, req.Bag.Get(w.path[0].Text)...)
		}
		dst = append(dst, '/')
	}
	return w.path.Append(dst, req, run)
}

// leads reports whether the path can be one, if it was captured.
func (w *wording) leads(req *driver.Request) bool {
	if !w.led || req.Bag == nil {
		return !w.led
	}
	to := req.Bag.Get(w.path[0].Text)
	return strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// appendHead appends the rest of the head of a request with a body of that many bytes.
func (c *client) appendHead(dst []byte, w *wording, req *driver.Request, body int) []byte {
	dst = append(dst, w.fixed...)
	for i := range w.headers {
		h := &w.headers[i]
		dst = append(append(dst, h.name...), ": "...)
		dst = append(h.value.Append(dst, req, c.run), "\r\n"...)
	}
	if w.basic != nil {
		c.plain = w.basic.Append(c.plain[:0], req, c.run)
		dst = base64.StdEncoding.AppendEncode(append(dst, "Authorization: Basic "...), c.plain)
		dst = append(dst, "\r\n"...)
	}
	dst = c.appendCookies(dst)
	if !c.hop.bare && (w.body != nil || w.method == "PUT" || w.method == "POST" || w.method == "PATCH") {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(body), 10)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendWhole appends a request that is a key, and adds missing headers: Host first, as RFC 9112 (3.2) wants it. It reports whether the key is a
// request.
func (w *wording) appendWhole(dst, key []byte) ([]byte, bool) {
	const version = " HTTP/1.1"
	line := bytes.Index(key, []byte(version+"\r\n"))
	end := bytes.Index(key, []byte("\r\n\r\n"))
	if line < 0 || end < line {
		return dst, false
	}
	head, rest := key[line+len(version)+len("\r\n"):end+len("\r\n")], key[end+len("\r\n"):]
	dst = append(append(dst, key[:line]...), w.fixed...)
	if !names(head, "User-Agent:") {
		dst = append(dst, w.userAgent...)
	}
	if !names(head, "Authorization:") {
		dst = append(dst, w.authorization...)
	}
	return append(append(dst, head...), rest...), true
}

// names reports whether a line of a head begins with name, a header's name and colon.
func names(head []byte, name string) bool {
	for len(head) > 0 {
		if len(head) >= len(name) && strings.EqualFold(string(head[:len(name)]), name) {
			return true
		}
		at := bytes.IndexByte(head, '\n')
		if at < 0 {
			return false
		}
		head = head[at+1:]
	}
	return false
}

// plain reports whether a text can be a header's value.
func plain(s string) bool {
	return s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
}

// NewForm returns a *Form.
func (vocabulary) NewForm() any { return new(Form) }

// CheckForm implements form.Former.
func (vocabulary) CheckForm(_ any, f driver.Form) (form.Wording, error) {
	words, ok := f.Words.(*Form)
	if !ok {
		return form.Wording{}, fmt.Errorf("request is a %T, want a *web.Form", f.Words)
	}
	w, err := compile(words, f.Verb)
	if err != nil {
		return form.Wording{}, err
	}
	out := form.Wording{Keyed: w.whole, Requests: w.whole, Command: w.method, Checks: w.names}
	if w.whole {
		out.Command = "TARGETS" // its methods stand in a file
	}
	for _, t := range w.templates() {
		out.Take(*t)
	}
	out.Captures = slices.Sorted(maps.Keys(words.Capture))
	for _, o := range []driver.Outcome{driver.OK, driver.Miss, driver.Conflict} {
		if slices.Contains(w.outcomes[200:], o) {
			out.Outcomes = append(out.Outcomes, o)
		}
	}
	return out, nil
}

// ShowForm implements form.Former: the head line by line, and the beginning of the body.
func (vocabulary) ShowForm(config any, f driver.Form, sample *driver.Request, run string) string {
	cfg, ok := config.(*Config)
	words, formed := f.Words.(*Form)
	if !ok || !formed {
		return ""
	}
	w, err := compile(words, f.Verb)
	if err != nil {
		return ""
	}
	c := &client{host: host(cfg, "HOST:PORT"), run: run}
	w.head(c)
	if w.whole {
		text, _ := w.appendWhole(nil, []byte("METHOD PATH HTTP/1.1\r\n\r\n"))
		lines := strings.Split(strings.TrimSpace(string(text)), "\r\n")
		return strings.Join(append(lines, "and the headers and the body that the request has in its file"), "\n")
	}
	body := w.body.Append(nil, sample, run)
	head := strings.TrimSpace(string(c.appendHead(w.appendLine(nil, sample, run), w, sample, len(body))))
	var lines []string
	for line := range strings.SplitSeq(head, "\r\n") {
		lines = append(lines, shown(line, 200))
	}
	if len(body) > 0 {
		lines = append(lines, shown(string(body), 80))
	}
	return strings.Join(lines, "\n")
}

// shown returns a text for people: escaped, and cut if long.
func shown(s string, most int) string {
	quoted := strconv.Quote(s[:min(len(s), most)])
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	if len(s) > most {
		quoted += fmt.Sprintf("… (%d bytes)", len(s))
	}
	return quoted
}
