package op

import "github.com/loadgen/loadgen/pkg/driver"

// Plain is the program that sends one request to the one endpoint that holds the key. An op without a deadline of its own needs no state: Home and
// Outcome are enough, so an executor can carry such ops out without the program.
type Plain struct {
	place   memo
	alone   bool // there is only one endpoint
	checked bool
	done    []bool // by slot: the op is done
}

// NewPlain returns the program that sends an op as one request to its key's endpoint and ends as that request does. checked says that the values of
// gets carry a header, as those of a checked dataset do.
func NewPlain(place Placement, checked bool) *Plain {
	return &Plain{place: newMemo(place, 0, 1), alone: place.Endpoints() == 1, checked: checked}
}

// Home returns the endpoint that an op's one request goes to.
func (p *Plain) Home(o *Op) int {
	if p.alone {
		return 0
	}
	return p.place.home(o)
}

// Remember makes the program remember where keys live. keys is how many keys an op's Index can name.
func (p *Plain) Remember(keys int64) { p.place = newMemo(p.place.Placement, keys, 1) }

// Outcome returns the outcome of an op whose one request ended in an event of a kind. reply is used for Replied only.
func (p *Plain) Outcome(kind EventKind, reply *driver.Reply) driver.Outcome {
	return outcomeOf(kind, reply)
}

func outcomeOf(kind EventKind, reply *driver.Reply) driver.Outcome {
	switch kind {
	case Replied:
		return reply.Outcome
	case RequestTimeout:
		return driver.Timeout
	default:
		return driver.Error
	}
}

// Checked reports whether the values of gets carry a header.
func (p *Plain) Checked() bool { return p.checked }

// Start implements Program.
func (p *Plain) Start(dst []driver.Request, o *Op) []driver.Request {
	p.done = grown(p.done, o.Slot)
	p.done[o.Slot] = false
	return append(dst, request(o, p.Home(o)))
}

// On implements Program.
func (p *Plain) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
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
	step.Outcome = p.Outcome(ev.Kind, ev.Reply)
	return dst, step
}
