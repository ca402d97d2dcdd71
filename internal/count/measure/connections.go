package measure

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/hist"
)

// Connections counts the connections of a load that renews them, and how long it took to make one.
//
//	attempted = opened + refused + making
//	opened    = open + renewed + lost
//
// Attempted, Opened and the ends are counted as they happen; Making and Open by looking at every connection.
type Connections struct {
	Attempted, Opened, Refused uint64
	Renewed, Lost              uint64 // ended by the plan, or by a server because they were idle; ended by anything else
	Before                     uint64 // of Opened: before the step began
	Making, Open               int64  // at the end; in a part of a step, the change

	Times [NumStages]hist.Hist // ns, by stage
}

// The stages of making a connection, by which Times are sorted.
const (
	StageAll      = iota // from the attempt until requests may be sent
	StageTCP             // of them, until TCP's handshake is done
	StageTLS             // its handshake
	StageGreeting        // what the driver and the server say first

	NumStages int = iota
)

// Made counts a connection. Stages that took no time are left out.
func (c *Connections) Made(took [NumStages]int64) {
	c.Opened++
	for stage, ns := range took {
		if ns > 0 || stage == StageAll {
			c.Times[stage].Record(ns)
		}
	}
}

// Linked returns the connections, creating them at first use.
func (t *rest) Linked() *Connections { return made(&t.Links) }

func (c *Connections) counts() [6]*uint64 {
	return [...]*uint64{&c.Attempted, &c.Opened, &c.Refused, &c.Renewed, &c.Lost, &c.Before}
}

// Merge adds what o counted.
func (c *Connections) Merge(o *Connections) {
	from := o.counts()
	for i, n := range c.counts() {
		*n += *from[i]
	}
	c.Making += o.Making
	c.Open += o.Open
	for i := range c.Times {
		c.Times[i].Merge(&o.Times[i])
	}
}

// Reset empties c and keeps its memory.
func (c *Connections) Reset() {
	if c == nil {
		return
	}
	for _, n := range c.counts() {
		*n = 0
	}
	c.Making, c.Open = 0, 0
	for i := range c.Times {
		c.Times[i].Reset()
	}
}

func (c *Connections) empty() bool {
	if c == nil {
		return true
	}
	sum := uint64(c.Making | c.Open)
	for _, n := range c.counts() {
		sum |= *n
	}
	for i := range c.Times {
		sum |= c.Times[i].Count()
	}
	return sum == 0
}

// check compares independent counts.
func (c *Connections) check() error {
	if c == nil {
		return nil
	}
	if c.Attempted != c.Opened+c.Refused+uint64(c.Making) || c.Opened != uint64(c.Open)+c.Renewed+c.Lost || c.Before > c.Opened || c.Times[StageAll].Count() != c.Opened {
		return fmt.Errorf("connections: %d attempted, %d opened (%d before, %d timed), %d refused, %d being made; %d open, %d renewed, %d lost", c.Attempted, c.Opened,
			c.Before, c.Times[StageAll].Count(), c.Refused, c.Making, c.Open, c.Renewed, c.Lost)
	}
	return nil
}
