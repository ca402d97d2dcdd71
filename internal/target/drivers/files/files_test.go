package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

func TestConformance(t *testing.T) {
	for _, sync := range []string{synced, unsynced} {
		drivertest.Run(t, drivertest.Suite{Driver: Driver{}, Config: &Config{Sync: sync, Dir: "a/b"}, MaxKey: 250})
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, Driver{}.NewConfig().(*Config).Validate())
	require.EqualError(t, (&Config{Sync: "msync"}).Validate(), `sync is "msync"; write "fdatasync" or "none"`)
}

// siteOf returns a site on a file system in memory, if there is one: a sync takes no time there.
func siteOf(t *testing.T, sessions int) localfile.Site {
	root, err := os.MkdirTemp("/dev/shm", "loadgen-files-")
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	return localfile.Site{Root: root, Name: "disk", To: sessions, Fresh: true, Value: driver.Value{Size: 100}, Keys: 10}
}

// start opens a store, and removes its files at the end of the test.
func start(t *testing.T, site localfile.Site, k kernel) *store {
	s, err := open(t.Context(), &Config{Sync: synced}, site, k)
	require.NoError(t, err)
	return s
}

func do(t *testing.T, s *session, v driver.Verb, key string, seed uint64) driver.Reply {
	req, reply := driver.Request{Verb: v, Key: []byte(key)}, driver.Reply{}
	if v.Stores() {
		req.Value = &driver.Value{Size: 100, Seed: seed}
	}
	require.NoError(t, s.Prepare(&req))
	require.NoError(t, s.Do(&req, &reply))
	return reply
}

func valueOf(seed uint64) string { return string((&driver.Value{Size: 100, Seed: seed}).AppendTo(nil)) }

// finish closes a store, verifies its claim, and removes its files, so that none is left.
func finish(t *testing.T, s *store) localfile.Proof {
	claim, err := s.Close()
	require.NoError(t, err)
	proof, err := Driver{}.Verify(claim)
	require.NoError(t, err)
	require.NoError(t, s.Remove())
	left, err := os.ReadDir(s.site.Root)
	require.NoError(t, err)
	require.Empty(t, left)
	return proof
}

func TestNamesAreReversible(t *testing.T) {
	for key, name := range map[string]string{
		"key:000000000001": "key:000000000001",
		"":                 "%",
		".":                "%2E",
		"..":               "%2E.",
		"../../etc/passwd": "%2E.%2F..%2Fetc%2Fpasswd",
		"a.b":              "a.b",
		"%":                "%25",
		",0":               "%2C0",
		"nul\x00":          "nul%00",
		"é":                "%C3%A9",
	} {
		require.Equal(t, name, string(appendName(nil, []byte(key))))
		back, ok := keyOf(name)
		require.True(t, ok, name)
		require.Equal(t, key, back)
	}
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", "%2", "%2e", "%41", "%%", ",0", "a b", "a%2Eb"} {
		_, ok := keyOf(name)
		require.False(t, ok, name)
	}
	for name, is := range map[string]bool{",0": true, ",17": true, ",": false, ",a": false, "x": true, ".x": false} {
		require.Equal(t, is, ours(name), name)
	}
}

// FuzzNames checks that each key has one name, which leads nowhere else, and each name at most one key.
func FuzzNames(f *testing.F) {
	f.Add([]byte("../x"), "a%2Fb")
	f.Fuzz(func(t *testing.T, key []byte, name string) {
		made := string(appendName(nil, key))
		require.NotContains(t, []string{"", ".", ".."}, made)
		require.False(t, strings.ContainsAny(made, "/\x00,"))
		back, ok := keyOf(made)
		require.True(t, ok)
		require.Equal(t, string(key), back)
		if key, ok := keyOf(name); ok {
			require.Equal(t, name, string(appendName(nil, []byte(key))))
		}
	})
}

// TestWhatIsStored: a key has its own name in the shelf of its checksum, and there are no other files.
func TestWhatIsStored(t *testing.T) {
	s := start(t, siteOf(t, 1), linux{})
	for i := range 1000 {
		key := fmt.Sprintf("key:%d", i)
		require.Equal(t, driver.OK, do(t, s.sessions[0], driver.Put, key, uint64(i)).Outcome)
		require.Equal(t, driver.OK, do(t, s.sessions[0], driver.Put, key, uint64(i+1)).Outcome)
	}
	all, err := filepath.Glob(filepath.Join(s.path(), "*", "*"))
	require.NoError(t, err)
	require.Len(t, all, 1000)
	text, err := os.ReadFile(filepath.Join(s.path(), shelfName(shelfOf([]byte("key:7"))), "key:7"))
	require.NoError(t, err)
	require.Equal(t, valueOf(8), string(text))
	l := s.Log()
	require.Equal(t, 1000, l.Files)
	require.EqualValues(t, 200_000, l.Bytes)
	require.EqualValues(t, 4000, l.Forces, "a file and a directory each time")
	require.Equal(t, localfile.Proof{Acknowledged: 1000, Verified: 1000, Recovered: 1000}, finish(t, s))
}

// TestLiesAreFound by the process that verifies.
func TestLiesAreFound(t *testing.T) {
	s := start(t, siteOf(t, 1), linux{})
	for _, key := range []string{"gone", "torn", "long", "back", "whole"} {
		do(t, s.sessions[0], driver.Put, key, 1)
	}
	do(t, s.sessions[0], driver.Delete, "back", 0)
	path := func(key string) string { return filepath.Join(s.path(), shelfName(shelfOf([]byte(key))), key) }
	require.NoError(t, errors.Join(os.Remove(path("gone")), os.WriteFile(path("torn"), []byte(strings.Repeat("x", 100)), 0o600),
		os.WriteFile(path("long"), []byte(strings.Repeat("x", 101)), 0o600), os.WriteFile(path("back"), nil, 0o600)))
	proof := finish(t, s)
	require.Len(t, proof.Wrong, 4)
	require.EqualValues(t, 4, proof.Acknowledged)
	require.EqualValues(t, 1, proof.Verified)
}

// TestSessionsShareKeys: whichever put comes last, the file is whole and the claim is about that one.
func TestSessionsShareKeys(t *testing.T) {
	s := start(t, siteOf(t, 4), linux{})
	var all sync.WaitGroup
	for i, one := range s.sessions {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for n := range 300 {
				verb := []driver.Verb{driver.Put, driver.Put, driver.Get, driver.Delete}[random.IntN(4)]
				r := do(t, one, verb, fmt.Sprint(random.IntN(5)), uint64(n))
				if r.Outcome == driver.OK && verb == driver.Get {
					require.Len(t, r.Value, 100)
				}
				require.NotEqual(t, driver.Error, r.Outcome, "%s", r.Message)
			}
		})
	}
	all.Wait()
	proof := finish(t, s)
	require.Empty(t, proof.Wrong)
	require.Equal(t, proof.Acknowledged, proof.Verified)
}

// TestPhasesShareFiles: the last phase removes them; the next run starts afresh, even after a killed one.
func TestPhasesShareFiles(t *testing.T) {
	site := siteOf(t, 1)
	first := start(t, site, linux{})
	do(t, first.sessions[0], driver.Put, "k", 1)
	_, err := Driver{}.Open(t.Context(), &Config{Sync: synced}, site)
	require.ErrorContains(t, err, "let the other run end")
	_, err = first.Close()
	require.NoError(t, err)
	site.Fresh = false
	second := start(t, site, linux{})
	require.Equal(t, valueOf(1), string(do(t, second.sessions[0], driver.Get, "k", 0).Value))
	_, err = second.Close() // as if it had been killed, and in the middle of a put
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(second.path(), "00", ",0"), []byte("half"), 0o600))
	site.Fresh = true
	third := start(t, site, linux{})
	require.Equal(t, driver.Miss, do(t, third.sessions[0], driver.Get, "k", 0).Outcome)
	finish(t, third)
	require.NoError(t, first.Remove(), "it is gone already")
	require.NoError(t, second.Remove())
}

// TestForeignFilesStay: a directory with our name, and what is in our directories, is deleted only if it is ours.
func TestForeignFilesStay(t *testing.T) {
	site := siteOf(t, 1)
	theirs := filepath.Join(site.Root, "disk-w0.files", "letters")
	require.NoError(t, errors.Join(os.Mkdir(filepath.Dir(theirs), 0o700), os.WriteFile(theirs, nil, 0o600)))
	_, err := Driver{}.Open(t.Context(), &Config{Sync: synced}, site)
	require.ErrorIs(t, err, errForeign)
	require.FileExists(t, theirs)
	require.NoError(t, os.Remove(theirs))

	s := start(t, site, linux{})
	theirs = filepath.Join(s.path(), "00", "a letter")
	require.NoError(t, os.WriteFile(theirs, nil, 0o600))
	_, err = s.Close()
	require.NoError(t, err)
	require.ErrorContains(t, s.Remove(), "move it away")
	require.FileExists(t, theirs)
	_, err = Driver{}.Open(t.Context(), &Config{Sync: synced}, site)
	require.ErrorContains(t, err, "delete what an earlier run has left")
}

// TestLinksLeadNowhere: links in place of a key's file, the directory or a shelf are not followed.
func TestLinksLeadNowhere(t *testing.T) {
	site := siteOf(t, 1)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	s := start(t, site, linux{})
	link := filepath.Join(s.path(), shelfName(shelfOf([]byte("k"))), "k")
	require.NoError(t, os.Symlink(outside, link))
	r := do(t, s.sessions[0], driver.Get, "k", 0)
	require.Equal(t, driver.Error, r.Outcome)
	require.Contains(t, string(r.Message), "let nobody else change files")
	require.NoError(t, errors.Join(os.Remove(link), unix.Mkfifo(link, 0o600)))
	require.Contains(t, string(do(t, s.sessions[0], driver.Get, "k", 0).Message), "no regular file")
	require.Equal(t, driver.OK, do(t, s.sessions[0], driver.Put, "k", 1).Outcome, "it takes the place of the pipe")
	finish(t, s)
	text, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "secret", string(text))

	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(site.Root, "disk-w0.files")))
	_, err = Driver{}.Open(t.Context(), &Config{Sync: synced}, site)
	require.ErrorContains(t, err, "it is a symbolic link")
}

func TestLongNamesAreErrors(t *testing.T) {
	s := start(t, siteOf(t, 1), linux{})
	require.Equal(t, driver.OK, do(t, s.sessions[0], driver.Put, strings.Repeat("k", maxName), 1).Outcome)
	for _, verb := range []driver.Verb{driver.Put, driver.Get, driver.Delete} {
		r := do(t, s.sessions[0], verb, strings.Repeat("k", maxName+1), 1)
		require.Equal(t, driver.Error, r.Outcome)
		require.Equal(t, "a key's file name takes more than 255 bytes: write shorter keys", string(r.Message))
	}
	finish(t, s)
}

// faulty is a kernel whose nth call of a kind, from 1, fails; 0: every one.
type faulty struct {
	linux
	call  string
	n     int
	errno unix.Errno
	seen  int
}

func (k *faulty) fails(call string) error {
	if k.call != call {
		return nil
	}
	k.seen++
	if k.n != 0 && k.n != k.seen {
		return nil
	}
	return os.NewSyscallError(call, k.errno)
}

func (k *faulty) open(dir int, name string, flags int) (int, error) {
	if err := k.fails("open"); err != nil {
		return -1, err
	}
	return k.linux.open(dir, name, flags)
}

func (k *faulty) write(fd int, b []byte) (int, error) {
	if err := k.fails("write"); err != nil {
		return 0, err
	}
	return k.linux.write(fd, b[:min(len(b), 60)])
}

func (k *faulty) fdatasync(fd int) error {
	if err := k.fails("fdatasync"); err != nil {
		return err
	}
	return k.linux.fdatasync(fd)
}

func (k *faulty) fsync(fd int) error {
	if err := k.fails("fsync"); err != nil {
		return err
	}
	return k.linux.fsync(fd)
}

func (k *faulty) close(fd int) error {
	return errors.Join(k.linux.close(fd), k.fails("close"))
}

func (k *faulty) rename(dir int, from, to string) error {
	if err := k.fails("rename"); err != nil {
		return err
	}
	return k.linux.rename(dir, from, to)
}

func (k *faulty) unlink(dir int, name string) error {
	if err := k.fails("unlink"); err != nil {
		return err
	}
	return k.linux.unlink(dir, name)
}

// TestFailedPuts: whichever call fails, the op is an error that says what to do, the key holds its old value or the new one, whole, nothing false is
// claimed, and the next put is ok.
func TestFailedPuts(t *testing.T) {
	for call, held := range map[string]uint64{"open": 1, "write": 1, "fdatasync": 1, "close": 1, "rename": 1, "fsync": 2} {
		for errno, says := range map[unix.Errno]string{
			unix.ENOSPC: "make room", unix.EDQUOT: "quota", unix.EMFILE: "ulimit -n", unix.ENFILE: "file-max", unix.EACCES: "let this user", unix.EROFS: "mount",
			unix.EFBIG: "ulimit -f", unix.EIO: "dmesg", unix.ENXIO: "nobody else",
		} {
			t.Run(fmt.Sprintf("call=%s/errno=%v", call, errno), func(t *testing.T) {
				k := &faulty{call: call, n: 2, errno: errno}
				if call == "write" {
					k.n = 3 // each value takes two
				}
				s := start(t, siteOf(t, 1), k)
				one := s.sessions[0]
				require.Equal(t, driver.OK, do(t, one, driver.Put, "k", 1).Outcome)
				r := do(t, one, driver.Put, "k", 2)
				require.Equal(t, driver.Error, r.Outcome)
				require.Contains(t, string(r.Message), call+": "+errno.Error())
				require.Contains(t, string(r.Message), says)
				k.call = ""
				require.Equal(t, valueOf(held), string(do(t, one, driver.Get, "k", 0).Value))
				claim, err := s.claim()
				require.NoError(t, err)
				proof, err := Driver{}.Verify(claim)
				require.NoError(t, err)
				require.Empty(t, proof.Wrong)
				require.Equal(t, held == 1, proof.Acknowledged == 1, "what may have become durable is not claimed")
				require.Equal(t, driver.OK, do(t, one, driver.Put, "k", 3).Outcome)
				require.EqualValues(t, 1, finish(t, s).Verified)
			})
		}
	}
}

// TestFailedGetsAndDeletes are errors, not misses.
func TestFailedGetsAndDeletes(t *testing.T) {
	k := &faulty{}
	s := start(t, siteOf(t, 1), k)
	one := s.sessions[0]
	do(t, one, driver.Put, "k", 1)
	for _, c := range []struct {
		verb driver.Verb
		call string
	}{{driver.Get, "open"}, {driver.Get, "close"}, {driver.Delete, "unlink"}, {driver.Delete, "fsync"}} {
		k.call, k.errno = c.call, unix.EMFILE
		r := do(t, one, c.verb, "k", 0)
		require.Equal(t, driver.Error, r.Outcome, c)
		require.Empty(t, r.Value)
		require.Contains(t, string(r.Message), "ulimit -n")
	}
	k.call = ""
	require.Equal(t, localfile.Proof{}, finish(t, s), "a delete that may have become durable is not claimed")
}

// TestDraftsAreReplaced: a session finds a draft with its own name.
func TestDraftsAreReplaced(t *testing.T) {
	s := start(t, siteOf(t, 1), linux{})
	draft := filepath.Join(s.path(), shelfName(shelfOf([]byte("k"))), ",0")
	require.NoError(t, os.WriteFile(draft, bytes.Repeat([]byte("x"), 1000), 0o600))
	require.Equal(t, driver.OK, do(t, s.sessions[0], driver.Put, "k", 1).Outcome)
	require.NoFileExists(t, draft)
	require.EqualValues(t, 1, finish(t, s).Verified)
}

// TestFullDisk uses a real full disk: a small file system in memory.
func TestFullDisk(t *testing.T) {
	site := siteOf(t, 1)
	if err := unix.Mount("tmpfs", site.Root, "tmpfs", 0, "size=1m"); err != nil {
		require.ErrorIs(t, err, unix.EPERM) // only root mounts
		return
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(site.Root, unix.MNT_DETACH)) })
	s := start(t, site, linux{})
	failed := 0
	for i := range 400 {
		if r := do(t, s.sessions[0], driver.Put, fmt.Sprint(i), 1); r.Outcome == driver.Error {
			require.Contains(t, string(r.Message), "no space left on device: make room")
			failed++
		}
	}
	require.Positive(t, failed)
	require.EqualValues(t, 400-failed, finish(t, s).Verified)
}

func TestCancelledOpen(t *testing.T) {
	site := siteOf(t, 1)
	s := start(t, site, linux{})
	do(t, s.sessions[0], driver.Put, "k", 1)
	_, err := s.Close()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Driver{}.Open(ctx, &Config{Sync: synced}, site)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Remove())
}

func TestNeed(t *testing.T) {
	need, err := Driver{}.Need(nil, localfile.Site{To: 2, Keys: 1000, Value: driver.Value{Size: 5000}, Pools: true})
	require.NoError(t, err)
	require.EqualValues(t, 2*1000*8192, need.Bytes)
	need, err = Driver{}.Need(nil, localfile.Site{To: 2, Keys: 1000, Value: driver.Value{Size: 5000}, Held: true})
	require.NoError(t, err)
	require.Zero(t, need.Bytes)
	_, err = Driver{}.Need(nil, localfile.Site{To: 2, Keys: 1 << 62, Pools: true})
	require.ErrorContains(t, err, "write a smaller count")
	_, err = Driver{}.Need(nil, localfile.Site{To: 1, Keys: 1 << 50, Value: driver.Value{Size: 1 << 20}})
	require.ErrorContains(t, err, "write fewer or smaller ones")
}
