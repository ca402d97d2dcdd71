package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// killedIn and killedAs name the directory for the process that is to be killed, and the kind of log in it.
const (
	killedIn = "PMLOG_TEST_KILLED_IN"
	killedAs = "PMLOG_TEST_KILLED_AS"
)

// TestKilledWritersLoseNothingAcknowledged kills a process whose threads append to a log and share its syncs, at a random time, and again once it has
// opened what was left: acknowledged ⊆ recovered ⊆ issued, in order. With sync_every, an entry counts as acknowledged only once a sync has covered it:
// until then it is at risk. 50 times each if "crash" is demanded.
func TestKilledWritersLoseNothingAcknowledged(t *testing.T) {
	kinds := slices.DeleteFunc(sharing(), func(k kind) bool { return !k.group })
	if dir := os.Getenv(killedIn); dir != "" {
		name, lazy := strings.CutSuffix(os.Getenv(killedAs), " sync_every")
		appendUntilKilled(t, kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })], dir, lazy)
		return
	}
	kills := 2
	if servertest.Demanded("crash") {
		kills = 50
	}
	for _, k := range kinds {
		for _, policy := range []string{"", " sync_every"} {
			// One after the other: a process that another one starts would hold this one's files, and their locks, until it runs its program.
			t.Run(k.name+policy, func(t *testing.T) { kill(t, k, policy, kills) })
		}
	}
}

func kill(t *testing.T, k kind, policy string, kills int) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(41, 3))
	k.sizes = slices.Clone(k.sizes)
	k.sizes[0] = 4 << 20
	regions, _ := files(t, k, dir, pmem.Fdatasync)
	s, err := k.create(regions)
	require.NoError(t, err)
	require.NoError(t, s.close())
	least := 0
	for range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWritersLoseNothingAcknowledged$")
		child.Env = append(os.Environ(), killedIn+"="+dir, killedAs+"="+k.name+policy)
		var out bytes.Buffer
		child.Stdout = &out
		require.NoError(t, child.Start())
		require.Eventually(t, func() bool { return counted(t, dir, 0, "acked") > 0 }, time.Minute, time.Millisecond, &out)
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())

		regions, close := reopened(t, k, dir, pmem.Fdatasync)
		s, err := k.open(regions)
		require.NoError(t, err)
		items, err := s.items()
		require.NoError(t, err)
		var next [writers]uint64
		all := bytes.Join(items, nil)
		for left := all; len(left) > 0; {
			w := left[0]
			require.Equal(t, next[w], binary.LittleEndian.Uint64(left[1:]), "of writer %d", w)
			next[w]++
			left = left[killedSize(int(w)):]
		}
		for w, n := range next {
			require.LessOrEqual(t, counted(t, dir, w, "acked"), n, "of writer %d", w)
			require.GreaterOrEqual(t, counted(t, dir, w, "issued"), n, "of writer %d", w)
			require.NoError(t, os.RemoveAll(tallyOf(dir, w, "acked")))
		}
		require.Greater(t, len(all), least)
		if least = len(all); least > 2<<20 {
			require.NoError(t, s.clear())
			least, next = 0, [writers]uint64{}
		}
		for w := range writers {
			count(t, dir, w, "issued", next[w])
		}
		close() // the files and not the log: it stays as the kill has left it
	}
}

// killedSize is the size of a writer's entries, in bytes.
func killedSize(writer int) int { return 100 + writer }

// tallyOf is the file with how many records a writer has issued or acknowledged, which outlives the process as the log does.
func tallyOf(dir string, writer int, what string) string {
	return filepath.Join(dir, what+string(rune('0'+writer)))
}

func count(t *testing.T, dir string, writer int, what string, n uint64) {
	require.NoError(t, os.WriteFile(tallyOf(dir, writer, what), binary.LittleEndian.AppendUint64(nil, n), 0o600))
}

func counted(t *testing.T, dir string, writer int, what string) uint64 {
	p, err := os.ReadFile(tallyOf(dir, writer, what))
	if errors.Is(err, os.ErrNotExist) || len(p) < 8 {
		return 0
	}
	require.NoError(t, err)
	return binary.LittleEndian.Uint64(p)
}

// appendUntilKilled appends from several threads to the log in a directory, going on where the last process was killed. lazy: with a sync now and then.
func appendUntilKilled(t *testing.T, k kind, dir string, lazy bool) {
	regions, _ := reopened(t, k, dir, pmem.Fdatasync)
	opened, err := k.open(regions)
	require.NoError(t, err)
	s := opened.(grouped)
	var wait sync.WaitGroup
	for writer := range writers {
		wait.Go(func() {
			p := make([]byte, killedSize(writer))
			p[0] = byte(writer)
			tally := map[string]*os.File{}
			for _, what := range []string{"issued", "acked"} {
				f, err := os.OpenFile(tallyOf(dir, writer, what), os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					t.Error(err)
					return
				}
				tally[what] = f
			}
			note := func(what string, n uint64) error {
				_, err := tally[what].WriteAt(binary.LittleEndian.AppendUint64(nil, n), 0)
				return err
			}
			for n := counted(t, dir, writer, "issued"); ; n++ {
				binary.LittleEndian.PutUint64(p[1:], n)
				err := note("issued", n+1)
				durable := !lazy || n%10 == 9
				if lazy {
					err = errors.Join(err, s.store(writer, p))
				} else {
					err = errors.Join(err, s.write(writer, 0, p))
				}
				if lazy && durable {
					err = errors.Join(err, s.sync())
				}
				if durable {
					err = errors.Join(err, note("acked", n+1))
				}
				if errors.Is(err, ErrFull) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if wait.Wait(); !t.Failed() {
		time.Sleep(time.Minute) // the log is full, and there is nothing to do but to be killed
	}
}
