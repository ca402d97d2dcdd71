package op_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// answer is what can happen to a request, or to an op, as a test's script says it.
type answer struct {
	name            string
	kind            op.EventKind
	outcome         driver.Outcome
	writer, version uint64 // of the value that a get found; version 0: a foreign one
}

// event is an answer from an endpoint.
type event struct {
	answer
	endpoint int
}

// reply returns the driver's reply to a request.
func (a answer) reply(verb driver.Verb) *driver.Reply {
	r := &driver.Reply{Outcome: a.outcome}
	switch {
	case verb != driver.Get || a.outcome != driver.OK:
	case a.version == 0:
		r.Value = []byte("a value that loadgen did not write")
	default:
		v := driver.Value{Size: driver.HeaderSize + 1, Checked: true, Writer: uint32(a.writer), Version: a.version}
		r.Value = v.AppendTo(nil)
	}
	return r
}

// model says what a quorum program must do, from the whole history of an op each time, and keeps no state.
type model struct {
	cfg  op.NWR
	verb driver.Verb
}

// need returns the size of the quorum.
func (m model) need() int {
	if m.verb == driver.Get {
		return m.cfg.R
	}
	return m.cfg.W
}

// good returns the events of h that count towards the quorum, in their order.
func (m model) good(h []event) []event {
	return slices.DeleteFunc(slices.Clone(h), func(e event) bool {
		if e.kind != op.Replied {
			return true
		}
		valid := []driver.Outcome{driver.OK}
		if m.verb != driver.Put {
			valid = append(valid, driver.Miss)
		}
		return !slices.Contains(valid, e.outcome)
	})
}

// requestEvents returns how many of h are ends of requests.
func requestEvents(h []event) int {
	n := 0
	for _, e := range h {
		if e.kind != op.OpTimeout {
			n++
		}
	}
	return n
}

// outcome returns how the op stands after h; false while it is undecided.
func (m model) outcome(h []event) (driver.Outcome, bool) {
	for i := range h {
		seen := h[:i+1]
		good := m.good(seen)
		switch {
		case h[i].kind == op.OpTimeout:
			return driver.QuorumFailed, true
		case len(good) == m.need():
			if slices.ContainsFunc(good, func(e event) bool { return e.outcome == driver.OK }) {
				return driver.OK, true
			}
			return driver.Miss, true
		case m.cfg.N-(requestEvents(seen)-len(good)) < m.need():
			conflict := func(e event) bool { return e.kind == op.Replied && e.outcome == driver.Conflict }
			if m.verb != driver.Get && slices.ContainsFunc(seen, conflict) {
				return driver.Conflict, true
			}
			return driver.QuorumFailed, true
		}
	}
	return 0, false
}

// asked returns how many requests the op has made after h.
func (m model) asked(h []event) int {
	if m.verb != driver.Get || !m.cfg.GetsAskR {
		return m.cfg.N
	}
	n := m.cfg.R
	for i := range h {
		seen := h[:i+1]
		_, done := m.outcome(seen)
		if failed := len(m.good(seen)) == len(m.good(h[:i])); failed && !done {
			n++
		}
	}
	return n
}

// step returns what On must say to the last event of h.
func (m model) step(h []event) op.Step {
	before, last := h[:len(h)-1], h[len(h)-1]
	step := op.Step{Settled: requestEvents(h) == m.asked(h) && last.kind != op.OpTimeout}
	good := m.good(h)
	value := m.verb == driver.Get && last.kind == op.Replied && last.outcome == driver.OK
	step.Foreign = value && last.version == 0
	if len(good) > len(m.good(before)) {
		step.Ack = uint8(len(good))
	}
	_, was := m.outcome(before)
	outcome, is := m.outcome(h)
	if was || !is {
		return step
	}
	step.Done, step.Outcome = true, outcome
	if m.verb != driver.Get || outcome != driver.OK {
		return step
	}
	for _, e := range good {
		newer := e.version > step.Version || e.version == step.Version && e.writer > step.Writer
		if e.outcome == driver.OK && e.version != 0 && newer {
			step.Writer, step.Version = e.writer, e.version
		}
	}
	return step
}

// trial carries one op through a quorum program and compares every answer of the program with the model.
type trial struct {
	t       require.TestingT
	program op.Program
	model   model
	op      *op.Op
	replies [2]driver.Request // scratch that requests are appended to

	order   []int // endpoints in the order they must be asked; nil for any
	asked   []int
	waiting []int // asked and without an event
	history []event
	steps   []op.Step
}

// start begins the op.
func (tr *trial) start() {
	tr.asked, tr.waiting, tr.history, tr.steps = tr.asked[:0], tr.waiting[:0], tr.history[:0], tr.steps[:0]
	tr.take(tr.program.Start(tr.prefix(), tr.op))
}

// prefix is what a program finds in dst and must leave there.
func (tr *trial) prefix() []driver.Request {
	tr.replies = [2]driver.Request{{Endpoint: -1}, {Endpoint: -2}}
	return tr.replies[:]
}

// take checks requests that a program made.
func (tr *trial) take(requests []driver.Request) {
	if requests[0].Endpoint != -1 || requests[1].Endpoint != -2 {
		require.FailNow(tr.t, "requests before the op's were overwritten", "%v", requests)
	}
	for _, r := range requests[2:] {
		want := driver.Request{Endpoint: r.Endpoint, Verb: tr.op.Verb, Stream: tr.op.Stream, N: tr.op.N, Key: tr.op.Key}
		if tr.op.Verb == driver.Put {
			want.Value = &tr.op.Value
		}
		if tr.order != nil {
			want.Endpoint = tr.order[len(tr.asked)]
		}
		if slices.Contains(tr.asked, r.Endpoint) {
			require.FailNow(tr.t, "endpoint asked twice", "%d after %v: %v", r.Endpoint, tr.asked, tr.history)
		}
		if !same(r, want) {
			require.Equal(tr.t, want, r)
		}
		tr.asked = append(tr.asked, r.Endpoint)
		tr.waiting = append(tr.waiting, r.Endpoint)
	}
	if want := tr.model.asked(tr.history); len(tr.asked) != want {
		require.Equal(tr.t, want, len(tr.asked), "requests made after %v", tr.history)
	}
}

// same compares requests cheaply; Key and Value by identity.
func same(a, b driver.Request) bool {
	return a.Endpoint == b.Endpoint && a.Verb == b.Verb && a.Stream == b.Stream && a.N == b.N && &a.Key[0] == &b.Key[0] &&
		len(a.Key) == len(b.Key) && a.Value == b.Value
}

// on lets an event happen.
func (tr *trial) on(e event) {
	ev := op.Event{Kind: e.kind, Op: tr.op, Endpoint: e.endpoint}
	if e.kind == op.Replied {
		ev.Reply = e.reply(tr.op.Verb)
	}
	if e.kind != op.OpTimeout {
		i := slices.Index(tr.waiting, e.endpoint)
		tr.waiting = slices.Delete(tr.waiting, i, i+1)
	}
	tr.history = append(tr.history, e)
	requests, step := tr.program.On(tr.prefix(), ev)
	if want := tr.model.step(tr.history); step != want {
		require.Equal(tr.t, want, step, "%v with %+v after %v", tr.op.Verb, tr.model.cfg, tr.history)
	}
	tr.steps = append(tr.steps, step)
	tr.take(requests)
}

// settled reports whether the op is over, by the program's word.
func (tr *trial) settled() bool {
	return len(tr.steps) > 0 && tr.steps[len(tr.steps)-1].Settled
}

// timedOut reports whether the op's deadline has passed.
func (tr *trial) timedOut() bool {
	return slices.ContainsFunc(tr.history, func(e event) bool { return e.kind == op.OpTimeout })
}

// finish checks what holds for every op that is over, whatever the model says.
func (tr *trial) finish() {
	done, settled, acks := 0, 0, 0
	for i, s := range tr.steps {
		if s.Done {
			done++
			reached := acks+min(1, int(s.Ack)) == tr.model.need()
			if agreed := s.Outcome == driver.OK || s.Outcome == driver.Miss; agreed != reached {
				require.FailNow(tr.t, "outcome without its quorum", "%v after %v", s, tr.history[:i+1])
			}
		}
		if s.Settled {
			settled++
		}
		if s.Ack != 0 {
			acks++
		}
	}
	if done != 1 || settled != 1 || !tr.settled() || len(tr.waiting) != 0 {
		require.FailNow(tr.t, "an op has one Done and, last, one Settled", "%+v after %v", tr.steps, tr.history)
	}
}
