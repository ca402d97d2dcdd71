package cachenode

import (
	"crypto/subtle"
	"strconv"
	"strings"
)

// resp is the dialect of Redis, RESP2.
type resp struct {
	*conn
	trusted bool // authenticated, or no password is asked for
	db      int
	request respRequest
	args    [][]byte // of the request being answered; parts of its bytes
}

func newRESP(c *conn) dialect {
	r := &resp{conn: c, trusted: c.node.cfg.Password == "", request: respRequest{limit: c.node.requestLimit()}}
	r.request.reset()
	return r
}

func appendRESPRefusal(dst []byte, words string) []byte { return appendError(dst, "ERR "+words) }

// answer implements dialect.
func (c *resp) answer(b []byte) (taken int, goOn bool) {
	complete, err := c.request.parse(b)
	if err != nil {
		c.out = appendError(c.out, "ERR "+err.Error())
		return 0, false
	}
	if !complete {
		return 0, true
	}
	c.args = c.args[:0]
	for _, s := range c.request.args {
		c.args = append(c.args, s.of(b))
	}
	if len(c.args) > 0 {
		c.execute()
	}
	taken = c.request.at
	c.request.reset()
	return taken, true
}

// respCommand is one command. min and max bound the number of its arguments, the name included.
type respCommand struct {
	name     string
	min, max int
	verb     verb
	run      func(*resp)
}

var respCommands = [...]respCommand{
	{"get", 2, 2, verbGet, (*resp).get},
	{"set", 3, 3, verbSet, (*resp).set},
	{"del", 2, maxArgs, verbDel, (*resp).del},
	{"ping", 1, 2, verbOther, (*resp).ping},
	{"info", 1, maxArgs, verbOther, (*resp).info},
	{"dbsize", 1, 1, verbOther, (*resp).dbsize},
	{"flushall", 1, 2, verbOther, (*resp).flushall},
	{"select", 2, 2, verbOther, (*resp).selectDB},
	{"auth", 2, 3, verbOther, (*resp).auth},
}

// execute answers the request in c.args. The errors' words are Redis' own where it has the same error.
func (c *resp) execute() {
	cmd := findRESP(c.args[0])
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
	if verb != verbOther {
		c.queue()
		defer c.leave()
	}
	cmd.run(c)
}

func findRESP(name []byte) *respCommand {
	for i := range respCommands {
		if sameWord(name, respCommands[i].name) {
			return &respCommands[i]
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

func (c *resp) get() {
	if value, ok := c.node.store.get(c.db, c.args[1]); ok {
		c.bulk(value)
		return
	}
	c.out = append(c.out, "$-1\r\n"...)
}

func (c *resp) set() {
	if !c.node.store.set(c.db, c.args[1], c.args[2]) {
		c.out = appendError(c.out, "OOM command not allowed when used memory > 'maxmemory'.")
		return
	}
	c.ok()
}

func (c *resp) del() {
	deleted := 0
	for _, key := range c.args[1:] {
		if c.node.store.del(c.db, key) {
			deleted++
		}
	}
	c.integer(deleted)
}

func (c *resp) ping() {
	if len(c.args) == 2 {
		c.out = appendLength(c.out, len(c.args[1]))
		c.out = append(c.out, c.args[1]...) // a copy: the request's bytes are written over
		c.out = append(c.out, "\r\n"...)
		return
	}
	c.out = append(c.out, "+PONG\r\n"...)
}

func (c *resp) info() { c.bulk(c.node.appendInfo(nil, c.args[1:])) }

func (c *resp) dbsize() { c.integer(c.node.store.stats().keys[c.db]) }

func (c *resp) flushall() {
	if len(c.args) == 2 && !sameWord(c.args[1], "sync") && !sameWord(c.args[1], "async") {
		c.out = appendError(c.out, "ERR syntax error")
		return
	}
	c.node.store.flush()
	c.ok()
}

func (c *resp) selectDB() {
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

func (c *resp) auth() {
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

// bulk appends a bulk string, which must never be written to again if it is large.
func (c *resp) bulk(b []byte) {
	c.out = appendLength(c.out, len(b))
	c.appendValue(b)
}

// appendLength appends the line before a bulk string of n bytes.
func appendLength(dst []byte, n int) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n"...)
}

func (c *resp) ok() { c.out = append(c.out, "+OK\r\n"...) }

func (c *resp) integer(n int) {
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
