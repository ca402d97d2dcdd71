package measure

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
	lengthen(&t.Events, i+1)
	into := &t.Events[i]
	if into.Times == 0 {
		into.First, into.Last = e.First, e.Last
	}
	into.Times += e.Times
	into.First, into.Last = min(into.First, e.First), max(into.Last, e.Last)
}

// events returns the events up to the last that has happened.
func (t *rest) events() []Event {
	return trimmed(t.Events, func(e *Event) bool { return e.Times == 0 })
}
