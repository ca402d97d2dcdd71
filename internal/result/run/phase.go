package run

import (
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Phase is the result of one phase.
type Phase struct {
	Kind     worker.StepKind `json:"kind"` // Load, Populate, Clear or Verify
	Model    Model           `json:"model"`
	Ended    End             `json:"ended"`    // why the measured step ended
	Seconds  float64         `json:"seconds"`  // first start to last end of the measured ops
	Validity Validity        `json:"validity"` // worst of Reasons
	Reasons  []Reason        `json:"reasons"`
	Notes    []string        `json:"notes,omitempty"` // ways in which the load may not be what the user wanted; absent if there are none
	WarmUp   WarmUp          `json:"warmup"`
	Steady   struct {        // how steady the load was after its warm-up, second by second
		Seconds  int   `json:"seconds"`  // whole seconds considered, with the whole load on
		Rate     Trend `json:"rate"`     // ops that ended ok or miss per second
		Response Trend `json:"response"` // their mean response
	} `json:"steady"`

	Target  Target   `json:"target"`
	Others  []Target `json:"other_targets"` // targets that steps of scenarios name, in order of first mention
	Dataset Dataset  `json:"dataset"`
	Load    Load     `json:"load"`
	Trace   *Trace   `json:"trace"` // null if the phase replays none

	OfferedRate  *float64 `json:"offered_rate"`  // open: ops due per second after the ramp
	AchievedRate *float64 `json:"achieved_rate"` // open: ops ended per second, whatever their outcome, over the same length of time

	OpCostSeconds  *float64 `json:"op_cost_seconds"`  // the loops' processor time per op
	ExpectedLagP99 *float64 `json:"expected_lag_p99"` // open: p99 lag of a queue with that cost at the loops' load, seconds

	Log       *worker.Log          `json:"log"`                 // null if the target is not a log
	Device    *Device              `json:"device,omitempty"`    // absent if the target is not a log
	Cache     *Cache               `json:"cache,omitempty"`     // absent if no target reads through a cache
	Verify    *Verify              `json:"verify,omitempty"`    // absent if the phase does not look for lost writes
	Staleness *Staleness           `json:"staleness,omitempty"` // absent if the phase does not measure it
	Event     map[string]*Event    `json:"event,omitempty"`     // by name; absent if the phase has none
	Op        map[string]*Op       `json:"op"`                  // by verb; null if it went to several targets. In a search, that of the highest rate that held
	Scenario  map[string]*Scenario `json:"scenario"`            // by name; in a search, like Op
	Total     *Figures             `json:"total"`               // of all ops; null if they went to several targets, and in results of an older form
	Requests  []Requests           `json:"requests"`
	Counted   []Counted            `json:"counted,omitempty"` // by the servers; absent if none were asked, and in results of an older form

	Connections *Connections `json:"connections,omitempty"` // absent if the load does not renew them

	Away      []Away            `json:"away,omitempty"` // endpoints with connections that were away; absent if there were none
	Setup     *Ledgers          `json:"setup"`          // ledgers of the untimed ops before the load
	Series    []Row             `json:"series"`
	Finer     []FinerRow        `json:"finer,omitempty"` // how ops ended in parts of a second, if Series has fewer than 20 rows, all of one step; otherwise absent
	Steps     []int             `json:"steps"`           // numbers of the steps whose snapshots make up the load, one per level; empty in results of an older form
	Generator measure.Generator `json:"generator"`       // of the load, without the setup; over all workers
	Digest    string            `json:"digest"`          // of the multiset of ops due: stream, number, verb, key, size; hex
	Nulls     map[string]string `json:"nulls"`           // why a number of this phase is null, by relative path

	NullCodes map[string]reason.Code `json:"null_codes"` // of Nulls; empty in results of an older form

	Errors []ErrorText `json:"errors"` // most frequent first

	Reconnects      uint64  `json:"reconnects"`        // connections opened again after a loss
	LateReplies     uint64  `json:"late_replies"`      // replies to requests that had timed out; discarded
	Foreign         uint64  `json:"foreign"`           // values read that loadgen did not write
	Misplaced       uint64  `json:"misplaced"`         // values read that name another key; absent from results of an older form
	AnotherRun      uint64  `json:"another_run"`       // values read that another run wrote where this one puts; likewise
	Stalls          uint64  `json:"stalls"`            // times an event loop stood still for more than 250 ms
	MaxStallSeconds float64 `json:"max_stall_seconds"` // the longest stall
	AwaySeconds     float64 `json:"away_seconds"`      // sum of Away

	Observe map[string]map[string]Observed `json:"observe"` // by observation and field
	Probes  map[string]*Probes             `json:"probes"`  // by observation

	Levels []Level `json:"levels"` // of stages or of a search, in order
	Search *Search `json:"search"` // null if the phase is not a search
}

// Unanswered returns how many requests had no answer: servers may carry them out later.
func (p *Phase) Unanswered() (n uint64) {
	for _, r := range p.Requests {
		n += r.Sent - r.Answered - r.Moved - r.Ask
	}
	return n
}

// Lost names what ended ops without an answer: a lost connection, or a failed log.
func (p *Phase) Lost() string {
	if p.Log != nil {
		return "failed log"
	}
	return "lost connection"
}

// Reason says why figures of a phase are no better than Validity.
type Reason struct {
	Validity Validity    `json:"validity"`
	Code     reason.Code `json:"code"` // independent of the words; "" in results of an older form
	Text     string      `json:"text"`
	Touches  []string    `json:"touches"` // paths, relative to the phase, of the affected figures, or of objects whose figures are all affected

	OneSided reason.Bound `json:"one_sided,omitempty"` // what its response times, or the rate of its search, still are; absent if neither
}

// WarmUp is the beginning of a load that rates and latencies leave out; ledgers include it.
type WarmUp struct {
	Seconds float64     `json:"seconds"` // from the phase's origin
	By      string      `json:"by"`      // "plan", "mser-5" or "none"
	Code    reason.Code `json:"code"`    // why there is no warm-up; "" if there is one
	Reason  string      `json:"reason"`
}

// Trend describes a series of seconds. Its shares are relative to its mean.
type Trend struct {
	Effective *float64 `json:"effective"` // number of independent seconds that would tell as much
	CI95      *float64 `json:"ci95"`      // half the width of the 95 % confidence interval of the mean, a share
	Drift     *float64 `json:"drift"`     // change from beginning to end, a share
	DriftP    *float64 `json:"drift_p"`   // probability of a trend at least as strong by chance
}

// Ledger counts how ops, or their keys, ended.
//
// due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight.
type Ledger struct {
	Due          uint64 `json:"due"`
	OK           uint64 `json:"ok"`
	Miss         uint64 `json:"miss"`
	Conflict     uint64 `json:"conflict"`
	QuorumFailed uint64 `json:"quorum_failed"`
	Timeout      uint64 `json:"timeout"`
	Error        uint64 `json:"error"`
	Shed         uint64 `json:"shed"`
	InFlight     int64  `json:"in_flight"`
}

// Figures holds the counts and measurements of one kind of op.
type Figures struct {
	Ledger
	Sent   uint64 `json:"sent"` // due − shed
	Causes Causes `json:"causes"`

	Rate          *float64 `json:"rate"`      // ok per second while all sessions were at work
	Answered      *float64 `json:"answered"`  // ok and miss per second in the same time
	RateWall      *float64 `json:"rate_wall"` // ok per second from first start to last end
	RatePeak      *float64 `json:"rate_peak"` // largest average since the first start, computed after each 1,000 ops and at the end
	RatePerMinute *float64 `json:"rate_per_minute"`

	Response Latency `json:"response"` // of all ops that were due
	Service  Latency `json:"service"`  // of all ops that were due
	Lag      Latency `json:"lag"`      // of every op that started
	Latency  classes `json:"latency"`

	Growth *Growth `json:"growth"` // null if the phase has no growth block
}

// Op holds the figures of the ops of one verb.
type Op struct {
	Figures
	HitRatio *float64  `json:"hit_ratio"` // of gets: ok / (ok + miss), of keys if ops have several
	BytesIn  uint64    `json:"bytes_in"`
	BytesOut *uint64   `json:"bytes_out"`
	InRate   *float64  `json:"bytes_in_rate"`  // bytes per op that ended, times the ops that ended per second while all sessions were at work
	OutRate  *float64  `json:"bytes_out_rate"` // like InRate absent from results of an older form
	Keys     keyLedger `json:"keys"`
	Acks     []Latency `json:"acks"` // k-1: start of the op to its k-th good answer

	Write *Latency `json:"write,omitempty"` // the part of Service that is not Sync; absent: the op stores nothing in files
	Sync  *Latency `json:"sync,omitempty"`  // the part of Service that is the wait for durability; absent as Write

	Checks map[string]Check `json:"checks,omitempty"` // of replies, by name; absent if the plan has none for the op

	Kind map[string]class `json:"kind,omitempty"` // by kind: hit, filled, waited or source of ok gets that read through a cache; whole, part or none of chains
}

// Check is what became of a check.
type Check struct {
	Failed uint64 `json:"failed"` // replies that were the first to fail it
}

// AddKind adds the latencies of a kind of ops.
func (o *Op) AddKind(name string, response, service Latency) {
	if o.Kind == nil {
		o.Kind = map[string]class{}
	}
	o.Kind[name] = class{response, service}
}

// keyLedger is the ledger of an op's keys, which equals the op's own if each op has one key. An op of several keys is ok if one of them existed.
type keyLedger struct {
	Ledger
	Rate     *float64 `json:"rate"`             // ok per second while all sessions were at work
	Answered *float64 `json:"answered"`         // ok and miss per second in the same time
	RateWall *float64 `json:"rate_wall"`        // ok per second from first start to last end
	Wasted   *uint64  `json:"wasted,omitempty"` // of chains: found behind the first that was not there, and so misses
}

// Batched says whether ops had several keys each, so that Keys says more than the op does.
func (o *Op) Batched() bool { return o.Keys.Due > o.Due }

// Scenario holds the figures of one scenario. It starts with its first op and ends with its last. It ended ok if all its ops did, as a miss if some
// of them missed, and otherwise as the op that failed. The figures of its ops' verbs include its ops.
type Scenario struct {
	Figures
	Steps     []string         `json:"steps"`      // the ops of one scenario, in order
	StepOrder []string         `json:"step_order"` // the names of its steps, in order
	Step      map[string]*Step `json:"step"`
}

// Step holds the figures of the ops of one step of a scenario. A scenario's time is the sum over its steps, each as often as it is carried out, plus
// the think times between them.
type Step struct {
	Figures
	Op      string `json:"op"`
	Target  string `json:"target"`
	Dataset string `json:"dataset"`
	Times   int    `json:"times"` // how often it is carried out
}

// Causes counts what decided the ops that ended in conflict, quorum_failed, timeout or error.
type Causes struct {
	Reply     uint64 `json:"reply"`
	Timeout   uint64 `json:"timeout"`
	Lost      uint64 `json:"lost"`
	Refused   uint64 `json:"refused"`
	OpTimeout uint64 `json:"op_timeout"`
}

// classes holds the latencies of each class of outcomes.
type classes struct {
	OK   class `json:"ok"`
	Miss class `json:"miss"`
	Bad  class `json:"bad"` // conflict, quorum_failed, timeout, error
}

// class holds the latencies of one class.
type class struct {
	Response Latency `json:"response"`
	Service  Latency `json:"service"`
}

// Latency summarises a histogram, in seconds. Quantiles are nearest ranks, reported as the upper bound of their bucket, less than 0.8 % above the
// sample. A quantile with fewer than 10 samples beyond it is null. Without samples Count is 0 and the rest null.
//
// Ops that failed count as slower than any sample. If there are any, Mean, SD and Max are null, as is each quantile that falls among them.
type Latency struct {
	Count  uint64   `json:"count"`
	Failed uint64   `json:"failed"`
	Mean   *float64 `json:"mean"`
	SD     *float64 `json:"sd"`
	Min    *float64 `json:"min"`
	P50    *float64 `json:"p50"`
	P90    *float64 `json:"p90"`
	P95    *float64 `json:"p95"`
	P99    *float64 `json:"p99"`
	P999   *float64 `json:"p999"`
	Max    *float64 `json:"max"`

	Quantiles map[string]*float64 `json:"quantiles,omitempty"` // the quantiles that the plan names, by name; absent if it names none
}

// Requests is the ledger of the messages with one verb to one endpoint of a target: sent = answered + moved + ask + timeout + error + in_flight.
type Requests struct {
	Target   string `json:"target"`
	Endpoint string `json:"endpoint"`
	Verb     string `json:"verb"`
	measure.Requests
}

// Away says how long lost connections to an endpoint were down until they were made again.
type Away struct {
	Target   string  `json:"target"`
	Endpoint string  `json:"endpoint"`
	Seconds  float64 `json:"seconds"` // summed over connections
}

// Ledgers are the ledgers of an untimed step.
type Ledgers struct {
	Op       map[string]*Op `json:"op"`
	Requests []Requests     `json:"requests"`
}

// Row is one second of a phase, over all its verbs.
type Row struct {
	T        float64     `json:"t"` // end of the second, in seconds since the phase's origin
	Due      uint64      `json:"due"`
	Sent     uint64      `json:"sent"`
	OK       uint64      `json:"ok"`
	Miss     uint64      `json:"miss"`
	Bad      uint64      `json:"bad"`       // conflict, quorum_failed, timeout, error
	KeysOK   uint64      `json:"keys_ok"`   // keys of multi-key ops; 0 if ops have one each
	InFlight int64       `json:"in_flight"` // at T
	Response RowResponse `json:"response"`
	Cache    *RowCache   `json:"cache,omitempty"`    // absent if no get of the phase has read through a cache so far
	Compared uint64      `json:"compared,omitempty"` // gets and stale gets of the phase's staleness; absent if there are none
	Stale    uint64      `json:"stale,omitempty"`
}

// RowResponse describes the response times of all ops that ended or were shed in a second, in seconds. A figure is null if there were no such ops, if
// they are too few for a quantile, or if it falls on a failed op.
type RowResponse struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P95  *float64 `json:"p95"` // null in results of an older form
	P99  *float64 `json:"p99"`

	Quantiles map[string]*float64 `json:"quantiles,omitempty"` // like those of a [Latency]
}

// End is when the row ends, in seconds since the phase's origin.
func (r Row) End() float64 { return r.T }

// Answers says that what the phase's search has found says a reason already.
func (p *Phase) Answers(why Reason) bool {
	s := p.Search
	return why.Code == reason.NoRateHeld && s != nil && (s.FirstFailed != nil || s.ClientBound != nil)
}

// Closed says that the phase's ops were due when others ended, not by a schedule.
func (p *Phase) Closed() bool { return p.Model == ModelClosed }

// ErrorText is an error text and its count.
type ErrorText struct {
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// Null records why the number at a path relative to the phase, or every number of the object there, is null.
func (p *Phase) Null(path string, why reason.Why) {
	p.Nulls[path], p.NullCodes[path] = why.Text, why.Code
}
