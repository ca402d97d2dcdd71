package plan

import (
	"cmp"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Clients are the sessions of a phase, over all workers, each with Pipeline ops in flight.
type Clients struct {
	Sessions int `json:"sessions"` // of a verify: as many as the phases that put have, as each session reads the keys that it has put
	Pipeline int `json:"pipeline"`

	Reconnect *Reconnect `json:"reconnect,omitempty"` // of closed and open loads; nil if connections stay
}

// Clients returns the clients of the phase's load model; those of a phase without one are none.
func (ph *Phase) Clients() *Clients {
	switch {
	case ph.Closed != nil:
		return &ph.Closed.Clients
	case ph.Schedule() != nil:
		return &ph.Schedule().Clients
	}
	return cmp.Or(ph.Populate, ph.Clear, ph.Verify, &Clients{})
}

// Sessions returns how many sessions the phase has, over all workers.
func (ph *Phase) Sessions() int { return ph.Clients().Sessions }

// Pipeline returns how many ops a session of the phase may have in flight.
func (ph *Phase) Pipeline() int { return ph.Clients().Pipeline }

// clients reads those arguments of clients that the block has.
func (b *block) clients(c *Clients) {
	dialect.Integer(b.Block, "sessions", &c.Sessions)
	dialect.Integer(b.Block, "pipeline", &c.Pipeline)
}

// walk reads a block that has no other arguments than those of clients.
func (b *block) walk(arguments ...string) *Clients {
	w := &Clients{Sessions: 16, Pipeline: 16}
	b.Expect(arguments, nil)
	b.clients(w)
	return w
}

// clients checks the clients of a load model.
func (v *validator) clients(c *Clients, at part) {
	v.within(at, "sessions", int64(c.Sessions), 1, maxSessions)
	v.within(at, "pipeline", int64(c.Pipeline), 1, maxPipeline)
}
