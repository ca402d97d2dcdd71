package coord

import (
	"fmt"
	"sync"
	"time"
)

const (
	commitWithin = 50 * time.Millisecond // a snapshot waits at most so long for those of other workers, to be synced with them
	storeWithin  = 30 * time.Second      // a commit that takes longer fails the run
)

// journal keeps snapshots in commits: one write and one sync for all that came since the last. Nobody but who waits for a commit waits for
// the disk.
type journal struct {
	store   Store
	disk    chan struct{}  // holds one while the store is in use
	pending sync.WaitGroup // commits that are not done

	mu   sync.Mutex
	open *commit  // of what has come since the last; nil when nothing has
	free [][]byte // of snapshots that were written, for later ones: a run of days leaves no garbage each second
}

func newJournal(store Store) *journal { return &journal{store: store, disk: make(chan struct{}, 1)} }

// commit is snapshots that are written and synced together.
type commit struct {
	records []record
	timer   *time.Timer
	done    chan struct{} // closed once err is set
	err     error
}

// record is a snapshot of a worker, or a probe.
type record struct {
	worker   string
	snapshot []byte
	probe    []byte
}

// add puts a snapshot, of which it keeps a copy, into the next commit and returns that.
func (j *journal) add(worker string, snapshot []byte) *commit {
	j.mu.Lock()
	var kept []byte
	if last := len(j.free) - 1; last >= 0 {
		kept, j.free = j.free[last], j.free[:last]
	}
	j.mu.Unlock()
	return j.put(record{worker: worker, snapshot: append(kept[:0], snapshot...)})
}

// reuse takes the memory of snapshots back that were written.
func (j *journal) reuse(records []record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		if r.snapshot != nil {
			j.free = append(j.free, r.snapshot)
		}
	}
}

// put puts a record into the next commit and returns that.
func (j *journal) put(r record) *commit {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open == nil {
		c := &commit{done: make(chan struct{})}
		j.pending.Add(1)
		c.timer = time.AfterFunc(commitWithin, func() { j.write(c) })
		j.open = c
	}
	j.open.records = append(j.open.records, r)
	return j.open
}

// hurry has the commit done now. It does not wait for that: the disk may hang.
func (c *commit) hurry() { c.timer.Reset(0) }

// write does a commit, unless somebody else does or has done.
func (j *journal) write(c *commit) {
	j.mu.Lock()
	mine := j.open == c
	if mine {
		j.open = nil
	}
	j.mu.Unlock()
	if !mine {
		return
	}
	j.disk <- struct{}{}
	c.err = j.keep(c.records)
	<-j.disk
	j.reuse(c.records)
	close(c.done)
	j.pending.Done()
}

// close returns once every commit is done, also those that nobody has waited for to the end: the store is somebody else's then.
func (j *journal) close() {
	j.mu.Lock()
	open := j.open
	j.mu.Unlock()
	if open != nil {
		j.write(open)
	}
	j.pending.Wait()
}

func (j *journal) keep(records []record) error {
	for _, r := range records {
		err := error(nil)
		if r.probe != nil {
			err = j.store.Observe(r.probe)
		} else {
			err = j.store.Append(r.worker, r.snapshot)
		}
		if err != nil {
			return err
		}
	}
	return j.store.Sync()
}

// wait returns once the commit is done.
func (c *commit) wait() error {
	select {
	case <-c.done:
		return c.err
	case <-time.After(storeWithin):
		return fmt.Errorf("not kept after %v", storeWithin)
	}
}
