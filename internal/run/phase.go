package run

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/plan"
)

// Phase is the result of one phase.
type Phase struct {
	Kind     string   `json:"kind"`     // "load", "populate" or "clear"
	Model    string   `json:"model"`    // "closed", "open", "stages" or "search"
	Seconds  float64  `json:"seconds"`  // first start to last end of the measured ops
	Validity Validity `json:"validity"` // worst of what Reasons name
	Reasons  []Reason `json:"reasons"`
	WarmUp   WarmUp   `json:"warmup"`
	Steady   Steady   `json:"steady"`

	Target  Target    `json:"target"`
	Dataset Dataset   `json:"dataset"`
	Load    Shape     `json:"load"`
	Trace   *Replayed `json:"trace"` // null: the phase replays none

	OfferedRate  *float64 `json:"offered_rate"`  // open: ops due per second after the ramp
	AchievedRate *float64 `json:"achieved_rate"` // open: ops ended per second, whatever their outcome, over as long a time

	OpCostSeconds  *float64 `json:"op_cost_seconds"`  // processor time of the loops for an op
	ExpectedLagP99 *float64 `json:"expected_lag_p99"` // open: of a queue with that cost at the load that the loops had, seconds

	Log       *Log                 `json:"log"`      // null: the target is no log
	Op        map[string]*Op       `json:"op"`       // by verb; of a search, of the level with the largest rate that held
	Scenario  map[string]*Scenario `json:"scenario"` // by name; of a search, as Op
	Requests  []Requests           `json:"requests"`
	Setup     *Ledgers             `json:"setup"` // of the untimed ops before the load
	Series    []Row                `json:"series"`
	Generator Generator            `json:"generator"` // of the load, setup apart; over all workers
	Digest    string               `json:"digest"`    // of the multiset of ops due: stream, number, verb, key, size; hex
	Nulls     map[string]string    `json:"nulls"`     // why a number below this phase is null, by path
	Errors    []ErrorText          `json:"errors"`    // most frequent first

	Reconnects      uint64  `json:"reconnects"`        // connections opened again after a loss
	LateReplies     uint64  `json:"late_replies"`      // to requests that had timed out; discarded
	Foreign         uint64  `json:"foreign"`           // values read that loadgen did not write
	Stalls          uint64  `json:"stalls"`            // times an event loop stood still for more than 250 ms
	MaxStallSeconds float64 `json:"max_stall_seconds"` // the longest of them

	Observe map[string]map[string]Observed `json:"observe"` // by observation and field
	Probes  map[string]*Probes             `json:"probes"`  // by observation

	Levels []Level `json:"levels"` // of stages and of a search, in their order
	Search *Search `json:"search"` // null: the phase is none
}

// Lost names what ended ops without an answer: their connection, or the log that failed below them.
func (p *Phase) Lost() string {
	if p.Log != nil {
		return "failed log"
	}
	return "lost connection"
}

// Reason is why figures of a phase are no better than Validity.
type Reason struct {
	Validity Validity `json:"validity"`
	Text     string   `json:"text"`
	Touches  []string `json:"touches"` // paths of figures below the phase, or of objects all of whose figures are meant
}

// WarmUp is the beginning of a load that its rates and latencies leave out; ledgers count it.
type WarmUp struct {
	Seconds float64 `json:"seconds"` // from the phase's origin
	By      string  `json:"by"`      // "plan", "mser-5" or "none"
	Reason  string  `json:"reason"`
}

// Steady says how even a load ran after its warm-up, second by second.
type Steady struct {
	Seconds  int   `json:"seconds"`  // that were looked at: whole ones, with all of the load on
	Rate     Trend `json:"rate"`     // of the ops that ended ok or miss in each
	Response Trend `json:"response"` // of their mean response
}

// Trend describes a series of seconds. Its shares are of its mean.
type Trend struct {
	Effective *float64 `json:"effective"` // independent seconds that it is worth
	CI95      *float64 `json:"ci95"`      // half of the 95 % confidence interval of the mean, a share
	Drift     *float64 `json:"drift"`     // change from beginning to end, a share
	DriftP    *float64 `json:"drift_p"`   // probability of a trend as strong as this by chance
}

// Target is what the phase was run against.
type Target struct {
	Name        string       `json:"name"`
	Driver      string       `json:"driver"`
	Builtin     bool         `json:"builtin"`     // built-in nodes started for this run
	TLS         bool         `json:"tls"`         // connections were encrypted
	Endpoints   []string     `json:"endpoints"`   //
	Placement   string       `json:"placement"`   // "ketama" or "rendezvous"
	Replication *Replication `json:"replication"` // null: each key lives on one endpoint
}

// Replication says on how many endpoints a key lived and how many answers made an op.
type Replication struct {
	Coordinate string `json:"coordinate"`
	N          int    `json:"n"`
	W          int    `json:"w"`
	R          int    `json:"r"`
	ReadFanout string `json:"read_fanout"`
	ReadFrom   string `json:"read_from"`
}

// Dataset is which keys and values were used.
type Dataset struct {
	Name       string  `json:"name"`
	Keys       int64   `json:"keys"`  // in the space, or in each session's pool
	Scope      string  `json:"scope"` // "shared" or "session"
	Pick       string  `json:"pick"`
	Skew       float64 `json:"skew"`        // s of zipf(s) and latest(s), else 0
	ValueBytes int     `json:"value_bytes"` // of the largest
	Values     string  `json:"values"`      // how they differ from text of that size, "" when they do not

	File       *KeyFile   `json:"file"`        // that has the keys; nil: they are made
	ValuesFile *ValueFile `json:"values_file"` // that has the values; likewise
}

// KeyFile is the file that a dataset has its keys from.
type KeyFile struct {
	Path   string `json:"path"`
	Form   string `json:"form"`
	Field  string `json:"field"`
	SHA256 string `json:"sha256"`
}

// ValueFile is the file that a dataset has its values from. Sizes are without the header of a checked value.
type ValueFile struct {
	KeyFile
	Encoding     string  `json:"encoding"`
	Pick         string  `json:"pick"`
	Values       int64   `json:"values"` // how many there are
	LeastBytes   int     `json:"least_bytes"`
	LargestBytes int     `json:"largest_bytes"`
	MeanBytes    float64 `json:"mean_bytes"`
}

// Replayed is the trace that a phase has replayed.
type Replayed struct {
	File    string            `json:"file"`
	Form    string            `json:"form"`
	SHA256  string            `json:"sha256"`
	Speed   float64           `json:"speed"` // how many times as fast as it was; of even distances, and of a closed load, 0
	Lines   int64             `json:"lines"` // that are ops
	Ops     []plan.TraceCount `json:"ops"`   // lines by what the trace calls the op
	LeftOut []plan.TraceCount `json:"left_out"`
}

// Shape is the load that was asked for. A field that the model does not have is 0 or "".
// Of stages it is all of them together, of a search what its levels have in common.
type Shape struct {
	Sessions        int     `json:"sessions"`
	Pipeline        int     `json:"pipeline"`
	Batch           int     `json:"batch"`      // keys of an op
	Iterations      int64   `json:"iterations"` // of each session; 0: not bounded by them
	DurationSeconds float64 `json:"duration_seconds"`
	RampSeconds     float64 `json:"ramp_seconds"`
	ThinkSeconds    float64 `json:"think_seconds"`
	Rate            float64 `json:"rate"` // arrivals per second
	Arrivals        string  `json:"arrivals"`
	InFlight        int     `json:"in_flight"`
	OnFull          string  `json:"on_full"`
	HitRatio        float64 `json:"hit_ratio"` // share of gets that ask for keys of the dataset, where the plan has one; else 0
}

// Ledger counts how ops ended, or the keys of them.
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

// Figures are what is counted and measured of ops of one kind.
type Figures struct {
	Ledger
	Sent   uint64 `json:"sent"` // due − shed
	Causes Causes `json:"causes"`

	Rate          *float64 `json:"rate"`      // ok per second while all sessions were at work
	Answered      *float64 `json:"answered"`  // ok and miss per second, likewise
	RateWall      *float64 `json:"rate_wall"` // ok per second from first start to last end
	RatePerMinute *float64 `json:"rate_per_minute"`

	Response Latency `json:"response"` // of all ops that were due
	Service  Latency `json:"service"`  // of all ops that were due
	Lag      Latency `json:"lag"`      // of every op that was started
	Latency  Classes `json:"latency"`
}

// Op is the figures of the ops of one verb.
type Op struct {
	Figures
	HitRatio *float64  `json:"hit_ratio"` // of gets: ok / (ok + miss), of keys where ops have several
	BytesIn  uint64    `json:"bytes_in"`
	BytesOut *uint64   `json:"bytes_out"`
	Keys     KeyLedger `json:"keys"`
	Acks     []Latency `json:"acks"` // k-1: start of the op to its k-th good answer
}

// KeyLedger is that of the keys of an op: as the op's, where each has one. A batch of several is ok when one of its keys was there.
type KeyLedger struct {
	Ledger
	Rate     *float64 `json:"rate"`      // ok per second while all sessions were at work
	Answered *float64 `json:"answered"`  // ok and miss per second, likewise
	RateWall *float64 `json:"rate_wall"` // ok per second from first start to last end
}

// Batched says that ops had several keys each, so that Keys tells more than the op does.
func (o *Op) Batched() bool { return o.Keys.Due > o.Due }

// Scenario is the figures of one scenario: its start is that of its first op, its end that of its last. It ended ok when all its ops
// did, as a miss when some of them missed, and else as the op did that failed. Its ops are in those of their verbs, too.
type Scenario struct {
	Figures
	Steps []string `json:"steps"` // the ops of one
}

// Causes counts what decided the ops that ended in conflict, quorum_failed, timeout or error.
type Causes struct {
	Reply     uint64 `json:"reply"`
	Timeout   uint64 `json:"timeout"`
	Lost      uint64 `json:"lost"`
	Refused   uint64 `json:"refused"`
	OpTimeout uint64 `json:"op_timeout"`
}

// Classes holds the latencies of each class of outcomes.
type Classes struct {
	OK   ClassLatency `json:"ok"`
	Miss ClassLatency `json:"miss"`
	Bad  ClassLatency `json:"bad"` // conflict, quorum_failed, timeout, error
}

// ClassLatency is the latencies of one class.
type ClassLatency struct {
	Response Latency `json:"response"`
	Service  Latency `json:"service"`
}

// Latency sums a histogram up, in seconds. Quantiles are nearest ranks, reported as the upper bound of their bucket, less than
// 0.8 % above the sample; one with fewer than 10 samples beyond it is null. Without samples Count is 0 and the rest null.
//
// Ops that failed count as slower than any sample: with one of them Mean, SD and Max are null, and so is each quantile above their share.
type Latency struct {
	Count  uint64   `json:"count"`
	Failed uint64   `json:"failed"`
	Mean   *float64 `json:"mean"`
	SD     *float64 `json:"sd"`
	Min    *float64 `json:"min"`
	P50    *float64 `json:"p50"`
	P90    *float64 `json:"p90"`
	P99    *float64 `json:"p99"`
	P999   *float64 `json:"p999"`
	Max    *float64 `json:"max"`
}

// Requests is the ledger of the messages with one verb to one endpoint: sent = answered + moved + ask + timeout + error + in_flight.
type Requests struct {
	Endpoint string `json:"endpoint"`
	Verb     string `json:"verb"`
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Moved    uint64 `json:"moved"` // answered by which endpoint has the key instead
	Ask      uint64 `json:"ask"`   // answered by which endpoint to ask, for this request only
	Timeout  uint64 `json:"timeout"`
	Error    uint64 `json:"error"`
	Refused  uint64 `json:"refused"` // never sent
	InFlight int64  `json:"in_flight"`
}

// Ledgers is what an untimed step did.
type Ledgers struct {
	Op       map[string]*Op `json:"op"`
	Requests []Requests     `json:"requests"`
}

// Row is one second of a phase, over all its verbs.
type Row struct {
	T        float64  `json:"t"` // end of the second, in seconds since the phase's origin
	Due      uint64   `json:"due"`
	Sent     uint64   `json:"sent"`
	OK       uint64   `json:"ok"`
	Miss     uint64   `json:"miss"`
	Bad      uint64   `json:"bad"`       // conflict, quorum_failed, timeout, error
	KeysOK   uint64   `json:"keys_ok"`   // keys of ops that have several; 0 where ops have one each
	InFlight int64    `json:"in_flight"` // at T
	Response struct { // of all that ended or were shed in it, in seconds; null when none did or too few for a quantile, and where the op meant failed
		Mean *float64 `json:"mean"`
		P50  *float64 `json:"p50"`
		P99  *float64 `json:"p99"`
	} `json:"response"`
}

// RowSeconds returns how long most rows of a series are, in whole seconds, at least 1. The first and the last may be shorter, and one
// of which something came late may be longer.
func RowSeconds(series []Row) float64 {
	if len(series) == 0 {
		return 1
	}
	lengths, from := make([]float64, len(series)), 0.0
	for i, r := range series {
		lengths[i], from = r.T-from, r.T
	}
	slices.Sort(lengths)
	return max(1, math.Round(lengths[len(lengths)/2]))
}

// ErrorText is a text that came with errors, and how often.
type ErrorText struct {
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}
