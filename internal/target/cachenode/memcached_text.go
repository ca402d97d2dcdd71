package cachenode

import (
	"hash/maphash"
	"strconv"
)

// uniques makes CAS uniques. Equal values have equal uniques, as this node keeps no versions.
var uniques = maphash.MakeSeed()

// getText answers get and gets: the values that exist, and END.
func (m *memcached) getText() {
	cas := string(m.words[0]) == "gets"
	for _, key := range m.words[1:] {
		value, done, ok := m.node.store.get(0, key)
		if !ok {
			continue
		}
		m.out = append(append(m.out, "VALUE "...), key...)
		m.out = strconv.AppendInt(append(m.out, " 0 "...), int64(len(value)), 10)
		if cas {
			m.out = strconv.AppendUint(append(m.out, ' '), maphash.Bytes(uniques, value), 10)
		}
		m.out = append(m.out, "\r\n"...)
		m.appendValue(value, done)
	}
	m.say("END")
}

// setText answers set KEY FLAGS SECONDS SIZE.
func (m *memcached) setText() {
	seconds, err := strconv.ParseInt(string(m.words[3]), 10, 32)
	switch {
	case err != nil:
		m.say("CLIENT_ERROR bad command line format")
	case string(m.words[2]) != "0":
		m.say("CLIENT_ERROR this node keeps no client flags")
	case m.store(seconds):
		m.say("STORED")
	}
}

func (m *memcached) delText() {
	if m.node.store.del(0, m.words[1]) {
		m.say("DELETED")
		return
	}
	m.say("NOT_FOUND")
}
