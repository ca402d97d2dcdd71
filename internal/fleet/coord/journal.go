package coord

import (
	"fmt"
	"sync"
	"time"
)

const (
	commitWithin = 50 * time.Millisecond // longest a snapshot waits for other workers' snapshots, to be synced together
	storeWithin  = 30 * time.Second      // a slower commit fails the run
)

// journal keeps snapshots in commits: one write and one sync for everything that has come since the last commit. Only a caller that waits for a commit
// waits for the disk.
type journal struct {
	store   Store
	disk    chan struct{}  // holds one value while the store is in use
	pending sync.WaitGroup // unfinished commits

	mu   sync.Mutex
	open *commit  // the next commit; nil when it is empty
	free [][]byte // buffers of written snapshots, for reuse: a run of days leaves no garbage every second
}

func newJournal(store Store) *journal { return &journal{store: store, disk: make(chan struct{}, 1)} }

// commit is a batch of records that are written and synced together.
type commit struct {
	records []record
	timer   *time.Timer
	done    chan struct{} // closed once err is set
	err     error
}

// record is a worker's snapshot, a coordinator's entry (worker ""), or a probe.
type record struct {
	worker   string
	snapshot []byte
	probe    []byte
}

// add puts a copy of snapshot into the next commit and returns that commit.
func (j *journal) add(worker string, snapshot []byte) *commit {
	j.mu.Lock()
	var kept []byte
	if last := len(j.free) - 1; last >= 0 {
		kept, j.free = j.free[last], j.free[:last]
	}
	j.mu.Unlock()
	return j.put(record{worker: worker, snapshot: append(kept[:0], snapshot...)})
}

// reuse takes back the buffers of written snapshots.
func (j *journal) reuse(records []record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range records {
		if r.snapshot != nil {
			j.free = append(j.free, r.snapshot)
		}
	}
}

// put puts a record into the next commit and returns that commit.
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

// hurry triggers the commit now, without waiting for it: the disk may hang.
func (c *commit) hurry() { c.timer.Reset(0) }

// write carries out a commit, unless another goroutine does or has done so.
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

// close returns once every commit is done, including those whose waiters gave up. After that the store belongs to the caller.
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
