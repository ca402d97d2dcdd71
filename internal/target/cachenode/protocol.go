package cachenode

import (
	"fmt"
	"strings"
)

// protocol is a protocol that nodes speak: everything in which their connections differ.
type protocol struct {
	name       string
	newDialect func(*conn) dialect
	// appendRefusal appends an error reply about the node rather than a request; words hold neither CR nor LF.
	appendRefusal func(dst []byte, words string) []byte
}

var protocols = [...]protocol{
	{"resp", newRESP, appendRESPRefusal},
	{"memcached", newMemcached, appendMemcachedRefusal},
}

// dialect reads one connection's requests and answers them. Only the connection's own goroutine uses it.
type dialect interface {
	// answer answers the request that b begins with, and returns its length. It returns 0 while the request is incomplete; the next call then has the
	// same bytes and more. It reports false if the connection must end once its replies are sent.
	answer(b []byte) (taken int, goOn bool)
}

// protocolNamed returns the protocol with the given name; "" means the first.
func protocolNamed(name string) (protocol, error) {
	var names []string
	for _, p := range protocols {
		if p.name == name || name == "" {
			return p, nil
		}
		names = append(names, p.name)
	}
	return protocol{}, fmt.Errorf("protocol %q: write %s", name, strings.Join(names, " or "))
}
