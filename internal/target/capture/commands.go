package capture

import (
	"bytes"
	_ "embed" // the table of commands
	"strings"
	"sync"
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
	sends    = "sends"      // a request with a reply
	waits    = "waits"      // keeps later requests of the connection waiting; in a transaction it does not
)

// kinds returns the kind of each command, in upper case.
var kinds = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(commandTable) {
		words := strings.Fields(line)
		for _, name := range words[1:] {
			of[name] = words[0]
		}
	}
	return of
})

// Waits reports whether a command, of name in upper case, would keep later ones waiting unless it stands in a transaction.
func Waits(name string, words [][]byte) bool {
	return kinds()[name] == waits || (name == "XREAD" || name == "XREADGROUP") && hasWord(words[1:], "BLOCK")
}

// sieve decides which commands of Redis are sent, and joins those of a transaction.
type sieve struct {
	l     *Ledger
	allow map[string]bool
	open  map[string]*transaction // by client
}

// transaction is what a client has sent since MULTI.
type transaction struct {
	at       int64
	commands [][][]byte
	size     int
	spoiled  string // why it cannot be sent whole; "" if it can
}

func newSieve(l *Ledger, allow map[string]bool) sieve {
	return sieve{l, allow, map[string]*transaction{}}
}

// unwanted says why a command is left out; "" if it is not.
func (s *sieve) unwanted(r *Record) string {
	words := r.Commands[0]
	for _, w := range words {
		if string(w) == "(redacted)" {
			return secret
		}
	}
	switch kind := kinds()[r.Name]; {
	case r.Name == "AUTH", r.Name == "HELLO" && hasWord(words[1:], "AUTH"):
		return secret
	case kind == connects:
		return "connection"
	case s.allow[r.Name]:
		return ""
	case kind == manages:
		return managing + r.Name
	case kind == "":
		return "unknown command: --allow " + clip(r.Name)
	}
	return ""
}

// hasWord reports whether a word is among the arguments, in any case.
func hasWord(words [][]byte, word string) bool {
	for _, w := range words {
		if bytes.EqualFold(w, []byte(word)) {
			return true
		}
	}
	return false
}

// clip returns a name of at most 32 bytes.
func clip(name string) string { return name[:min(len(name), 32)] }

// kept reports whether a request with one command is to be sent now, alone or as the transaction that r then is, and counts it.
func (s *sieve) kept(r *Record) bool {
	t, why := s.open[r.Client], s.unwanted(r)
	switch {
	case t == nil && why != "":
		s.l.leave(why, 1)
		return false
	case t == nil && r.Name != "MULTI":
		s.l.take(1)
		return true
	case t == nil:
		t = &transaction{at: r.At}
		s.open[r.Client] = t
	case r.Name == "DISCARD":
		delete(s.open, r.Client)
		s.l.leave("a transaction that was discarded", int64(len(t.commands))+1)
		return false
	}
	t.add(r.Commands[0], why)
	if r.Name != "EXEC" {
		return false
	}
	delete(s.open, r.Client)
	if t.spoiled != "" {
		s.l.leave("a transaction with a request that is left out", int64(len(t.commands)))
		return false
	}
	s.l.take(int64(len(t.commands)))
	r.At, r.Name, r.Commands = t.at, "MULTI", t.commands
	return true
}

// add takes a further command of the transaction, which why spoils unless it is "". The command's bytes are copied.
func (t *transaction) add(words [][]byte, why string) {
	own := make([][]byte, len(words))
	for i, w := range words {
		t.size += len(w)
		own[i] = bytes.Clone(w)
	}
	if t.size > maxRequest {
		why, own = tooLong, own[:1]
	}
	if t.spoiled == "" {
		t.spoiled = why
	}
	t.commands = append(t.commands, own)
}

// end leaves out the transactions without an EXEC.
func (s *sieve) end() {
	for client := range s.open {
		s.broken(client)
	}
}

// broken leaves out a client's transaction, if there is one.
func (s *sieve) broken(client string) {
	if t := s.open[client]; t != nil {
		s.l.leave("a transaction without EXEC", int64(len(t.commands)))
		delete(s.open, client)
	}
}
