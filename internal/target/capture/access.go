package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hit is a request as an access log tells it.
type hit struct {
	at, tick           int64 // when it ended, in ns
	took               int64 // how long it took; 0 if unknown
	client, host       string
	method, uri, proto string
}

// access reads access logs. They hold no bodies and no header fields, so requests with a body are left out.
type access struct {
	lines lines
	l     *Ledger
	parse interface {
		hit(line []byte, h *hit) error
	}
	one [1][][]byte
}

func newAccess(parse interface{ hit([]byte, *hit) error }, in *bufio.Reader, l *Ledger) *access {
	return &access{lines: lines{in: in}, l: l, parse: parse}
}

// Next implements Reader.
func (a *access) Next(r *Record) error {
	for {
		line, long, whole, err := a.lines.next()
		if err != nil {
			return err
		}
		var h hit
		why := ""
		switch {
		case long:
			why = tooLong
		case len(line) == 0:
			continue
		case a.parse.hit(line, &h) != nil && !whole:
			why = cut
		case h.at == 0:
			why = strange
		default:
			why = a.read(&h, r)
		}
		if why == "" {
			a.l.take(1)
			return nil
		}
		a.l.leave(why, 1)
	}
}

var (
	method = regexp.MustCompile(`^[A-Z]{3,16}$`)
	// private matches the names of parameters whose values are secrets.
	private = regexp.MustCompile(`(?i)(^|[_-])(token|key|apikey|secret|password|passwd|pwd|sig|signature|auth|authorization|session|sid|code)$`)
)

// read turns a line into a request, or says why there is none.
func (a *access) read(h *hit, r *Record) (why string) {
	if absolute, ok := strings.CutPrefix(h.uri, "http://"); ok {
		at := strings.IndexByte(absolute+"/", '/')
		h.host, h.uri = absolute[:at], "/"+strings.TrimPrefix(absolute[at:], "/")
	}
	valid := method.MatchString(h.method) && strings.HasPrefix(h.uri, "/") && strings.HasPrefix(h.proto, "HTTP/") &&
		!strings.ContainsFunc(h.uri, func(c rune) bool { return c <= ' ' || c == 0x7f })
	if !valid {
		return "no valid request line"
	}
	switch h.method {
	case "GET", "HEAD", "DELETE", "OPTIONS":
	default:
		return "no body was recorded: " + h.method
	}
	if _, query, ok := strings.Cut(h.uri, "?"); ok {
		for pair := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(name); private.MatchString(name) || err == nil && private.MatchString(plain) {
				return secret
			}
		}
	}
	a.one[0] = [][]byte{[]byte(h.method), []byte(h.uri)}
	*r = Record{At: h.at - h.took, Tick: h.tick, Client: h.client, Database: h.host, Name: h.method, Commands: a.one[:]}
	return ""
}

// combined reads lines of the formats common and combined. They tell the time to the second, at the request's end, and not the connection.
type combined struct{ words [][]byte }

var combinedForm = regexp.MustCompile(`^(\S+) \S+ .*?\[([^\]]+)\] "((?:[^"\\]|\\.)*)"`)

func (c *combined) hit(line []byte, h *hit) error {
	m := combinedForm.FindSubmatch(line)
	if m == nil {
		return errLine
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(m[2]))
	if err != nil {
		return err
	}
	*h = hit{at: at.UnixNano(), tick: 1e9, client: string(m[1])}
	words, err := unquote(c.words[:0], append(append([]byte{'"'}, m[3]...), '"'))
	if err != nil || len(words) != 1 {
		return nil // no valid request line
	}
	parts := bytes.Split(words[0], []byte{' '})
	if len(parts) == 3 {
		h.method, h.uri, h.proto = string(parts[0]), string(parts[1]), string(parts[2])
	}
	return nil
}

// members reads lines of JSON, whose members have these names.
type members struct{ time, method, uri, duration, client, host string }

// newMembers takes the names of members by their meaning.
func newMembers(names map[string]string) (*members, error) {
	m := &members{time: "ts", method: "m", uri: "u", duration: "rt", client: "c", host: "host"}
	for meaning, name := range names {
		switch meaning {
		case "time":
			m.time = name
		case "method":
			m.method = name
		case "uri":
			m.uri = name
		case "duration":
			m.duration = name
		case "client":
			m.client = name
		case "host":
			m.host = name
		default:
			return nil, fmt.Errorf("--fields %s=%s: write time, method, uri, duration, client or host, and the name that it has in the log", meaning, name)
		}
	}
	return m, nil
}

func (m *members) hit(line []byte, h *hit) error {
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		return err
	}
	text := func(name string) string {
		switch v := object[name].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
		return ""
	}
	at, tick, err := instant(text(m.time))
	if err != nil {
		return err
	}
	*h = hit{at: at, tick: tick, client: text(m.client), host: text(m.host), method: text(m.method), uri: text(m.uri), proto: "HTTP/1.1"}
	if s, err := strconv.ParseFloat(text(m.duration), 64); err == nil && s >= 0 && s < 1e6 {
		h.took = int64(s * 1e9)
	}
	return nil
}

// instant reads seconds since 1970, or a time of RFC 3339, and how fine it is.
func instant(text string) (at, tick int64, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if s, err := strconv.ParseInt(whole, 10, 40); err == nil && s > 0 && len(fraction) <= 9 {
		tick, at = 1e9, s*1e9
		for _, c := range fraction {
			if c < '0' || c > '9' {
				return 0, 0, errors.New("no time")
			}
			tick /= 10
			at += int64(c-'0') * tick
		}
		return at, tick, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, 0, err
	}
	if t.Nanosecond() == 0 {
		return t.UnixNano(), 1e9, nil
	}
	return t.UnixNano(), 1e6, nil
}
