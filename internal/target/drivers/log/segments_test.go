package log

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// TestSegmentsThatCannotBe are refused, with what to write.
func TestSegmentsThatCannotBe(t *testing.T) {
	for says, change := range map[string]func(c *Config){
		`clear is "inside": there are none; write clear = "rotate", or prealloc = "zero"`: func(c *Config) { c.Prealloc, c.Full = "recycle", "inside" },
		`clear = "rotate" is for the layouts ["append"]; leave it out with "channel"`:     func(c *Config) { c.Layout = layoutChannel },
		`clear = "rotate" is for the layouts ["append"]; leave it out with "raw"`:         func(c *Config) { c.Layout = layoutRaw },
		`prealloc = "none" is for the layouts ["raw"]; leave it out with "append"`:        func(c *Config) { c.Prealloc = "none" },
	} {
		c := Driver{}.NewConfig().(*Config)
		c.Full = "rotate"
		require.NoError(t, c.Validate())
		change(c)
		require.ErrorContains(t, c.Validate(), says)
	}
	c := config(t, func(c *Config) { c.Full = "rotate" })
	require.ErrorContains(t, Driver{}.Check(c, driver.Clear), `leave the op clear out, or write clear = "inside"`)
}

// TestALogKeepsTheSegmentBefore: it holds more entries than fit into one file, in files whose number stays the same.
func TestALogKeepsTheSegmentBefore(t *testing.T) {
	for prealloc, files := range map[string]int64{"zero": 3, "fallocate": 3, "recycle": 2} {
		t.Run(prealloc, func(t *testing.T) {
			c, at := config(t, func(c *Config) { c.Full, c.Prealloc = "rotate", prealloc }), siteOf(t, 1)
			need, err := Driver{}.Need(c, at)
			require.NoError(t, err)
			require.Equal(t, files*int64(c.FileSize), need.Bytes)
			s := open(t, c, at)
			_, one, err := s.form.fileSize(int64(c.FileSize))
			require.NoError(t, err)
			require.NoError(t, do(s.sessions[0], driver.Append, int(3*one+one/2), 0))
			l := s.Log()
			require.EqualValues(t, 3, l.Resets)
			require.Equal(t, "rotate", l.Clear)
			require.Equal(t, prealloc, l.Prealloc)
			require.NotContains(t, l.Caveats, "fallocate")
			left, err := os.ReadDir(at.Root)
			require.NoError(t, err)
			require.Len(t, left, 2)
			proof := verify(t, s)
			whole(t, proof)
			require.EqualValues(t, one+one/2, proof.Acknowledged)
			contents, err := Inspect(filepath.Join(at.Root, "wal-w0.pmlog.1"))
			require.NoError(t, err)
			require.True(t, contents.Whole())
			require.EqualValues(t, one, contents.Found.Records)
		})
	}
}

// killedIn and killedAs name the directory and the epoch of a process that is to be killed.
const (
	killedIn = "LOG_TEST_KILLED_IN"
	killedAs = "LOG_TEST_KILLED_AS"
)

// TestKilledRotationsLoseNothing kills a process whose log rotates all the time, and again once it has opened what was left: what was acknowledged is
// there, in order, and at most one entry more. 50 times if "crash" is demanded.
func TestKilledRotationsLoseNothing(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		rotateUntilKilled(t, dir)
		return
	}
	kills := 2
	if servertest.Demanded("crash") {
		kills = 50
	}
	for _, prealloc := range []string{"recycle", "fallocate"} {
		dir, rng := t.TempDir(), rand.New(rand.NewPCG(41, 4))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		for epoch := range kills {
			child := exec.Command(os.Args[0], "-test.run=^TestKilledRotationsLoseNothing$")
			child.Env = append(os.Environ(), killedIn+"="+filepath.Join(dir, prealloc), killedAs+"="+strconv.Itoa(epoch))
			require.NoError(t, child.Start())
			acked := func() uint64 {
				p, _ := os.ReadFile(filepath.Join(dir, prealloc+strconv.Itoa(epoch)))
				return binary.LittleEndian.Uint64(append(p, make([]byte, 8)...))
			}
			require.Eventually(t, func() bool { return acked() > 0 }, time.Minute, time.Millisecond)
			time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
			require.NoError(t, child.Process.Kill())
			require.Error(t, child.Wait())

			f := form{Layout: layoutAppend, Kind: kind{Size: 100}, Rotate: true}
			v, err := f.view(root, filepath.Join(prealloc, "wal-w0.pmlog"))
			require.NoError(t, err)
			check, last := newChecker(kind{Epoch: epochOf(uint64(epoch)), Size: 100}), uint64(0)
			_, err = each(v.reader(0, 1), func(p []byte) {
				if m, ok := check.read(p); ok {
					require.True(t, last == 0 || m.number() == last+1, "%v after %d", m, last)
					last = m.number()
				} else {
					require.True(t, check.foreign(p) && last == 0)
				}
			})
			require.NoError(t, err)
			require.NoError(t, v.close())
			require.GreaterOrEqual(t, last, acked())
			require.LessOrEqual(t, last, acked()+1)
		}
	}
}

func rotateUntilKilled(t *testing.T, dir string) {
	epoch, err := strconv.Atoi(os.Getenv(killedAs))
	require.NoError(t, err)
	c := config(t, func(c *Config) {
		c.Sync, c.FileSize, c.Full, c.Prealloc = "fdatasync", 12<<10, "rotate", filepath.Base(dir)
	})
	at := siteOf(t, 1)
	at.Root, at.Epoch, at.Fresh = dir, uint64(epoch), epoch == 0
	require.NoError(t, os.MkdirAll(dir, 0o700))
	s := open(t, c, at)
	tally, err := os.Create(dir + os.Getenv(killedAs))
	require.NoError(t, err)
	for began := time.Now(); time.Since(began) < time.Minute; {
		require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
		_, err := tally.WriteAt(binary.LittleEndian.AppendUint64(nil, s.sessions[0].acked), 0)
		require.NoError(t, err)
	}
}

// TestABrokenDiskRotatesNothingAway breaks the device of a log in segments, after the first entry of one, and where the next entry needs another. What
// the device holds then, as after a loss of power, is what was acknowledged and not at risk: as much of it as before, in files whose names were durable.
func TestABrokenDiskRotatesNothingAway(t *testing.T) {
	for _, c := range []struct {
		prealloc, sync string
		group          *GroupCommit
		every          *string
	}{
		{prealloc: "recycle", sync: "fdatasync"},
		{prealloc: "recycle", sync: "fdatasync", group: &GroupCommit{}},
		{prealloc: "fallocate", sync: "fdatasync"},
		{prealloc: "zero", sync: "fdatasync"},
		{prealloc: "recycle", sync: "msync"},
		{prealloc: "zero", sync: "msync", group: &GroupCommit{}},
		{prealloc: "recycle", sync: "fdatasync", every: new("7")},
		{prealloc: "fallocate", sync: "msync", every: new("7")},
	} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %s, grouped %t, lazy %t, full %t", c.prealloc, c.sync, c.group != nil, c.every != nil, full), func(t *testing.T) {
				disk, at := servertest.NewDisk(t), siteOf(t, 1)
				at.Root = disk.Dir
				s := open(t, config(t, func(is *Config) {
					is.Sync, is.FileSize, is.Full, is.Prealloc, is.GroupCommit, is.SyncEvery = c.sync, 12<<10, rotate, c.prealloc, c.group, c.every
				}), at)
				_, one, err := s.form.fileSize(12 << 10)
				require.NoError(t, err)
				n := 3*int(one) + 1
				if full {
					n = 4 * int(one)
				}
				require.NoError(t, do(s.sessions[0], driver.Append, n, 0))
				require.EqualValues(t, 3, s.files[0].resets.Load())
				disk.Break()
				require.ErrorContains(t, do(s.sessions[0], driver.Append, 7, 0), "; see what the kernel says of the device (dmesg), or write another --log-root")
				_, err = s.Close()
				require.NoError(t, err)
				require.NoError(t, s.root.Leave())
				s.root, err = localfile.Enter(disk.Remains().Dir, "")
				require.NoError(t, err)
				if p := s.files[0].policy; p != nil {
					s.sessions[0].acked = p.synced.entries // the others were at risk, and may be there
					n = int(p.synced.entries)
				}
				claim, err := s.claim()
				require.NoError(t, err)
				proof, err := Driver{}.Verify(claim)
				require.NoError(t, err)
				whole(t, proof)
				require.EqualValues(t, n-2*int(one), proof.Acknowledged)
			})
		}
	}
}

// TestRotationWithoutRoomSaysWhatToDo has another program fill the file system, and makes room as the error says.
func TestRotationWithoutRoomSaysWhatToDo(t *testing.T) {
	at := siteOf(t, 1)
	if err := unix.Mount("tmpfs", at.Root, "tmpfs", 0, "size=1m"); err != nil {
		servertest.Require(t, "mount", fmt.Errorf("mount tmpfs: %w", err))
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(at.Root, unix.MNT_DETACH)) })
	c := config(t, func(c *Config) { c.Full, c.FileSize = rotate, 256<<10 })
	s, other := open(t, c, at), filepath.Join(at.Root, "other")
	require.ErrorIs(t, os.WriteFile(other, make([]byte, 1<<20), 0o600), unix.ENOSPC)
	require.ErrorContains(t, do(s.sessions[0], driver.Append, 10_000, 0), "no space left on device; make room on its file system")
	whole(t, verify(t, s))
	require.NoError(t, os.Remove(other))
	s = open(t, c, at)
	require.NoError(t, do(s.sessions[0], driver.Append, 10_000, 0))
	require.Positive(t, s.Log().Resets)
	whole(t, verify(t, s))
}
