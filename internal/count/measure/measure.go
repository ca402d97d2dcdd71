package measure

import (
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Class groups outcomes for latency: ok, miss, and everything else that ended.
type Class uint8

// The classes, in the order of every table and result.
const (
	ClassOK   Class = iota
	ClassMiss       // the key does not exist
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
	Kind    uint8          // set by the op's program, up to MaxKinds; 0 for none
	Due     int64          // when it was due and its slot's turn began
	Start   int64          // before the write that carried it
	End     int64          // after the read that completed it
}

// Totals holds the counts and latencies of one step, or of part of one. The zero value is empty: the identity of Merge. One goroutine at a time may
// use it.
//
// A turn of a slot is one op, or one scenario. It begins when that is due; in a closed load, that is when the slot becomes free.
//
// A verb without ops has a nil or an empty Op, and an outcome that did not occur has nil or empty Bins; nil and empty mean the same.
type Totals struct {
	rest
	Ops       [driver.NumVerbs]*Op
	Scenarios []*Op // by number in the phase, up to the last that began; Ops counts their ops, too
	Time      *Bins // ns that slots' turns took, without think time, by when the turn began; nil is empty
	Lost      *Bins // ns that slots of a closed load lost ([Totals.AddLost]), by when they were lost; nil is empty
	Errors    Errors

	// Stages is when each stage of sessions ends, in nanoseconds after Origin. Ops are counted by stage, too, while it is set; Merge and the binary form
	// leave it out.
	Stages []int64
}

// rest is the part of Totals that an [Account] keeps unchanged.
type rest struct {
	Origin      int64      // the step's start on the run clock, the same in all parts of a step; 0 if not set
	Requests    []Requests // index endpoint·NumVerbs + verb
	Away        []uint64   // by endpoint: ns from the loss of a connection until it was made again, summed over connections; may be shorter
	Digest      uint64     // commutative digest of the ops due: stream, n, verb, key, size
	Span        Span
	Reconnects  uint64       // connections opened again after a loss
	LateReplies uint64       // replies to requests that had already timed out; discarded
	Foreign     uint64       // values read that loadgen did not write (no valid header in a checked dataset)
	Misplaced   uint64       // values read that name another key
	AnotherRun  uint64       // values read that another run wrote where this one puts
	Stalls      uint64       // times that an event loop stood still for more than 250 ms
	MaxStall    int64        // the longest stall, ns
	Cache       Cache        // counts of the caches that targets read through
	Events      []Event      // by number in the phase: the events that workers carry out; may be shorter
	Versions    *Versions    // comparison of versions that gets returned with those that had been acknowledged; nil is empty
	Waited      hist.Hist    // lag of ops that found no free slot, or no connection, when they were due, ns; their verb's Lag includes them
	Links       *Connections // of a load that renews them; nil is empty
}

// Op holds the ledger and the latencies of one verb, or of one scenario. Latencies are nanoseconds.
type Op struct {
	ledger
	Causes   [NumCauses]uint64 // of the outcomes conflict, quorum_failed, timeout and error
	In, Out  uint64            // bytes
	Lag      hist.Hist         // of every outcome but shed
	Service  [NumClasses]hist.Hist
	Response [NumClasses]hist.Hist
	Acks     []hist.Hist               // k-1: start of the op to its k-th good answer
	Bins     [driver.NumOutcomes]*Bins // by when ops ended
	Turns    [driver.NumOutcomes]*Bins // by when the turns of their slots began
	Keys     Keys                      // of multi-key ops; empty if each op has one key
	Growth   *Growth                   // nil unless ops are also counted by ordinal
	Split    *Split                    // nil unless the driver measures how long ops wait for durability
	Kinds    []Kind                    // by the kind that the op's program set, less 1; Service and Response include them
	Steps    []*Op                     // of a scenario: the ops of each step, by step number; of a verb: the ops that were due in each stage, then those due later
	Checks   []uint64                  // of replies: how many failed each check of the plan, up to the last that failed
}

// Kind holds the latencies of ops that their program sorts together, such as gets that another store had to answer.
type Kind struct{ Service, Response hist.Hist }

// MaxKinds is the most kinds that a program can sort its ops into.
const MaxKinds = 8

// Split is the service times of ops that ended ok, in two parts: each op's wait for durability is in Sync, the rest of its service time in Write.
type Split struct{ Write, Sync hist.Hist }

// Keys is the ledger of the keys of multi-key ops, which balances as that of ops does, and when the keys ended.
type Keys struct {
	Ledger
	Wasted uint64                    // of chains: keys that were there behind the first that was not, and so count as misses
	Bins   [driver.NumOutcomes]*Bins // by when they ended
	Turns  [driver.NumOutcomes]*Bins // by when the turns of their ops' slots began
}

// AddKeysDue counts the keys of an op that became due.
func (t *Totals) AddKeysDue(v driver.Verb, n int) { t.of(v).Keys.Due += uint64(n) }

// ShedKeys counts the keys of an op that will never start.
func (t *Totals) ShedKeys(v driver.Verb, n int) { t.of(v).Keys.Outcomes[driver.Shed] += uint64(n) }

// EndKeys counts n keys that ended alike. due and end are when their op was due and when it ended, on the run clock.
func (t *Totals) EndKeys(v driver.Verb, o driver.Outcome, n uint64, due, end int64) {
	k := &t.of(v).Keys
	k.Outcomes[o] += n
	made(&k.Bins[o]).AddN(end-t.Origin, n)
	made(&k.Turns[o]).AddN(due-t.Origin, n)
}

// Waste counts n keys of a chain that were there behind the first that was not.
func (t *Totals) Waste(v driver.Verb, n int) { t.of(v).Keys.Wasted += uint64(n) }

// AddKeysInFlight adds a change in the number of keys whose ops have started but not ended.
func (t *Totals) AddKeysInFlight(v driver.Verb, change int64) { t.of(v).Keys.InFlight += change }

// Requests is the ledger of one verb at one endpoint.
type Requests struct {
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Moved    uint64 `json:"moved"` // redirected permanently to the endpoint that has the key
	Ask      uint64 `json:"ask"`   // redirected to another endpoint for this request only
	Timeout  uint64 `json:"timeout"`
	Error    uint64 `json:"error"`
	Refused  uint64 `json:"refused"`   // never sent
	InFlight int64  `json:"in_flight"` // in a part of a step, the change
}

// MaxAcks bounds k: an op counts its good answers in a byte (op.Step.Ack).
const MaxAcks = 255

// NewTotals returns an empty Totals for a step that starts at origin on the run clock, with room for requests to that many endpoints.
func NewTotals(origin int64, endpoints int) *Totals {
	return &Totals{rest: rest{Origin: origin, Requests: make([]Requests, endpoints*driver.NumVerbs)}}
}

// of returns the ledger of a verb, creating it at first use.
func (t *Totals) of(v driver.Verb) *Op { return made(&t.Ops[v]) }

// Request returns the ledger of a verb at an endpoint, for the caller to count in. It panics if t was made for fewer endpoints.
func (t *Totals) Request(endpoint int, v driver.Verb) *Requests {
	return &t.Requests[endpoint*driver.NumVerbs+int(v)]
}

// AddDue counts an op that became due. The pacer calls it.
func (t *Totals) AddDue(v driver.Verb) { t.AddDueN(v, 1) }

// AddDueN counts n ops that became due.
func (t *Totals) AddDueN(v driver.Verb, n uint64) { t.of(v).Due += n }

// Shed counts n ops that were due but will never start. AddDue has counted them as due.
func (t *Totals) Shed(v driver.Verb, n uint64) { t.of(v).Outcomes[driver.Shed] += n }

// FailCheck counts a reply that failed check k ≥ 1.
func (t *Totals) FailCheck(v driver.Verb, k int) {
	o := t.of(v)
	lengthen(&o.Checks, k)
	o.Checks[k-1]++
}

// AddBytes counts bytes received and sent for a verb.
func (t *Totals) AddBytes(v driver.Verb, in, out int) {
	o := t.of(v)
	o.In += uint64(in)
	o.Out += uint64(out)
}

// AddInFlight adds a change in the number of ops that have started but not ended.
func (t *Totals) AddInFlight(v driver.Verb, change int64) { t.of(v).InFlight += change }

// Ack records the k-th good answer of an op, ns after its start. k is 1 to [MaxAcks].
func (t *Totals) Ack(v driver.Verb, k int, ns int64) { t.AckN(v, k, ns, 1) }

// AckN records the k-th good answer of n ≥ 1 ops.
func (t *Totals) AckN(v driver.Verb, k int, ns int64, n uint64) {
	o := t.of(v)
	if len(o.Acks) < k {
		lengthen(&o.Acks, k)
	}
	o.Acks[k-1].RecordN(ns, n)
}

// Split divides the service time of an op that ended ok, in addition to Record: sync of its service ns were a wait for durability.
func (t *Totals) Split(v driver.Verb, service, sync int64) {
	s := made(&t.of(v).Split)
	s.Write.Record(service - sync)
	s.Sync.Record(sync)
}

// Record counts an op that ended. A negative duration counts as 0. Record allocates at the first use of a verb and of an outcome, and when a latency
// exceeds all before it ([hist.Hist.Record]). It does not touch Span.
func (t *Totals) Record(s *Sample) { t.RecordN(s, 1) }

// RecordN counts n ≥ 1 ops that ended alike, such as those sent in one write and answered in one read. It equals n calls of Record.
func (t *Totals) RecordN(s *Sample, n uint64) {
	t.of(s.Verb).record(s, n, s.Due, t.Origin)
	if len(t.Stages) > 0 {
		t.inStage(s, n, s.Due)
	}
	t.addTime(s, n)
}

// AddLost adds the time that n slots lost, between two times on the run clock: in ops that ended in a timeout, a loss or a refusal, or waiting for a
// connection.
func (t *Totals) AddLost(n int, from, to int64) {
	if to <= from {
		return
	}
	made(&t.Lost).spread(from-t.Origin, to-t.Origin, uint64(n))
}

// AddAway adds the time that a connection to an endpoint was away.
func (t *Totals) AddAway(endpoint int, ns int64) {
	if ns > 0 {
		lengthen(&t.Away, endpoint+1)
		t.Away[endpoint] += uint64(ns)
	}
}

// addTime adds the time that n turns of slots took, without think time.
func (t *Totals) addTime(s *Sample, n uint64) {
	took := s.End - s.Due
	if took > 0 {
		made(&t.Time).AddN(s.Due-t.Origin, n*uint64(took))
	}
}

// inStage counts n ops for the stage in which they were due.
func (t *Totals) inStage(s *Sample, n uint64, turn int64) {
	i, _ := slices.BinarySearch(t.Stages, s.Due-t.Origin+1)
	stage := opAt(&t.of(s.Verb).Steps, i)
	stage.Due += n
	stage.record(s, n, turn, t.Origin)
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
	made(&o.Bins[s.Outcome]).AddN(s.End-origin, n)
	made(&o.Turns[s.Outcome]).AddN(turn-origin, n)
}

// kind returns the latencies of kind k ≥ 1, creating it at first use.
func (o *Op) kind(k int) *Kind {
	lengthen(&o.Kinds, k)
	return &o.Kinds[k-1]
}

// empty says whether nothing was counted.
func (s *Split) empty() bool { return s == nil || s.Write.Count() == 0 && s.Sync.Count() == 0 }
