package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/pkg/driver"
)

// guarded wraps a driver's codec. A loop calls codecs only through it.
//
// A loop is not held while it runs the driver's code, which may block or panic: either in a held goroutine ends the process. A panic becomes an error
// of the current connection, which is opened again. Panics of the loop itself are not recovered.
type guarded struct {
	codec      driver.Codec
	layout     driver.Layout // the codec if it implements this interface, else nil; so are the next ones
	skimmer    driver.Skimmer
	asider     driver.Aside
	batcher    driver.BatchCodec
	redirector driver.Redirector
	tagged     driver.Tagged
	resumer    driver.Resumer
	owing      driver.Owing
	leaver     driver.Leaver
	goodbyer   driver.Goodbyer
	hold       *hold
	fault      error // a panic in a call that returns no error; took returns and clears it
}

func newGuarded(c driver.Codec, h *hold) *guarded {
	g := &guarded{codec: c, hold: h}
	g.layout, _ = c.(driver.Layout)
	g.skimmer, _ = c.(driver.Skimmer)
	g.asider, _ = c.(driver.Aside)
	g.batcher, _ = c.(driver.BatchCodec)
	g.redirector, _ = c.(driver.Redirector)
	g.tagged, _ = c.(driver.Tagged)
	g.resumer, _ = c.(driver.Resumer)
	g.owing, _ = c.(driver.Owing)
	g.leaver, _ = c.(driver.Leaver)
	g.goodbyer, _ = c.(driver.Goodbyer)
	return g
}

// done is deferred by each method, after lend.
func (g *guarded) done(err *error) {
	if e := panics.Recovered(recover()); e != nil {
		*err = e
		g.hold.lost()
		return
	}
	g.hold.resume()
}

// took returns the fault and clears it.
func (g *guarded) took() error {
	err := g.fault
	g.fault = nil
	return err
}

func (g *guarded) greet(dst []byte) (out []byte, replies int, err error) {
	g.hold.lend()
	defer g.done(&err)
	out, replies = g.codec.Greet(dst)
	return out, replies, nil
}

// goodbye appends what ends a connection in order; nothing if the driver knows of no such thing.
func (g *guarded) goodbye(dst []byte) (out []byte, err error) {
	if g.goodbyer == nil {
		return dst, nil
	}
	g.hold.lend()
	defer g.done(&err)
	return g.goodbyer.Goodbye(dst), nil
}

func (g *guarded) parseGreeting(b []byte, i int) (n int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.codec.ParseGreeting(b, i)
}

// request appends the bytes of a request; none if there is a fault. So does batch.
func (g *guarded) request(dst []byte, req *driver.Request) (out []byte) {
	out = dst
	g.hold.lend()
	defer g.done(&g.fault)
	return g.codec.AppendRequest(dst, req)
}

// aroundItem is roughly how many bytes a protocol adds to the key and the value of an item of a batch.
const aroundItem = 32

// batch appends the bytes of a request with several items. Its buffer grows once for all of them: doubling it value by value would leave more garbage
// than it holds.
func (g *guarded) batch(dst []byte, req *driver.Request) (out []byte) {
	room := 0
	for i := range req.Batch {
		room += aroundItem + len(req.Batch[i].Key)
		if req.Verb.Stores() {
			room += req.Batch[i].Value.Size
		}
	}
	dst = slices.Grow(dst, room)
	out = dst
	g.hold.lend()
	defer g.done(&g.fault)
	return g.batcher.AppendBatch(dst, req)
}

func (g *guarded) offsets(req *driver.Request) (keyAt, valueAt int) {
	g.hold.lend()
	defer g.done(&g.fault)
	return g.layout.Offsets(req)
}

func (g *guarded) parse(b []byte, v driver.Verb, reply *driver.Reply) (n int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.codec.Parse(b, v, reply)
}

// parseRun adds complete replies to got until that holds most. It stops at one in which the target failed: failed is true, and reply is that one. One
// guard for all of them costs less than one for each.
func (g *guarded) parseRun(b []byte, v driver.Verb, most int, checked bool, reply *driver.Reply, got *answers) (took int, failed bool, err error) {
	g.hold.lend()
	defer g.done(&err)
	for got.n < most && took < len(b) {
		n, err := g.codec.Parse(b[took:], v, reply)
		if n == 0 || err != nil {
			return took, false, err
		}
		took += n
		got.add(reply.Outcome, 1)
		if checked && foreign(v, reply) {
			got.foreign++
		}
		if reply.Outcome.Failed() {
			got.failed++
			return took, true, nil
		}
	}
	return took, false, nil
}

// parseHeaders is parseRun for gets of checked values. It also adds the header of each reply, an empty one if the value is not loadgen's.
func (g *guarded) parseHeaders(b []byte, most int, headers *[]driver.Header, reply *driver.Reply, got *answers) (took int, failed bool, err error) {
	g.hold.lend()
	defer g.done(&err)
	for got.n < most && took < len(b) {
		n, err := g.codec.Parse(b[took:], driver.Get, reply)
		if n == 0 || err != nil {
			return took, false, err
		}
		took += n
		got.add(reply.Outcome, 1)
		var h driver.Header
		if reply.Outcome == driver.OK {
			var ours bool
			if h, ours = reply.Header(); !ours {
				got.foreign++
			}
		}
		*headers = append(*headers, h)
		if reply.Outcome.Failed() {
			got.failed++
			return took, true, nil
		}
	}
	return took, false, nil
}

func (g *guarded) parseBatch(b []byte, v driver.Verb, replies []driver.Reply) (n int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.batcher.ParseBatch(b, v, replies)
}

func (g *guarded) resume(b []byte, p *driver.Progress) (whole bool, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.resumer.Resume(b, p)
}

func (g *guarded) parseAsking(b []byte) (n int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.redirector.ParseAsking(b)
}

func (g *guarded) aside(b []byte) (n int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.asider.Aside(b)
}

func (g *guarded) skim(b []byte, v driver.Verb, most int) (n, took int, err error) {
	g.hold.lend()
	defer g.done(&err)
	n, took = g.skimmer.Skim(b, v, most)
	return n, took, nil
}

func (g *guarded) outline(b []byte, v driver.Verb) (size int, err error) {
	g.hold.lend()
	defer g.done(&err)
	return g.skimmer.Outline(b, v), nil
}

func (g *guarded) tag(b []byte) (id uint32, ok bool, err error) {
	g.hold.lend()
	defer g.done(&err)
	id, ok = g.tagged.Tag(b)
	return id, ok, nil
}

// owed appends what the endpoint is owed, unless it has taken leave.
func (g *guarded) owed(dst []byte) (out []byte, left bool, err error) {
	out = dst
	g.hold.lend()
	defer g.done(&err)
	if g.leaver != nil && g.leaver.Left() {
		return dst, true, nil
	}
	return g.owing.AppendOwed(dst), false, nil
}

// connection returns the codec for a session's new connection.
func (g *guarded) connection(endpoint string, session int) (own *guarded, err error) {
	stateful, ok := g.codec.(driver.Stateful)
	if !ok {
		return g, nil
	}
	g.hold.lend()
	defer g.done(&err)
	c, err := stateful.Connection(endpoint, session)
	if err != nil {
		return nil, err
	}
	return newGuarded(c, g.hold), nil
}

func (g *guarded) redirect(message []byte) (addr []byte, ask, ok bool, err error) {
	g.hold.lend()
	defer g.done(&err)
	addr, ask, ok = g.redirector.Redirect(message)
	return addr, ask, ok, nil
}

// A session whose driver panics goes on with a new connection up to mostPanics times within panicWindow. One more, and the step fails.
const (
	mostPanics  = 3
	panicWindow = int64(time.Minute)
)

// panicked records an error of the session's driver if it is a panic.
func (l *loop) panicked(s *session, err error, now int64) {
	var p *panics.Error
	if !errors.As(err, &p) {
		return
	}
	l.hold.release() // a logger may wait
	if l.panics == nil {
		l.panics = map[*session][]int64{}
	}
	times := l.panics[s]
	if len(times) == mostPanics {
		if now-times[0] < panicWindow && l.fault == nil {
			l.fault = fmt.Errorf("session %d: %d panics within a minute: %w: this is a bug in the driver", s.id, mostPanics+1, p)
			l.halt.CompareAndSwap(goOn, drain)
		}
		times = times[1:]
	}
	l.panics[s] = append(times, now)
	if l.logged++; l.logged <= mostPanics && l.log != nil {
		l.log.Error("driver panicked", slog.Int("session", s.id), slog.String("value", p.Value), slog.String("stack", string(p.Stack)))
	}
}
