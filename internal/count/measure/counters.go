package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Ledger is the op ledger of one verb. It balances when
//
//	due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight
type Ledger struct {
	Due      uint64
	Outcomes [driver.NumOutcomes]uint64
	InFlight int64 // ops that have started and not ended; in a part of a step, the change, which may be negative
}

type ledger = Ledger // as a part of what has a method of that name

// Counters holds both ledgers of a step so far, without latencies. The zero value is empty.
type Counters struct {
	Ops      [driver.NumVerbs]Ledger
	Requests []Requests // index endpoint·NumVerbs + verb
}

// Ledger returns the op's ledger; a nil Op has an empty one.
func (o *Op) Ledger() Ledger {
	if o == nil {
		return Ledger{}
	}
	return o.ledger
}

func (l *Ledger) merge(o *Ledger) {
	l.Due += o.Due
	for i, n := range o.Outcomes {
		l.Outcomes[i] += n
	}
	l.InFlight += o.InFlight
}

// Merge adds what o counted.
func (r *Requests) Merge(o *Requests) {
	r.Sent += o.Sent
	r.Answered += o.Answered
	r.Timeout += o.Timeout
	r.Error += o.Error
	r.Moved += o.Moved
	r.Ask += o.Ask
	r.Refused += o.Refused
	r.InFlight += o.InFlight
}

// mergeRequests adds from to *to, and extends *to if from has more endpoints.
func mergeRequests(to *[]Requests, from []Requests) {
	lengthen(to, len(from))
	for i := range from {
		(*to)[i].Merge(&from[i])
	}
}

// Counters returns a copy of the ledgers of t.
func (t *Totals) Counters() Counters {
	var c Counters
	c.Add(t)
	return c
}

// Add adds the ledgers of t.
func (c *Counters) Add(t *Totals) {
	for v, o := range t.Ops {
		if o != nil {
			c.Ops[v].merge(&o.ledger)
		}
	}
	mergeRequests(&c.Requests, t.Requests)
}

// Merge adds the counts of o.
func (c *Counters) Merge(o *Counters) {
	for v := range o.Ops {
		c.Ops[v].merge(&o.Ops[v])
	}
	mergeRequests(&c.Requests, o.Requests)
}

// Reset empties c, keeping its memory and its number of endpoints.
func (c *Counters) Reset() {
	clear(c.Requests)
	c.Ops = [driver.NumVerbs]Ledger{}
}

// Equal says whether both hold the same counts for the same number of endpoints.
func (c *Counters) Equal(o *Counters) bool {
	return c.Ops == o.Ops && slices.Equal(c.Requests, o.Requests)
}

// CheckValid returns an error that names every verb, and every endpoint and verb, whose ledger does not balance, with both sides.
func (c *Counters) CheckValid() error {
	var errs []error
	for v := range c.Ops {
		if err := c.Ops[v].check(driver.Verb(v)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, checkRequests(c.Requests)...)...)
}

// checkRequests returns an error for each ledger that does not balance. If all do, it allocates nothing: a coordinator calls it every second.
func checkRequests(requests []Requests) (errs []error) {
	for i := range requests {
		if err := requests[i].check(i/driver.NumVerbs, driver.Verb(i%driver.NumVerbs)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (l *Ledger) check(name fmt.Stringer) error {
	// The sum is modulo 2^64, so that a negative in_flight needs no special case.
	sum := uint64(l.InFlight)
	for _, n := range l.Outcomes {
		sum += n
	}
	if sum == l.Due {
		return nil
	}
	var terms strings.Builder
	for i, n := range l.Outcomes {
		fmt.Fprintf(&terms, "%s %d + ", driver.Outcome(i), n)
	}
	return fmt.Errorf("%s: due %d, but %sin_flight %d = %d", name, l.Due, &terms, l.InFlight, int64(sum))
}

func (r *Requests) check(endpoint int, v driver.Verb) error {
	sum := r.Answered + r.Moved + r.Ask + r.Timeout + r.Error + uint64(r.InFlight)
	if sum == r.Sent {
		return nil
	}
	return fmt.Errorf("endpoint %d, %s: sent %d, but answered %d + moved %d + ask %d + timeout %d + error %d + in_flight %d = %d",
		endpoint, v, r.Sent, r.Answered, r.Moved, r.Ask, r.Timeout, r.Error, r.InFlight, int64(sum))
}
