package op

import "github.com/loadgen/loadgen/pkg/driver"

// Tries says how an op that fails is tried again.
type Tries struct {
	Most    int                      // the most tries in all, 2 to 10
	Backoff int64                    // ns before the second try; each further wait is twice as long,
	Longest int64                    // up to this many ns, an hour at most
	Jitter  float64                  // up to this share of a wait, 0 to 1, is randomly left out
	Seed    uint64                   // seed of the random part
	After   [driver.NumOutcomes]bool // the outcomes of a try that are followed by another
	Once    [driver.NumVerbs]bool    // verbs whose ops may not be repeated
}

// Retry is the program that carries an op out by another program, inner, and again if that fails. Inner must have no request outstanding once an op
// is done; plain and cluster have none. Each try makes its own requests; only the last one decides the op.
type Retry struct {
	Tries
	inner  Program
	states []tried // by slot
}

// tried is the state of an op.
type tried struct {
	tries int
	waits bool           // it waits for the next try
	last  driver.Outcome // the outcome of the last try, if it waits
}

// NewRetry returns the program that retries the ops of inner.
func NewRetry(t Tries, inner Program) *Retry { return &Retry{Tries: t, inner: inner} }

// Start implements Program.
func (p *Retry) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	p.states[o.Slot] = tried{tries: 1}
	return p.inner.Start(dst, o)
}

// On implements Program.
func (p *Retry) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	o := ev.Op
	s := &p.states[o.Slot]
	switch {
	case ev.Kind == WaitOver:
		s.tries, s.waits = s.tries+1, false
		return p.inner.Start(dst, o), Step{}
	case s.waits: // any other event during a wait: there will be no other try
		return dst, Step{Done: true, Outcome: s.last, Settled: true}
	}
	dst, step := p.inner.On(dst, ev)
	if !step.Done || !p.After[step.Outcome] || p.Once[o.Verb] || s.tries == p.Most {
		return dst, step
	}
	s.waits, s.last = true, step.Outcome
	return dst, Step{Wait: p.wait(o, s.tries)}
}

// wait returns how long to wait after that many tries of an op.
func (p *Retry) wait(o *Op, tries int) int64 {
	w := min(p.Backoff<<(tries-1), p.Longest)
	x := mix(mix(mix(mix(p.Seed)^uint64(o.Stream))^o.N) ^ uint64(tries))
	left := float64(w) * p.Jitter * float64(x>>11) / (1 << 53)
	return max(1, w-int64(left))
}
