package driver

import (
	"context"
	"net"
	"time"
)

// Stateful is an optional interface of a Codec whose connections have state: prepared statements, a Host header, a counter, which request a reply
// belongs to.
//
// AppendRequest is called in the order in which the connection sends, and so in the order of replies unless the codec is Tagged. It may be called
// before the greeting is answered. Parse is called for the reply to each of these requests, in order, even if the reply comes too late for the op. A
// connection with a request that is never sent, or never answered, is not used again.
type Stateful interface {
	Codec
	// Connection returns the codec of one connection: to an endpoint, as the plan writes it, of a session, whose number is unique among all that the
	// shared codec serves. It is called each time a connection is made or reopened, and it is the only method called on the shared codec, which can
	// keep state that outlives a connection. If the shared codec is Tagged, so are the codecs it returns. Their requests go to no cluster.
	Connection(endpoint string, session int) (Codec, error)
}

// Tagged is an optional interface of a Codec whose replies may come in any order: each carries the id of its request. Its requests have an ID, and
// go to no cluster.
type Tagged interface {
	Codec
	// Tag reads the id of the reply that b begins with; false if b does not hold it yet, and 0 for a message that [Aside] takes. Parse is then called with the same bytes, and returns an
	// error if they are not of this protocol.
	Tag(b []byte) (id uint32, ok bool)
}

// Leaver is an optional interface of the codec of a connection that is Tagged and [Owing], and whose endpoint may take leave: it answers some requests,
// and never looks at those after them.
type Leaver interface {
	// Left reports, after each read, whether the endpoint takes leave and owes no more answers. The connection is then made again, and
	// [Stateful.Connection] asked for its codec, which owes the requests that have no answer, under the ids that they have.
	Left() bool
}

// Negotiator is an optional interface of a [Wire]: over TLS, connections agree on the protocol by ALPN.
type Negotiator interface {
	Wire
	// ALPN returns the protocol's name there (RFC 7301). A server that does not choose it is refused.
	ALPN() string
}

// Handshaker is an optional interface of a Wire whose connections begin with more than a Codec's greeting can say, such as an exchange that a client
// library does.
type Handshaker interface {
	Wire
	// Handshake talks on a fresh connection until ctx ends, and returns the connection to go on with: conn, or one that wraps it. It must not read
	// past the replies to what it sent. On the event loop it must return conn, because the loop then reads and writes the socket. It is called on a
	// goroutine of its own for each new connection; a few run at the same time.
	Handshake(ctx context.Context, conn net.Conn, link Link) (net.Conn, error)
}

// IdleCloser is a Wire whose servers close connections that have been idle for some time, which is not an error. Such a connection is made again for
// the next request, which waits for it. Its requests go to no cluster.
type IdleCloser interface {
	Wire
	// IdleTimeout returns how long a connection may idle until loadgen closes it, unless the plan says otherwise: somewhat less than servers wait,
	// since a request that crosses their closing is lost.
	IdleTimeout() time.Duration
}
