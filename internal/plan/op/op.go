// Package op holds the programs: the state machines that carry an op out by sending requests and judging their replies.
//
// A program is pure. It has no sockets, no clock, no goroutine; an executor tells it what happened and sends what it asks for. The same program
// therefore runs on the event loop, on the blocking executor and in a model checker.
//
// # Life of an op
//
// Start returns the first requests. Every request ends in exactly one event: replied, timed out, lost with its connection, or refused (never sent).
// On returns further requests, if any. Exactly one event of an op is answered with Done: it decides the outcome. Requests may still be outstanding
// then (the N−W slowest replicas of a put). The last event of an op is answered with Settled, and its slot may be used again. An op's own deadline is
// one more event, at any time before Settled; it changes nothing once the op is done.
//
// # Plain
//
// An op is one request to the first endpoint of its key.
//
//	event             | effect
//	------------------+------------------------------------------
//	Replied           | done with the reply's outcome, and settled
//	RequestTimeout    | done with timeout, and settled
//	Lost, Refused     | done with error, and settled
//	OpTimeout         | done with timeout; the request's own event settles
//
// # Cluster
//
// An op is one request to the endpoint that has the slot of its key, a get to one that takes gets for it, and another for each redirect. Its
// deadline, and the end of its last request, work as under plain.
//
//	event             | effect
//	------------------+------------------------------------------------------------------
//	Replied, moved    | the slot is that endpoint's from now on, and the request goes there
//	Replied, ask      | the request goes there, after an announcement; the map stays
//	either, but beyond the fifth, to an unknown endpoint, or after OpTimeout
//	                  | done with error unless done before, and settled; the map still follows a moved slot
//	Replied otherwise | done with the reply's outcome, and settled
//
// # Retry
//
// An op is tried by another program, plain or cluster, and tried again if that ends in an outcome that asks for it. Between two tries nothing is
// outstanding.
//
//	event                     | effect
//	--------------------------+------------------------------------------
//	any, of a request         | as under the other program, unless that is done with a failure and tries are left:
//	                          | then Step.Wait says how long to wait before the next one
//	WaitOver                  | the other program starts the op anew
//	another between tries     | there is no other one: done with the outcome of the last, and settled
//
// # Chain
//
// A chain asks for its keys in order, at most so many at a time, until one is not there; the put that follows stores the others in the same way. With
// one endpoint, requests end in order; the table is for any.
//
//	event, of key i        | effect
//	-----------------------+------------------------------------------
//	Replied ok             | more keys are asked for; i is wasted if a key before it was not there
//	any other, the least i | no more keys are asked for; the outcome is that of i
//	all before the least i | done, by a chain with ok if any key was there, else with miss; by a put with i's outcome
//	have ended             |
//
// # Several keys
//
// An op of several keys sends one request to each endpoint that holds some of them. It is done with the last of its requests, or with the first that
// fails: with timeout if that was not answered in time, with error if it was lost or refused, and else with its answer, conflict or error. When all
// are answered well, the op is ok if any key was there, and else miss.
//
// # N, W and R
//
// A key lives on the first N endpoints of its placement. Puts and deletes go to all N at once; so does a get with read fan-out n, while one with
// fan-out r asks R of them. A request fails when its answer is not good: an error, a conflict, or none.
//
//	event             | put                   | delete                | get
//	------------------+-----------------------+-----------------------+-----------------------
//	Replied ok        | good                  | good                  | good, with a value
//	Replied miss      | failed                | good                  | good
//	Replied conflict  | failed                | failed                | failed
//	Replied error     | failed                | failed                | failed
//	no answer         | failed                | failed                | failed
//	W-th, R-th good   | done: ok              | done: ok if any of    | done: ok if any of
//	                  |                       | the W was, else miss  | the R was, else miss
//	failed, in reach  | -                     | -                     | fan-out r: ask one more
//	failed, W or R    | done: conflict if any | done: conflict if any | done: quorum_failed
//	out of reach      | was, else             | was, else             |
//	                  | quorum_failed         | quorum_failed         |
//	OpTimeout         | done: quorum_failed   | done: quorum_failed   | done: quorum_failed
//
// The quorum is out of reach when fewer than W (R) of the N have not failed. Nothing is rolled back: a replica that took a put keeps it, whatever the
// outcome.
//
// A get takes the newest value among its R answers: the largest version, then the largest writer. A miss has no version, so any value wins over it,
// even one that a replica kept through a delete. A value that loadgen did not write counts as an answer with version 0.
//
// After Done no further replica is asked and the outcome stands. Step.Ack still numbers later answers, even those to an op that failed, so that the
// latency of the k-th good answer is known for every k up to N.
package op

import "github.com/loadgen/loadgen/pkg/driver"

// Op is one operation. It belongs to the executor; a program reads it between Start and Settled.
type Op struct {
	Slot   int32  // index of the op's state in the program's arrays; small, reused after Settled
	Stream uint32 // the stream it came from
	Target int    // index into the targets of the phase; that target's program carries the op out
	N      uint64 // its number in the stream, from 0
	Verb   driver.Verb
	Index  uint64 // index of its key, unique within the key space or the session's pool
	Key    []byte
	Value  driver.Value
	Batch  []driver.Item // all keys, if the op has several: Index, Key and Value are then those of the first
	Bag    *driver.Bag   // what the op's scenario remembers; nil if it is no step of one
}

// EventKind says what happened to a request, or to a whole op.
type EventKind uint8

const (
	Replied        EventKind = iota // Event.Reply holds the answer
	RequestTimeout                  // no answer within the target's timeout
	Lost                            // the connection broke with the request outstanding
	Refused                         // never sent: no connection, or too many outstanding
	OpTimeout                       // the op's own deadline passed; its requests may still be outstanding

	NumEventKinds int = iota // how many kinds can decide an op
)

// WaitOver says that the wait that the op's program asked for is over. It decides nothing.
const WaitOver = EventKind(NumEventKinds)

var eventNames = [...]string{"reply", "timeout", "lost", "refused", "op_timeout", "wait_over"}

func (k EventKind) String() string { return eventNames[k] }

// Event is what an executor reports to a program.
type Event struct {
	Kind     EventKind
	Op       *Op
	Target   int           // the target of the request, and
	Endpoint int           // the endpoint there; these two, Verb and Tag are unset for OpTimeout and WaitOver
	Verb     driver.Verb   // the request's, which may differ from the op's
	Tag      uint8         // the request's, as the program set it
	Reply    *driver.Reply // for Replied; valid during the call
	Astray   bool          // for Replied: the value is another key's or another run's, and so of no version
	Redirect *Redirect     // for Replied, if the reply names another endpoint; the reply's outcome is then an error
}

// Step is what an event did to its op.
type Step struct {
	Done    bool           // this event decided the op, with
	Outcome driver.Outcome //
	Settled bool           // no request of the op is outstanding
	Wait    int64          // if above 0, no request is outstanding, and the op goes on with WaitOver after that many nanoseconds
	Kind    uint8          // with Done: the op's kind, 1 to 8, if the program sorts ops into kinds, each with its own latencies; else 0
	Ack     uint8          // k if this was the op's k-th good answer, under N, W and R; else 0
	Good    int            // with Done, of a chain: how many of its keys were there, from the first on, or were put
	Wasted  int            // of a chain: how many keys more were there behind the first that was not
	Foreign bool           // the answer held a value that loadgen did not write, where a checked one was expected
	Writer  uint64         // with Done, for a get of checked values that is OK: the writer of the newest value read, and
	Version uint64         // its version; both are 0 if that value is foreign
}

// Program carries out ops. Methods append requests to dst and return it. State is kept per Op.Slot and grows to the largest slot seen. A program is
// used by one goroutine at a time and allocates nothing per op.
type Program interface {
	Start(dst []driver.Request, o *Op) []driver.Request
	On(dst []driver.Request, ev Event) ([]driver.Request, Step)
}

// Placement says which endpoints hold a key. It depends on nothing but the key and the names of all endpoints. It does not change and may be shared
// by goroutines.
type Placement interface {
	// Endpoints returns the number of endpoints.
	Endpoints() int
	// Home returns the first endpoint that holds key.
	Home(key []byte) int
	// Place appends to dst the n endpoints that hold key, the first one first; all endpoints if there are fewer than n.
	Place(dst []int, key []byte, n int) []int
}

// request is op o's message to an endpoint.
func request(o *Op, endpoint int) driver.Request {
	r := driver.Request{Target: o.Target, Endpoint: endpoint, Verb: o.Verb, Stream: o.Stream, N: o.N, Index: o.Index, Key: o.Key, Bag: o.Bag}
	if o.Verb.Stores() {
		r.Value = &o.Value
	}
	return r
}

// header reads the header of the value in a get's reply, unless it is astray. foreign reports a value without one.
func header(ev Event) (writer, version uint64, foreign bool) {
	if ev.Kind != Replied || ev.Op.Verb != driver.Get || ev.Reply.Outcome != driver.OK || ev.Astray {
		return 0, 0, false
	}
	h, ok := ev.Reply.Header()
	return uint64(h.Writer), h.Version, !ok
}

// grown returns s with room for index i.
func grown[T any](s []T, i int32) []T {
	if int(i) < len(s) {
		return s
	}
	return append(s, make([]T, int(i)+1-len(s))...)
}
