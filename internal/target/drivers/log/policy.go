package log

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// often says how often a log syncs if its entries are acknowledged before they are durable. One of its fields is above 0.
type often struct {
	entries uint64
	bytes   uint64
	every   time.Duration
}

// oftenOf reads sync_every: a time, a size or a number of entries.
func oftenOf(text string) (o often, err error) {
	if o.entries, err = strconv.ParseUint(text, 10, 32); err != nil {
		o.entries = 0
		if o.bytes = sizeOf(text); o.bytes == 0 {
			o.every, _ = time.ParseDuration(text)
		}
	}
	if o == (often{}) || o.every != 0 && (o.every < time.Millisecond || o.every > time.Hour) {
		return o, fmt.Errorf(`sync_every is %q; write a time from "1ms" to "1h", a size such as "1MiB", or a number of entries such as 100`, text)
	}
	return o, nil
}

// sizeOf reads a size of whole units; 0 for anything else.
func sizeOf(text string) uint64 {
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, _ := strconv.ParseUint(number, 10, 16)
			return n << (10 * (i + 1))
		}
	}
	return 0
}

// String describes the interval in the result.
func (o often) String() string {
	switch {
	case o.every > 0:
		return "every " + o.every.String()
	case o.bytes > 0:
		return "every " + driver.Size(o.bytes).String()
	}
	return "every " + strconv.FormatUint(o.entries, 10) + " entries"
}

// storing is a writer or a log that acknowledges before it syncs.
type storing interface {
	Store(p []byte) (uint64, error)
}

// policy syncs a log from time to time, and accounts for the entries at risk in between: those that were acknowledged, and for which no sync that
// began afterwards has ended.
type policy struct {
	often
	sync  func() error
	fail  func(error) // called with the error of a failed sync
	stop  chan struct{}
	ended bool
	done  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	acked  count
	begun  count // entries acknowledged when the last sync began
	synced count // entries acknowledged before the last finished sync began
	since  time.Time
	first  []mileage // the first entry after the beginning of each sync, if it is at risk; the oldest first
	risk   localfile.AtRisk
	spent  float64 // seconds that the means cover
	area   [2]float64
}

// count counts entries and their bytes.
type count struct{ entries, bytes uint64 }

// mileage holds the time at which an entry was acknowledged.
type mileage struct {
	entry uint64
	at    time.Time
}

func newPolicy(o often, sync func() error, fail func(error)) *policy {
	p := &policy{often: o, sync: sync, fail: fail, stop: make(chan struct{})}
	if o.every > 0 {
		p.done.Go(p.run)
	}
	return p
}

// run syncs at the policy's times until end is called.
func (p *policy) run() {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			if err := p.force(); err != nil {
				p.fail(err)
				return
			}
		}
	}
}

// end makes the last sync, and returns what was at risk during the phase. No session may be running.
func (p *policy) end() localfile.AtRisk {
	if p.ended {
		return p.risk
	}
	p.ended = true
	close(p.stop)
	p.done.Wait()
	began := time.Now()
	if err := p.force(); err != nil {
		p.fail(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.risk.LastSyncSeconds = time.Since(began).Seconds()
	if p.spent > 0 {
		p.risk.EntriesMean, p.risk.BytesMean = p.area[0]/p.spent, p.area[1]/p.spent
	}
	return p.risk
}

// pass adds the time since the last change to the means. The lock is held.
func (p *policy) pass(now time.Time) {
	if !p.since.IsZero() {
		t := now.Sub(p.since).Seconds()
		p.spent += t
		p.area[0] += t * float64(p.acked.entries-p.synced.entries)
		p.area[1] += t * float64(p.acked.bytes-p.synced.bytes)
	}
	p.since = now
}

// took records an acknowledged entry of n bytes, and syncs if one is due. It returns the duration of the sync, 0 without one.
func (p *policy) took(n int) (synced time.Duration, err error) {
	p.mu.Lock()
	now := time.Now()
	p.pass(now)
	p.acked.entries++
	p.acked.bytes += uint64(n)
	if len(p.first) == 0 || p.first[len(p.first)-1].entry <= p.begun.entries {
		p.first = append(p.first, mileage{p.acked.entries, now})
	}
	p.risk.EntriesMax = max(p.risk.EntriesMax, p.acked.entries-p.synced.entries)
	p.risk.BytesMax = max(p.risk.BytesMax, p.acked.bytes-p.synced.bytes)
	due := p.entries > 0 && p.acked.entries-p.begun.entries >= p.entries || p.bytes > 0 && p.acked.bytes-p.begun.bytes >= p.bytes
	if due {
		p.begun = p.acked
	}
	p.mu.Unlock()
	if due {
		err = p.force()
		synced = time.Since(now)
	}
	return synced, err
}

// force syncs. Afterwards, entries acknowledged before the call are no longer at risk.
func (p *policy) force() error {
	p.mu.Lock()
	covers := p.acked
	p.begun = covers
	p.mu.Unlock()
	if err := p.sync(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.pass(now)
	for len(p.first) > 0 && p.first[0].entry <= covers.entries {
		p.risk.SecondsMax = max(p.risk.SecondsMax, now.Sub(p.first[0].at).Seconds())
		p.first = p.first[1:]
	}
	if covers.entries > p.synced.entries {
		p.synced = covers
	}
	return nil
}

// lazyWriter acknowledges an entry once its log has stored it, and syncs as the policy says.
type lazyWriter struct {
	storing
	policy *policy
	waited time.Duration
}

// Append implements appender.
func (w *lazyWriter) Append(p []byte) (uint64, error) {
	n, err := w.Store(p)
	if err == nil {
		var synced time.Duration
		synced, err = w.policy.took(len(p))
		w.waited += synced
	}
	return n, err
}

// Waited implements waiter. An entry that no sync follows waits for none.
func (w *lazyWriter) Waited() time.Duration { return w.waited }
