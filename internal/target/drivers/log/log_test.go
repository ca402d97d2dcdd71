package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// config returns a valid config with changes.
func config(t testing.TB, change func(c *Config)) *Config {
	t.Helper()
	c := Driver{}.NewConfig().(*Config)
	c.Sync, c.FileSize = string(pmem.None), 64<<10
	if change != nil {
		change(c)
	}
	require.NoError(t, c.Validate())
	return c
}

// siteOf returns a site for n sessions of a worker, in a directory of the test.
func siteOf(t testing.TB, n int) localfile.Site {
	return localfile.Site{Root: t.TempDir(), Name: "wal", From: 3, To: 3 + n, Sessions: n, Epoch: 77, Fresh: true, Value: driver.Value{Size: 100}, Keys: 10, Memory: func() int64 { return 1 << 30 }}
}

func open(t testing.TB, c *Config, at localfile.Site) *store {
	t.Helper()
	s, err := Driver{}.Open(t.Context(), c, at)
	require.NoError(t, err)
	return s.(*store)
}

// do carries out ops of a verb in a session.
func do(s localfile.Session, v driver.Verb, n int, keys uint64) error {
	var reply driver.Reply
	for i := range n {
		req := driver.Request{Verb: v, N: uint64(i)}
		if keys > 0 {
			req.Index = rand.Uint64N(keys)
		}
		if v.Stores() {
			req.Value = &driver.Value{}
		}
		reply = driver.Reply{}
		if err := s.Prepare(&req); err != nil {
			return err
		}
		if err := s.Do(&req, &reply); err != nil {
			return err
		}
		if reply.Outcome == driver.Error {
			return fmt.Errorf("op %d: %s", i, reply.Message)
		}
	}
	return nil
}

// load makes all sessions carry out ops at the same time.
func load(t testing.TB, s *store, f func(one *session) error) {
	t.Helper()
	var wait sync.WaitGroup
	errs := make([]error, len(s.sessions))
	for i, one := range s.sessions {
		wait.Go(func() { errs[i] = f(one) })
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// verify closes the store and verifies its claim.
func verify(t testing.TB, s *store) localfile.Proof {
	t.Helper()
	claim, err := s.Close()
	require.NoError(t, err)
	proof, err := Driver{}.Verify(claim)
	require.NoError(t, err)
	return proof
}

// whole checks that everything acknowledged is there.
func whole(t testing.TB, p localfile.Proof) {
	t.Helper()
	require.Empty(t, p.Wrong)
	require.Equal(t, p.Acknowledged, p.Verified)
	require.NotZero(t, p.Verified)
}

// variants are all combinations of a config's settings that make sense.
var variants = map[string]func(c *Config){
	"append":               func(*Config) {},
	"append own":           func(c *Config) { c.Share = "session" },
	"append outside":       func(c *Config) { c.Full = "outside" },
	"append relaxed":       func(c *Config) { c.Order = "relaxed" },
	"append by length":     func(c *Config) { c.Commit = "length" },
	"append padded":        func(c *Config) { c.Padding = 256 },
	"append reserved":      func(c *Config) { c.Prealloc = "fallocate" },
	"append rotated":       func(c *Config) { c.Full = "rotate" },
	"append recycled":      func(c *Config) { c.Full, c.Prealloc, c.Share = "rotate", "recycle", "session" },
	"channel":              func(c *Config) { c.Layout = layoutChannel },
	"channel own, outside": func(c *Config) { c.Layout, c.Share, c.Full = layoutChannel, "session", "outside" },
	"array":                func(c *Config) { c.Layout = layoutArray },
	"array own":            func(c *Config) { c.Layout, c.Share = layoutArray, "session" },
	"raw":                  func(c *Config) { c.Layout = layoutRaw },
	"raw own, crc":         func(c *Config) { c.Layout, c.Share, c.CRC = layoutRaw, "session", true },
}

func TestConformance(t *testing.T) {
	for name, change := range variants {
		t.Run(name, func(t *testing.T) { drivertest.Run(t, drivertest.Suite{Driver: Driver{}, Config: config(t, change)}) })
	}
}

// TestWhatWasAcknowledgedIsThere appends more than the logs hold, in several sessions at the same time, and reads it back.
func TestWhatWasAcknowledgedIsThere(t *testing.T) {
	for name, change := range variants {
		for sessions, fill := range map[int]driver.Fill{1: {}, 3: {Alike: true, Byte: 0xff}} {
			t.Run(fmt.Sprintf("%s, %d sessions, fill %+v", name, sessions, fill), func(t *testing.T) {
				c, at := config(t, change), siteOf(t, sessions)
				at.Value.Fill = fill
				s := open(t, c, at)
				const each = 801
				load(t, s, func(one *session) error { return do(one, driver.Append, each, 0) })
				l := s.Log()
				require.EqualValues(t, sessions*each*100, l.Bytes)
				require.GreaterOrEqual(t, l.Forces, uint64(sessions*each))
				if c.Layout != layoutArray {
					require.Positive(t, l.Resets)
				}
				require.Empty(t, l.Failure)
				proof := verify(t, s)
				whole(t, proof)
				require.Equal(t, proof.Acknowledged, proof.Recovered)
				require.NoError(t, s.Remove())
				left, err := os.ReadDir(at.Root)
				require.NoError(t, err)
				require.Empty(t, left)
			})
		}
	}
}

// TestEntriesOfManySizes: each entry has the size that its session and number select, in every phase, and is found so. What was written is counted. Each
// variant has sizes of one kind.
func TestEntriesOfManySizes(t *testing.T) {
	uniform, err := driver.UniformSizes(16, 900)
	require.NoError(t, err)
	lognormal, err := driver.LognormalSizes(50, 1, localfile.StampSize, 900)
	require.NoError(t, err)
	listed, err := driver.ListedSizes([]int{16, 900}, []float64{9, 1})
	require.NoError(t, err)
	for nth, name := range slices.Sorted(maps.Keys(variants)) {
		i := nth % 3
		sizes := []*driver.Sizes{uniform, lognormal, listed}[i]
		for _, appends := range []int{0, 40, 1001} {
			t.Run(fmt.Sprintf("%s %d, %d appends", name, i, appends), func(t *testing.T) {
				c, at := config(t, variants[name]), siteOf(t, 3)
				at.Value.Size, at.Sizes, at.Value.Fill = 900, sizes, driver.Fill{Alike: i == 2, Byte: 'x'}
				for range 2 {
					s, want := open(t, c, at), uint64(0)
					load(t, s, func(one *session) error { return do(one, driver.Append, appends, 0) })
					for _, one := range s.sessions {
						for number := range uint64(appends) {
							want += uint64(s.form.Kind.size(markOf(one.id, number+1)))
						}
					}
					l := s.Log()
					require.Equal(t, want, l.Bytes)
					require.EqualValues(t, 3*appends, l.Entries)
					if c.Layout != layoutArray && appends > 1000 {
						require.Positive(t, l.Resets)
					}
					load(t, s, func(one *session) error { return readSome(c, one, sizes) })
					proof := verify(t, s)
					require.Empty(t, proof.Wrong)
					require.Equal(t, proof.Acknowledged, proof.Verified)
					require.Equal(t, appends > 0, proof.Acknowledged > 0)
					at.Fresh, at.Epoch = false, at.Epoch+1
				}
			})
		}
	}
}

// TestADamagedStampHidesOneEntry of a channel, whose entries have many sizes: those behind it are found by their own.
func TestADamagedStampHidesOneEntry(t *testing.T) {
	at := siteOf(t, 1)
	at.Value.Size, at.Sizes = 900, &driver.Sizes{Least: 16, Most: 900}
	s := open(t, config(t, func(c *Config) { c.Layout = layoutChannel }), at)
	require.NoError(t, do(s.sessions[0], driver.Append, 50, 0))
	off, path := 0, s.path(s.files[0].name)
	for number := range uint64(10) {
		off += s.form.Kind.size(markOf(3, number+1))
	}
	claim, err := s.Close()
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[off] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	proof, err := Driver{}.Verify(claim)
	require.NoError(t, err)
	require.NotEmpty(t, proof.Wrong)
	require.EqualValues(t, 49, proof.Verified)
	c, err := Inspect(path)
	require.NoError(t, err)
	require.Equal(t, []string{"entry 11 of session 3 has lost its stamp"}, c.Damage.First)
	require.EqualValues(t, 49, c.Epochs[0].Entries)
}

// readSome reads a session's entries, each of which has its size, until there are no more.
func readSome(c *Config, one *session, sizes *driver.Sizes) error {
	for c.Layout != layoutArray {
		var reply driver.Reply
		if err := one.Do(&driver.Request{Verb: driver.Read}, &reply); err != nil || reply.Outcome == driver.Miss {
			return err
		}
		if m := markIn(reply.Value); len(reply.Value) != sizes.Of(mix(uint64(m))) {
			return fmt.Errorf("%v has %d bytes", m, len(reply.Value))
		}
	}
	return nil
}

// TestMixedOps has sessions write, read and clear the same log, or the same slots.
func TestMixedOps(t *testing.T) {
	for name, change := range variants {
		t.Run(name, func(t *testing.T) {
			c := config(t, change)
			for _, pools := range []bool{false, true} {
				at := siteOf(t, 3)
				at.Pools = pools
				s := open(t, c, at)
				load(t, s, func(one *session) error {
					verbs := []driver.Verb{driver.Append, driver.Append, driver.Append, driver.Read, driver.Write, driver.Clear}
					for range 300 {
						v := verbs[rand.IntN(len(verbs))]
						if (Driver{}).Check(c, v) != nil {
							continue
						}
						if err := do(one, v, 1+rand.IntN(4), 10); err != nil {
							return err
						}
					}
					return do(one, driver.Append, 1, 0)
				})
				whole(t, verify(t, s))
			}
		})
	}
}

// TestSecondPhase appends to what an earlier phase has left.
func TestSecondPhase(t *testing.T) {
	for _, appends := range []int{50, 700} {
		for name, change := range variants {
			t.Run(fmt.Sprintf("%s %d", name, appends), func(t *testing.T) {
				c, at := config(t, change), siteOf(t, 2)
				s := open(t, c, at)
				load(t, s, func(one *session) error { return do(one, driver.Append, 100, 0) })
				whole(t, verify(t, s))
				at.Fresh, at.Epoch = false, 78
				s = open(t, c, at)
				load(t, s, func(one *session) error { return do(one, driver.Append, appends, 0) })
				whole(t, verify(t, s))
			})
		}
	}
}

// TestRawFilesOfNewBlocks begin again once, and have new blocks from then on, as in the next phase: what was in them before is gone.
func TestRawFilesOfNewBlocks(t *testing.T) {
	for prealloc, size := range map[string]int64{"fallocate": 64 << 10, "none": 45 * 100} {
		t.Run(prealloc, func(t *testing.T) {
			c := config(t, func(c *Config) { c.Layout, c.Sync, c.Share, c.Prealloc = layoutRaw, "fdatasync", "session", prealloc })
			at := siteOf(t, 2)
			for range 2 {
				s := open(t, c, at)
				load(t, s, func(one *session) error {
					return do(one, driver.Append, int((one.turns.to-one.turns.from)/int64(s.form.Kind.Size))+45, 0)
				})
				l := s.Log()
				require.Equal(t, prealloc, l.Prealloc)
				require.EqualValues(t, 2, l.Resets)
				require.NotContains(t, strings.Join(l.Caveats, " "), "fallocate")
				proof := verify(t, s)
				whole(t, proof)
				require.EqualValues(t, 2*45, proof.Acknowledged)
				require.Equal(t, proof.Acknowledged, proof.Recovered)
				info, err := os.Stat(s.path(s.files[0].name))
				require.NoError(t, err)
				require.Equal(t, size, info.Size())
				at.Fresh, at.Epoch = false, at.Epoch+1
			}
			require.ErrorContains(t, Driver{}.Check(c, driver.Read), "have nothing to read")
			s := open(t, c, at)
			proof := verify(t, s)
			require.Empty(t, proof.Wrong, "nothing was written")
			require.Zero(t, proof.Acknowledged)
			require.NoError(t, s.Remove())
		})
	}
}

// TestRawFilesOpenedForDurableWrites are written to their end and from the beginning again, in two phases.
func TestRawFilesOpenedForDurableWrites(t *testing.T) {
	for _, sync := range []string{"o_dsync", "o_direct"} {
		for _, change := range []func(c *Config){func(*Config) {}, func(c *Config) { c.CRC, c.Share, c.Prealloc = true, "session", "fallocate" }} {
			c := config(t, func(c *Config) { c.Layout, c.Sync, c.FileSize = layoutRaw, sync, 16<<10; change(c) })
			at := siteOf(t, 2)
			at.Value.Size = 4096
			for range 2 {
				s := open(t, c, at)
				load(t, s, func(one *session) error { return do(one, driver.Append, 5, 0) })
				l := s.Log()
				require.Equal(t, []string{sync, sync}, []string{l.SyncAsked, l.SyncUsed})
				require.EqualValues(t, 10, l.Forces)
				require.Positive(t, l.Resets)
				place := s.files[0].regions[0].Place()
				require.Equal(t, place.Keeps(), l.Durable)
				require.Equal(t, pmem.DiskOf(pmem.Fdatasync, place).NoBytes, s.Device().NoBytes, "they write to the device as fdatasync does")
				whole(t, verify(t, s))
				at.Fresh, at.Epoch = false, at.Epoch+1
			}
			if sync == "o_direct" {
				require.ErrorContains(t, Driver{}.Check(c, driver.Read), "leave the op read out")
			}
		}
	}
}

// TestBlocksThatAreNoLongerNewAreNamed: only what a log writes to a block first is of a new block.
func TestBlocksThatAreNoLongerNewAreNamed(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutRaw} {
		s := open(t, config(t, func(c *Config) { c.Layout, c.Prealloc = layout, "fallocate" }), siteOf(t, 2))
		require.NoError(t, do(s.sessions[0], driver.Append, 100, 0))
		require.NotContains(t, strings.Join(s.Log().Caveats, " "), "more than once")
		require.NoError(t, do(s.sessions[0], driver.Append, 1000, 0))
		require.Contains(t, strings.Join(s.Log().Caveats, " "), "some of the blocks that fallocate reserved were written more than once")
		whole(t, verify(t, s))
	}
}

// TestFullOfLargerEntries appends to a log that an earlier phase has filled with few large entries: it is full, though not by their number.
func TestFullOfLargerEntries(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutChannel} {
		for _, clears := range []string{"inside", "outside"} {
			t.Run(layout+" "+clears, func(t *testing.T) {
				c, at := config(t, func(c *Config) { c.Layout, c.Full = layout, clears }), siteOf(t, 2)
				at.Value.Size = 10_000
				s := open(t, c, at)
				require.NoError(t, do(s.sessions[0], driver.Append, 6, 0))
				whole(t, verify(t, s))
				at.Fresh, at.Epoch, at.Value.Size = false, 78, 5000
				s = open(t, c, at)
				load(t, s, func(one *session) error { return do(one, driver.Append, 10, 0) })
				require.Positive(t, s.Log().Resets)
				whole(t, verify(t, s))
			})
		}
	}
}

// TestEntriesAreReadInOrder reads a log that one session has written: each entry, then a miss, and again from the beginning.
func TestEntriesAreReadInOrder(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutChannel} {
		c := config(t, func(c *Config) { c.Layout = layout })
		s := open(t, c, siteOf(t, 1))
		one, check := s.sessions[0], newChecker(s.form.Kind)
		require.NoError(t, do(one, driver.Append, 5, 0))
		for range 2 {
			for i := range 5 {
				var reply driver.Reply
				require.NoError(t, one.Do(&driver.Request{Verb: driver.Read}, &reply))
				m, ok := check.read(reply.Value)
				require.True(t, ok)
				require.Equal(t, markOf(3, uint64(i+1)), m)
			}
			reply := driver.Reply{}
			require.NoError(t, one.Do(&driver.Request{Verb: driver.Read}, &reply))
			require.Equal(t, driver.Miss, reply.Outcome)
		}
		whole(t, verify(t, s))
	}
}

// TestARawFileIsReadToItsLastWholeEntry reads a file whose size is not a multiple of an entry's.
func TestARawFileIsReadToItsLastWholeEntry(t *testing.T) {
	s := open(t, config(t, func(c *Config) { c.Layout, c.FileSize = layoutRaw, 10_050 }), siteOf(t, 1))
	entries := 10_050 / s.form.Kind.Size
	require.Positive(t, 10_050%s.form.Kind.Size)
	require.NoError(t, do(s.sessions[0], driver.Append, entries, 0))
	for i := range 2 * (entries + 1) {
		var reply driver.Reply
		require.NoError(t, s.sessions[0].Do(&driver.Request{Verb: driver.Read}, &reply))
		require.Equal(t, i%(entries+1) == entries, reply.Outcome == driver.Miss)
	}
	whole(t, verify(t, s))
}

// TestSessionsReadTheirPartsOfARawFile reads what each session has written, then has a miss, and again from the beginning of its part.
func TestSessionsReadTheirPartsOfARawFile(t *testing.T) {
	s := open(t, config(t, func(c *Config) { c.Layout = layoutRaw }), siteOf(t, 2))
	load(t, s, func(one *session) error {
		return do(one, driver.Append, int((one.turns.to-one.turns.from)/int64(s.form.Kind.Size)), 0)
	})
	check := newChecker(s.form.Kind)
	for _, one := range s.sessions {
		for range 2 {
			for i := range uint64(one.turns.to-one.turns.from) / uint64(s.form.Kind.Size) {
				var reply driver.Reply
				require.NoError(t, one.Do(&driver.Request{Verb: driver.Read}, &reply))
				m, ok := check.read(reply.Value)
				require.True(t, ok)
				require.Equal(t, markOf(one.id, i+1), m)
			}
			var reply driver.Reply
			require.NoError(t, one.Do(&driver.Request{Verb: driver.Read}, &reply))
			require.Equal(t, driver.Miss, reply.Outcome)
		}
	}
	whole(t, verify(t, s))
}

// TestFullLogThatIsNeverCleared: appending to it is an error of the op, and of nothing else.
func TestFullLogThatIsNeverCleared(t *testing.T) {
	s := open(t, config(t, func(c *Config) { c.Full = "never" }), siteOf(t, 2))
	require.ErrorContains(t, do(s.sessions[0], driver.Append, 1000, 0), "the log is full")
	require.Empty(t, s.Log().Failure)
	require.Zero(t, s.Log().Resets)
	require.NoError(t, do(s.sessions[1], driver.Clear, 1, 0))
	require.NoError(t, do(s.sessions[1], driver.Append, 10, 0))
	whole(t, verify(t, s))
}

// unclearable is a volume that cannot be cleared.
type unclearable struct{ volume }

func (unclearable) clear() error { return errors.New("no") }

// TestOnlyClearsThatWereDoneAreCounted fills a log that cannot be cleared.
func TestOnlyClearsThatWereDoneAreCounted(t *testing.T) {
	for _, clears := range []string{"inside", "outside"} {
		s := open(t, config(t, func(c *Config) { c.Full = clears }), siteOf(t, 2))
		s.files[0].volume = unclearable{s.files[0].volume}
		for _, one := range s.sessions {
			require.ErrorContains(t, do(one, driver.Append, 1000, 0), "no")
		}
		require.Zero(t, s.Log().Resets)
	}
}

// liar acknowledges each every-th entry without writing it.
type liar struct {
	appender
	n, every int
}

func (l *liar) Append(p []byte) (uint64, error) {
	if l.n++; l.n%l.every == 0 {
		return 0, nil
	}
	return l.appender.Append(p)
}

// TestLiesAreFound: acknowledged entries are missing, damaged, duplicated, or somebody else's.
func TestLiesAreFound(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutChannel, layoutArray, layoutRaw} {
		c := config(t, func(c *Config) { c.Layout = layout })
		filled := func(t *testing.T) (*store, localfile.Site) {
			at := siteOf(t, 2)
			at.Value.Fill = driver.Fill{Alike: true, Byte: 0xff}
			s := open(t, c, at)
			load(t, s, func(one *session) error { return do(one, driver.Append, 50, 0) })
			return s, at
		}
		caught := func(t *testing.T, p localfile.Proof, says string) {
			t.Helper()
			require.NotEmpty(t, p.Wrong)
			require.Contains(t, p.Wrong[0], says)
			require.Less(t, p.Verified, p.Acknowledged)
		}
		if layout != layoutArray {
			t.Run(layout+": acknowledged without writing", func(t *testing.T) {
				s := open(t, c, siteOf(t, 1))
				s.sessions[0].log = &liar{appender: s.sessions[0].log, every: 7}
				require.NoError(t, do(s.sessions[0], driver.Append, 50, 0))
				caught(t, verify(t, s), "")
			})
		}
		t.Run(layout+": a byte differs", func(t *testing.T) {
			s, at := filled(t)
			claim, err := s.Close()
			require.NoError(t, err)
			path := filepath.Join(at.Root, "wal-w0.pmlog")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			for i := range b { // in every entry
				if b[i] == 0xff && (i == 0 || b[i-1] != 0xff) {
					b[min(i+40, len(b)-1)] ^= 1
				}
			}
			require.NoError(t, os.WriteFile(path, b, 0o600))
			proof, err := Driver{}.Verify(claim)
			require.NoError(t, err)
			caught(t, proof, "wal-w0.pmlog: ")
		})
		t.Run(layout+": more was acknowledged", func(t *testing.T) {
			s, _ := filled(t)
			if s.files[0].slots != nil {
				s.files[0].slots[0].acked++
				s.files[0].slots[0].issued++
			} else {
				s.sessions[1].acked++
			}
			caught(t, verify(t, s), "acknowledged")
		})
		t.Run(layout+": what was never issued", func(t *testing.T) {
			s, _ := filled(t)
			if s.files[0].slots != nil {
				s.files[0].slots[0].acked, s.files[0].slots[0].issued = markOf(3, 999), markOf(3, 999)
			} else {
				s.sessions[0].acked, s.sessions[0].issued = 49, 49
			}
			proof := verify(t, s)
			require.NotEmpty(t, proof.Wrong)
		})
		t.Run(layout+": of another phase", func(t *testing.T) {
			s, _ := filled(t)
			s.form.Kind.Epoch++
			caught(t, verify(t, s), "this phase")
		})
		t.Run(layout+": the file is gone", func(t *testing.T) {
			s, at := filled(t)
			claim, err := s.Close()
			require.NoError(t, err)
			require.NoError(t, os.Remove(filepath.Join(at.Root, "wal-w0.pmlog")))
			proof, err := Driver{}.Verify(claim)
			require.NoError(t, err)
			caught(t, proof, "no such file")
			require.NotZero(t, proof.Acknowledged)
			require.Zero(t, proof.Verified)
		})
	}
	_, err := Driver{}.Verify([]byte("no claim"))
	require.ErrorContains(t, err, "claim about log files")
}

// What is read comes from memory, and a phase that reads says so.
func TestReadsSayThatTheyAreOfThePageCache(t *testing.T) {
	s := open(t, config(t, func(c *Config) { c.Sync = string(pmem.Fdatasync) }), siteOf(t, 1))
	require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
	said := func() bool { return strings.Contains(strings.Join(s.Log().Caveats, "\n"), "page cache") }
	require.False(t, said())
	require.NoError(t, do(s.sessions[0], driver.Read, 1, 0))
	require.Equal(t, !s.files[0].regions[0].Place().Volatile(), said())
	whole(t, verify(t, s))
}

// One flipped bit spoils one entry, and those after it still count.
func TestAFlippedBitSpoilsOneEntry(t *testing.T) {
	for _, layout := range []string{layoutAppend, layoutChannel, layoutRaw} {
		at := siteOf(t, 1)
		s := open(t, config(t, func(c *Config) { c.Layout = layout }), at)
		require.NoError(t, do(s.sessions[0], driver.Append, 100, 0))
		claim, err := s.Close()
		require.NoError(t, err)
		path := filepath.Join(at.Root, "wal-w0.pmlog")
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var stamp [localfile.StampSize]byte
		s.form.Kind.stamp(stamp[:], markOf(3, 11))
		b[bytes.Index(b, stamp[:])+50] ^= 1
		require.NoError(t, os.WriteFile(path, b, 0o600))
		proof, err := Driver{}.Verify(claim)
		require.NoError(t, err)
		require.NotEmpty(t, proof.Wrong, layout)
		require.EqualValues(t, []uint64{100, 99}, []uint64{proof.Acknowledged, proof.Verified}, "%s: %q", layout, proof.Wrong)
	}
}

// TestAFlippedBitOfEachByteIsSeen in small logs that a kill has left, or nothing protects it: padding, what later entries have replaced, an array's last entry,
// and the filling of a channel's entries but for the last one's.
func TestAFlippedBitOfEachByteIsSeen(t *testing.T) {
	const entries, size, keys = 6, 40, 4
	copies := [][2]int{{0, 128}, {4096, 4096 + 128}}
	for layout, parts := range map[string][2][][2]int{ // the bytes of the log and of its side file in which each flip is seen
		layoutAppend: {append(copies, [][2]int{{8192, 8192 + 64}, {8256, 8256 + 64}, {8320, 8320 + 64}, {8384, 8384 + 64}, {8448, 8448 + 64}, {8512, 8512 + 64}}...)},
		// Slots have two copies of 64 bytes, written in turn, the second one first: entry 5 is in the first one of slot 0.
		layoutArray:   {append(copies, [][2]int{{8192, 8256}, {8512, 8576}, {8640, 8704}}...)},
		layoutChannel: {{{0, 16}, {40, 56}, {80, 96}, {120, 136}, {160, 176}, {200, 240}}, append(copies, [2]int{8192 + 64, 8192 + 64 + 24})},
	} {
		at := siteOf(t, 1)
		at.Value.Size, at.Keys = size, keys
		s := open(t, config(t, func(c *Config) { c.Layout, c.FileSize = layout, 16<<10 }), at)
		require.NoError(t, do(s.sessions[0], driver.Append, entries, 0))
		path := filepath.Join(t.TempDir(), "wal-w0.pmlog")
		held := uint64(entries)
		if layout == layoutArray {
			held = keys
		}
		flipped := func(name string, b []byte, off, bit int) (seen bool) {
			b[off] ^= 1 << bit
			require.NoError(t, os.WriteFile(name, b, 0o600))
			b[off] ^= 1 << bit
			c, err := Inspect(path)
			if err == nil {
				c.Expect(held)
			}
			return err != nil || !c.Whole() || c.Wrong[0] != nil || c.Wrong[1] != nil
		}
		var files [2][]byte
		for i, name := range []string{s.files[0].name, sideName(s.files[0].name)} {
			b, err := os.ReadFile(s.path(name))
			if i == 0 || layout == layoutChannel {
				require.NoError(t, err)
				require.NoError(t, os.WriteFile([]string{path, sideName(path)}[i], b, 0o600))
			}
			files[i] = b
		}
		for i, b := range files {
			name := []string{path, sideName(path)}[i]
			for off := range b {
				inside := slices.ContainsFunc(parts[i], func(p [2]int) bool { return p[0] <= off && off < p[1] })
				if bit := off % 7; inside || off%61 == 0 {
					require.Equal(t, inside, flipped(name, b, off, bit), "%s, bit %d of byte %d of %s", layout, bit, off, name)
				}
			}
			if b != nil {
				require.NoError(t, os.WriteFile(name, b, 0o600))
			}
		}
	}
}

// TestFailureIsFinal truncates the file below a session: its op fails, later ones do, and what was acknowledged before cannot be verified.
func TestFailureIsFinal(t *testing.T) {
	s := open(t, config(t, func(c *Config) { c.Sync = string(pmem.Msync) }), siteOf(t, 1))
	require.NoError(t, do(s.sessions[0], driver.Append, 10, 0))
	require.NoError(t, os.Truncate(filepath.Join(s.root.Name(), "wal-w0.pmlog"), 0))
	err := do(s.sessions[0], driver.Append, 10, 0)
	require.ErrorIs(t, err, pmem.ErrPoisoned)
	require.ErrorContains(t, err, "wal-w0.pmlog: ")
	require.ErrorIs(t, do(s.sessions[0], driver.Append, 1, 0), pmem.ErrPoisoned)
	l := s.Log()
	require.EqualValues(t, 1000, l.Bytes)
	require.Equal(t, err.Error(), l.Failure)
	proof := verify(t, s)
	require.EqualValues(t, []uint64{10, 0}, []uint64{proof.Acknowledged, proof.Verified})
	require.Contains(t, proof.Wrong[0], "wal-w0.pmlog: only regular files are read, and none that is empty")
	require.NoError(t, s.Remove())
}

// TestPlantedPipesDoNotHold: somebody has put a pipe in the place of MadeName or of a log. Nothing waits for it.
func TestPlantedPipesDoNotHold(t *testing.T) {
	at := t.TempDir()
	root, err := os.OpenRoot(at)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, errors.Join(unix.Mkfifo(filepath.Join(at, localfile.MadeName), 0o600), unix.Mkfifo(filepath.Join(at, "log"), 0o600)))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(at, "zero")))
	done := make(chan error, 1)
	go func() {
		if _, err := localfile.OpenDir(root, "log"); !errors.Is(err, unix.ENOTDIR) {
			done <- fmt.Errorf("opened as a directory: %w", err)
		}
		done <- localfile.Mark(root, ".")
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a reader of the pipe")
	}
	for name, want := range map[string]string{"log": "want a regular file", "zero": "no link to one"} {
		_, err := pmem.OpenIn(root, name, pmem.None)
		require.ErrorContains(t, err, want)
	}
}

func TestFilesStayBelowTheRoot(t *testing.T) {
	outside := t.TempDir()
	at := siteOf(t, 1)
	require.NoError(t, os.Symlink(outside, filepath.Join(at.Root, "link")))
	require.NoError(t, os.MkdirAll(filepath.Join(at.Root, "there"), 0o700))
	require.NoError(t, os.Symlink("there", filepath.Join(at.Root, "inside")))
	require.NoError(t, os.Symlink("../there", filepath.Join(at.Root, "there", "inside")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(at.Root, "wal-w0.pmlog")))
	for dir, says := range map[string]string{
		"..": "write a path below it, without ..", "a/../../b": "is not below", outside: "is not below", filepath.Dir(at.Root): "write another dir, or --log-root " + filepath.Dir(at.Root), "/": "is not below", "link": "it is a symbolic link: write a dir that can be made below ", "link/a": "it is a symbolic link", "inside": "it is a symbolic link", "there/inside/a": "it is a symbolic link",
		"": "has the name of a log file",
	} {
		_, err := Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Dir = dir }), at)
		require.ErrorContains(t, err, says, dir)
	}
	for _, dir := range []string{"a/b", filepath.Join(at.Root, "c")} {
		s := open(t, config(t, func(c *Config) { c.Dir = dir }), at)
		require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
		whole(t, verify(t, s))
		require.NoError(t, s.Remove())
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLinksAreNotFollowed: somebody with write access below the root puts links in the place of a log and of its directory, after the phase that made
// them. Neither a later phase nor the verification reads what they lead to.
func TestLinksAreNotFollowed(t *testing.T) {
	at := siteOf(t, 1)
	c := config(t, func(c *Config) { c.Dir = "mine/logs" })
	s := open(t, c, at)
	require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
	claim, err := s.Close()
	require.NoError(t, err)
	mine := filepath.Join(at.Root, "mine")
	proof, err := Driver{}.Verify(claim)
	require.NoError(t, err)
	whole(t, proof)

	require.NoError(t, os.Rename(filepath.Join(mine, "logs", "wal-w0.pmlog"), filepath.Join(mine, "other")))
	require.NoError(t, os.Symlink("../other", filepath.Join(mine, "logs", "wal-w0.pmlog")))
	proof, err = Driver{}.Verify(claim)
	require.NoError(t, err)
	require.Contains(t, strings.Join(proof.Wrong, " "), "only regular files are read")

	require.NoError(t, os.Rename(filepath.Join(mine, "logs"), filepath.Join(mine, "elsewhere")))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(mine, "logs")))
	_, err = Driver{}.Verify(claim)
	require.ErrorContains(t, err, "it is a symbolic link")
	_, err = Driver{}.Open(t.Context(), c, at)
	require.ErrorContains(t, err, "it is a symbolic link")
}

func TestFilesOfOtherRuns(t *testing.T) {
	c, at := config(t, nil), siteOf(t, 1)
	s := open(t, c, at)
	_, err := Driver{}.Open(t.Context(), c, at)
	require.ErrorIs(t, err, pmem.ErrLocked)
	require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
	_, err = s.Close()
	require.NoError(t, err)
	again := open(t, c, at) // what a killed worker has left
	require.NoError(t, do(again.sessions[0], driver.Append, 1, 0))
	whole(t, verify(t, again))
}

func TestWhatDoesNotFit(t *testing.T) {
	at := siteOf(t, 3)
	at.Value.Size = 1 << 20
	for _, layout := range []string{layoutAppend, layoutChannel, layoutRaw} {
		_, err := Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Layout = layout }), at)
		require.ErrorContains(t, err, "does not hold an entry of 1 MiB; write a larger file_size", layout)
	}
	_, err := Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Layout, c.Sync, c.Prealloc = layoutRaw, "fdatasync", "none" }), siteOf(t, 3))
	require.ErrorContains(t, err, `only one can extend it; write share = "session"`)
	_, err = Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Layout, c.FileSize = layoutRaw, 2<<20 }), at)
	require.ErrorContains(t, err, "2 entries fit into the file, and it has 3 sessions")
	_, err = Driver{}.Need(config(t, func(c *Config) { c.Layout, c.Sync = layoutRaw, "o_direct" }), siteOf(t, 1))
	require.ErrorContains(t, err, `entries of 100 bytes, and sync = "o_direct" writes whole blocks of 512; write a multiple of 512 as the size of the dataset's values, or sync = "o_dsync"`)
	many := siteOf(t, 1)
	many.Value.Size, many.Sizes = 1024, &driver.Sizes{Least: 512, Most: 1024}
	_, err = Driver{}.Need(config(t, func(c *Config) { c.Layout, c.Sync = layoutRaw, "o_direct" }), many)
	require.ErrorContains(t, err, `entries of many sizes with sync = "o_direct", which writes whole blocks; write one size`)
	at.Keys, at.Value.Size = 2, 100
	_, err = Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Layout = layoutArray }), at)
	require.ErrorContains(t, err, "2 slots for 3 sessions; write keys { count = 3 }")
	_, err = Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Sync = string(pmem.MapSync) }), at)
	require.ErrorIs(t, err, pmem.ErrUnsupported)
	left, err := os.ReadDir(at.Root)
	require.NoError(t, err)
	require.Empty(t, left, "what was begun is gone")
}

// TestFilesThatCannotBeHad tries places that accept no files, and files of earlier phases that somebody has deleted or that are too small.
func TestFilesThatCannotBeHad(t *testing.T) {
	at := siteOf(t, 1)
	at.Root = "/proc"
	_, err := Driver{}.Open(t.Context(), config(t, nil), at)
	require.ErrorContains(t, err, "create /proc/wal-w0.pmlog: no such file or directory: let this user make files in /proc, or write another --log-root")
	at = siteOf(t, 1)
	at.Fresh = false
	_, err = Driver{}.Open(t.Context(), config(t, nil), at)
	require.ErrorContains(t, err, "no such file or directory; let nobody else change files below --log-root")
	at.Fresh = true
	array := config(t, func(c *Config) { c.Layout = layoutArray })
	_, err = open(t, array, at).Close()
	require.NoError(t, err)
	at.Fresh, at.Keys = false, 11
	_, err = Driver{}.Open(t.Context(), array, at)
	require.ErrorContains(t, err, "11 slots of 100 bytes where an earlier phase made 10 of 100; write no more keys")
	at.Keys, at.Value.Size = 9, 100
	whole(t, func() localfile.Proof {
		s := open(t, array, at)
		require.NoError(t, do(s.sessions[0], driver.Append, 20, 0))
		return verify(t, s)
	}())
}

// TestSmallestFiles are of each layout that has a file_size.
func TestSmallestFiles(t *testing.T) {
	for layout, size := range map[string]driver.Size{layoutChannel: 4096, layoutRaw: 4096, layoutAppend: 8192 + 128} {
		s := open(t, config(t, func(c *Config) { c.Layout, c.FileSize = layout, size }), siteOf(t, 1))
		require.NoError(t, do(s.sessions[0], driver.Append, 100, 0), layout)
		whole(t, verify(t, s))
	}
}

func TestConfigs(t *testing.T) {
	require.NoError(t, Driver{}.NewConfig().(*Config).Validate())
	for says, change := range map[string]func(c *Config){
		`layout is "tree"`:  func(c *Config) { c.Layout = "tree" },
		`sync is "fsync"`:   func(c *Config) { c.Sync = "fsync" },
		`share is "all"`:    func(c *Config) { c.Share = "all" },
		`clear is ""`:       func(c *Config) { c.Full = "" },
		"file_size is 10 ":  func(c *Config) { c.FileSize = 10 },
		`prealloc is "all"`: func(c *Config) { c.Prealloc = "all" },
		`prealloc is "none", which needs sync = "fdatasync"`: func(c *Config) { c.Layout, c.Prealloc = layoutRaw, "none" },
		`prealloc = "none" is for the layouts ["raw"]`:       func(c *Config) { c.Prealloc, c.Sync = "none", "fdatasync" },
		"padding is 7":     func(c *Config) { c.Padding = 7 },
		`order is "loose"`: func(c *Config) { c.Order = "loose" },
		`commit is "hope"`: func(c *Config) { c.Commit = "hope" },
		"erase is for":     func(c *Config) { c.Erase = true },
		`sync = "o_dsync" is for the layouts ["raw"]; leave it out with "append"`: func(c *Config) { c.Sync = "o_dsync" },
		`sync = "o_direct" is for the layouts ["raw"]`:                            func(c *Config) { c.Sync, c.Layout = "o_direct", layoutArray },
		`sync_every with sync = "o_direct", which has no sync to share`:           func(c *Config) { c.Layout, c.Sync, c.SyncEvery = layoutRaw, "o_direct", new("100") },
		`prealloc is "none", which needs sync = "fdatasync": `:                    func(c *Config) { c.Layout, c.Sync, c.Prealloc = layoutRaw, "o_dsync", "none" },
		"padding is for the layouts":                                              func(c *Config) { c.Layout, c.Padding = layoutRaw, 256 },
		`clear = "never" is for the layouts`:                                      func(c *Config) { c.Layout, c.Full = layoutRaw, "never" },
		`clear = "outside" is for the layouts`:                                    func(c *Config) { c.Layout, c.Full = layoutArray, "outside" },
		"crc is for":                                                              func(c *Config) { c.CRC = true },
		"order is for":                                                            func(c *Config) { c.Layout, c.Order = layoutRaw, "relaxed" },
		"commit is for":                                                           func(c *Config) { c.Layout, c.Commit = layoutChannel, "length" },
		`commit is "length", which needs order = "strict"`:                        func(c *Config) { c.Order, c.Commit = "relaxed", "length" },
		`commit is "length", which needs padding = 64 or 256`:                     func(c *Config) { c.Padding, c.Commit = 8, "length" },
	} {
		c := Driver{}.NewConfig().(*Config)
		change(c)
		require.ErrorContains(t, c.Validate(), says)
	}
}

// TestAppendDoesNotAllocate measures a whole op, including entry and stamp.
func TestAppendDoesNotAllocate(t *testing.T) {
	for name, change := range variants {
		s := open(t, config(t, change), siteOf(t, 1))
		one, req, reply := s.sessions[0], &driver.Request{Verb: driver.Append, Value: &driver.Value{}}, &driver.Reply{}
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if one.Prepare(req) != nil || one.Do(req, reply) != nil {
				t.Error("append")
			}
		}), name)
		whole(t, verify(t, s))
	}
}

// TestOneForceAnAppend counts fences of a log that commits by checksum and has room.
// Each op that waits for a device adds to how long its session has waited, in each layout, and across segments. Where nothing waits, it says so.
func TestSessionsKnowHowLongTheyWaited(t *testing.T) {
	for layout, change := range map[string]func(c *Config){
		"append": nil, "raw": func(c *Config) { c.Layout = layoutRaw }, "channel": func(c *Config) { c.Layout = layoutChannel },
		"array": func(c *Config) { c.Layout = layoutArray }, "segments": func(c *Config) { c.Full, c.Prealloc, c.FileSize = rotate, recycle, 12<<10 },
	} {
		s := open(t, config(t, func(c *Config) {
			if c.Sync = "fdatasync"; change != nil {
				change(c)
			}
		}), siteOf(t, 1))
		before := time.Duration(0)
		for range 100 {
			require.NoError(t, do(s.sessions[0], driver.Append, 1, 0))
			all, measured := s.sessions[0].Waited()
			require.True(t, measured, layout)
			require.Greater(t, all, before, layout)
			before = all
		}
		require.Equal(t, layout == "segments", s.files[0].resets.Load() > 0)
		require.Empty(t, s.Log().Untimed)
		whole(t, verify(t, s))
	}
	s := open(t, config(t, nil), siteOf(t, 1))
	_, measured := s.sessions[0].Waited()
	require.False(t, measured)
	require.Equal(t, `with sync = "none", nothing waits until it is durable`, s.Log().Untimed)
}

func TestOneForceAnAppend(t *testing.T) {
	for layout, forces := range map[string]uint64{layoutAppend: 100, layoutArray: 100, layoutRaw: 100, layoutChannel: 200} {
		s := open(t, config(t, func(c *Config) { c.Layout = layout }), siteOf(t, 1))
		require.NoError(t, do(s.sessions[0], driver.Append, 100, 0))
		require.Equal(t, forces, s.Log().Forces, layout)
		whole(t, verify(t, s))
	}
}

// TestOverlayIsAsDurableAsWhatIsBeneath mounts an overlay over a file system in memory, where a sync promises nothing, one over a disk in memory, and one
// whose directories are no longer visible, as in a container.
func TestOverlayIsAsDurableAsWhatIsBeneath(t *testing.T) {
	disk := servertest.NewDisk(t)
	beneath, merged := t.TempDir(), t.TempDir()
	mount := func(source, at, kind, options string) {
		if err := unix.Mount(source, at, kind, 0, options); err != nil {
			servertest.Require(t, "mount", fmt.Errorf("mount %s: %w", kind, err))
		}
		t.Cleanup(func() { require.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) })
	}
	mount("tmpfs", beneath, "tmpfs", "size=8m")
	for _, c := range []struct {
		upper, says, caveat string
		hidden              bool
	}{
		{upper: disk.Dir, says: "overlay over ext4", caveat: "is kept in memory (tmpfs)"}, // the disk is a loop device
		{upper: beneath, says: "overlay over tmpfs", caveat: "overlay over tmpfs lives in memory"},
		{upper: disk.Dir, says: "overlay", caveat: "nothing is called durable", hidden: true},
	} {
		t.Run(c.says, func(t *testing.T) {
			dir, err := os.MkdirTemp(c.upper, "layer")
			require.NoError(t, err)
			for _, name := range []string{"lower", "upper,1", "work"} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			}
			mount("overlay", merged, "overlay", fmt.Sprintf(`lowerdir=%s/lower,upperdir=%[1]s/upper\,1,workdir=%[1]s/work`, dir))
			if c.hidden {
				require.NoError(t, os.Rename(filepath.Join(dir, "upper,1"), filepath.Join(dir, "elsewhere")))
			}
			at := siteOf(t, 1)
			at.Root = merged
			s := open(t, config(t, func(c *Config) { c.Sync = string(pmem.Msync) }), at)
			l := s.Log()
			require.Equal(t, c.says, l.FileSystem)
			require.False(t, l.Durable)
			require.Contains(t, l.Caveats[0], c.caveat)
			_, err = s.Close()
			require.NoError(t, err)
			require.NoError(t, s.Remove())
		})
	}
}

// TestDirectoriesGoWithTheirLogs: those that were made for the logs, and no others.
func TestDirectoriesGoWithTheirLogs(t *testing.T) {
	at := siteOf(t, 1)
	require.NoError(t, os.Mkdir(filepath.Join(at.Root, "mine"), 0o700))
	c := config(t, func(c *Config) { c.Dir = "mine/made/deep" })
	close := func(s *store) {
		_, err := s.Close()
		require.NoError(t, err)
		require.NoError(t, s.Remove())
	}
	left := func() (names []string) {
		require.NoError(t, filepath.WalkDir(at.Root, func(path string, _ os.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(path, at.Root))
			return err
		}))
		return names
	}
	first := open(t, c, at)
	other := at
	other.Worker = 1
	second := open(t, c, other)
	close(first)
	require.FileExists(t, second.path("wal-w1.pmlog"))
	close(second)
	require.Equal(t, []string{"", "/mine"}, left())

	// Also what was made before something else failed, or turned out to be a file.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Driver{}.Open(ctx, c, at)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.WriteFile(filepath.Join(at.Root, "mine", "file"), nil, 0o600))
	_, err = Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Dir = "mine/file" }), at)
	require.ErrorContains(t, err, "not a directory: write a dir that can be made below "+at.Root)
	require.Equal(t, []string{"", "/mine", "/mine/file"}, left())

	third := open(t, c, at)
	require.NoError(t, os.WriteFile(third.path("notes"), nil, 0o600))
	close(third)
	require.FileExists(t, third.path("notes"))
}

// TestDirectoriesComeAndGo runs many runs at the same time: one's last file is removed as another's first is made.
func TestDirectoriesComeAndGo(t *testing.T) {
	c, at := config(t, func(c *Config) { c.Dir, c.FileSize = "a/b", 16<<10 }), siteOf(t, 1)
	var runs errgroup.Group
	for worker := range 4 {
		at := at
		at.Worker = worker
		runs.Go(func() error {
			for range 40 {
				s, err := Driver{}.Open(t.Context(), c, at)
				if err != nil {
					return err
				}
				if _, err = s.Close(); err != nil {
					return err
				}
				if err = s.Remove(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, runs.Wait())
	left, err := os.ReadDir(at.Root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestFilesOfOthersAreLeftAlone even if they have a log's name.
func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	for _, text := range []string{"x", "what somebody wrote\n", strings.Repeat("\x00", 16) + "x", strings.Repeat("{\"level\":\"info\"}\n", 1000)} {
		for _, name := range []string{"wal-w0.pmlog", "wal-w0.pmlog.side"} {
			at := siteOf(t, 1)
			path := filepath.Join(at.Root, name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := Driver{}.Open(t.Context(), config(t, nil), at)
			require.EqualError(t, err, path+" has the name of a log file and is not one: move it away, or write another --log-root, or another dir in the target")
			is, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(is))
		}
	}
}

// TestFilesOfKilledWorkersAreMadeAnew in whatever state they are: of another layout and size, cut off, damaged, of a later version, or hardly begun.
func TestFilesOfKilledWorkersAreMadeAnew(t *testing.T) {
	changes := map[string]func(t *testing.T, path string){
		"as it is": func(*testing.T, string) {},
		"cut off":  func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 5000)) },
		"emptied":  func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"torn":     func(t *testing.T, path string) { overHeader(t, path, 0, make([]byte, 4096)) },
		"later":    func(t *testing.T, path string) { overHeader(t, path, 7, []byte("9")) },
	}
	for _, was := range []string{"append", "append own", "append recycled", "channel", "array", "raw own, crc"} {
		for how, change := range changes {
			t.Run(was+", "+how, func(t *testing.T) {
				at := siteOf(t, 1)
				s := open(t, config(t, func(c *Config) { variants[was](c); c.FileSize = 128 << 10 }), at)
				require.NoError(t, do(s.sessions[0], driver.Append, 100, 0))
				_, err := s.Close()
				require.NoError(t, err)
				change(t, s.path(s.files[0].name))
				for _, again := range []string{"append own", "append", "channel"} {
					s := open(t, config(t, variants[again]), at)
					require.NoError(t, do(s.sessions[0], driver.Append, 10, 0))
					whole(t, verify(t, s))
				}
			})
		}
	}
}

// overHeader overwrites a part of a file that has a header.
func overHeader(t *testing.T, path string, at int64, p []byte) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "LGPMLOG1") {
		require.NoError(t, err)
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(p, at)
	require.NoError(t, errors.Join(err, f.Close()))
}

// TestInstructionsAreThoseOfTheEntry uses entries on either side of the size from which they bypass the caches.
func TestInstructionsAreThoseOfTheEntry(t *testing.T) {
	for size, want := range map[int]string{63: "^[A-Z]+$", 64: "^MOVNTDQ and [A-Z]+$"} {
		f, err := pmem.Create(filepath.Join(t.TempDir(), "log"), 1<<16, pmem.CLWB)
		if errors.Is(err, pmem.ErrUnsupported) {
			require.NotEqual(t, "amd64", runtime.GOARCH)
			return
		}
		require.NoError(t, err)
		require.Regexp(t, want, f.Instruction(size))
		require.NoError(t, f.Close())
	}
}

// TestOpenIsGivenUp when the user ends the run, and leaves nothing there.
func TestOpenIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, layout := range []string{layoutAppend, layoutChannel, layoutArray, layoutRaw} {
		at := siteOf(t, 1)
		_, err := Driver{}.Open(ctx, config(t, func(c *Config) { c.Layout = layout }), at)
		require.ErrorIs(t, err, context.Canceled)
		left, err := os.ReadDir(at.Root)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// endsWith is a context that ends once a file of that name exists.
type endsWith struct {
	context.Context
	path string
}

func (c endsWith) Err() error {
	if _, err := os.Stat(c.path); err == nil {
		return context.Canceled
	}
	return nil
}

// TestOpenIsGivenUpBetweenFiles ends after the first file of a channel has been created, and leaves no file behind.
func TestOpenIsGivenUpBetweenFiles(t *testing.T) {
	at := siteOf(t, 1)
	ctx := endsWith{t.Context(), filepath.Join(at.Root, "wal-w0.pmlog.side")}
	_, err := Driver{}.Open(ctx, config(t, func(c *Config) { c.Layout = layoutChannel }), at)
	require.ErrorContains(t, err, "wal-w0.pmlog.side: reserve")
	left, err := os.ReadDir(at.Root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestNoSpaceNamesARemedy requests a file that is larger than the file system in memory, and leaves nothing there.
func TestNoSpaceNamesARemedy(t *testing.T) {
	at := siteOf(t, 1)
	at.Memory = func() int64 { return 0 }
	var size syscall.Statfs_t
	require.NoError(t, syscall.Statfs("/dev/shm", &size))
	require.True(t, size.Blocks > 0 && int64(size.Blocks)*size.Bsize < maxFile, "a bounded file system")
	var err error
	at.Root, err = os.MkdirTemp("/dev/shm", "log")
	require.NoError(t, err)
	defer os.RemoveAll(at.Root)
	_, err = Driver{}.Open(t.Context(), config(t, func(c *Config) { c.FileSize = maxFile }), at)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Regexp(t, `^make log files of 16 TiB in /dev/shm/log\d+ on tmpfs( on \S+)?: \d+ [MG]iB are free: no space left on device: write file_size = "\d+MiB" or less in the target, or another --log-root$`, err)
	left, err := os.ReadDir(at.Root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestAFileThatItsDeviceDoesNotTakeNamesARemedy: the file system has room for it.
func TestAFileThatItsDeviceDoesNotTakeNamesARemedy(t *testing.T) {
	disk, at := servertest.NewDisk(t), siteOf(t, 1)
	at.Root = disk.Dir
	disk.Break()
	_, err := Driver{}.Open(t.Context(), config(t, func(c *Config) { c.Sync = "fdatasync" }), at)
	require.ErrorContains(t, err, "fill with zeros: a write was lost, nothing more is written: input/output error; see what the kernel says of the device (dmesg)")
}

// TestShortOfMemoryNamesWhatFits has too little memory for files in memory, and checks that the error names the most that fits.
func TestShortOfMemoryNamesWhatFits(t *testing.T) {
	const have = 50 << 20
	at := siteOf(t, 2)
	var err error
	at.Root, err = os.MkdirTemp("/dev/shm", "log")
	require.NoError(t, err)
	defer os.RemoveAll(at.Root)
	at.Value.Size, at.Keys, at.Pools, at.Memory = 1<<18, 2000, true, func() int64 { return have }
	for _, layout := range []string{layoutAppend, layoutChannel, layoutArray, layoutRaw} {
		c := config(t, func(c *Config) { c.Layout, c.FileSize, c.Share = layout, 1<<30, "session" })
		_, err := Driver{}.Open(t.Context(), c, at)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, ": 50 MiB of memory are available: no space left on device: ")
		would := regexp.MustCompile(`(\d+)(MiB" or less in the target| } or less in the dataset)`).FindStringSubmatch(err.Error())
		require.Len(t, would, 3, err)
		n, err := strconv.Atoi(would[1])
		require.NoError(t, err)
		takes := func(n int) int64 {
			c, at := *c, at
			if c.FileSize = driver.Size(n) << 20; layout == layoutArray {
				at.Keys = int64(n)
			}
			need, err := Driver{}.Need(&c, at)
			require.NoError(t, err)
			return need.Bytes + need.Memory
		}
		require.LessOrEqual(t, takes(n), int64(have), layout)
		require.Greater(t, takes(n+1), int64(have), layout)
	}
	left, err := os.ReadDir(at.Root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestMakingFilesIsProgress checks that the bytes of files are reported as they are written, so that progress on large files is visible.
func TestMakingFilesIsProgress(t *testing.T) {
	const size = 20 << 20
	at, wrote, parts := siteOf(t, 1), int64(0), 0
	at.Wrote = func(n int64) { wrote, parts = wrote+n, parts+1 }
	s := open(t, config(t, func(c *Config) { c.Layout, c.FileSize = layoutRaw, size }), at)
	_, err := s.Close()
	require.NoError(t, err)
	require.EqualValues(t, size, wrote)
	require.Greater(t, parts, 10)
}
