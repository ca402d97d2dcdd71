package driver

import (
	"context"
	"net"
)

// Cluster is a Wire whose servers may be the nodes of a cluster, which divide the keys between them by hash slots.
type Cluster interface {
	Wire

	// Clustered says whether a target with the config is a cluster, of which its endpoints are some nodes.
	Clustered(config any) bool

	// Nodes asks the server at the far end of a fresh connection for all nodes of its cluster and the slots they have. The connection's
	// deadline is set by the caller.
	Nodes(ctx context.Context, conn net.Conn, link Link) ([]Node, error)
}

// Node is a node of a cluster as one of them describes it.
type Node struct {
	Addr    string   // host:port
	Aliases []string // other forms in which a redirect may name it
	Slots   [][2]int // ranges of slots, first and last; none of a replica, and of a node that waits for some
}

// Redirector is what a Codec is, too, whose servers redirect requests.
type Redirector interface {
	// ParseAsking reads the reply to what precedes a request with Asking set from the front of b. It returns the bytes it took, 0 when the
	// reply is not complete yet, and an error when the connection is of no further use.
	ParseAsking(b []byte) (n int, err error)

	// Redirect says where a reply's message sends the request, by a node's Addr or alias, or by ":port" for another port of the same host;
	// ask: for this request only. It reports false for any other message. addr is a part of the message.
	Redirect(message []byte) (addr []byte, ask, ok bool)
}
