package capture

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// entry is an entry of PostgreSQL's logs.
type entry struct {
	Time     string `json:"timestamp"`
	Database string `json:"dbname"`
	Session  string `json:"session_id"`
	Severity string `json:"error_severity"`
	Message  string `json:"message"`
	Detail   string `json:"detail"`
}

// csvEntry reads a record of csvlog of PostgreSQL 9.0 or later.
func csvEntry(line string, r *Record) (why string) {
	f, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil || len(f) < 15 {
		return strange
	}
	return r.entered(&entry{Time: f[0], Database: f[2], Session: f[5], Severity: f[11], Message: f[13], Detail: f[14]})
}

// jsonEntry reads a line of jsonlog of PostgreSQL 15 or later.
func jsonEntry(line string, r *Record) (why string) {
	var e entry
	if json.Unmarshal([]byte(line), &e) != nil || e.Severity == "" {
		return strange
	}
	return r.entered(&e)
}

// told matches messages that tell a statement.
var told = regexp.MustCompile(`^(?s)(?:duration: ([0-9.]+) ms  )?(statement|execute [^:]*|parse [^:]*|bind [^:]*|execute fetch from [^:]*): (.*)$`)

// entered enters the statement of an entry, or says why it has none. "statement: …" is logged when the statement begins, "duration: 0.033 ms  statement: …"
// when it has ended, and a mere duration is that of a statement told before. Parameters are in the detail.
func (r *Record) entered(e *entry) (why string) {
	m := told.FindStringSubmatch(e.Message)
	at, err := time.Parse("2006-01-02 15:04:05.999999 MST", e.Time)
	switch {
	case e.Severity != "LOG":
		return strings.ToLower(e.Severity)
	case strings.HasPrefix(e.Message, "connection "), strings.HasPrefix(e.Message, "disconnection: "):
		return "connection"
	case m == nil && strings.HasPrefix(e.Message, "duration: "):
		return "duration of a statement told before"
	case m == nil:
		return "not a statement"
	case strings.HasPrefix(m[2], "parse "), strings.HasPrefix(m[2], "bind "):
		return "parse or bind of a statement that is told when it is executed"
	case strings.HasPrefix(m[2], "execute fetch from"):
		return "a further part of a portal's rows"
	case err != nil:
		return strange
	}
	words := []string{m[3]}
	if m[2] != "statement" {
		if words, why = parameters(m[3], e.Detail); why != "" {
			return why
		}
	}
	*r = Record{At: at.UnixNano(), Tick: 1e6, Client: e.Session, Database: e.Database, commands: [][]string{words}}
	if ms, err := strconv.ParseFloat(m[1], 64); err == nil && ms < math.MaxInt32 {
		r.At -= int64(ms * 1e6)
	}
	return ""
}

// null is a parameter that is NULL. No text of PostgreSQL has this byte.
const null = "\x00"

var (
	dollars   = regexp.MustCompile(`\$[0-9]+`)
	parameter = regexp.MustCompile(`^\$([0-9]+) = (?:NULL|('(?:[^']|'')*'))(?:, |$)`)
)

// parameters returns a statement and its parameters, told as $1 = '2', $2 = 'o”brien', $3 = NULL.
func parameters(sql, detail string) (words []string, why string) {
	words = []string{sql}
	const head = "parameters: "
	if len(detail) < len(head) || !strings.EqualFold(detail[:len(head)], head) {
		detail = head // of something else
	}
	for detail = detail[len(head):]; detail != ""; {
		m := parameter.FindStringSubmatch(detail)
		if m == nil || m[1] != strconv.Itoa(len(words)) {
			return nil, "parameters that cannot be read"
		}
		value := null
		if m[2] != "" {
			value = strings.ReplaceAll(m[2][1:len(m[2])-1], "''", "'")
		}
		words, detail = append(words, value), detail[len(m[0]):]
	}
	for _, n := range dollars.FindAllString(sql, -1) {
		if i, _ := strconv.Atoi(n[1:]); i >= len(words) {
			return nil, "parameters that were not recorded"
		}
	}
	return words, ""
}

var (
	password = regexp.MustCompile(`(?i)\bpassword\s+(null\b)?'?`)
	streams  = regexp.MustCompile(`(?i)\b(stdin|stdout)\b`)
	ends     = set("ALTER DROP GRANT REVOKE TRUNCATE COPY")
	// token matches what separates statements, words, and what begins a quotation of some kind.
	token   = regexp.MustCompile(`;|[eE]?'|"|--|/\*|\$(?:[\pL_][\pL_0-9]*)?\$|[\pL_][\pL_0-9$]*`)
	escaped = regexp.MustCompile(`(?s)^(?:[^'\\]|\\.)*'`)
)

// judge names a record of SQL by its first word, and says why it may not be sent; "" if all of its statements may.
func (c *Reader) judge(r *Record) (why string) {
	sql := r.commands[0][0]
	switch {
	case c.o.Database != "" && r.Database != c.o.Database:
		return "in another database"
	case password.MatchString(sql):
		return secret
	}
	for _, word := range firstWords(sql) {
		if r.Name == "" {
			r.Name = word
		}
		switch {
		case word == "COPY" && streams.MatchString(sql):
			return "copy"
		case ends[word] && !c.allows(word):
			return managing + word
		}
	}
	if r.Name == "" {
		return "an empty statement"
	}
	return ""
}

// firstWords returns the first word of each of a text's statements, in upper case.
func firstWords(sql string) (words []string) {
	for begin := true; ; {
		at := token.FindStringIndex(sql)
		if at == nil {
			return words
		}
		t := sql[at[0]:at[1]]
		sql = sql[at[1]:]
		switch {
		case t == ";":
			begin = true
		case t[0] == '"', t[0] == '$', t == "'": // a doubled quote ends one and begins the next
			sql = behind(sql, t)
		case t == "--":
			sql = behind(sql, "\n")
		case t == "/*":
			for open := 1; open > 0 && sql != ""; { // comments nest
				if next := strings.Index(sql, "*/"); strings.Contains(sql[:max(next, 0)], "/*") {
					open, sql = open+1, behind(sql, "/*")
				} else {
					open, sql = open-1, behind(sql, "*/")
				}
			}
		case t[len(t)-1] == '\'':
			sql = sql[len(escaped.FindString(sql)):]
		case begin:
			words, begin = append(words, strings.ToUpper(t)), false
		}
	}
}

// behind returns what follows the first end; "" if there is none.
func behind(text, end string) string {
	_, rest, _ := strings.Cut(text, end)
	return rest
}

// set returns the words of a text.
func set(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}
