package driver

import (
	"context"
	"net"
)

// Stateful is what a Codec is, too, whose connections have a state: prepared statements, a Host header, a counter.
type Stateful interface {
	Codec
	// Connection returns the codec of one connection, as the plan writes its endpoint. It is called each time that one is made, again when it is
	// opened anew, and nothing else is asked of the codec that it is a method of. One that is Tagged makes codecs that are, too. Its requests go to no cluster.
	Connection(endpoint string) (Codec, error)
}

// Tagged is what a Codec is, too, whose replies may come in any order: each carries the id of its request. Its requests have an ID, have one key, and
// go to no cluster.
type Tagged interface {
	Codec
	// Tag reads the id of the reply that b begins with; false when b does not hold it yet. Parse is called with what Tag has found, and reports a reply
	// whose beginning is none of this protocol.
	Tag(b []byte) (id uint32, ok bool)
}

// Handshaker is what a Wire is, too, whose connections begin with more than a Codec's greeting says, such as an exchange that a client library knows.
type Handshaker interface {
	Wire
	// Handshake talks on a fresh connection, until ctx ends, and returns what to go on with: conn, or what it has made of it. It may not have read
	// beyond what answers it. On the event loop it must be conn, whose socket is then read and written by the loop. It is called on a goroutine
	// of its own, whenever a connection is made; a few run at the same time.
	Handshake(ctx context.Context, conn net.Conn, link Link) (net.Conn, error)
}
