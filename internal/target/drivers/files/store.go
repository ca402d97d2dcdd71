package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// store is the directory of a worker's sessions in a phase.
type store struct {
	site     localfile.Site
	kernel   kernel
	syncs    bool
	parent   *localfile.Dir
	name     string // name of the directory in parent
	root     *os.Root
	lock     *os.File // the open directory
	shelves  [shelves]*shelf
	sessions []*session
	account  localfile.Log
}

// Open implements localfile.Driver.
func (Driver) Open(ctx context.Context, config any, site localfile.Site) (localfile.Store, error) {
	for n := 1; ; n++ {
		s, err := open(ctx, config.(*Config), site, linux{})
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || n == localfile.Attempts { // another worker that ends deletes a parent directory
			return nil, err
		}
	}
}

func open(ctx context.Context, c *Config, site localfile.Site, k kernel) (*store, error) {
	s := &store{site: site, kernel: k, syncs: c.Sync == synced, name: fmt.Sprintf("%s-w%d.files", site.Name, site.Worker)}
	var err error
	if s.parent, err = localfile.Enter(site.Root, c.Dir); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		_, closing := s.Close()
		return nil, errors.Join(fmt.Errorf("%s: %w", s.path(), err), closing, s.parent.Leave())
	}
	if err := s.describe(c); err != nil {
		_, closing := s.Close()
		return nil, errors.Join(err, closing, s.Remove())
	}
	for i := site.From; i < site.To; i++ {
		s.sessions = append(s.sessions, &session{store: s, draft: fmt.Sprintf(",%d", i)})
	}
	return s, nil
}

func (s *store) path() string { return filepath.Join(s.parent.Name(), s.name) }

// errForeign is the error for a directory that has the name of ours but was not made by this program.
var errForeign = errors.New("it was not made for files of loadgen: move it away, or write another --log-root, or another dir in the target")

// enter makes the directories, or opens those of an earlier phase. It deletes what another run has left there.
func (s *store) enter(ctx context.Context) error {
	err := s.parent.Mkdir(s.name, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return localfile.Unmade(err, s.parent.Name())
	}
	if s.root, err = localfile.OpenDir(s.parent.Root, s.name); err != nil {
		return err
	}
	if s.lock, err = s.root.Open("."); err != nil {
		return err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: let the other run end, or write another --log-root, or another dir in the target", err)
	}
	if _, err := s.root.Lstat(localfile.MadeName); !made && err != nil {
		all, _ := fs.ReadDir(s.root.FS(), ".")
		if len(all) > 0 {
			return errForeign
		}
	}
	if err := localfile.Mark(s.root, "."); err != nil {
		return localfile.Unmade(err, s.path())
	}
	if s.site.Fresh {
		if err := s.empty(ctx); err != nil {
			return fmt.Errorf("delete what an earlier run has left: %w", err)
		}
	}
	return s.build()
}

// build makes the missing shelves, all durable before the load begins, and opens them.
func (s *store) build() error {
	for i := range s.shelves {
		name := shelfName(i)
		if err := s.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return localfile.Unmade(err, s.path())
		}
		dir, err := openShelf(s.lock, i)
		if err != nil {
			return fmt.Errorf("%w: %s", err, remedy(err))
		}
		s.shelves[i] = &shelf{dir: dir, known: map[string]*state{}}
	}
	if !s.syncs {
		return nil
	}
	parent, err := s.parent.Open(".")
	if err != nil {
		return err
	}
	defer parent.Close()
	return errors.Join(s.lock.Sync(), parent.Sync())
}

// openShelf opens a subdirectory, unless it is a link.
func openShelf(in *os.File, i int) (*os.File, error) {
	fd, err := linux{}.open(int(in.Fd()), shelfName(i), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), shelfName(i)), nil
}

// describe says what the files are.
func (s *store) describe(c *Config) error {
	_, place, err := pmem.Room(s.root)
	if err != nil {
		return err
	}
	mode := pmem.None
	if s.syncs {
		mode = pmem.Fdatasync
	}
	s.account = localfile.Log{
		Layout: "a file for each key", SyncAsked: c.Sync, SyncUsed: c.Sync, FileSystem: place.String(), Batches: []localfile.Batch{},
		Caveats: pmem.Caveats(mode, place), Clear: "an error", Prealloc: string(pmem.Extending), FileBytes: int64(s.site.Value.Size),
		Durable: s.syncs && !place.Volatile() && !place.Unsynced() && !place.Hidden(),
	}
	return nil
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
	for _, at := range s.shelves {
		for _, is := range at.known {
			if is.there {
				l.Files++
			}
		}
	}
	for _, one := range s.sessions {
		l.Bytes += one.stored
		l.Forces += one.forces
	}
	return l
}

// Close implements localfile.Store.
func (s *store) Close() ([]byte, error) {
	var errs []error
	for _, at := range s.shelves {
		if at != nil {
			errs = append(errs, at.dir.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s.claim()
}

// Remove implements localfile.Store. Another store of the same directory may have removed it already.
func (s *store) Remove() error {
	err := s.removeAll()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.parent.Leave())
}

func (s *store) removeAll() (err error) {
	if s.root, err = localfile.OpenDir(s.parent.Root, s.name); err != nil {
		return err
	}
	if s.lock, err = s.root.Open("."); err == nil {
		err = errors.Join(s.empty(context.Background()), s.lock.Close())
	}
	if err == nil {
		err = s.root.Remove(localfile.MadeName)
	}
	if err = errors.Join(err, s.root.Close()); err == nil {
		err = s.parent.Remove(s.name)
	}
	return err
}

// empty deletes the files and their directories. Files whose names are not ours stay, and are an error.
func (s *store) empty(ctx context.Context) error {
	for i := range shelves {
		if err := s.clear(ctx, i); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clear deletes one subdirectory.
func (s *store) clear(ctx context.Context, shelf int) error {
	dir, err := openShelf(s.lock, shelf)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !ours(name) {
			return fmt.Errorf("%s is not a file of loadgen: move it away, and let nobody else change files below --log-root", filepath.Join(s.path(), shelfName(shelf), name))
		}
		if err := s.kernel.unlink(int(dir.Fd()), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.root.Remove(shelfName(shelf))
}
