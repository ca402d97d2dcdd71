package cachenode

import (
	"crypto/subtle"
	"strconv"
	"strings"
)

// command is one command of the node. min and max bound the number of its arguments, the name included.
type command struct {
	name     string
	min, max int
	verb     verb
	run      func(*conn)
}

var commands = [...]command{
	{"get", 2, 2, verbGet, (*conn).get},
	{"set", 3, 3, verbSet, (*conn).set},
	{"del", 2, maxArgs, verbDel, (*conn).del},
	{"ping", 1, 2, verbOther, (*conn).ping},
	{"info", 1, maxArgs, verbOther, (*conn).info},
	{"dbsize", 1, 1, verbOther, (*conn).dbsize},
	{"flushall", 1, 2, verbOther, (*conn).flushall},
	{"select", 2, 2, verbOther, (*conn).selectDB},
	{"auth", 2, 3, verbOther, (*conn).auth},
}

// execute answers the request in c.args. The errors' words are Redis' own where it has the same error.
func (c *conn) execute() {
	cmd := find(c.args[0])
	verb, refusal := verbOther, ""
	switch {
	case cmd == nil:
		refusal = "ERR unknown command '" + plain(c.args[0]) + "'"
	case !c.trusted && cmd.name != "auth":
		refusal = "NOAUTH Authentication required."
	case cmd.name == "set" && len(c.args) > cmd.max:
		refusal = "ERR SET takes a key and a value; this node knows no options"
	case len(c.args) < cmd.min || len(c.args) > cmd.max:
		refusal = "ERR wrong number of arguments for '" + cmd.name + "' command"
	default:
		verb = cmd.verb
	}
	c.counts[verb].Add(1)
	if refusal != "" {
		c.out = appendError(c.out, refusal)
		return
	}
	cmd.run(c)
}

func find(name []byte) *command {
	for i := range commands {
		if sameWord(name, commands[i].name) {
			return &commands[i]
		}
	}
	return nil
}

// sameWord compares b with a word of lower-case letters, whatever b's case.
func sameWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

func (c *conn) get() {
	if value, ok := c.node.store.get(c.db, c.args[1]); ok {
		c.reply(value)
		return
	}
	c.out = append(c.out, "$-1\r\n"...)
}

func (c *conn) set() {
	if !c.node.store.set(c.db, c.args[1], c.args[2]) {
		c.out = appendError(c.out, "OOM command not allowed when used memory > 'maxmemory'.")
		return
	}
	c.ok()
}

func (c *conn) del() {
	deleted := 0
	for _, key := range c.args[1:] {
		if c.node.store.del(c.db, key) {
			deleted++
		}
	}
	c.integer(deleted)
}

func (c *conn) ping() {
	if len(c.args) == 2 {
		c.out = appendBulk(c.out, c.args[1])
		return
	}
	c.out = append(c.out, "+PONG\r\n"...)
}

func (c *conn) info() { c.reply(c.node.appendInfo(nil, c.args[1:])) }

func (c *conn) dbsize() { c.integer(c.node.store.stats().keys[c.db]) }

func (c *conn) flushall() {
	if len(c.args) == 2 && !sameWord(c.args[1], "sync") && !sameWord(c.args[1], "async") {
		c.out = appendError(c.out, "ERR syntax error")
		return
	}
	c.node.store.flush()
	c.ok()
}

func (c *conn) selectDB() {
	db, err := strconv.Atoi(string(c.args[1]))
	switch {
	case err != nil:
		c.out = appendError(c.out, "ERR value is not an integer or out of range")
	case db < 0 || db >= databases:
		c.out = appendError(c.out, "ERR DB index is out of range")
	default:
		c.db = db
		c.ok()
	}
}

func (c *conn) auth() {
	want := c.node.cfg.Password
	user, password := "default", c.args[len(c.args)-1]
	if len(c.args) == 3 {
		user = string(c.args[1])
	}
	switch {
	case want == "" && len(c.args) == 2:
		c.out = appendError(c.out, "ERR AUTH <password> called without any password configured for the default user. "+
			"Are you sure your configuration is correct?")
	case user != "default" || want != "" && subtle.ConstantTimeCompare(password, []byte(want)) == 0:
		c.out = appendError(c.out, "WRONGPASS invalid username-password pair or user is disabled.")
	default:
		c.trusted = true
		c.ok()
	}
}

func (c *conn) ok() { c.out = append(c.out, "+OK\r\n"...) }

func (c *conn) integer(n int) {
	c.out = append(c.out, ':')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	c.out = append(c.out, "\r\n"...)
}

// appendError appends an error reply; words hold neither CR nor LF.
func appendError(dst []byte, words string) []byte {
	dst = append(dst, '-')
	dst = append(dst, words...)
	return append(dst, "\r\n"...)
}

// plain makes a client's word fit for an error: printable ASCII, 64 bytes at most.
func plain(word []byte) string {
	const most = 64
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(word[:min(len(word), most)]))
}
