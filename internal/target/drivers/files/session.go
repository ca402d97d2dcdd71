package files

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
)

const maxValue = 1 << 30 // the largest file to read, in bytes

// session is one session of a store. It checksums what it writes beforehand, for the claim.
type session struct {
	store  *store
	draft  string // name of the file that it writes before the rename
	name   string // of the current key's file
	named  []byte
	value  []byte // value to put
	sum    uint32 // checksum of value
	got    []byte // buffer for reads
	stored uint64 // bytes written by puts
	forces uint64 // number of waits for the device
}

// Prepare implements localfile.Session.
func (s *session) Prepare(req *driver.Request) error {
	s.named = appendName(s.named[:0], req.Key)
	s.name = string(s.named)
	if req.Verb.Stores() {
		s.value = req.Value.AppendTo(s.value[:0])
		s.sum = crc32.Checksum(s.value, castagnoli)
	}
	return nil
}

// Do implements localfile.Session. An error from the kernel is an error of the op: the op counts as not done. The next op does not depend on it.
func (s *session) Do(req *driver.Request, reply *driver.Reply) (err error) {
	if len(s.name) > maxName {
		reply.Outcome = driver.Error
		reply.Message = fmt.Appendf(nil, "a key's file name takes more than %d bytes: write shorter keys", maxName)
		return nil
	}
	at := s.store.shelves[shelfOf(req.Key)]
	switch req.Verb {
	case driver.Put:
		err = s.put(at)
	case driver.Get:
		reply.Value, err = s.get(at)
	case driver.Delete:
		err = s.delete(at)
	default:
		return fmt.Errorf("files know no %s", req.Verb)
	}
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT) && req.Verb != driver.Put:
		reply.Outcome, reply.Value = driver.Miss, nil
	default:
		reply.Outcome, reply.Value = driver.Error, nil
		reply.Message = fmt.Appendf(nil, "%v: %s", err, remedy(err))
	}
	return nil
}

// remedy says what to do about a call that failed.
func remedy(err error) string {
	for _, known := range []struct {
		errno  error
		remedy string
	}{
		{unix.ENOSPC, "make room on the file system of --log-root, or write another, or fewer or smaller values"},
		{unix.EDQUOT, "have this user's quota raised, or write another --log-root, or fewer or smaller values"},
		{unix.EMFILE, "raise the limit of open files (ulimit -n)"},
		{unix.ENFILE, "raise the system's limit of open files (sysctl fs.file-max)"},
		{unix.EACCES, "let this user make files below --log-root"},
		{unix.EPERM, "let this user make files below --log-root"},
		{unix.EROFS, "mount the file system of --log-root to be written, or write another"},
		{unix.EFBIG, "raise the limit of a file's size (ulimit -f), or write smaller values"},
		{unix.EIO, "see what the kernel says of the device (dmesg), or write another --log-root"},
	} {
		if errors.Is(err, known.errno) {
			return known.remedy
		}
	}
	return "let nobody else change files below --log-root"
}

// put writes the value beside the key's file and moves it into place.
func (s *session) put(at *shelf) error {
	k := s.store.kernel
	fd, err := s.create(at)
	if err != nil {
		return err
	}
	err = s.fill(fd)
	if closing := k.close(fd); err == nil {
		err = closing // some file systems report only now that there was no room
	}
	if err != nil {
		return errors.Join(err, s.discard(at))
	}
	turn, err := at.replace(k, s.draft, s.name, state{size: len(s.value), sum: s.sum, there: true})
	if err != nil {
		return errors.Join(err, s.discard(at))
	}
	s.stored += uint64(len(s.value))
	return s.settle(at, turn)
}

// create makes the file to write. An existing one was left by a failed put.
func (s *session) create(at *shelf) (fd int, err error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err = s.store.kernel.open(at.fd(), s.draft, flags)
	if errors.Is(err, unix.EEXIST) {
		if err = s.discard(at); err == nil {
			fd, err = s.store.kernel.open(at.fd(), s.draft, flags)
		}
	}
	return fd, err
}

// discard removes a file that did not take a key's place.
func (s *session) discard(at *shelf) error {
	if err := s.store.kernel.unlink(at.fd(), s.draft); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// fill writes the value to a file and makes it durable.
func (s *session) fill(fd int) error {
	for rest := s.value; len(rest) > 0; {
		n, err := s.store.kernel.write(fd, rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if !s.store.syncs {
		return nil
	}
	s.forces++
	return s.store.kernel.fdatasync(fd)
}

// settle waits until a change to a directory is durable.
func (s *session) settle(at *shelf, turn uint64) error {
	if s.store.syncs {
		s.forces++
		if err := s.store.kernel.fsync(at.fd()); err != nil {
			return err
		}
	}
	at.settled(s.name, turn)
	return nil
}

// delete removes the key's file.
func (s *session) delete(at *shelf) error {
	turn, err := at.remove(s.store.kernel, s.name)
	if err != nil {
		return err
	}
	return s.settle(at, turn)
}

// get reads the key's file.
func (s *session) get(at *shelf) (value []byte, err error) {
	k := s.store.kernel
	fd, err := k.open(at.fd(), s.name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	value, err = s.read(fd)
	return value, errors.Join(err, k.close(fd))
}

func (s *session) read(fd int) ([]byte, error) {
	size, err := s.store.kernel.regular(fd)
	if err != nil {
		return nil, err
	}
	if size > maxValue {
		return nil, fmt.Errorf("a value's file has more than %d bytes", maxValue)
	}
	if int64(cap(s.got)) < size {
		s.got = make([]byte, size)
	}
	b := s.got[:size]
	for rest := b; len(rest) > 0; {
		n, err := s.store.kernel.read(fd, rest)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrUnexpectedEOF // a file is never written in place
		}
		rest = rest[n:]
	}
	return b, nil
}
