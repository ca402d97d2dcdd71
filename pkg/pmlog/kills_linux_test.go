package pmlog

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// killedIn names the directory for the process that is to be killed.
const killedIn = "PMLOG_TEST_KILLED_IN"

// TestKilledWritersLoseNothingAcknowledged kills a process whose threads append with group commit, at a random time, and again once it has opened what
// was left: acknowledged ⊆ recovered ⊆ issued, in order. 50 times if "crash" is demanded.
func TestKilledWritersLoseNothingAcknowledged(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		appendUntilKilled(t, dir)
		return
	}
	kills, dir, rng := 5, t.TempDir(), rand.New(rand.NewPCG(41, 3))
	if servertest.Demanded("crash") {
		kills = 50
	}
	f, err := pmem.Create(filepath.Join(dir, "log"), 4<<20, pmem.Fdatasync)
	require.NoError(t, err)
	l, err := CreateAppend(f, AppendOptions{Order: Grouped})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	least := int64(dataStart)
	for range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledWritersLoseNothingAcknowledged$")
		child.Env = append(os.Environ(), killedIn+"="+dir)
		require.NoError(t, child.Start())
		require.Eventually(t, func() bool { return counted(t, dir, 0, "acked") > 0 }, time.Minute, time.Millisecond)
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())

		f, err := pmem.Open(filepath.Join(dir, "log"), pmem.Fdatasync)
		require.NoError(t, err)
		l, err := OpenAppend(f)
		require.NoError(t, err)
		var next [writers]uint64
		r := l.Reader()
		for {
			_, p, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			w := p[0]
			require.Equal(t, next[w], binary.LittleEndian.Uint64(p[1:]), "of writer %d", w)
			next[w]++
		}
		for w, n := range next {
			require.LessOrEqual(t, counted(t, dir, w, "acked"), n, "of writer %d", w)
			require.GreaterOrEqual(t, counted(t, dir, w, "issued"), n, "of writer %d", w)
			require.NoError(t, os.RemoveAll(tallyOf(dir, w, "acked")))
		}
		require.Greater(t, l.End(), least)
		if least = l.End(); least > 2<<20 {
			require.NoError(t, l.Clear())
			least = l.End()
		}
		for w := range writers {
			first := next[w]
			if least == dataStart {
				first = 0
			}
			count(t, dir, w, "issued", first)
		}
		require.NoError(t, f.Close()) // not of the log: it stays as the kill has left it
	}
}

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

// appendUntilKilled appends from several threads to the log in a directory, going on where the last process was killed.
func appendUntilKilled(t *testing.T, dir string) {
	f, err := pmem.Open(filepath.Join(dir, "log"), pmem.Fdatasync)
	require.NoError(t, err)
	l, err := OpenAppend(f)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for writer := range writers {
		wait.Go(func() {
			w, p := l.Writer(), make([]byte, 100+writer)
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
			for n := counted(t, dir, writer, "issued"); ; n++ {
				binary.LittleEndian.PutUint64(p[1:], n)
				_, first := tally["issued"].WriteAt(binary.LittleEndian.AppendUint64(nil, n+1), 0)
				_, err := w.Append(p)
				_, last := tally["acked"].WriteAt(binary.LittleEndian.AppendUint64(nil, n+1), 0)
				if err := errors.Join(first, err, last); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}
