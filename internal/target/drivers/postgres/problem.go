package postgres

import (
	"bytes"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// problem is the relevant part of an ErrorResponse. Its fields are slices of the message.
type problem struct {
	fatal   bool // the server ends the connection
	code    []byte
	message []byte
}

// readProblem reads the fields of an ErrorResponse. It omits the detail, which may hold values.
func readProblem(body []byte) (p problem) {
	for len(body) > 0 && body[0] != 0 {
		field := body[0]
		text, rest, ok := bytes.Cut(body[1:], []byte{0})
		if !ok {
			break
		}
		switch field {
		case 'V': // the severity, in English whatever the server's language
			p.fatal = string(text) == "FATAL" || string(text) == "PANIC"
		case 'C':
			p.code = text
		case 'M':
			p.message = text
		}
		body = rest
	}
	return p
}

// outcome returns conflict for class 40: serialization failures and deadlocks.
func (p problem) outcome() driver.Outcome {
	if bytes.HasPrefix(p.code, []byte("40")) {
		return driver.Conflict
	}
	return driver.Error
}

// mostWords bounds how much of a server's words is repeated, in bytes.
const mostWords = 80

// text puts the remedy near the front, because errors are counted by their first 120 bytes.
func (p problem) text() []byte { return p.with(remedy(string(p.code))) }

func (p problem) with(what string) []byte {
	text := fmt.Appendf(nil, "%s (%s)", p.message[:min(len(p.message), mostWords)], p.code[:min(len(p.code), 5)])
	if what != "" {
		text = append(append(text, ": "...), what...)
	}
	return text
}

// lost returns the error for a connection that the server ends.
func (p problem) lost() error { return fmt.Errorf("postgres: %s", p.text()) }

const (
	idled    = "57P05"                                                             // idle_session_timeout
	unpooled = "write the server's endpoint, or pool_mode = session in the pooler" // one that changes servers between transactions loses statements
	unworded = `write table in the target, or word the op: op "get" { request { sql = … } }`
)

// remedies say what to do about an error, by its SQLSTATE or class: PostgreSQL's documentation, appendix A.
var remedies = map[string]string{
	"08":    "see the server's log",
	"08P01": "see the server's log; a pooler takes no options in url: leave them out, or write ignore_startup_parameters = options in the pooler",
	"22":    `write values that the column takes, such as a record`,
	"23":    "write a statement or keys that keep the table's constraints",
	"2BP01": "drop what depends on it first",
	"25006": "write the endpoint of the primary: this server only reads",
	"26000": unpooled,
	"28":    "look at user, at the secret that password names, and at the server's pg_hba.conf",
	"3D000": "make the database (createdb), or write another in database",
	"42P05": unpooled,
	"42601": "write the statement in PostgreSQL's SQL",
	"42501": "grant the user what the statement needs (GRANT), or write another user",
	"42P01": "let nobody drop the table during the load, or write one that exists",
	"53100": "make room on the disk of the server's data",
	"53200": "give the server more memory, or write fewer sessions",
	"53300": "write fewer sessions, or raise the server's max_connections",
	"55P03": "let nobody else lock the table during the load",
	"57014": "raise the server's statement_timeout",
	"57P01": "see who ends connections on the server",
	idled:   "raise idle_session_timeout, or use fewer sessions",
	"57P03": "wait until the server has started",
	"58":    "see the server's log and the kernel's (dmesg)",
	"XX":    "see the server's log",
}

func remedy(code string) string {
	if what, ok := remedies[code]; ok {
		return what
	}
	return remedies[code[:min(2, len(code))]]
}
