package redis

import (
	"fmt"
	"strconv"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Wait sends a WAIT after each put. The server answers it once enough replicas have the put or the timeout has passed, with the number of replicas
// that have it.
type Wait struct {
	// Replicas is the number of replicas that must have a put before it counts as ok, ≥ 1.
	Replicas int `hcl:"replicas" json:"replicas"`
	// Timeout is how long the server waits for them, ≥ 1 ms.
	Timeout time.Duration `hcl:"timeout" json:"timeout_ns"`
}

// mostWaited bounds the replicas of a WAIT: a reply counts copies, the master's included, up to 16.
const mostWaited = 15

// validate reports values that the server would not accept, or that would let it wait forever.
func (w *Wait) validate() (errs []error) {
	if w.Replicas < 1 || w.Replicas > mostWaited {
		errs = append(errs, fmt.Errorf("wait with replicas = %d: write a number from 1 to %d, or leave wait out", w.Replicas, mostWaited))
	}
	if w.Timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf(`wait with timeout = %q: write how long the server may wait for its replicas, such as "100ms"`, w.Timeout))
	}
	return errs
}

// Confirms implements driver.Confirmer.
func (c *Config) Confirms() (copies int, within time.Duration) {
	if c.Wait == nil {
		return 0, 0
	}
	return 1 + c.Wait.Replicas, c.Wait.Timeout
}

// dialect lists the interfaces that all codecs of this package implement.
type dialect interface {
	driver.BatchCodec
	driver.Layout
	driver.Skimmer
	driver.Resumer
	driver.Redirector
	driver.Aside
}

// waiting is a codec that sends a WAIT after each request that stores a value. It makes one reply of the two.
type waiting struct {
	dialect
	copies int // number of copies that are needed, the master's included
	wait   []byte
	read   reader
	few    [][]byte // the messages for too few replicas, by their number
}

var _ driver.Codec = (*waiting)(nil)

// waits returns the codec with a WAIT after each put, whose replies read reads.
func (w *Wait) waits(c dialect, read reader) driver.Codec {
	x := &waiting{
		dialect: c, copies: 1 + w.Replicas, read: read,
		wait: AppendCommand(nil, "WAIT", strconv.Itoa(w.Replicas), strconv.FormatInt(w.Timeout.Milliseconds(), 10)),
	}
	for n := range w.Replicas {
		x.few = append(x.few, fmt.Appendf(nil, "WAIT: %d of %d replicas had the put within %v", n, w.Replicas, w.Timeout))
	}
	return x
}

// AppendRequest appends a request, and WAIT if it stores a value.
func (c *waiting) AppendRequest(dst []byte, req *driver.Request) []byte {
	dst = c.dialect.AppendRequest(dst, req)
	if req.Verb.Stores() {
		dst = append(dst, c.wait...)
	}
	return dst
}

// Skim implements driver.Skimmer: replies to puts are for Parse.
func (c *waiting) Skim(b []byte, verb driver.Verb, most int) (n, took int) {
	if verb.Stores() {
		return 0, 0
	}
	return c.dialect.Skim(b, verb, most)
}

// Outline implements driver.Skimmer: replies to puts are for Parse.
func (c *waiting) Outline(b []byte, verb driver.Verb) int {
	if verb.Stores() {
		return 0
	}
	return c.dialect.Outline(b, verb)
}

// Parse reads a reply, and for a put the one to its WAIT, which says how many replicas have it.
func (c *waiting) Parse(b []byte, verb driver.Verb, reply *driver.Reply) (int, error) {
	n, err := c.dialect.Parse(b, verb, reply)
	if n == 0 || err != nil || !verb.Stores() {
		return n, err
	}
	r, size, err := c.read(b[n:])
	switch {
	case size == 0 || err != nil:
		return 0, err
	case r.kind == errorReply && reply.Outcome == driver.OK:
		reply.Outcome, reply.Message = driver.Error, r.text
	case r.kind == errorReply:
	case r.kind != integer || r.integer < 0:
		return 0, fmt.Errorf("reply to a redis WAIT: got %s", quote(b[n:n+size]))
	case reply.Outcome == driver.OK:
		reply.Acks = uint8(min(1+r.integer, int64(c.copies)))
		if int(reply.Acks) < c.copies {
			reply.Outcome, reply.Message = driver.QuorumFailed, c.few[reply.Acks-1]
		}
	}
	return n + size, nil
}
