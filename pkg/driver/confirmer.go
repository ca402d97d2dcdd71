package driver

import "time"

// Confirmer is an optional interface of a driver's config, for servers that wait for copies of a value before they answer a put, and then say how
// many there are. It excludes replication by the client.
type Confirmer interface {
	// Confirms returns the largest number of copies that a Reply's Acks can report, 0 if servers report none, and how long a server may wait for
	// them.
	Confirms() (copies int, within time.Duration)
}
