package measure

import (
	"encoding/binary"
	"math"
)

// MaxEvents is the most events of a phase.
const MaxEvents = 32

// Event records how often an event of a phase has happened, once in each loop that it concerns, and when, on the run clock. The zero value stands for
// an event that has not happened.
type Event struct {
	Times       uint64
	First, Last int64
}

// Happened counts an event of the phase.
func (t *Totals) Happened(event int, at int64) {
	t.mergeEvent(event, Event{Times: 1, First: at, Last: at})
}

func (t *rest) mergeEvents(events []Event) {
	for i, e := range events {
		if e.Times > 0 {
			t.mergeEvent(i, e)
		}
	}
}

func (t *rest) mergeEvent(i int, e Event) {
	for len(t.Events) <= i {
		t.Events = append(t.Events, Event{})
	}
	into := &t.Events[i]
	if into.Times == 0 {
		into.First, into.Last = e.First, e.Last
	}
	into.Times += e.Times
	into.First, into.Last = min(into.First, e.First), max(into.Last, e.Last)
}

// events returns the events up to the last that has happened.
func (t *rest) events() []Event {
	n := len(t.Events)
	for n > 0 && t.Events[n-1].Times == 0 {
		n--
	}
	return t.Events[:n]
}

// appendEvents appends their number and, for each, how often it has happened and, if it has, when.
func (t *rest) appendEvents(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.events())))
	for _, e := range t.events() {
		if b = binary.AppendUvarint(b, e.Times); e.Times > 0 {
			b = binary.AppendUvarint(binary.AppendVarint(b, e.First), uint64(e.Last)-uint64(e.First))
		}
	}
	return b
}

// events reads what appendEvents wrote.
func (r *reader) events(t *Totals) {
	n := r.Uvarint()
	if n > MaxEvents {
		r.Fail("%d events, want at most %d", n, MaxEvents)
	}
	t.Events = t.Events[:0]
	for range n {
		if r.Err != nil {
			return
		}
		e := Event{Times: r.Uvarint()}
		if e.Times > 0 {
			e.First = r.Varint()
			lasted := r.Uvarint()
			if lasted > math.MaxInt64 || e.First > math.MaxInt64-int64(lasted) {
				r.Fail("an event that has not ended by the end of time")
				return
			}
			e.Last = e.First + int64(lasted)
		}
		t.Events = append(t.Events, e)
	}
	if n > 0 && r.Err == nil && t.Events[n-1].Times == 0 {
		r.Fail("events: the last has not happened")
	}
}
