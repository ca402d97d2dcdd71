package engine

import (
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/pkg/driver"
)

// gate holds a loop's ops back while they would exceed the rates that the worker's policy allows. Due ops wait at the gate as they would for a later
// due time. It takes 10 ms' worth from the process's budget at a time, so that loops hardly ever contend for it. A nil gate is always open.
//
// Requests are charged before they are sent: an op's first requests before it begins, its further ones one by one. Bytes are charged after they have
// moved, so the bytes in flight may exceed the limit; the load then waits until the excess is paid off.
type gate struct {
	l        *loop
	requests quota
	bytes    quota
	width    int64         // the most requests that an op begins with
	paid     uint64        // bytes of the loop's recorder that were charged
	held     timers        // ops that were due and wait, the earliest first
	further  []heldRequest // requests that wait; timers of kind furtherRequest hold their index
	spare    []int32       // free indices of further

	short *quota // the quota that due ops wait for; nil if nothing waits
	since int64  // on the run clock; waits before then are in short.waited
}

// quota is a loop's part of one of the budget's buckets.
type quota struct {
	of     *policy.Bucket // nil if there is no limit
	apart  int64          // the run clock's zero on the bucket's clock
	left   int64          // negative if more was used than there was
	at     int64          // on the run clock: when there may be more
	waited int64          // how long due ops waited for this quota in this step
}

// heldRequest is a request of an op's program that waits for the gate.
type heldRequest struct {
	st  *opState
	req driver.Request
}

// newGate returns the gate of a loop whose run clock's zero is at apart on the budget's clock; nil without a budget.
func newGate(b *policy.Budget, apart int64, l *loop) *gate {
	if b == nil {
		return nil
	}
	return &gate{l: l, width: 1, requests: quota{of: b.Requests, apart: apart}, bytes: quota{of: b.Bytes, apart: apart}}
}

// has reports whether n units are left, or could be taken from the bucket.
func (q *quota) has(n, now int64) bool {
	if q.of == nil || q.left >= n {
		return true
	}
	if now < q.at {
		return false
	}
	more := max(n-q.left, q.of.Share())
	at, ok := q.of.Take(more, now+q.apart)
	if !ok {
		q.at = at - q.apart
		return false
	}
	q.left += more
	return true
}

// giveBack returns what is left to the bucket.
func (q *quota) giveBack() {
	if q.of != nil {
		q.of.Return(q.left)
	}
	q.left, q.at, q.waited = 0, 0, 0
}

// open reports whether an op that is due may start now. Call it only if one is due.
func (g *gate) open(now int64) bool { return g == nil || g.has(g.width, now) }

// has reports whether that many requests may be sent now. If not, the caller waits for the gate.
func (g *gate) has(requests, now int64) bool {
	g.pay()
	var short *quota
	switch {
	case !g.bytes.has(1, now):
		short = &g.bytes
	case !g.requests.has(requests, now):
		short = &g.requests
	}
	g.wait(short, now)
	return short == nil
}

// wait notes which quota is short from now on; nil if none is.
func (g *gate) wait(short *quota, now int64) {
	if g.short != nil {
		g.short.waited += max(0, now-g.since) // answers of clients that block come with earlier times
	}
	g.short, g.since = short, max(now, g.since)
}

// pay charges the bytes that have moved since the last call.
func (g *gate) pay() {
	if g == nil || g.bytes.of == nil {
		return
	}
	var moved uint64
	for _, o := range g.l.rec.Ops {
		if o != nil {
			moved += o.In + o.Out
		}
	}
	g.bytes.left -= int64(moved - g.paid)
	g.paid = moved
}

// stray charges received bytes that belong to no op's reply.
func (g *gate) stray(n int) {
	if g != nil {
		g.bytes.left -= int64(n)
	}
}

// renewed tells the gate that the loop has begun an empty recorder.
func (g *gate) renewed() {
	if g != nil {
		g.paid = 0
	}
}

// pass charges an op's requests. The gate must be open.
func (g *gate) pass() {
	if g != nil {
		g.requests.left -= g.width
	}
}

// admit lets up to n ops pass and returns how many.
func (g *gate) admit(n int, now int64) int {
	if g == nil {
		return n
	}
	for i := range n {
		if !g.open(now) {
			return i
		}
		g.pass()
	}
	return n
}

// began corrects the charge of an op that passed to the number of requests that it began with.
func (g *gate) began(requests int) {
	if g != nil {
		g.requests.left += g.width - int64(requests)
	}
}

// refund returns the charge for requests that passed and will not be sent.
func (g *gate) refund(requests int) {
	if g != nil {
		g.requests.left += int64(requests)
	}
}

// hold keeps a due op, as a timer that fires when the gate opens.
func (g *gate) hold(due int64, kind timerKind, arg, n int32) { g.held.set(due, kind, arg, n) }

// holds keeps a further request of an op if it may not be sent now, and reports that; otherwise it lets the request pass.
func (g *gate) holds(st *opState, req *driver.Request, now int64) bool {
	if g == nil {
		return false
	}
	if g.has(1, now) {
		g.requests.left--
		return false
	}
	if len(g.spare) == 0 {
		g.spare = append(g.spare, int32(len(g.further)))
		g.further = append(g.further, heldRequest{})
	}
	last := len(g.spare) - 1
	i := g.spare[last]
	g.spare = g.spare[:last]
	g.further[i] = heldRequest{st, *req}
	g.hold(now, furtherRequest, i, 1)
	return true
}

// release returns a request that was held.
func (g *gate) release(i int32) heldRequest {
	g.spare = append(g.spare, i)
	return g.further[i]
}

// opens reports whether something is held that may go on now.
func (g *gate) opens(now int64) bool {
	return g != nil && g.held.next() != never && g.open(now)
}

// next returns when the gate may release what it holds.
func (g *gate) next() int64 {
	if g == nil || g.held.next() == never {
		return never
	}
	return g.after(0)
}

// after returns when an op that is due at a time may start, as far as is known.
func (g *gate) after(due int64) int64 {
	if g == nil || g.short == nil {
		return due
	}
	return max(due, g.short.at)
}

// drop forgets the held timers of a kind, and returns the sum of their n.
func (g *gate) drop(kind timerKind) int {
	if g == nil {
		return 0
	}
	return g.held.drop(kind)
}

// begin readies the gate for a step whose ops begin with at most width requests.
func (g *gate) begin(width int) {
	if g != nil {
		*g = gate{l: g.l, width: int64(width), requests: quota{of: g.requests.of, apart: g.requests.apart}, bytes: quota{of: g.bytes.of, apart: g.bytes.apart}}
	}
}

// close ends the step and returns what is left to the budget. The results are how long due ops waited for requests and for bytes.
func (g *gate) close(now int64) (requests, bytes int64) {
	if g == nil {
		return 0, 0
	}
	g.pay()
	g.wait(nil, now)
	requests, bytes = g.requests.waited, g.bytes.waited
	g.requests.giveBack()
	g.bytes.giveBack()
	return requests, bytes
}
