package cachenode

import (
	"fmt"
	"strings"
)

// protocol is one that nodes speak: all that tells their connections apart.
type protocol struct {
	name       string
	newDialect func(*conn) dialect
	// appendRefusal appends an error reply that is about the node and not about a request; words hold neither CR nor LF.
	appendRefusal func(dst []byte, words string) []byte
}

var protocols = [...]protocol{
	{"resp", newRESP, appendRESPRefusal},
	{"memcached", newMemcached, appendMemcachedRefusal},
}

// dialect reads one connection's requests and answers them. It is for the connection's own goroutine.
type dialect interface {
	// answer answers the request that b begins with, and returns how many bytes that is: 0 while they are not all there,
	// and the next call brings them again, with more. It reports false when the connection is to end once its replies are sent.
	answer(b []byte) (taken int, goOn bool)
}

// protocolNamed returns the protocol with the given name; "" is the first.
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
