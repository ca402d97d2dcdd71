package pmlog

import (
	"math/bits"
	"sync"
	"time"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// Group says when a log whose writers wait together syncs. With the zero value, it syncs as soon as nothing else is being synced.
type Group struct {
	MaxDelay time.Duration // how long the writer that is going to sync waits for others, ≥ 0
	MaxBytes int64         // a group with that many bytes waits for no others; 0 for no limit
}

// GroupSizes counts syncs by the number of pieces that they made durable: the first counts those of one piece, the second of 2, then of 3 and 4, of 5
// to 8, and so on.
type GroupSizes [maxUnsyncedBits + 1]uint64

// maxUnsyncedBits is how many bits the number of pieces that wait for a sync has.
const maxUnsyncedBits = 24

// group makes the writers of a log wait together. One of them, the leader, syncs for all that have stored so far, while others store pieces for the
// next sync. So there are at most two groups that a crash can take pieces from, and two mediums for them in turn.
type group struct {
	log interface {
		// cut ends the group that is being stored. The log is locked.
		cut()
		// force waits until the group that was cut last is durable. The log is not locked, and no other force is under way.
		force() error
	}
	mu    *sync.Mutex // of the log; guards all that follows
	limit Group
	ended *sync.Cond // a sync has ended
	timer *time.Timer
	large chan struct{} // tells a leader that waits for others that there are enough bytes

	mediums [2]pmem.Medium
	turn    int    // the medium to store to
	stored  uint64 // counts pieces
	durable uint64 // how many pieces are durable
	bytes   int64  // stored since the last cut
	syncing bool   // there is a leader
	gathers bool   // the leader waits for others
	sizes   GroupSizes
	err     error // the first error; after it, nothing more is written
}

func newGroup(mu *sync.Mutex, data Region) *group {
	g := &group{mu: mu, ended: sync.NewCond(mu), timer: time.NewTimer(time.Hour), large: make(chan struct{}, 1)}
	g.timer.Stop()
	for i := range g.mediums {
		g.mediums[i] = data.Writer()
	}
	return g
}

// medium returns the medium to store the next piece to.
func (g *group) medium() pmem.Medium { return g.mediums[g.turn] }

// store counts a piece of n bytes that has been stored, or the error of doing so.
func (g *group) store(n int64, err error) error {
	if err != nil {
		g.err = err
		return err
	}
	g.stored++
	g.bytes += n
	if g.gathers && g.limit.MaxBytes > 0 && g.bytes >= g.limit.MaxBytes {
		g.gathers = false
		g.large <- struct{}{}
	}
	return nil
}

// wait returns once that many pieces are durable, having synced them if nobody else does.
func (g *group) wait(pieces uint64) error {
	for g.durable < pieces {
		switch {
		case g.err != nil:
			return g.err
		case g.syncing:
			g.ended.Wait()
		default:
			g.lead()
		}
	}
	return nil
}

// lead makes all pieces durable that are stored now, or that others store while it waits for them.
func (g *group) lead() {
	g.syncing = true
	g.gather()
	upto := g.stored
	g.bytes = 0
	g.log.cut()
	g.mu.Unlock()
	err := g.log.force()
	g.mu.Lock()
	g.syncing = false
	if err != nil {
		g.err = err
	} else {
		g.sizes[bits.Len64(upto-g.durable-1)]++
		g.durable = upto
	}
	g.ended.Broadcast()
}

// gather waits for others, as the limits say.
func (g *group) gather() {
	if g.limit.MaxDelay == 0 || g.limit.MaxBytes > 0 && g.bytes >= g.limit.MaxBytes {
		return
	}
	g.gathers = true
	g.timer.Reset(g.limit.MaxDelay)
	g.mu.Unlock()
	enough := false
	select {
	case <-g.timer.C:
	case <-g.large:
		enough = true
	}
	g.mu.Lock()
	if !enough && !g.gathers { // enough bytes came just as the time was over
		<-g.large
	}
	g.gathers = false
	g.timer.Stop()
}

// still waits until nothing is being synced, so that the log can be changed otherwise.
func (g *group) still() error {
	for g.syncing {
		g.ended.Wait()
	}
	return g.err
}

// forget counts all stored pieces as durable, because the log was cleared or its header records them.
func (g *group) forget() {
	g.durable, g.bytes = g.stored, 0
	g.ended.Broadcast()
}
