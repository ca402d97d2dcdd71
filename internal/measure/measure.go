package measure

import (
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Class groups outcomes for latency: ok, miss, and everything else that ended.
type Class uint8

// The classes, in the order of every table and result.
const (
	ClassOK   Class = iota
	ClassMiss       // the key is not there
	ClassBad        // conflict, quorum_failed, timeout and error

	NumClasses int = iota
)

var classNames = [NumClasses]string{"ok", "miss", "bad"}

func (c Class) String() string { return classNames[c] }

// classOf returns the class of an outcome that has latencies: every one but shed.
func classOf(o driver.Outcome) Class { return min(Class(o), ClassBad) }

// Cause is the kind of event that decided an op. Its numbers are those of op.EventKind.
type Cause uint8

// NumCauses is the number of causes.
const NumCauses = 5

// Sample is one ended op. Times are nanoseconds on the run clock.
type Sample struct {
	Verb    driver.Verb
	Outcome driver.Outcome // any but Shed
	Cause   Cause          // what decided a bad outcome
	Kind    uint8          // that its program gave it, up to MaxKinds; 0: none
	Due     int64          // when the schedule wanted it, and the turn of its slot began
	Start   int64          // before the write that carried it
	End     int64          // of the read that completed it
}

// Totals is what happened in one step, or a part of it. The zero value is empty: the identity of Merge. A Totals is used by one
// goroutine at a time.
//
// A turn of a slot is an op, or a scenario: it begins when that is due, which in a closed load is when the slot is free.
//
// A verb without an op has a nil or an empty Op, an outcome that did not occur nil or empty Bins; the two mean the same.
type Totals struct {
	rest
	Ops       [driver.NumVerbs]*Op
	Scenarios []*Op // by number in the phase, as long as the last that began; their ops are in Ops, too
	Time      *Bins // by when turns of slots began: the ns that they took, think times apart; nil is empty
	Errors    Errors
}

// rest is what of Totals an [Account] keeps as it is.
type rest struct {
	Origin      int64      // run clock at the step's start; the same in all parts of a step. 0 in a Totals that has none
	Requests    []Requests // index endpoint·NumVerbs + verb
	Digest      uint64     // commutative digest of the ops due: stream, n, verb, key, size
	Span        Span
	Reconnects  uint64    // connections opened again after a loss
	LateReplies uint64    // replies to requests that had timed out already; discarded
	Foreign     uint64    // values read that no loadgen wrote (no valid header in a checked dataset)
	Stalls      uint64    // times that an event loop stood still for more than 250 ms, and
	MaxStall    int64     // the longest, ns
	Waited      hist.Hist // lag of ops that had no room when they were due, ns; they are in the Lag of their verb, too
}

// Op is the ledger and the latencies of one verb, or of one scenario. Latencies are nanoseconds.
type Op struct {
	Due      uint64
	Outcomes [driver.NumOutcomes]uint64
	Causes   [NumCauses]uint64 // of the outcomes conflict, quorum_failed, timeout and error
	InFlight int64             // started and not ended; of a part of a step, the change, so it may be negative
	In, Out  uint64            // bytes
	Lag      hist.Hist         // of every outcome but shed
	Service  [NumClasses]hist.Hist
	Response [NumClasses]hist.Hist
	Acks     []hist.Hist               // k-1: start of the op to its k-th good answer
	Bins     [driver.NumOutcomes]*Bins // by when ops ended
	Turns    [driver.NumOutcomes]*Bins // by when the turns of their slots began
	Keys     Keys                      // of ops that have several; empty where ops have one each
	Growth   *Growth                   // of a step whose ops are counted by ordinal, too; nil is empty
	Kinds    []Kind                    // of ops whose program sorts them: by the number that it gave, from 1, less 1. What is in one is in Service and Response, too
	Steps    []*Op                     // of a scenario, by number: the ops of each of its steps
}

// Kind is the latencies of ops that ended in the same way as their program sees it, such as those of gets that another store had to answer.
type Kind struct{ Service, Response hist.Hist }

// MaxKinds is how many kinds a program sorts ops into at most.
const MaxKinds = 8

// Keys is the ledger of the keys of ops, which balances as that of ops does, and when they ended.
type Keys struct {
	Ledger
	Bins  [driver.NumOutcomes]*Bins // by when they ended
	Turns [driver.NumOutcomes]*Bins // by when the turns of their ops' slots began
}

// AddKeysDue counts the keys of an op that became due.
func (t *Totals) AddKeysDue(v driver.Verb, n int) { t.of(v).Keys.Due += uint64(n) }

// ShedKeys counts those of an op that will never start.
func (t *Totals) ShedKeys(v driver.Verb, n int) { t.of(v).Keys.Outcomes[driver.Shed] += uint64(n) }

// EndKeys counts n keys that ended alike: of an op that was due, and that ended, at times on the run clock.
func (t *Totals) EndKeys(v driver.Verb, o driver.Outcome, n uint64, due, end int64) {
	k := &t.of(v).Keys
	k.Outcomes[o] += n
	madeBins(&k.Bins, o).AddN(end-t.Origin, n)
	madeBins(&k.Turns, o).AddN(due-t.Origin, n)
}

// AddKeysInFlight enters a change in the number of keys whose ops have started and that have not ended.
func (t *Totals) AddKeysInFlight(v driver.Verb, change int64) { t.of(v).Keys.InFlight += change }

// Requests is the ledger of one verb at one endpoint.
type Requests struct {
	Sent, Answered, Timeout, Error, Refused uint64
	Moved, Ask                              uint64 // answered by where else the key is: for good, and for this request only
	InFlight                                int64  // of a part of a step, the change
}

// MaxAcks bounds k: an op counts its good answers in a byte (op.Step.Ack).
const MaxAcks = 255

// NewTotals returns an empty Totals of a step that starts at origin on the run clock, with room for the requests to a number
// of endpoints.
func NewTotals(origin int64, endpoints int) *Totals {
	return &Totals{rest: rest{Origin: origin, Requests: make([]Requests, endpoints*driver.NumVerbs)}}
}

// of returns the ledger of a verb, made at first use.
func (t *Totals) of(v driver.Verb) *Op {
	o := t.Ops[v]
	if o == nil {
		o = new(Op)
		t.Ops[v] = o
	}
	return o
}

// Request returns the ledger of a verb at an endpoint, to be counted in directly. It panics when the endpoint is beyond the
// number that t was made for.
func (t *Totals) Request(endpoint int, v driver.Verb) *Requests {
	return &t.Requests[endpoint*driver.NumVerbs+int(v)]
}

// AddDue counts an op that became due. The pacer calls it.
func (t *Totals) AddDue(v driver.Verb) { t.AddDueN(v, 1) }

// AddDueN counts n of them.
func (t *Totals) AddDueN(v driver.Verb, n uint64) { t.of(v).Due += n }

// Shed counts n ops that are due and will never start. Their being due is counted by AddDue.
func (t *Totals) Shed(v driver.Verb, n uint64) { t.of(v).Outcomes[driver.Shed] += n }

// AddBytes counts bytes received and sent for a verb.
func (t *Totals) AddBytes(v driver.Verb, in, out int) {
	o := t.of(v)
	o.In += uint64(in)
	o.Out += uint64(out)
}

// AddInFlight enters a change in the number of ops that have started and not ended.
func (t *Totals) AddInFlight(v driver.Verb, change int64) { t.of(v).InFlight += change }

// Ack records the k-th good answer of an op, ns after its start. k is 1 to [MaxAcks].
func (t *Totals) Ack(v driver.Verb, k int, ns int64) { t.AckN(v, k, ns, 1) }

// AckN records n ≥ 1 of them, of as many ops.
func (t *Totals) AckN(v driver.Verb, k int, ns int64, n uint64) {
	o := t.of(v)
	if len(o.Acks) < k {
		o.growAcks(k)
	}
	o.Acks[k-1].RecordN(ns, n)
}

// Record counts an op that ended. A time that runs backwards counts as 0. It allocates at the first use of a verb and of an
// outcome, and where a latency is above all before it ([hist.Hist.Record]). Span is left alone.
func (t *Totals) Record(s *Sample) { t.RecordN(s, 1) }

// RecordN counts n ≥ 1 ops that ended alike, such as those that one write sent and one read answered, as n calls of Record do.
func (t *Totals) RecordN(s *Sample, n uint64) {
	t.of(s.Verb).record(s, n, s.Due, t.Origin)
	t.addTime(s, n)
}

// addTime adds the time that n turns of slots took, think times apart.
func (t *Totals) addTime(s *Sample, n uint64) {
	took := s.End - s.Due
	if took <= 0 {
		return
	}
	if t.Time == nil {
		t.Time = new(Bins)
	}
	t.Time.AddN(s.Due-t.Origin, n*uint64(took))
}

func (o *Op) record(s *Sample, n uint64, turn, origin int64) {
	o.Outcomes[s.Outcome] += n
	class := classOf(s.Outcome)
	if class == ClassBad {
		o.Causes[s.Cause] += n
	}
	lag, service, response := s.Start-s.Due, s.End-s.Start, s.End-s.Due
	if n == 1 {
		hist.Record3(&o.Lag, &o.Service[class], &o.Response[class], lag, service, response)
	} else {
		o.Lag.RecordN(lag, n)
		o.Service[class].RecordN(service, n)
		o.Response[class].RecordN(response, n)
	}
	if s.Kind > 0 {
		k := o.kind(int(s.Kind))
		k.Service.RecordN(service, n)
		k.Response.RecordN(response, n)
	}
	madeBins(&o.Bins, s.Outcome).AddN(s.End-origin, n)
	madeBins(&o.Turns, s.Outcome).AddN(turn-origin, n)
}

// kind returns the latencies of a kind from 1 on, made at first use.
func (o *Op) kind(k int) *Kind {
	for len(o.Kinds) < k {
		o.Kinds = append(o.Kinds, Kind{})
	}
	return &o.Kinds[k-1]
}
