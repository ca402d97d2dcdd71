package run

import "fmt"

// Connections counts the connections of a load that renews them, its setup's included.
//
//	attempted = opened + refused + making
//	opened    = open + renewed + lost
type Connections struct {
	Attempted uint64 `json:"attempted"`
	Opened    uint64 `json:"opened"`
	Refused   uint64 `json:"refused"`
	Making    int64  `json:"making"` // at the load's end
	Open      int64  `json:"open"`   // likewise
	Renewed   uint64 `json:"renewed"`
	Lost      uint64 `json:"lost"`

	Connect  Latency `json:"connect"` // from the attempt until requests may be sent
	TCP      Latency `json:"tcp"`     // of Connect, TCP's handshake
	TLS      Latency `json:"tls"`     // that of TLS, always a full one
	Greeting Latency `json:"greeting"`
}

func (c *Connections) check() error {
	if c != nil && (c.Attempted != c.Opened+c.Refused+uint64(c.Making) || c.Opened != uint64(c.Open)+c.Renewed+c.Lost) {
		return fmt.Errorf("connections do not add up: %d attempted, %d opened, %d refused, %d being made, %d open, %d renewed, %d lost",
			c.Attempted, c.Opened, c.Refused, c.Making, c.Open, c.Renewed, c.Lost)
	}
	return nil
}
