// Package driver is the SDK for the protocols that loadgen speaks.
//
// A driver turns requests into bytes and bytes into replies, and declares which outcomes it can produce. It holds no policy. Programs
// (internal/plan/op) decide which endpoint to ask, when, how often, and what a set of replies amounts to. An executor (internal/load/engine) moves
// the bytes and reads the clock.
//
// A [Driver] describes a protocol. The interfaces that it also implements say how the protocol is carried:
//
//   - [Wire]: a byte protocol whose replies come in request order on each connection, or carry ids ([Tagged]). The executor owns the sockets.
//   - [Dialer]: a client that does its own I/O and blocks. It runs on the blocking executor.
//   - localfile.Driver: files on the worker's own machine. Its sessions work on the executor's threads, without a hand-over.
//   - [Timed]: no transport; a reply is a pure function of its request and arrives after a computed delay.
//
// Every driver runs the conformance suite in drivertest.
package driver

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Verb is what a request asks an endpoint to do.
type Verb uint8

// The verbs of stores, in the order of every table and result. The verbs of ops that a plan names itself ([Words]) follow: maxOwn that store nothing,
// then maxOwn that store a value.
const (
	Get Verb = iota
	Put
	Delete
	Append // to a log
	Write  // a slot
	Read   // a log's next entry, or a slot
	Clear  // a log, or a slot

	firstOwn            = iota                // the first of a plan's own verbs that store nothing
	firstOwnStoring     = firstOwn + maxOwn   // the first of a plan's own verbs that store a value
	NumVerbs        int = firstOwn + 2*maxOwn // the number of verbs, including a plan's own
)

var verbNames = [firstOwn]string{"get", "put", "delete", "append", "write", "read", "clear"}

// String returns the verb's name in plans. A plan's own verb gets a number here; [Words] holds its name.
func (v Verb) String() string {
	if v.Own() {
		return "own op " + strconv.Itoa(int(v-firstOwn))
	}
	return verbNames[v]
}

// Own reports whether the verb is one of a plan's own.
func (v Verb) Own() bool { return v >= firstOwn }

// Stores reports whether a request with the verb carries a value.
func (v Verb) Stores() bool { return v == Put || v == Append || v == Write || v >= firstOwnStoring }

// Outcome is how an op, or a request for it, ended.
type Outcome uint8

// The outcomes, in the order of the op ledger:
// due = ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight.
const (
	OK           Outcome = iota
	Miss                 // the key is not there: a valid answer
	Conflict             // refused by the target because it has a newer version
	QuorumFailed         // W or R good answers became impossible
	Timeout              // no answer in time
	Error                // an error reply, a lost connection, or no connection at all
	Shed                 // due but never started; ops only

	NumOutcomes int = iota
)

var outcomeNames = [NumOutcomes]string{"ok", "miss", "conflict", "quorum_failed", "timeout", "error", "shed"}

func (o Outcome) String() string { return outcomeNames[o] }

// Failed reports whether the target failed: it did not answer, or not as it should have.
func (o Outcome) Failed() bool { return o == QuorumFailed || o == Timeout || o == Error }

// Request is one message to one endpoint.
type Request struct {
	Target   int    // index into the phase's targets; the phase's own target comes first
	Endpoint int    // index into the target's endpoints
	Verb     Verb   //
	Tag      uint8  // the program's own; the event that ends the request returns it
	Stream   uint32 // the stream that issued the op
	N        uint64 // the op's number within the stream
	Index    uint64 // the key's index in the key space or the session's pool
	Key      []byte // valid until the op is settled
	Value    *Value // set if the verb stores a value; valid until the op is settled
	Asking   bool   // another endpoint of the cluster redirected this one request here (ASK)
	ID       uint32 // for a Tagged codec: unique among the connection's outstanding requests
	Batch    []Item // all keys, if there are several; ignore Key and Value then. Valid until the op is settled
	Token    uint64 // a put replaces only the value whose reply had this token; 0 for any value
	Bag      *Bag   // what the op's scenario remembers; nil if the op is no step of one. Valid until the op is settled
	Owed     int    // set by an [Owing] codec: bytes of the request that AppendOwed will append
}

// Item is one key of a request with several keys and, in a put, its value.
type Item struct {
	Index uint64
	Key   []byte
	Value Value
}

// Reply is what an endpoint answered. A Reply is reused: Parse overwrites every field.
type Reply struct {
	Outcome Outcome   // OK, Miss, Conflict or Error; QuorumFailed if the endpoint asked replicas itself, and too few answered
	Acks    uint8     // number of replicas behind the answer, if the endpoint asked them itself; 0 if unknown
	Code    uint16    // the protocol's status, such as HTTP's, for op samples; 0 for none
	Value   []byte    // of a get that is OK; valid until the next read into the same buffer
	Message []byte    // the endpoint's message if Outcome is Error or QuorumFailed; same lifetime
	Token   uint64    // the value's token, for a put that replaces only this value; 0 for none
	Found   *Findings // what the plan's form looked for; nil if it was nothing. Same lifetime as Value, but for texts, which stay
	Aside   int       // bytes of the reply that Aside has taken
}

// Driver describes one protocol.
type Driver interface {
	// Name returns the word a plan uses: driver = "redis".
	Name() string
	// NewConfig returns a pointer to a new struct with hcl and json tags. It holds the defaults of the attributes that a target of this driver has
	// besides the common ones. It may implement interface{ Validate() error }.
	NewConfig() any
	// Outcomes lists the outcomes of a request with the verb besides Timeout and Error, which every driver can produce; nil if the driver does not
	// know the verb. QuorumFailed is for servers that ask replicas themselves.
	Outcomes(v Verb) []Outcome
}

// Wire is a driver whose protocol the executor carries over its own sockets.
type Wire interface {
	Driver
	// NewCodec returns a codec for all connections of one event loop, so the link has no Endpoint and no Dial. It fails if a secret cannot be looked
	// up.
	NewCodec(link Link) (Codec, error)
	// Builtin names the protocol that a built-in node must speak to serve this driver; "" if none can.
	Builtin() string
}

// Codec writes requests and reads replies. It does no I/O, keeps no reference to the bytes it is given, and allocates nothing per request. Used by
// one goroutine at a time.
type Codec interface {
	// Greet appends what a new connection sends first (authentication, choice of database) and returns how many replies to expect; 0 if it has nothing
	// to say.
	Greet(dst []byte) ([]byte, int)
	// ParseGreeting reads the i-th reply to Greet from the front of b. It returns the number of bytes it took, 0 if the reply is incomplete, and an
	// error if the endpoint refused. The error names the step, never a secret.
	ParseGreeting(b []byte, i int) (n int, err error)
	// AppendRequest appends the bytes of req.
	AppendRequest(dst []byte, req *Request) []byte
	// Parse reads the reply to a request with the given verb from the front of b. It returns the number of bytes it took, or 0 if the reply is
	// incomplete. An error means that the bytes are not of this protocol, or that a reply exceeds the driver's size limit; the connection cannot be
	// used any more.
	Parse(b []byte, verb Verb, reply *Reply) (n int, err error)
}

// Layout is an optional interface of a Codec. It applies if requests with the same verb, key length, value size and TTL differ only in the bytes of
// key and value. An executor can then make many requests from one.
type Layout interface {
	// Offsets returns where the key starts in the bytes of req, and where its value starts, if it has one; the value follows the key. keyAt is negative
	// if requests with the verb also differ in other ways.
	Offsets(req *Request) (keyAt, valueAt int)
}

// Skimmer is an optional interface of a Codec that reads replies quickly when their content is not needed.
type Skimmer interface {
	// Skim takes up to most replies to requests with the verb from the front of b, while they are complete and OK. It returns how many it took and
	// their bytes. It may stop at any reply, which Parse then reads.
	Skim(b []byte, verb Verb, most int) (n, took int)
	// Outline returns the length of the reply that b begins with, if b shows it and the end alone decides the rest: the reply is OK if it ends in CR
	// LF, whatever follows b, and not of this protocol otherwise. It returns 0 in all other cases.
	Outline(b []byte, verb Verb) int
}

// Resumer is an optional interface of a Codec whose replies may have any number of parts. Parse starts at the front of a reply each time more of it
// arrives, so it would read the first part of a long reply once for every piece.
type Resumer interface {
	// Resume goes on with an incomplete reply at the front of b from where it stopped last time; the zero Progress is the front. It returns true when
	// it is time to call Parse: the reply is complete, or Parse will report an error.
	Resume(b []byte, p *Progress) (bool, error)
}

// Progress is how far a Resumer has come in a reply. Left and Seen belong to the Resumer: the parts still to come, as far as it knows, and the parts
// announced so far.
type Progress struct {
	At         int // bytes that need not be read again; above 0 once Resume has begun
	Left, Seen int64
}

// Aside is an optional interface of a Codec whose endpoints may send messages that answer no request. Parse skips those that precede a reply.
type Aside interface {
	// Aside takes one message that answers no request from the front of b, which is not empty. It returns the message's length, 0 if it is
	// incomplete, and an error if b begins with anything else, or if the endpoint ends the connection with it. The error, in the endpoint's words if
	// there are any, is the reason why the connection is lost; it is ErrIdle if the endpoint says that it ends the connection for being idle, and wraps
	// ErrUnasked if b begins with a reply.
	Aside(b []byte) (n int, err error)
}

// Goodbyer is an optional interface of a Codec whose protocol has words with which a client asks the server to close a connection. Where connections are
// renewed, a client that closed first would soon lack ports; without such words it resets the connection.
type Goodbyer interface {
	// Goodbye appends these words. What the server answers is dropped.
	Goodbye(dst []byte) []byte
}

// ErrIdle is the end of a connection that the endpoint closes because it was idle. It is no fault: the connection is made again for the next request.
var ErrIdle = errors.New("closed by the server because it was idle")

// Owing is an optional interface of a Codec that has more to say than requests: acknowledgements, room for more of a reply, the rest of a request.
type Owing interface {
	// AppendOwed appends what the endpoint is owed by now. It is called after each read.
	AppendOwed(dst []byte) []byte
}

// ErrUnasked is a reply, or other bytes, that no request asked for: replies to others may have been taken for those that were. A [Session] returns it
// from Do, with a whole reply, if more bytes came with that; it has closed the connection.
var ErrUnasked = errors.New("a reply that no request asked for")

// Batcher is a Wire whose codecs are BatchCodecs.
type Batcher interface {
	Wire
	// CheckBatch says why requests with the verb cannot carry several keys on a target with the config, and what to write instead; nil if they can.
	CheckBatch(config any, v Verb, b Batch) error
}

// Batch describes requests with several keys.
type Batch struct {
	Keys  int
	Bytes int           // size of the largest value
	TTL   time.Duration // of the values; 0 for none
	TLS   bool          // the target's connections are encrypted
}

// BatchCodec is a Codec that can carry several keys in one request. Their replies come together.
type BatchCodec interface {
	Codec
	// AppendBatch appends the bytes of req, a get or put of all items of its Batch.
	AppendBatch(dst []byte, req *Request) []byte
	// ParseBatch is Parse for the answer to a batch. It fills one reply per key, in any order. If an error applies to all keys, only the first reply
	// has its Message.
	ParseBatch(b []byte, v Verb, replies []Reply) (n int, err error)
}

// Expirer is a driver whose stores can expire a value by TTL.
type Expirer interface {
	Driver
	// CheckTTL says what is wrong with a TTL from 1 ms to 30 days, and what to write instead; nil if nothing is.
	CheckTTL(ttl time.Duration) error
}

// Dialer is a driver that brings its own blocking client. The executor owns its connections: the client opens each one with the link's Dial, which
// uses TLS or a Unix socket as the plan says, and never by itself. A session has as many clients of each endpoint as it can have ops in flight.
type Dialer interface {
	Driver
	// Dial connects a session to the link's endpoint.
	Dial(ctx context.Context, link Link) (Session, error)
}

// Session is a blocking client of one endpoint. Used by one goroutine at a time.
type Session interface {
	// Do carries out req and fills reply. After an error, the session cannot be used any more. It returns by the deadline of ctx, with ctx's error if
	// that is the reason. It must not use ctx, req or reply after it has returned.
	Do(ctx context.Context, req *Request, reply *Reply) error
	Close() error
}

// Timed is a driver without a transport.
type Timed interface {
	Driver
	// Reply fills reply and returns the time from the request's start to its end, ≥ 0. It is a pure function of config and req.
	Reply(config any, req *Request, reply *Reply) time.Duration
}
