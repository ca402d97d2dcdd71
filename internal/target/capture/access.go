package capture

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// requestLine matches a valid one.
	requestLine = regexp.MustCompile(`^([A-Z]{3,16}) (?:http://([^/ ]+))?(/[^\x00-\x20\x7f]*|) HTTP/[^ ]*$`)
	// private matches the names of parameters whose values are secrets.
	private = regexp.MustCompile(`(?i)(^|[_-])(token|key|apikey|secret|password|passwd|pwd|sig|signature|auth|authorization|session|sid|code)$`)
)

// asked enters a request line, or says why it is left out. Access logs hold no bodies and no header fields, so requests with a body are.
func (r *Record) asked(line string) (why string) {
	m := requestLine.FindStringSubmatch(line)
	if m == nil || m[2] == "" && m[3] == "" {
		return "no valid request line"
	}
	method, host, target := m[1], m[2], "/"+strings.TrimPrefix(m[3], "/")
	switch method {
	case "GET", "HEAD", "DELETE", "OPTIONS":
	default:
		return "no body was recorded: " + method
	}
	_, query, _ := strings.Cut(target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		plain, _ := url.QueryUnescape(name) // "" if it is none
		if private.MatchString(name) || private.MatchString(plain) {
			return secret
		}
	}
	if host != "" {
		r.Database = host
	}
	r.Name, r.commands = method, [][]string{{method, target}}
	return ""
}

var combinedForm = regexp.MustCompile(`^(\S+) \S+ .*?\[([^\]]+)\] ("(?:[^"\\]|\\.)*")`)

// combined reads a line of the formats common and combined. They tell the time to the second, at the request's end, and not the connection.
func combined(line string, r *Record) (why string) {
	m := combinedForm.FindStringSubmatch(line)
	if m == nil {
		return strange
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
	if err != nil {
		return strange
	}
	*r = Record{At: at.UnixNano(), Tick: 1e9, Client: m[1]}
	words, _ := unquote(m[3])
	return r.asked(strings.Join(words, " "))
}

// access returns what reads lines of JSON. Its members' names by their meaning are changed by some.
func access(names map[string]string) (func(string, *Record) string, error) {
	member := map[string]string{"time": "ts", "method": "m", "uri": "u", "duration": "rt", "client": "c", "host": "host"}
	for meaning, name := range names {
		if member[meaning] == "" {
			return nil, fmt.Errorf("--fields %s=%s: write time, method, uri, duration, client or host, and the name that it has in the log", meaning, name)
		}
		member[meaning] = name
	}
	return func(line string, r *Record) (why string) {
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			return strange
		}
		text := func(meaning string) string {
			switch v := object[member[meaning]].(type) {
			case string:
				return v
			case json.Number:
				return v.String()
			}
			return ""
		}
		at, tick := instant(text("time"))
		if at == 0 {
			return strange
		}
		*r = Record{At: at, Tick: tick, Client: text("client"), Database: text("host")}
		if s, err := strconv.ParseFloat(text("duration"), 64); err == nil && s >= 0 && s < 1e6 {
			r.At -= int64(s * 1e9)
		}
		return r.asked(text("method") + " " + text("uri") + " HTTP/1.1")
	}, nil
}
