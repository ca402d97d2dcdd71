package capture

import (
	_ "embed" // the table of commands
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/loadgen/loadgen/internal/target/drivers/redis"
)

// The commands of Redis 7.0 and Valkey 8.1 (COMMAND LIST), a kind on each line. Those that manage are of the categories admin and dangerous (ACL CAT),
// but for INFO, KEYS and SORT.
//
//go:embed commands.txt
var commandTable string

// Kinds of commands.
const (
	connects = "connection" // changes the connection for all requests on it, or what comes over it
	manages  = "manages"    // changes or manages the server
	waits    = "waits"      // keeps later requests of the connection waiting; in a transaction it does not
)

var kinds = sync.OnceValue(func() map[string]string { return table(commandTable) })

// table returns the first word of the line that each other word is on.
func table(text string) map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i := 1; i < len(words); i++ {
			of[words[i]] = words[0]
		}
	}
	return of
}

// transaction is what a client has sent since MULTI.
type transaction struct {
	at       int64
	commands [][]string
	size     int
	spoiled  string // why it cannot be sent whole; "" if it can
}

// unwanted says why a command of Redis is left out; "" if it is not.
func (c *Reader) unwanted(name string, words []string) string {
	switch kind := kinds()[name]; {
	case slices.Contains(words, "(redacted)"), name == "AUTH", name == "HELLO" && hasWord(words, "AUTH"):
		return secret
	case kind == connects:
		return "connection"
	case c.allows(name):
		return ""
	case kind == manages:
		return managing + name
	case kind == "":
		return "unknown command: --allow " + clip(name)
	}
	return ""
}

// hasWord reports whether a word is among a command's arguments, in any case.
func hasWord(words []string, word string) bool {
	return slices.ContainsFunc(words[1:], func(w string) bool { return strings.EqualFold(w, word) })
}

// clip returns a name of at most 32 bytes.
func clip(name string) string { return name[:min(len(name), 32)] }

// join collects a client's commands from MULTI to EXEC into one record. n is how many commands are sent now, or left out because of why; 0 if that shows
// later.
func (c *Reader) join(r *Record) (why string, n int64) {
	if len(r.commands) == 0 {
		c.broken(r.Client)
		return "", 0
	}
	words, t := r.commands[0], c.open[r.Client]
	why = c.unwanted(r.Name, words)
	switch {
	case t == nil && (why != "" || r.Name != "MULTI"):
		return why, 1
	case t == nil:
		t = &transaction{at: r.At}
		c.open[r.Client] = t
	case r.Name == "DISCARD":
		delete(c.open, r.Client)
		return "a transaction that was discarded", int64(len(t.commands)) + 1
	}
	for _, w := range words {
		t.size += len(w)
	}
	if t.size > maxRequest {
		why, words = tooLong, words[:1]
	}
	if t.spoiled == "" {
		t.spoiled = why
	}
	t.commands = append(t.commands, words)
	if r.Name != "EXEC" {
		return "", 0
	}
	delete(c.open, r.Client)
	if t.spoiled != "" {
		return "a transaction with a request that is left out", int64(len(t.commands))
	}
	r.At, r.commands = t.at, t.commands
	return "", int64(len(t.commands))
}

// broken leaves out a client's transaction, if there is one.
func (c *Reader) broken(client string) {
	if t := c.open[client]; t != nil {
		c.l.enter("a transaction without EXEC", int64(len(t.commands)))
		delete(c.open, client)
	}
}

// write sets the request, as a client sends it: to Redis, a command that would keep later ones waiting becomes a transaction, in which it does not; to a
// web server, there is no Host header yet, which is the target's.
func (r *Record) write(server string) {
	dst, words := r.Request[:0], r.commands[0]
	switch {
	case server == "web":
		dst = append(dst, words[0]+" "+words[1]+" HTTP/1.1\r\n\r\n"...)
	case server == "postgres":
		dst = appendStatement(dst, words[0], words[1:])
	case len(r.commands) == 1 && (kinds()[r.Name] == waits || (r.Name == "XREAD" || r.Name == "XREADGROUP") && hasWord(words, "BLOCK")):
		r.commands = [][]string{{"MULTI"}, words, {"EXEC"}}
		fallthrough
	default:
		for _, words := range r.commands {
			dst = redis.AppendCommand(dst, words...)
		}
		if len(r.commands) > 1 {
			r.Name = "multi"
		}
	}
	r.Request = dst
}

// appendStatement appends a statement as PostgreSQL's clients send it: a Query, or with parameters Parse, Bind, Execute and Sync, of which the server
// infers the parameters' types and reads their text.
func appendStatement(dst []byte, sql string, parameters []string) []byte {
	messages := []pgproto3.FrontendMessage{&pgproto3.Query{String: sql}}
	if len(parameters) > 0 {
		bind := &pgproto3.Bind{} // portal and statement unnamed, all as text
		for _, p := range parameters {
			value := []byte(p)
			if p == null {
				value = nil
			}
			bind.Parameters = append(bind.Parameters, value)
		}
		messages = []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, bind, &pgproto3.Execute{}, &pgproto3.Sync{}}
	}
	for _, m := range messages {
		dst, _ = m.Encode(dst) // only messages of 1 GiB are refused
	}
	return dst
}
