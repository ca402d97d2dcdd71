package driver

import "time"

// Replicator is a Wire whose servers know each other and copy values among themselves, so that a plan may set coordinate = "server" for them.
//
// Identify returns their N, W and R as numbers under the names "n", "w" and "r", or leaves them out if the servers do not report them. N, W and R
// have the meaning that they have for these servers.
type Replicator interface {
	Identifier
	Wire
	// Points returns the points on the ring of the server at an address, as the plan writes it. Clients send a key to the server with the first point
	// at or after the first 4 bytes of the key's MD5, little-endian.
	Points(config any, address string) []uint32
	// CheckAddress says why a server cannot be at an address, as the plan writes it, and what to do instead; nil if it can.
	CheckAddress(address string) error
	// Patience returns how long servers of a target with the config may take to know each other. Identify may wait for that.
	Patience(config any) time.Duration
	// Timeout returns how long a request may take unless the plan sets it: longer than servers wait for each other.
	Timeout() time.Duration
	// Builds lists the builds of the servers that built-in nodes may answer as. Without a word in the plan it is the last.
	Builds() []string
	// MostKept returns how many keys the sessions of a worker may have in total, since the codecs keep state for each key of each session. A key that
	// several sessions use counts for each of them.
	MostKept() int64
}
