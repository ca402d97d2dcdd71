package op

import "github.com/loadgen/loadgen/pkg/driver"

// plain is the program of one request to the one endpoint that holds the key.
type plain struct {
	ring    *Ring
	checked bool
	done    []bool // by slot: the op's deadline passed before its answer came
	place   []int  // scratch
}

// NewPlain returns the program that sends an op as one request to its key's endpoint and ends as that does. checked says that the
// values of gets carry a header, as those of a checked dataset do.
func NewPlain(ring *Ring, checked bool) Program {
	return &plain{ring: ring, checked: checked, place: make([]int, 0, 1)}
}

func (p *plain) Start(dst []driver.Request, o *Op) []driver.Request {
	p.done = grown(p.done, o.Slot)
	p.done[o.Slot] = false
	p.place = p.ring.Place(p.place[:0], o.Key, 1)
	return append(dst, request(o, p.place[0]))
}

func (p *plain) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	done := &p.done[ev.Op.Slot]
	if ev.Kind == OpTimeout {
		if *done {
			return dst, Step{}
		}
		*done = true
		return dst, Step{Done: true, Outcome: driver.Timeout}
	}
	step := Step{Settled: true}
	if p.checked {
		step.Writer, step.Version, step.Foreign = header(ev)
	}
	if *done {
		step.Writer, step.Version = 0, 0
		return dst, step
	}
	*done = true
	step.Done = true
	switch ev.Kind {
	case Replied:
		step.Outcome = ev.Reply.Outcome
	case RequestTimeout:
		step.Outcome = driver.Timeout
	default:
		step.Outcome = driver.Error
	}
	return dst, step
}
