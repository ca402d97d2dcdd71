package cachenode

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// protocol holds the differences between the connections of the protocols that nodes speak.
type protocol struct {
	name       string
	newDialect func(*conn) dialect
	// appendRefusal appends an error reply about the node rather than a request; words hold neither CR nor LF.
	appendRefusal func(dst []byte, words string) []byte
	// idle is how long a client may be silent before its connection is closed. 0 stands for ever between requests, and for readTimeout within one.
	idle time.Duration
}

var protocols = [...]protocol{
	{"resp", newRESP, appendRESPRefusal, 0},
	{"memcached", newMemcached, appendMemcachedRefusal, 0},
	{"hydra", newHydra, appendHydraRefusal, hydraIdle},
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
	return protocol{}, fmt.Errorf("protocol %q: write %s", name, strings.Join(names[:len(names)-1], ", ")+" or "+names[len(names)-1])
}

// portsBelow bounds the ports of Hydra nodes: versions hold a port in 15 bits and a sign.
const portsBelow = 1 << 15

// listen opens the port. For a Hydra node, any free port is one that its versions can hold.
func (p protocol) listen(address string, open func(string) (net.Listener, error)) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || p.name != "hydra" {
		return open(address)
	}
	if port != "0" {
		if n, err := strconv.Atoi(port); err == nil && n >= portsBelow {
			return nil, fmt.Errorf("port %d: write one below %d, as the versions of Hydra Cache hold no larger one", n, portsBelow)
		}
		return open(address)
	}
	const first, tries = 10_000, 100
	var failed error
	for range tries {
		var listener net.Listener
		if listener, failed = open(net.JoinHostPort(host, strconv.Itoa(first+rand.IntN(portsBelow-first)))); failed == nil {
			return listener, nil
		}
	}
	return nil, failed
}
