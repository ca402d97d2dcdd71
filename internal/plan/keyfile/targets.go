package keyfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/net/http/httpguts"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
)

// Vegeta is the form of a file of vegeta targets: HTTP requests, either as text, one after the other, or each as a JSON object on a line.
const Vegeta = "vegeta"

// Bounds on a file of targets.
const (
	maxTargets    = 1 << 20
	maxTargetLine = 2 << 20  // bytes: fits a body of maxBody in base64
	maxHead       = 32 << 10 // bytes of a request before its body
	maxBody       = 1 << 20  // bytes
	maxBodies     = 1000     // number of body files
)

// Opener opens a body's file by the path after an @, which is local to the directory of the file of targets.
type Opener func(path string) (io.ReadCloser, error)

// Targets holds the requests of a file of vegeta targets, and facts about them. An entry is an HTTP/1.1 request without a Host header:
//
//	POST /items?id=7 HTTP/1.1\r\n
//	Content-Type: text/plain\r\n
//	Content-Length: 5\r\n
//	\r\n
//	hello
type Targets struct {
	Facts
	Server string   // the one server of all requests: http://HOST:PORT or https://HOST:PORT
	Line   int64    // line of the first target
	Bodies []string // paths of body files, in order of first mention

	Set *Set
}

// ReadTargets reads a file of targets and the files of their bodies. SHA256 covers the file's bytes, followed by a line for each body file as
// sha256sum prints it. A mistake in the file is a *rowfile.Error.
func ReadTargets(r io.Reader, open Opener) (*Targets, error) {
	sum := sha256.New()
	from := &targetReader{lines: bufio.NewScanner(io.TeeReader(r, sum)), open: open, bodies: map[string][]byte{}}
	from.lines.Buffer(nil, maxTargetLine)
	t := &Targets{Set: &Set{}, Facts: Facts{Least: maxHead + maxBody}}
	for {
		text, err := from.next(t.Set.text)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if t.Set.Len() == maxTargets || int64(len(text)+each*(t.Set.Len()+1)) > maxBytes {
			return nil, from.fault(fmt.Sprintf("more than the %d targets, or the %d MiB, that a file may have: write fewer", maxTargets, maxBytes>>20))
		}
		size := len(text) - len(t.Set.text)
		t.Least, t.Largest = min(t.Least, size), max(t.Largest, size)
		t.Set.text, t.Set.ends = text, append(t.Set.ends, uint32(len(text)))
	}
	if t.Set.Len() == 0 {
		return nil, &rowfile.Error{Line: max(from.line, 1), Column: 1, What: "no target: write GET and a URL on a line"}
	}
	for _, path := range from.order {
		fmt.Fprintf(sum, "%x  %s\n", sha256.Sum256(from.bodies[path]), path)
	}
	t.Set.text, t.Set.ends = bytes.Clone(t.Set.text), slices.Clone(t.Set.ends) // drop spare capacity
	t.SHA256, t.Count, t.Bytes = digestOf(sum), int64(t.Set.Len()), t.Set.Bytes()
	t.Server, t.Line, t.Bodies = from.server, from.first, from.order
	return t, nil
}

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// targetReader reads targets one by one.
type targetReader struct {
	lines  *bufio.Scanner
	line   int64 // number of the line in text
	text   string
	unread bool // text is still to be processed

	open   Opener
	bodies map[string][]byte
	order  []string // paths of bodies, in order of first mention

	at     int64  // first line of the target
	server string // server of the first target
	first  int64  // line of the first target
}

// target is a request as written in the file.
type target struct {
	method, url string
	headers     [][2]string
	body        []byte
	bodied      bool
}

func (t *target) add(name, value string) { t.headers = append(t.headers, [2]string{name, value}) }

// fault returns an error on the line read last.
func (r *targetReader) fault(what string) error {
	return &rowfile.Error{Line: max(r.line, 1), Column: 1, What: what}
}

// scan reads the next line. It returns io.EOF after the last.
func (r *targetReader) scan() error {
	if r.unread {
		r.unread = false
		return nil
	}
	if !r.lines.Scan() {
		if errors.Is(r.lines.Err(), bufio.ErrTooLong) {
			r.line++
			return r.fault(fmt.Sprintf("more than the %d bytes that a line may have: write a large body into a file, and @ and its path here", maxTargetLine))
		}
		if err := r.lines.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	r.line++
	r.text = r.lines.Text()
	if r.line == 1 {
		r.text = strings.TrimPrefix(r.text, "\ufeff") // a byte order mark
	}
	r.text = strings.TrimSpace(r.text)
	return nil
}

// next appends the next target as an HTTP/1.1 request. It returns io.EOF after the last.
func (r *targetReader) next(dst []byte) ([]byte, error) {
	for {
		if err := r.scan(); err != nil {
			return dst, err
		}
		if r.text != "" && r.text[0] != '#' {
			break
		}
	}
	r.at = r.line
	read := r.words
	if r.text[0] == '{' {
		read = r.object
	}
	t, err := read()
	if err != nil {
		return dst, err
	}
	end := r.line
	r.line = r.at // further errors are reported at the target's first line
	dst, err = r.encode(dst, t)
	r.line = end
	return dst, err
}

// object reads a target that is a JSON object, by vegeta's own library. The text form is read here: vegeta reads any path behind an @, and does not say
// in which line a mistake is.
func (r *targetReader) object() (*target, error) {
	var o vegeta.Target
	if err := vegeta.NewJSONTargeter(strings.NewReader(r.text+"\n"), nil, nil)(&o); err != nil {
		return nil, r.fault(fmt.Sprintf(`%.200q: write {"method": "GET", "url": "http://…"}, with header and a body in base64 if need be`, err.Error()))
	}
	t := &target{method: o.Method, url: o.URL, body: o.Body, bodied: o.Body != nil}
	for _, name := range slices.Sorted(maps.Keys(o.Header)) {
		for _, value := range o.Header[name] {
			t.add(name, value)
		}
	}
	return t, nil
}

// words reads a target in text: a method and a URL, headers, and @ with the path of a body. It ends with a body, at an empty line, or where
// the next target begins.
func (r *targetReader) words() (*target, error) {
	words := strings.Fields(r.text)
	if len(words) != 2 {
		return nil, r.fault(fmt.Sprintf("%.80q is not a target: write a method and a URL, such as GET http://127.0.0.1:8080/", r.text))
	}
	t := &target{method: words[0], url: words[1]}
	for {
		err := r.scan()
		if errors.Is(err, io.EOF) || err == nil && r.text == "" {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		first, _, several := strings.Cut(r.text, " ")
		switch name, value, ok := strings.Cut(r.text, ":"); {
		case r.text[0] == '#':
		case r.text[0] == '{', several && method(first):
			r.unread = true
			return t, nil
		case r.text[0] == '@':
			t.body, err = r.body(r.text[1:])
			t.bodied = true
			return t, err
		case !ok || strings.TrimSpace(value) == "":
			return nil, r.fault(fmt.Sprintf("%.80q is not a header: write NAME: VALUE, @ and the path of a body, or an empty line before the next target", r.text))
		default:
			t.add(name, strings.TrimSpace(value))
		}
	}
}

// body returns the bytes of a body's file. It reads each file once.
func (r *targetReader) body(path string) ([]byte, error) {
	if body, known := r.bodies[path]; known {
		return body, nil
	}
	if !filepath.IsLocal(path) || len(path) > 4096 || strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, r.fault(fmt.Sprintf("@%.80q: write a path below the directory of the file of targets, without .. and a / before it", path))
	}
	if len(r.order) == maxBodies {
		return nil, r.fault(fmt.Sprintf("more than %d files of bodies: write them as JSON, in base64", maxBodies))
	}
	file, err := r.open(path)
	if err != nil {
		return nil, r.fault(fmt.Sprintf("@%s: %v", path, err))
	}
	body, err := io.ReadAll(io.LimitReader(file, maxBody+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, r.fault(fmt.Sprintf("@%s: %v", path, err))
	}
	r.bodies[path], r.order = body, append(r.order, path)
	return body, nil
}

// encode checks a target and appends it as an HTTP/1.1 request.
func (r *targetReader) encode(dst []byte, t *target) ([]byte, error) {
	if !method(t.method) {
		return dst, r.fault(fmt.Sprintf("the method %.40q: write GET, PUT, POST, DELETE, HEAD or another of the server's, in capitals; not CONNECT", t.method))
	}
	path, err := r.path(t.url)
	if err != nil {
		return dst, err
	}
	head := len(dst)
	dst = fmt.Appendf(dst, "%s %s HTTP/1.1\r\n", t.method, path)
	for _, h := range t.headers {
		if err := r.header(h[0], h[1]); err != nil {
			return dst, err
		}
		dst = fmt.Appendf(dst, "%s: %s\r\n", h[0], h[1])
	}
	if t.bodied || t.method == "PUT" || t.method == "POST" || t.method == "PATCH" {
		dst = fmt.Appendf(dst, "Content-Length: %d\r\n", len(t.body))
	}
	dst = append(dst, "\r\n"...)
	switch {
	case len(dst)-head > maxHead:
		return dst, r.fault(fmt.Sprintf("more than the %d bytes that a URL and its headers may have: write less", maxHead))
	case len(t.body) > maxBody:
		return dst, r.fault(fmt.Sprintf("a body of more than the %d bytes that one may have: write a smaller one", maxBody))
	}
	return append(dst, t.body...), nil
}

// path returns the path and query of a URL, which must have the same server as all previous ones.
func (r *targetReader) path(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", r.fault(fmt.Sprintf("the URL %.80q: write http:// or https://, a host and a path, without a user", text))
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	server := u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	if r.server == "" {
		r.server, r.first = server, r.at
	}
	if server != r.server {
		return "", r.fault(fmt.Sprintf("%.80s is another server than %.80s of line %d: write a file, a dataset and a target for each", server, r.server, r.first))
	}
	path := u.RequestURI()
	if strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c >= 0x7f }) || path[0] != '/' {
		return "", r.fault(fmt.Sprintf("the URL %.80q: escape what is not printable ASCII, as %%20", text))
	}
	return path, nil
}

// owned are the headers that the sender of the request writes.
var owned = []string{"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "trailer", "te"}

func (r *targetReader) header(name, value string) error {
	switch {
	case len(name) > 100 || !httpguts.ValidHeaderFieldName(name):
		return r.fault(fmt.Sprintf("%.80q is not a header's name: write letters, digits and -", name))
	case slices.Contains(owned, strings.ToLower(name)):
		return r.fault(fmt.Sprintf("the header %s: leave it out: it is written where the request is sent, Host as the target's host says", name))
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c >= 0x7f }):
		return r.fault(fmt.Sprintf("the header %s has %.80q: write printable ASCII characters", name, value))
	}
	return nil
}

// method reports whether a text is a method that a target can have.
func method(s string) bool {
	return s != "" && len(s) <= 32 && s != "CONNECT" && !strings.ContainsFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' })
}
