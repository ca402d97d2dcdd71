package capture

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// statements reads PostgreSQL's logs. "statement: …" is logged when the statement begins, "duration: 0.033 ms  statement: …" when it has ended, and a
// mere duration is that of a statement told before. Parameters are in the detail.
type statements struct {
	log interface {
		// next reads the next entry. A *badEntry is one that cannot be read.
		next(*entry) error
	}
	l     *Ledger
	allow map[string]bool
	one   [1][][]byte
}

// entry is an entry of a log.
type entry struct{ Time, Database, Session, Severity, Message, Detail string }

// badEntry is an error for an entry that is left out.
type badEntry struct{ why string }

func (e *badEntry) Error() string { return e.why }

// told matches messages that tell a statement.
var told = regexp.MustCompile(`^(?s)(?:duration: ([0-9.]+) ms  )?(statement|execute [^:]*|parse [^:]*|bind [^:]*|execute fetch from [^:]*): (.*)$`)

var (
	dollars  = regexp.MustCompile(`\$[0-9]+`)
	password = regexp.MustCompile(`(?i)\bpassword\s+(null\b)?'?`)
	streams  = regexp.MustCompile(`(?i)\b(stdin|stdout)\b`)
	ends     = commands("ALTER DROP GRANT REVOKE TRUNCATE COPY")
)

func newStatements(log interface{ next(*entry) error }, l *Ledger, allow map[string]bool) *statements {
	return &statements{log: log, l: l, allow: allow}
}

// Next implements Reader.
func (s *statements) Next(r *Record) error {
	var e entry
	for {
		var bad *badEntry
		err := s.log.next(&e)
		if errors.As(err, &bad) {
			s.l.leave(bad.why, 1)
			continue
		}
		if err != nil {
			return err
		}
		if why := s.read(&e, r); why != "" {
			s.l.leave(why, 1)
			continue
		}
		s.l.take(1)
		return nil
	}
}

// read turns an entry into a request, or says why there is none.
func (s *statements) read(e *entry, r *Record) (why string) {
	switch {
	case e.Severity != "LOG":
		return strings.ToLower(e.Severity)
	case strings.HasPrefix(e.Message, "connection "), strings.HasPrefix(e.Message, "disconnection: "):
		return "connection"
	}
	m := told.FindStringSubmatch(e.Message)
	switch {
	case m == nil && strings.HasPrefix(e.Message, "duration: "):
		return "duration of a statement told before"
	case m == nil:
		return "not a statement"
	case strings.HasPrefix(m[2], "parse "), strings.HasPrefix(m[2], "bind "):
		return "parse or bind of a statement that is told when it is executed"
	case strings.HasPrefix(m[2], "execute fetch from"):
		return "a further part of a portal's rows"
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999 MST", e.Time)
	if err != nil {
		return strange
	}
	words := [][]byte{[]byte(m[3])}
	if m[2] != "statement" {
		if words, err = parameters(words, e.Detail); err != nil {
			return "parameters that cannot be read"
		}
		for _, n := range dollars.FindAllString(m[3], -1) {
			if i, _ := strconv.Atoi(n[1:]); i >= len(words) {
				return "parameters that were not recorded"
			}
		}
	}
	first, why := s.judge(m[3])
	if why != "" {
		return why
	}
	*r = Record{At: at.UnixNano(), Tick: 1e6, Client: e.Session, Database: e.Database, Name: first}
	if ms, err := strconv.ParseFloat(m[1], 64); err == nil && ms < math.MaxInt32 {
		r.At -= int64(ms * 1e6)
	}
	s.one[0] = words
	r.Commands = s.one[:]
	return ""
}

// judge returns the first word of a text of SQL, and why none of its statements may be sent; "" if all may.
func (s *statements) judge(sql string) (first, why string) {
	if password.MatchString(sql) {
		return "", secret
	}
	for _, word := range firstWords(sql) {
		if first == "" {
			first = word
		}
		switch {
		case word == "COPY" && streams.MatchString(sql):
			return "", "copy"
		case ends[word] && !s.allow[word]:
			return "", managing + word
		}
	}
	if first == "" {
		return "", "an empty statement"
	}
	return first, ""
}

// firstWords returns the first word of each of a text's statements, in upper case.
func firstWords(sql string) (words []string) {
	begin := true
	for i := 0; i < len(sql); {
		n := quoted(sql[i:])
		switch c := sql[i]; {
		case n > 0:
			i += n
			continue
		case c == ';':
			begin = true
		case begin && (c|0x20 >= 'a' && c|0x20 <= 'z'):
			end := i
			for end < len(sql) && (sql[end]|0x20 >= 'a' && sql[end]|0x20 <= 'z' || sql[end] == '_') {
				end++
			}
			words, begin, i = append(words, strings.ToUpper(sql[i:end])), false, end
			continue
		}
		i++
	}
	return words
}

// quoted returns the length of the comment, string, identifier or dollar-quoted text that begins here; 0 if none does.
func quoted(sql string) int {
	through := func(begin int, end string) int {
		if n := strings.Index(sql[begin:], end); n >= 0 {
			return begin + n + len(end)
		}
		return len(sql)
	}
	switch {
	case strings.HasPrefix(sql, "--"):
		return through(2, "\n")
	case strings.HasPrefix(sql, "/*"):
		return through(2, "*/")
	case sql[0] == '\'', sql[0] == '"':
		return through(1, sql[:1]) // a doubled quote ends one and begins the next
	case sql[0] == '$':
		if tag := dollarTag.FindString(sql); tag != "" {
			return through(len(tag), tag)
		}
	}
	return 0
}

var dollarTag = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z_0-9]*)?\$`)

// errParameters says that a detail is not a list of parameters.
var errParameters = errors.New("no list of parameters")

// parameters appends a statement's parameters: $1 = '2', $2 = 'o”brien', $3 = NULL.
func parameters(words [][]byte, detail string) ([][]byte, error) {
	if detail == "" {
		return words, nil
	}
	const head = "parameters: "
	if len(detail) < len(head) || !strings.EqualFold(detail[:len(head)], head) {
		return words, nil // of something else
	}
	rest := detail[len(head):]
	for n := 1; rest != ""; n++ {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, fmt.Sprintf("$%d = ", n)); !ok {
			return nil, errParameters
		}
		if after, null := strings.CutPrefix(rest, "NULL"); null {
			words, rest = append(words, nil), after
		} else {
			value, after, ok := literal(rest)
			if !ok {
				return nil, errParameters
			}
			words, rest = append(words, value), after
		}
		rest = strings.TrimPrefix(rest, ", ")
	}
	return words, nil
}

// literal reads a text in quotes, of which those inside are doubled.
func literal(text string) (value []byte, rest string, ok bool) {
	value = []byte{}
	if !strings.HasPrefix(text, "'") {
		return nil, "", false
	}
	for text = text[1:]; ; text = text[1:] {
		end := strings.IndexByte(text, '\'')
		if end < 0 {
			return nil, "", false
		}
		value, text = append(value, text[:end]...), text[end+1:]
		if !strings.HasPrefix(text, "'") {
			return value, text, true
		}
		value = append(value, '\'')
	}
}

// csvLog reads csvlog of PostgreSQL 9.0 or later.
type csvLog struct {
	in io.Reader
	r  *csv.Reader
}

func (c *csvLog) next(e *entry) error {
	if c.r == nil {
		c.r = csv.NewReader(&bounded{in: c.in})
		c.r.FieldsPerRecord, c.r.ReuseRecord = -1, true
	}
	fields, err := c.r.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax) && errors.Is(err, csv.ErrQuote):
		return &badEntry{cut}
	case errors.As(err, &syntax):
		return &badEntry{strange}
	case err != nil:
		return err
	case len(fields) < 15:
		return &badEntry{strange}
	}
	*e = entry{Time: fields[0], Database: fields[2], Session: fields[5], Severity: fields[11], Message: fields[13], Detail: fields[14]}
	return nil
}

// jsonLog reads jsonlog of PostgreSQL 15 or later.
type jsonLog struct{ lines lines }

func (j *jsonLog) next(e *entry) error {
	line, long, whole, err := j.lines.next()
	switch {
	case err != nil:
		return err
	case long:
		return &badEntry{tooLong}
	}
	var m struct {
		Time     string `json:"timestamp"`
		Database string `json:"dbname"`
		Session  string `json:"session_id"`
		Severity string `json:"error_severity"`
		Message  string `json:"message"`
		Detail   string `json:"detail"`
	}
	if json.Unmarshal(line, &m) != nil || m.Severity == "" {
		if !whole {
			return &badEntry{cut}
		}
		return &badEntry{strange}
	}
	*e = entry(m)
	return nil
}

// bounded ends a reading in which a record of CSV, whose quotes never end, would take more than maxRequest.
type bounded struct {
	in  io.Reader
	run int // bytes since a line that begins as a record does
}

var recordStart = regexp.MustCompile(`(?m)^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:`)

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.run += n; recordStart.Match(p[:n]) {
		b.run = 0
	}
	if b.run > maxRequest {
		return n, errors.New("a record over 64 MiB: is it csvlog?")
	}
	return n, err
}

// commands returns a set of words.
func commands(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
