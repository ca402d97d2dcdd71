package cachenode

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	outOfMemory = "OOM command not allowed when used memory > 'maxmemory'."
	notInteger  = "ERR value is not an integer or out of range"
	overflow    = "ERR increment or decrement would overflow"
	syntaxError = "ERR syntax error"
	keyTooLong  = "ERR a key has at most 65536 bytes here"
	// maxKey bounds a key, in bytes.
	maxKey = 64 << 10
	// maxPattern bounds a pattern, in bytes: matching each key takes time in proportion to it.
	maxPattern = 1 << 10
	// maxScan bounds the keys that one SCAN visits, so that other clients get their turn.
	maxScan = 10_000
)

func (c *resp) get() { c.value(c.args[1]) }

// value answers with a key's value, or null.
func (c *resp) value(key []byte) {
	if value, done, ok := c.node.store.get(c.db, key); ok {
		c.out = appendLength(c.out, len(value))
		c.appendValue(value, done)
		return
	}
	c.null()
}

// set knows one option: the key's lifetime.
func (c *resp) set() {
	var after time.Duration
	if len(c.args) > 3 {
		unit := time.Second
		switch {
		case len(c.args) == 5 && sameWord(c.args[3], "ex"):
		case len(c.args) == 5 && sameWord(c.args[3], "px"):
			unit = time.Millisecond
		default:
			c.fail("ERR SET takes EX or PX with a time here, and no other option")
			return
		}
		n, ok := c.number(c.args[4])
		if !ok {
			return
		}
		if n <= 0 || n > math.MaxInt64/int64(unit) {
			c.fail("ERR invalid expire time in 'set' command")
			return
		}
		after = time.Duration(n) * unit
	}
	switch {
	case len(c.args[1]) > maxKey:
		c.fail(keyTooLong)
	case !c.node.store.set(c.db, c.args[1], c.args[2], after):
		c.fail(outOfMemory)
	default:
		c.ok()
	}
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

func (c *resp) mget() {
	c.array(len(c.args) - 1)
	for _, key := range c.args[1:] {
		c.value(key)
	}
}

// mset stores all pairs, or none if one of them alone exceeds the bound. Values being sent can prevent it from storing the rest.
func (c *resp) mset() {
	pairs := c.args[1:]
	if len(pairs)%2 != 0 {
		c.fail("ERR wrong number of arguments for 'mset' command")
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		if cost(len(pairs[i]), len(pairs[i+1])) > c.node.store.bound {
			c.fail(outOfMemory)
			return
		}
		if len(pairs[i]) > maxKey {
			c.fail(keyTooLong)
			return
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if !c.node.store.set(c.db, pairs[i], pairs[i+1], 0) {
			c.fail(outOfMemory)
			return
		}
	}
	c.ok()
}

// count adds to a key's number.
func (c *resp) count() {
	by := int64(1)
	if len(c.args) == 3 {
		n, ok := c.number(c.args[2])
		if !ok {
			return
		}
		by = n
	}
	if c.args[0][0]|0x20 == 'd' { // DECR, DECRBY
		if by == math.MinInt64 {
			c.fail("ERR decrement would overflow")
			return
		}
		by = -by
	}
	if len(c.args[1]) > maxKey {
		c.fail(keyTooLong)
		return
	}
	sum, refusal := c.node.store.add(c.db, c.args[1], by)
	if refusal != "" {
		c.fail(refusal)
		return
	}
	c.integer(int(sum))
}

func (c *resp) exists() {
	n := 0
	for _, key := range c.args[1:] {
		if _, known := c.node.store.left(c.db, key); known {
			n++
		}
	}
	c.integer(n)
}

// unit is that of the times of EXPIRE and TTL, or of PEXPIRE and PTTL.
func (c *resp) unit() time.Duration {
	if c.args[0][0]|0x20 == 'p' {
		return time.Millisecond
	}
	return time.Second
}

func (c *resp) expire() {
	unit := c.unit()
	n, ok := c.number(c.args[2])
	if !ok {
		return
	}
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		c.fail("ERR invalid expire time in '" + strings.ToLower(string(c.args[0])) + "' command")
		return
	}
	if c.node.store.expire(c.db, c.args[1], time.Duration(n)*unit) {
		c.integer(1)
	} else {
		c.integer(0)
	}
}

// ttl answers with the time left, rounded to the nearest unit.
func (c *resp) ttl() {
	unit := c.unit()
	left, known := c.node.store.left(c.db, c.args[1])
	switch {
	case !known:
		c.integer(-2)
	case left == 0:
		c.integer(-1)
	default:
		c.integer(int((left + unit/2) / unit))
	}
}

// kind answers with the type of a key's value: a string, if there is one.
func (c *resp) kind() {
	if _, known := c.node.store.left(c.db, c.args[1]); known {
		c.out = append(c.out, "+string\r\n"...)
		return
	}
	c.out = append(c.out, "+none\r\n"...)
}

func (c *resp) strlen() {
	value, done, _ := c.node.store.get(c.db, c.args[1])
	if done != nil {
		done()
	}
	c.integer(len(value))
}

// memory answers with an entry's share of the node's bound.
func (c *resp) memory() {
	if !sameWord(c.args[1], "usage") || len(c.args) != 3 {
		c.unknown("MEMORY")
		return
	}
	size, known := c.node.store.cost(c.db, c.args[2])
	if !known {
		c.null()
		return
	}
	c.integer(int(size))
}

// scan visits the keys of the database in the order in which they came.
func (c *resp) scan() {
	cursor, err := strconv.ParseUint(string(c.args[1]), 10, 64)
	if err != nil {
		c.fail("ERR invalid cursor")
		return
	}
	count, pattern, kind := int64(10), []byte("*"), []byte("string")
	for i := 2; i < len(c.args); i += 2 {
		switch {
		case i+1 == len(c.args):
			c.fail(syntaxError)
			return
		case sameWord(c.args[i], "count"):
			n, ok := c.number(c.args[i+1])
			if !ok {
				return
			}
			if n < 1 {
				c.fail(syntaxError)
				return
			}
			count = min(n, maxScan)
		case sameWord(c.args[i], "match") && len(c.args[i+1]) > maxPattern:
			c.fail("ERR a pattern has at most 1024 bytes here")
			return
		case sameWord(c.args[i], "match"):
			pattern = c.args[i+1]
		case sameWord(c.args[i], "type"):
			kind = c.args[i+1]
		default:
			c.fail(syntaxError)
			return
		}
	}
	keys, next := c.node.store.scan(c.db, cursor, int(count))
	found := keys[:0]
	for _, key := range keys {
		if sameWord(kind, "string") && glob(pattern, key) {
			found = append(found, key)
		}
	}
	c.array(2)
	c.text(strconv.FormatUint(next, 10))
	c.array(len(found))
	for _, key := range found {
		c.text(key)
	}
}

// number reads an integer argument, or answers that it is not one.
func (c *resp) number(arg []byte) (n int64, ok bool) {
	n, ok = parseNumber(arg)
	if !ok {
		c.fail(notInteger)
	}
	return n, ok
}

// parseNumber reads an integer in its shortest form.
func parseNumber(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(b)
}

// glob reports whether text matches the pattern: * is any text, ? any byte, [a-z^…] one of a set, and \ escapes the next byte. It takes time in
// proportion to at most the product of their lengths.
func glob(pattern []byte, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0 // where to resume if the guess about the last * was wrong
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if p < len(pattern) {
			if next, ok := globByte(pattern, p, text[t]); ok {
				p, t = next, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globByte matches one byte with the part of the pattern at p, and returns where the next part begins.
func globByte(pattern []byte, p int, b byte) (next int, ok bool) {
	switch {
	case pattern[p] == '?':
		return p + 1, true
	case pattern[p] == '[':
		return globSet(pattern, p+1, b)
	case pattern[p] == '\\' && p+1 < len(pattern):
		p++
	}
	return p + 1, pattern[p] == b
}

// globSet matches one byte with a set that begins at p, after its bracket. An unclosed set ends with the pattern.
func globSet(pattern []byte, p int, b byte) (next int, ok bool) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	in := false
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			in = in || pattern[p] == b
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := min(pattern[p], pattern[p+2]), max(pattern[p], pattern[p+2])
			in = in || low <= b && b <= high
			p += 2
		default:
			in = in || pattern[p] == b
		}
	}
	return min(p+1, len(pattern)), in != not
}
