// Package driver is the SDK between loadgen and the protocols it speaks.
//
// A driver turns requests into bytes and bytes into replies, and says which outcomes it can produce. It holds no policy: which
// endpoint is asked, when, how often and what a set of replies amounts to is decided by programs (internal/op); when a byte moves
// and what time it is, by an executor (internal/engine).
//
// A [Driver] describes a protocol and, by the interfaces it also implements, how it is carried:
//
//   - [Wire]: a byte protocol with replies in the order of their requests on a connection, or with ids ([Tagged]). The executor owns the sockets.
//   - [Dialer]: a client that does its own I/O and blocks. It runs on the blocking executor.
//   - localfile.Driver: files of the worker's own machine. Its sessions work on the executor's threads, without a hand-over.
//   - [Timed]: no transport; a reply is a pure function of its request and arrives after a computed delay.
//
// Every driver runs the conformance suite in drivertest.
package driver

import (
	"context"
	"strconv"
	"time"
)

// Verb is what a request asks an endpoint to do.
type Verb uint8

// The verbs that stores have, in the order of every table and result. Behind them are those of ops that a plan names itself ([Words]): maxOwn that
// store nothing, and as many that store.
const (
	Get Verb = iota
	Put
	Delete
	Append // to a log
	Write  // of a slot
	Read   // of a log's next entry, or of a slot
	Clear  // of a log, or of a slot

	firstOwn            = iota                // of those that store nothing,
	firstOwnStoring     = firstOwn + maxOwn   // and of those that do
	NumVerbs        int = firstOwn + 2*maxOwn // with those of plans
)

var verbNames = [firstOwn]string{"get", "put", "delete", "append", "write", "read", "clear"}

// String returns the name that the verb has in every plan. One of a plan's own has a number here: [Words] have its name.
func (v Verb) String() string {
	if v.Own() {
		return "own op " + strconv.Itoa(int(v-firstOwn))
	}
	return verbNames[v]
}

// Own says whether the verb is of a plan.
func (v Verb) Own() bool { return v >= firstOwn }

// Stores says whether a request with the verb carries a value.
func (v Verb) Stores() bool { return v == Put || v == Append || v == Write || v >= firstOwnStoring }

// Outcome is how an op, or a request for it, ended.
type Outcome uint8

// The outcomes, in the order of the op ledger:
// due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight.
const (
	OK           Outcome = iota
	Miss                 // the key is not there: a valid answer
	Conflict             // refused by the target because of a newer version
	QuorumFailed         // W or R out of reach; of ops only
	Timeout              // no answer in time
	Error                // an error reply, a lost connection, or no connection at all
	Shed                 // due but never started; of ops only

	NumOutcomes int = iota
)

var outcomeNames = [NumOutcomes]string{"ok", "miss", "conflict", "quorum_failed", "timeout", "error", "shed"}

func (o Outcome) String() string { return outcomeNames[o] }

// Failed says whether the target is to blame: it did not answer, or not as it should have.
func (o Outcome) Failed() bool { return o == QuorumFailed || o == Timeout || o == Error }

// Request is one message to one endpoint.
type Request struct {
	Target   int    // index into the targets of the phase, the phase's own first
	Endpoint int    // index into the target's endpoints
	Verb     Verb   //
	Stream   uint32 // the stream that issued the op, and
	N        uint64 // the op's number within it
	Index    uint64 // of the key, in the key space or the session's pool
	Key      []byte // valid until the op is settled
	Value    *Value // of a verb that stores; valid until the op is settled
	Asking   bool   // it goes where another endpoint of a cluster has sent it, for once
	ID       uint32 // of a codec that is Tagged: no other request that is outstanding on the connection has it
	Batch    []Item // all keys, where there are several; Key and Value are then not to be looked at. Valid until the op is settled
	Token    uint64 // of a put that is to replace just the value which a reply with that token had; 0: whatever is there
	Tag      uint8  // the program's: the event that ends the request gives it back
}

// Item is one of the keys of a request that has several, and in a put its value.
type Item struct {
	Index uint64
	Key   []byte
	Value Value
}

// Reply is what an endpoint answered. A Reply is reused: Parse overwrites every field.
type Reply struct {
	Outcome Outcome // OK, Miss, Conflict or Error
	Acks    uint8   // replicas that stand behind the answer, where the endpoint asked them itself; 0: it does not say
	Value   []byte  // of a get that is OK; valid until the next read into the same buffer
	Message []byte  // the endpoint's words when Outcome is Error; same lifetime
	Token   uint64  // of the value, for a put that is to replace just that; 0: it has none
	Code    uint16  // what the protocol calls a status, such as that of HTTP, for samples of ops; 0: it has none
}

// Driver describes one protocol.
type Driver interface {
	// Name is the word a plan uses: driver = "redis".
	Name() string
	// NewConfig returns a pointer to a new struct with hcl and json tags that holds the defaults of the attributes a
	// target of this driver takes beside the common ones. It may implement interface{ Validate() error }.
	NewConfig() any
	// Outcomes lists what a request with the verb can end in beside Timeout and Error, which every driver can;
	// nil when the driver does not know the verb.
	Outcomes(v Verb) []Outcome
}

// Wire is a driver whose protocol an executor carries over its own sockets.
type Wire interface {
	Driver
	// NewCodec returns a codec for the connections of a loop, which share it: the link has no Endpoint and no Dial.
	// It fails when a secret is not to be had.
	NewCodec(link Link) (Codec, error)
	// Builtin names the protocol a built-in node must speak to serve this driver; "" when none does.
	Builtin() string
}

// Codec writes requests and reads replies. It does no I/O, keeps nothing of the bytes it is given, and allocates nothing
// per request. Used by one goroutine at a time.
type Codec interface {
	// Greet appends what a new connection says first (authentication, choice of database) and returns how many replies
	// that will bring; 0 for nothing to say.
	Greet(dst []byte) ([]byte, int)
	// ParseGreeting reads the i-th reply to Greet from the front of b. It returns the bytes it took, 0 when the reply is
	// not complete yet, and an error when the endpoint refused; the error names the step, never a secret.
	ParseGreeting(b []byte, i int) (n int, err error)
	// AppendRequest appends the bytes of req.
	AppendRequest(dst []byte, req *Request) []byte
	// Parse reads the reply to a request with the given verb from the front of b. It returns the bytes it took, 0 when
	// the reply is not complete yet. An error means that the bytes are not of this protocol (or a reply is beyond the
	// driver's size limit) and that the connection is of no further use.
	Parse(b []byte, verb Verb, reply *Reply) (n int, err error)
}

// Layout is what a Codec is, too, whose requests with one verb differ only in the bytes of key and value, as long as keys are of one
// length and values of one size and TTL. An executor can then make many requests of one.
type Layout interface {
	// Offsets returns where in the bytes of req its key stands, and behind it its value, if it has one. keyAt is below 0 where requests with the
	// verb differ in other ways, too.
	Offsets(req *Request) (keyAt, valueAt int)
}

// Skimmer is what a Codec is, too, that reads replies quickly where nobody looks into them.
type Skimmer interface {
	// Skim takes replies to requests with the verb from the front of b, up to most, for as long as they are complete and OK. It returns
	// how many it took and their bytes. It may stop at any reply, for Parse to say what that is.
	Skim(b []byte, verb Verb, most int) (n, took int)
	// Outline returns how many bytes the reply has that b begins with, where b tells that and, whatever comes behind b, the reply is OK if it ends
	// in CR LF and is not of this protocol if it does not; else 0.
	Outline(b []byte, verb Verb) int
}

// Resumer is what a Codec is, too, whose replies may have any number of parts. Parse begins at the front of a reply whenever more of it has come; of one
// that comes in many pieces it would look at the first part as many times.
type Resumer interface {
	// Resume goes on in a reply that is not complete and that b holds the beginning of, from where it stopped when there was less of it; the zero
	// Progress is the front. It returns true once Parse may be called again: the reply is complete, or b begins with what Parse reports.
	Resume(b []byte, p *Progress) (bool, error)
}

// Progress is how far a Resumer has come in a reply. Left and Seen are its own: parts that are to come as far as it knows, and that there are.
type Progress struct {
	At         int // bytes that need not be looked at again; above 0 where it has begun
	Left, Seen int64
}

// Aside is what a Codec is, too, whose endpoints may say things that answer no request. Parse passes over those that come before a reply.
type Aside interface {
	// Aside takes one message that answers nothing from the front of b, which is not empty. It returns its bytes, 0 when it is not complete yet,
	// and an error when b begins with anything else.
	Aside(b []byte) (n int, err error)
}

// Batcher is a Wire whose codecs are BatchCodecs.
type Batcher interface {
	Wire
	// CheckBatch says why requests with the verb cannot have several keys on a target with the config, and what to write instead; nil when
	// they can.
	CheckBatch(config any, v Verb, b Batch) error
}

// Batch is what requests of several keys are like.
type Batch struct {
	Keys  int
	Bytes int           // of the largest value
	TTL   time.Duration // of the values; 0: they have none
	TLS   bool          // the target's connections are encrypted
}

// BatchCodec is a Codec that carries several keys in one request, whose replies come together.
type BatchCodec interface {
	Codec
	// AppendBatch appends the bytes of a get or put of all items.
	AppendBatch(dst []byte, v Verb, items []Item) []byte
	// ParseBatch is Parse for the answer to such a request of as many keys as there are replies: one for each of them, in any order. An error
	// that is of all of them has its Message in the first alone.
	ParseBatch(b []byte, v Verb, replies []Reply) (n int, err error)
}

// Expirer is a driver whose stores forget a value by themselves when it was put with a TTL.
type Expirer interface {
	Driver
	// CheckTTL says what is wrong with a TTL, from 1 ms to 30 days, and what to write instead; nil when nothing is.
	CheckTTL(ttl time.Duration) error
}

// Dialer is a driver that brings its own blocking client. Its connections are the executor's: the client makes each of them by the link's Dial, over
// TLS or a Unix socket where the plan says so, and never by itself. A session has as many clients of an endpoint as it can have ops in flight.
type Dialer interface {
	Driver
	// Dial connects a session to the link's endpoint.
	Dial(ctx context.Context, link Link) (Session, error)
}

// Session is a blocking client of one endpoint. Used by one goroutine at a time.
type Session interface {
	// Do carries out req and fills reply. An error means that the session is of no further use.
	// It returns by the deadline of ctx, with ctx's error if that is why. ctx is not to be used after it has returned, nor are req and reply.
	Do(ctx context.Context, req *Request, reply *Reply) error
	Close() error
}

// Timed is a driver without a transport.
type Timed interface {
	Driver
	// Reply fills reply and returns how long after its start the request ends, ≥ 0. It is a pure function of config and req.
	Reply(config any, req *Request, reply *Reply) time.Duration
}
