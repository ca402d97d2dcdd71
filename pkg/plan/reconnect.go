package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Reconnect says when a connection of a load is closed, and made again for the next op: after a number of requests, or after a time.
type Reconnect struct {
	Ops    int64         `json:"ops,omitempty"`      // requests on the connection; 0 if Every is set
	Every  time.Duration `json:"every_ns,omitempty"` // since the connection was made; 0 if Ops is set
	Jitter float64       `json:"jitter,omitempty"`   // share of Every of which a random part is left out
}

// reconnect reads when connections are renewed; nil if the plan does not say.
func (b *block) reconnect() *Reconnect {
	in := b.inner("reconnect")
	if in == nil {
		return nil
	}
	r := &Reconnect{}
	in.Expect([]string{"ops", "every", "jitter"}, nil)
	dialect.Integer(in.Block, "ops", &r.Ops)
	in.Duration("every", &r.Every)
	in.Share("jitter", &r.Jitter)
	return r
}

// reconnect checks when a phase's connections are renewed.
func (v *validator) reconnect(ph *Phase, at part) {
	r := ph.Clients().Reconnect
	if r == nil {
		return
	}
	at = at.in(ph.model()).in("reconnect")
	switch {
	case (r.Ops == 0) == (r.Every == 0):
		v.fault(at.where+": needs ops or every, and not both", `Write ops = 10, for so many requests on a connection, or every = "5s".`, at.path, at.path+".ops", at.path+".every")
	case r.Every == 0:
		v.within(at, "ops", r.Ops, 1, maxIterations)
	default:
		v.lasts(at, "every", r.Every, time.Millisecond)
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) || r.Jitter > 0 && r.Every == 0 {
		v.fault(fmt.Sprintf("%s: jitter = %g", at.where, r.Jitter), "Write a share from 0 to 1 beside every: the random part of that time that is left out.", at.path+".jitter")
	}
	connects := func(name string) bool {
		t := v.plan.Target(name)
		return t != nil && connects(driverNamed(v.drivers, t.Driver))
	}
	if t := v.plan.Target(ph.Target); t != nil && !slices.ContainsFunc(ph.Targets(), connects) {
		v.fault(fmt.Sprintf("%s: driver %s has no connections", at.where, dialect.Quote(t.Driver)), "Leave reconnect out.", at.path)
	}
}

// connects reports whether a driver has connections.
func connects(d driver.Driver) bool {
	_, wire := d.(driver.Wire)
	_, dials := d.(driver.Dialer)
	return wire || dials
}
