package driver

import "time"

// Replicator is a Wire whose servers know each other and copy values among themselves, so that a plan may say coordinate = "server" of them.
//
// They say in Identify which N, W and R they have, as numbers by the names "n", "w" and "r", or nothing of these if they do not tell. N, W and R mean what
// they mean to these servers.
type Replicator interface {
	Identifier
	Wire
	// Points returns where the server at an address, as the plan writes it, is on the ring from which clients choose a key's server: the one with the
	// first point at or after the first 4 bytes of the MD5 of the key, little-endian.
	Points(config any, address string) []uint32
	// CheckAddress says why a server cannot be at an address, as the plan writes it, and what to do instead; nil if it can.
	CheckAddress(address string) error
	// Patience returns how long servers of a target with the config may take to know each other. Identify may wait for that.
	Patience(config any) time.Duration
	// Timeout returns how long a request may take if the plan does not say: longer than servers wait for each other.
	Timeout() time.Duration
	// MostKept returns how many keys the sessions of a worker may have in all, each session counting each key that it may use: the codecs keep something
	// of each of them.
	MostKept() int64
}
