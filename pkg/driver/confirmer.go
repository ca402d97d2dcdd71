package driver

import "time"

// Confirmer is an optional interface of a driver's config, for servers that wait for copies of a value before they answer a put, and then say how many
// there are. It goes with no replication by the client.
type Confirmer interface {
	// Confirms returns the most copies that a Reply's Acks can say, 0 if servers say nothing, and how long a server may wait for them.
	Confirms() (copies int, within time.Duration)
}
