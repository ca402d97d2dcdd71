package cachenode

import (
	"crypto/sha256"
	"crypto/subtle"
	"strconv"
	"strings"
)

// resp is the dialect of Redis: RESP2, or RESP3 if the client has asked for it.
type resp struct {
	*conn
	trusted bool // authenticated, or no password is required
	three   bool // RESP3
	db      int
	name    string // the client's name, as it set it
	quits   bool   // the client has asked for the end
	request respRequest
	args    [][]byte // of the request being answered; slices of its bytes
}

func newRESP(c *conn) dialect {
	r := &resp{conn: c, request: respRequest{limit: strangersLimit}}
	if c.node.cfg.Password == "" {
		r.trust()
	}
	r.request.reset()
	return r
}

// strangersLimit bounds the arguments of a request before authentication, and so the memory that strangers can take.
const strangersLimit = 16 << 10

func (c *resp) trust() { c.trusted, c.request.limit = true, c.node.requestLimit() }

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
	return taken, !c.quits
}

// execute answers the request in c.args. Errors use Redis' own words if it has the same error.
func (c *resp) execute() {
	cmd := findRESP(c.args[0])
	verb, refusal := verbOther, ""
	switch {
	case cmd == nil:
		refusal = "ERR unknown command '" + plain(c.args[0]) + "'. This node has a few commands only: COMMAND DOCS lists them."
	case !c.trusted && cmd.name == "hello":
		verb = cmd.verb // it may carry the password
	case !c.trusted && cmd.name != "auth":
		refusal = "NOAUTH Authentication required."
	case len(c.args) < cmd.min || len(c.args) > cmd.max:
		refusal = "ERR wrong number of arguments for '" + cmd.name + "' command"
	default:
		verb = cmd.verb
	}
	c.counts[verb].Add(1)
	c.begin(verb)
	switch {
	case refusal != "":
		c.fail(refusal)
	case cmd.run == nil:
		c.command()
	default:
		cmd.run(c)
	}
	c.finish()
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

func (c *resp) ping() {
	if len(c.args) == 2 {
		c.echo()
		return
	}
	c.out = append(c.out, "+PONG\r\n"...)
}

// echo answers with a copy of the argument, because the request's bytes get overwritten.
func (c *resp) echo() {
	if len(c.args[1]) > maxKept {
		c.fail("ERR " + strings.ToUpper(string(c.args[0])) + " takes at most 16384 bytes here")
		return
	}
	c.out = appendLength(c.out, len(c.args[1]))
	c.out = append(c.out, c.args[1]...)
	c.out = append(c.out, "\r\n"...)
}

func (c *resp) quit() {
	c.ok()
	c.quits = true
}

func (c *resp) dbsize() { c.integer(c.node.store.stats().keys[c.db]) }

func (c *resp) flushall() {
	if len(c.args) == 2 && !sameWord(c.args[1], "sync") && !sameWord(c.args[1], "async") {
		c.fail(syntaxError)
		return
	}
	c.node.store.flush()
	c.ok()
}

func (c *resp) selectDB() {
	db, err := strconv.Atoi(string(c.args[1]))
	switch {
	case err != nil:
		c.fail(notInteger)
	case db < 0 || db >= databases:
		c.fail("ERR DB index is out of range")
	default:
		c.db = db
		c.ok()
	}
}

func (c *resp) auth() {
	if c.node.cfg.Password == "" && len(c.args) == 2 {
		c.fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
		return
	}
	user := "default"
	if len(c.args) == 3 {
		user = string(c.args[1])
	}
	if refusal := c.authenticate(user, c.args[len(c.args)-1]); refusal != "" {
		c.fail(refusal)
		return
	}
	c.ok()
}

// authenticate trusts the client from now on, or returns why not.
func (c *resp) authenticate(user string, password []byte) (refusal string) {
	want := c.node.cfg.Password
	if user != "default" || want != "" && !samePassword(password, []byte(want)) {
		return "WRONGPASS invalid username-password pair or user is disabled."
	}
	c.trust()
	return ""
}

// samePassword takes the same time for any given password of the same length, whatever the wanted one is.
func samePassword(given, wanted []byte) bool {
	a, b := sha256.Sum256(given), sha256.Sum256(wanted)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// info can answer with 100,000 lines, one per peer.
func (c *resp) info() {
	ok := c.appendListing(c.node.info(c.args[1:]), func(n int) { c.out = appendLength(c.out, n) })
	if !ok {
		c.fail(tooMuchUnread)
	}
}

const tooMuchUnread = "ERR this node has too many replies that nobody reads"

// appendLength appends the header of a bulk string of n bytes.
func appendLength(dst []byte, n int) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n"...)
}

// text appends a bulk string no longer than a key.
func (c *resp) text(s string) {
	if len(c.out)+len(s) > maxKept {
		c.flush()
	}
	c.out = appendLength(c.out, len(s))
	c.out = append(c.out, s...)
	c.out = append(c.out, "\r\n"...)
}

func (c *resp) texts(all ...string) {
	for _, s := range all {
		c.text(s)
	}
}

// header appends the header of n elements.
func (c *resp) header(kind byte, n int) {
	c.out = append(c.out, kind)
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	c.out = append(c.out, "\r\n"...)
}

func (c *resp) array(n int) { c.header('*', n) }

// dictionary begins n pairs of names and values.
func (c *resp) dictionary(n int) {
	if c.three {
		c.header('%', n)
		return
	}
	c.header('*', 2*n)
}

// null answers that there is no value.
func (c *resp) null() {
	if c.three {
		c.out = append(c.out, "_\r\n"...)
		return
	}
	c.out = append(c.out, "$-1\r\n"...)
}

// nullArray answers that there is no array.
func (c *resp) nullArray() {
	if c.three {
		c.null()
		return
	}
	c.out = append(c.out, "*-1\r\n"...)
}

// fail appends an error; words hold neither CR nor LF.
func (c *resp) fail(words string) { c.out = appendError(c.out, words) }

func (c *resp) ok() { c.out = append(c.out, "+OK\r\n"...) }

func (c *resp) integer(n int) { c.header(':', n) }

// appendError appends an error reply; words hold neither CR nor LF.
func appendError(dst []byte, words string) []byte {
	dst = append(dst, '-')
	dst = append(dst, words...)
	return append(dst, "\r\n"...)
}

// plain makes a client's word fit for an error: printable ASCII, at most 64 bytes.
func plain(word []byte) string {
	const most = 64
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(word[:min(len(word), most)]))
}
