package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// store is the log files of a worker's sessions in a phase.
type store struct {
	cfg      *Config
	site     localfile.Site
	form     form
	root     *localfile.Dir // directory of the files
	files    []*file
	sessions []*session
	account  localfile.Log

	mu      sync.Mutex
	failure string
}

// file is one log, with the store's records about it.
type file struct {
	name     string
	volume   volume
	regions  []*pmem.File
	before   uint64 // fences on its regions before this phase
	sessions []*session
	older    atomic.Uint64 // entries of earlier phases, in a log that is read from its beginning
	again    bool          // its places are reused, so that it is never full
	fresh    bool          // it did not exist in an earlier phase
	slots    []slot        // slots of an array
	policy   *policy       // nil if an op ends when its entry is durable
	resets   atomic.Uint64 // number of times that it was cleared because it was full

	clearing sync.Mutex // held while clearing the full log
}

// slot holds the store's records about one slot of an array. Its lock guards its fields if sessions share the slot. It has a cache line to itself,
// because its neighbours are other sessions'.
type slot struct {
	sync.Mutex
	acked  mark // the entry in it, 0 for none
	issued mark // the last entry begun
	erases bool // the last operation begun empties it
	known  bool // an operation of this phase has changed it
	_      [32]byte
}

// Open implements localfile.Driver.
func (Driver) Open(ctx context.Context, config any, site localfile.Site) (localfile.Store, error) {
	if site.Wrote != nil {
		ctx = pmem.WithProgress(ctx, site.Wrote)
	}
	for n := 1; ; n++ {
		s, vanished, err := tryOpen(ctx, config.(*Config), site)
		if err == nil {
			return s, nil
		}
		if !vanished || n == localfile.Attempts {
			return nil, err
		}
	}
}

// tryOpen is one attempt of Open. vanished says that another store has deleted the directory in the meantime.
func tryOpen(ctx context.Context, c *Config, site localfile.Site) (s *store, vanished bool, err error) {
	s = &store{cfg: c, site: site}
	d, err := c.design(site)
	if err != nil {
		return nil, false, err
	}
	if s.root, err = localfile.Enter(site.Root, c.Dir); err != nil {
		return nil, false, err
	}
	if err := s.openFiles(ctx, &d); err != nil {
		vanished = s.root.Vanished()
		_, closing := s.Close()
		return nil, vanished, errors.Join(err, closing, s.Remove())
	}
	s.describe()
	return s, false, nil
}

// openFiles creates the new logs, and opens the others.
func (s *store) openFiles(ctx context.Context, d *design) error {
	s.form = d.form
	for from := s.site.From; from < s.site.To; from += d.sharing {
		if d.new(s.cfg, &s.site, from) {
			if err := s.discard(s.fileName(from)); err != nil {
				return err
			}
		}
	}
	if err := s.checkRoom(d); err != nil {
		return err
	}
	for from := s.site.From; from < s.site.To; from += d.sharing {
		if err := s.openFile(ctx, d, from); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens the log whose first session is from.
func (s *store) openFile(ctx context.Context, d *design, from int) error {
	f := &file{name: s.fileName(from), fresh: d.new(s.cfg, &s.site, from)}
	size := d.size
	if !f.fresh {
		size = 0 // it exists
	}
	var err error
	f.volume, f.regions, err = s.form.open(ctx, s.root.Root, f.name, size, s.cfg.mode())
	switch {
	case errors.Is(err, pmem.ErrPoisoned), errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w%s", err, remedy(err))
	case err != nil && f.fresh:
		return localfile.Unmade(err, s.root.Name())
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, pmem.ErrLocked), errors.Is(err, pmlog.ErrCorrupt):
		return fmt.Errorf("%w; let nobody else change files below --log-root", err)
	case err != nil:
		return err
	}
	s.files = append(s.files, f)
	if err := s.form.Kind.fits(f.regions[0].Alignment()); err != nil {
		return fmt.Errorf("%s on %s: %w", f.name, f.regions[0].Place(), err)
	}
	if s.cfg.SyncEvery != nil {
		every, err := oftenOf(*s.cfg.SyncEvery)
		if err != nil {
			return err
		}
		f.policy = newPolicy(every, f.volume.(groups).Sync, func(err error) { s.failed(fmt.Errorf("%s: %w%s", f.name, err, remedy(err))) })
	}
	if err := f.look(s); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for i := from; i < from+d.sharing; i++ {
		one, err := newSession(s, f, i, i-from, d.sharing)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		f.sessions = append(f.sessions, one)
		s.sessions = append(s.sessions, one)
	}
	f.before = f.fences()
	return nil
}

// fences returns the number of fences on the log's files. No session may be running.
func (f *file) fences() (n uint64) {
	if v, ok := f.volume.(segmentsVolume); ok {
		return v.of.fences()
	}
	for _, r := range f.regions {
		n += r.Fences()
	}
	return n
}

// look reads what an earlier phase has left in the log.
func (f *file) look(s *store) error {
	f.again = s.form.Layout == layoutArray || s.form.Layout == layoutRaw
	if s.form.Layout == layoutArray {
		f.slots = make([]slot, s.form.Slots)
		for i := range f.slots {
			f.slots[i].known = f.fresh
		}
	}
	if f.again || f.fresh {
		return nil
	}
	n, err := each(f.volume.reader(0, 1), func([]byte) {})
	f.older.Store(n)
	return err
}

// discard deletes what another run has left under a log's names, unless somebody uses it.
func (s *store) discard(name string) error {
	for _, name := range namesOf(name) {
		info, err := s.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return s.foreign(name)
		}
		if info.Size() > 0 {
			if err := s.checkLeft(name); err != nil {
				return err
			}
		}
		if err := s.root.Remove(name); err != nil {
			return fmt.Errorf("delete what an earlier run has left: %w", localfile.Unmade(err, s.root.Name()))
		}
	}
	return nil
}

// checkLeft returns an error if a file is in use, or never held a log.
func (s *store) checkLeft(name string) error {
	f, err := pmem.OpenIn(s.root.Root, name, pmem.None)
	if errors.Is(err, pmem.ErrLocked) {
		return fmt.Errorf("delete what an earlier run has left: %w: let the other run end, or write another --log-root, or another dir in the target", err)
	}
	if err != nil {
		return fmt.Errorf("delete what an earlier run has left: %w: move it away, or write another --log-root, or another dir in the target", err)
	}
	first := make([]byte, min(f.Size(), beginning))
	_, err = f.ReadAt(first, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !ours(first) {
		return s.foreign(name)
	}
	return nil
}

// foreign returns the error for a file that has a log's name but is not one.
func (s *store) foreign(name string) error {
	return fmt.Errorf("%s has the name of a log file and is not one: move it away, or write another --log-root, or another dir in the target", s.path(name))
}

// describe says what the files are.
func (s *store) describe() {
	first := s.files[0].regions[0]
	place := first.Place()
	s.account = localfile.Log{
		Layout: s.cfg.Layout, SyncAsked: s.cfg.Sync, SyncUsed: string(first.Mode()), Instruction: instructions(first, &s.form.Kind),
		FileSystem: place.String(), Caveats: pmem.Caveats(first.Mode(), place), Clear: s.clears(),
		Prealloc: s.cfg.Prealloc, Files: len(s.files), FileBytes: first.Size(), GroupCommit: s.cfg.GroupCommit.String(), Batches: []localfile.Batch{},
	}
	if first.Mode() == pmem.MapSync || first.Mode().Syncs() {
		s.account.Durable = place.Keeps() && s.cfg.SyncEvery == nil
	}
	if s.form.Group == nil { // with one, writers wait for each other, which takes long enough
		s.account.Untimed = pmem.Untimed(first.Mode(), place)
	}
	if p := s.files[0].policy; p != nil {
		s.account.SyncUsed += " " + p.String()
	}
}

// instructions names the instructions that bring entries to memory. They may differ between the smallest and the largest entry.
func instructions(f *pmem.File, k *kind) string {
	large, small := f.Instruction(k.Size), f.Instruction(k.least())
	if large != small {
		return large + ", or " + small
	}
	return large
}

// clears says what happens to a full log.
func (s *store) clears() string {
	switch s.cfg.Layout {
	case layoutRaw:
		return "begins again"
	case layoutArray:
		if s.cfg.Erase {
			return "each entry, inside"
		}
		return "slots are used again"
	}
	return s.cfg.Full
}

// Device implements localfile.Placed.
func (s *store) Device() localfile.Device {
	first := s.files[0].regions[0]
	d := pmem.DiskOf(first.Mode(), first.Place())
	return localfile.Device{Name: d.Device, Number: d.Number, NoBytes: d.NoBytes, NoFlushes: d.NoFlushes, Counts: d.Counts}
}

// Session implements localfile.Store.
func (s *store) Session(i int) (localfile.Session, error) {
	if i < s.site.From || i >= s.site.To {
		return nil, fmt.Errorf("session %d is not one of %d to %d", i, s.site.From, s.site.To-1)
	}
	return s.sessions[i-s.site.From], nil
}

// Log implements localfile.Store.
func (s *store) Log() localfile.Log {
	l := s.account
	if place := s.files[0].regions[0].Place(); !place.Volatile() && l.SyncUsed != string(pmem.MapSync) &&
		slices.ContainsFunc(s.sessions, func(one *session) bool { return one.reads }) {
		l.Caveats = append(slices.Clip(l.Caveats), "reads came from the kernel's page cache, which has what was written: they say nothing of "+place.Device)
	}
	s.lastSyncs()
	for _, f := range s.files {
		if f.policy != nil {
			risk := f.policy.end()
			l.AtRisk = l.AtRisk.Add(&risk)
		}
		l.Resets += f.resets.Load()
		l.Forces += f.fences() - f.before
		if s.form.Group != nil {
			l.Batches = localfile.AddBatches(l.Batches, batches(f.volume.(groups).Groups()))
		}
	}
	for _, one := range s.sessions {
		l.Entries += one.acked
		l.Bytes += one.bytes
		if one.turns != nil {
			l.Resets += one.turns.again
		}
	}
	if l.Prealloc == string(pmem.Reserved) && !s.unwritten(&l) {
		l.Caveats = append(slices.Clip(l.Caveats), "some of the blocks that fallocate reserved were written more than once: only the first time does the file system note that")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.Failure = s.failure
	return l
}

// lastSyncs makes the last syncs of logs whose entries may be at risk, all at the same time, as sessions that sync for themselves would.
func (s *store) lastSyncs() {
	var wait sync.WaitGroup
	for _, f := range s.files {
		if f.policy != nil {
			wait.Go(func() { f.policy.end() })
		}
	}
	wait.Wait()
}

// unwritten reports whether each block that an entry was written to had been new.
func (s *store) unwritten(l *localfile.Log) bool {
	if t := s.sessions[0].turns; t != nil && t.renewed {
		return true
	}
	return s.cfg.Full == rotate || s.cfg.Layout != layoutArray && l.Resets == 0 && !slices.ContainsFunc(s.files, func(f *file) bool { return !f.fresh })
}

// failed records why the first session failed.
func (s *store) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == "" {
		s.failure = err.Error()
	}
}

// Close implements localfile.Store.
func (s *store) Close() ([]byte, error) {
	var errs []error
	s.lastSyncs()
	for _, f := range s.files {
		if err := f.volume.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", f.name, err))
		}
	}
	s.mu.Lock()
	failed := s.failure != ""
	s.mu.Unlock()
	switch err := errors.Join(errs...); {
	case failed && s.cfg.SyncEvery != nil: // entries that were at risk may be missing, and it is unknown which ones were
		return nil, nil
	case !failed && err != nil:
		return nil, err
	}
	return s.claim()
}

// Remove implements localfile.Store.
func (s *store) Remove() error {
	var errs []error
	for _, f := range s.files {
		for _, name := range namesOf(f.name) {
			if err := s.root.Remove(name); !errors.Is(err, fs.ErrNotExist) { // another phase's store may have removed it
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, s.root.Leave())...)
}
