package driver

import (
	"context"
	"net"
)

// Cluster is a Wire whose servers may be nodes of a cluster, which divide the keys among them by hash slots or, if it is a [Replicator], by their
// points on a ring.
type Cluster interface {
	Wire

	// Clustered reports whether a target with the config is a cluster. The target's endpoints are then some of its nodes.
	Clustered(config any) bool

	// Nodes asks the server at the far end of a fresh connection for all nodes of its cluster and their slots. The caller sets the connection's
	// deadline.
	Nodes(ctx context.Context, conn net.Conn, link Link) ([]Node, error)
}

// Discoverer is an optional interface of the config of a [Cluster] that is a [Replicator].
type Discoverer interface {
	// Discovers reports whether a target with the config is a cluster.
	Discovers() bool
}

// Watched is a Cluster whose endpoints may be servers that watch the nodes, such as Sentinels, instead of nodes. They are asked for the nodes at the
// start and when there is doubt.
type Watched interface {
	Cluster
	// Watched reports whether the endpoints of a target with the config are such servers.
	Watched(config any) bool
}

// Node is a node of a cluster, as one of the nodes describes it.
type Node struct {
	Addr    string   // host:port
	Aliases []string // other names that a redirect may use for it
	Slots   [][2]int // ranges of slots, first and last; empty for a replica, a node that has no slots yet, and with a Replicator
	Of      string   // Addr of the node for whose slots it serves gets; "" for none
	Epoch   uint64   // the map's epoch, the same in all nodes: a map with a lower epoch is older; 0 if not known
}

// Redirector is an optional interface of a Codec whose servers redirect requests.
type Redirector interface {
	// ParseAsking reads the reply to what precedes a request with Asking set from the front of b. It returns the number of bytes it took, 0 if the
	// reply is incomplete, and an error if the connection cannot be used any more.
	ParseAsking(b []byte) (n int, err error)

	// Redirect returns where a reply's message sends the request: a node's Addr or alias, or ":port" for another port of the same host. ask says that
	// this holds for this request only. ok is false for any other message. addr is a slice of message.
	Redirect(message []byte) (addr []byte, ask, ok bool)
}
