package cachenode

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxMemcachedKey is memcached's bound on a key, in bytes.
	maxMemcachedKey = 250
	// memcachedVersion is a version that no memcached has. The program's own version is among the stats.
	memcachedVersion = "0-loadgen"
	// maxOpaque is memcached's bound on the opaque word that a client gets back with its reply, in bytes.
	maxOpaque = 32
)

// memcached is the dialect of memcached: its meta commands, and the classic get, gets, set and delete.
type memcached struct {
	*conn
	request memcachedRequest
	words   [][]byte // of the request being answered
	data    []byte   // the data block, or empty; like words, slices of the request's bytes
	quits   bool     // the client wants to end
}

func newMemcached(c *conn) dialect {
	m := &memcached{conn: c, request: memcachedRequest{limit: c.node.requestLimit()}}
	m.request.reset()
	return m
}

func appendMemcachedRefusal(dst []byte, words string) []byte {
	return append(append(dst, "SERVER_ERROR "+words...), "\r\n"...)
}

// answer implements dialect.
func (m *memcached) answer(b []byte) (taken int, goOn bool) {
	complete, err := m.request.parse(b)
	if err != nil {
		m.say(err.Error())
		return 0, false
	}
	if !complete {
		return 0, true
	}
	m.words = m.words[:0]
	for _, s := range m.request.words {
		m.words = append(m.words, s.of(b))
	}
	m.data = m.request.data.of(b)
	m.execute()
	taken = m.request.at
	m.request.reset()
	return taken, !m.quits
}

// memcachedCommand is one command. words is the number of its words, the name included.
type memcachedCommand struct {
	name  string
	words int
	more  int    // words that may follow
	keys  int    // how many words after the name are keys; anyKeys: all of them
	flags string // for a meta command with a key: the letters its flags may begin with
	verb  verb
	run   func(*memcached)
}

var memcachedCommands = [...]memcachedCommand{
	{"mg", 2, 0, 1, "vkstfO", verbGet, (*memcached).get},
	{"ms", 3, 0, 1, "kOFT", verbSet, (*memcached).set},
	{"md", 2, 0, 1, "kO", verbDel, (*memcached).del},
	{"get", 2, math.MaxInt32, anyKeys, "", verbGet, (*memcached).getText},
	{"gets", 2, math.MaxInt32, anyKeys, "", verbGet, (*memcached).getText},
	{"set", 5, 0, 1, "", verbSet, (*memcached).setText},
	{"delete", 2, 0, 1, "", verbDel, (*memcached).delText},
	{"mn", 1, 0, 0, "", verbOther, (*memcached).noop},
	{"version", 1, 0, 0, "", verbOther, (*memcached).version},
	{"stats", 1, 1, 0, "", verbOther, (*memcached).stats},
	{"flush_all", 1, 1, 0, "", verbOther, (*memcached).flushAll},
	{"quit", 1, 0, 0, "", verbOther, (*memcached).quit},
}

// anyKeys stands for any number of keys.
const anyKeys = math.MaxInt32

// execute answers the request in m.words and m.data. Errors use memcached's own words if it has the same error.
func (m *memcached) execute() {
	at := slices.IndexFunc(memcachedCommands[:], func(cmd memcachedCommand) bool { return len(m.words) > 0 && string(m.words[0]) == cmd.name })
	cmd := &memcachedCommands[max(0, at)]
	verb, refusal := verbOther, ""
	switch {
	case at < 0:
		refusal = "ERROR"
	case len(m.words) < cmd.words || cmd.flags == "" && len(m.words) > cmd.words+cmd.more:
		refusal = "CLIENT_ERROR bad command line format"
	default:
		refusal = cmd.check(m.words)
	}
	requests := uint64(1)
	if refusal == "" {
		verb, requests = cmd.verb, max(1, uint64(len(cmd.keysOf(m.words)))) // as memcached counts
	}
	m.counts[verb].Add(requests)
	m.begin(verb)
	if refusal != "" {
		m.say(refusal)
	} else {
		cmd.run(m)
	}
	m.finish()
}

// keysOf returns the keys among a command's words.
func (cmd *memcachedCommand) keysOf(words [][]byte) [][]byte {
	return words[1 : 1+min(cmd.keys, len(words)-1)]
}

// check returns what is wrong with a command's keys or flags, "" for nothing.
func (cmd *memcachedCommand) check(words [][]byte) string {
	if slices.ContainsFunc(cmd.keysOf(words), func(key []byte) bool { return len(key) > maxMemcachedKey }) {
		return "CLIENT_ERROR bad command line format"
	}
	if cmd.flags == "" {
		return ""
	}
	flags := words[cmd.words:]
	for i, flag := range flags {
		switch {
		case strings.IndexByte(cmd.flags, flag[0]) < 0:
			return "CLIENT_ERROR invalid flag"
		case hasFlag(flags[:i], flag[0]):
			return "CLIENT_ERROR duplicate flag"
		case flag[0] == 'O' && len(flag) > maxOpaque:
			return "CLIENT_ERROR opaque token too long"
		case flag[0] == 'F' && string(flag) != "F0":
			return "CLIENT_ERROR this node keeps no client flags"
		case flag[0] == 'T':
			if _, err := strconv.ParseInt(string(flag[1:]), 10, 32); err != nil {
				return "CLIENT_ERROR bad token in command line format"
			}
		}
	}
	return ""
}

func hasFlag(flags [][]byte, letter byte) bool {
	return slices.ContainsFunc(flags, func(flag []byte) bool { return flag[0] == letter })
}

func (m *memcached) get() {
	flags := m.words[2:]
	value, done, ok := m.node.store.get(0, m.words[1])
	switch {
	case !ok:
		m.out = append(m.out, "EN"...)
		m.echo(flags)
	case hasFlag(flags, 'v'):
		m.out = append(m.out, "VA "...)
		m.out = strconv.AppendInt(m.out, int64(len(value)), 10)
		m.describe(flags, len(value))
		m.appendValue(value, done)
		return
	default:
		m.out = append(m.out, "HD"...)
		m.describe(flags, len(value))
	}
	if done != nil {
		done()
	}
}

func (m *memcached) set() {
	flags, seconds := m.words[3:], int64(0)
	for _, flag := range flags {
		if flag[0] == 'T' {
			seconds, _ = strconv.ParseInt(string(flag[1:]), 10, 32) // check has validated it
		}
	}
	if m.store(seconds) {
		m.out = append(m.out, "HD"...)
		m.echo(flags)
	}
}

// store keeps the request's data under its key for that many seconds. If it cannot, it answers why and reports false.
func (m *memcached) store(seconds int64) bool {
	after := timeToLive(seconds, time.Now())
	if !m.node.store.set(0, m.words[1], m.data, max(0, after)) {
		m.say("SERVER_ERROR object too large for cache")
		return false
	}
	if after < 0 {
		m.node.store.expire(0, m.words[1], 0)
	}
	return true
}

// timeToLive returns the lifetime of an item given in seconds: 0 for ever, below 0 none at all. A number beyond 30 days is a date.
func timeToLive(seconds int64, now time.Time) time.Duration {
	const longest = 30 * 24 * 60 * 60
	if seconds <= longest {
		return time.Duration(seconds) * time.Second
	}
	if left := time.Unix(seconds, 0).Sub(now); left > 0 {
		return left
	}
	return -1
}

func (m *memcached) del() {
	code := "NF"
	if m.node.store.del(0, m.words[1]) {
		code = "HD"
	}
	m.out = append(m.out, code...)
	m.echo(m.words[2:])
}

// echo ends the line of a reply with what the flags request of the request itself.
func (m *memcached) echo(flags [][]byte) {
	for _, flag := range flags {
		m.echoOne(flag)
	}
	m.out = append(m.out, "\r\n"...)
}

func (m *memcached) echoOne(flag []byte) {
	switch flag[0] {
	case 'k':
		m.out = append(append(m.out, " k"...), m.words[1]...)
	case 'O':
		m.out = append(append(m.out, ' '), flag...)
	}
}

// describe ends the line of a reply with what the flags request of the request itself and of the item, whose value has the given size.
func (m *memcached) describe(flags [][]byte, size int) {
	for _, flag := range flags {
		switch flag[0] {
		case 's':
			m.out = strconv.AppendInt(append(m.out, " s"...), int64(size), 10)
		case 't':
			m.out = strconv.AppendInt(append(m.out, " t"...), m.secondsLeft(), 10)
		case 'f':
			m.out = append(m.out, " f0"...)
		default:
			m.echoOne(flag)
		}
	}
	m.out = append(m.out, "\r\n"...)
}

// secondsLeft returns how long the key has left, rounded up to whole seconds; −1 for ever.
func (m *memcached) secondsLeft() int64 {
	left, known := m.node.store.left(0, m.words[1])
	if known && left == 0 {
		return -1
	}
	return int64((left + time.Second - 1) / time.Second)
}

func (m *memcached) noop() { m.say("MN") }

func (m *memcached) version() { m.say("VERSION " + memcachedVersion) }

func (m *memcached) stats() {
	stats, ok := m.node.appendMemcachedStats(nil, m.words[1:])
	if !ok {
		m.say("CLIENT_ERROR this node knows stats, stats settings, stats faults and stats peers")
		return
	}
	if !m.appendListing(append(stats, "END"...), func(int) {}) {
		m.say("SERVER_ERROR this node has too many replies that nobody reads")
	}
}

func (m *memcached) flushAll() {
	if len(m.words) == 2 && string(m.words[1]) != "0" {
		m.say("CLIENT_ERROR this node flushes at once only")
		return
	}
	m.node.store.flush()
	m.say("OK")
}

func (m *memcached) quit() { m.quits = true }

// say appends a line to the replies.
func (m *memcached) say(words string) {
	m.out = append(append(m.out, words...), "\r\n"...)
}
