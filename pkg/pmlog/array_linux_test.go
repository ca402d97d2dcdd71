package pmlog

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

func TestSlotsAreThereWhenOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	o := ArrayOptions{Slots: 10, Capacity: 100, Padding: 64}
	f, err := pmem.Create(path, ArraySize(o), pmem.None)
	require.NoError(t, err)
	l, err := CreateArray(f, o)
	require.NoError(t, err)
	require.Equal(t, o, l.Options())
	values := map[int][]byte{}
	check := func() {
		for i := range o.Slots {
			got, err := l.Read(i, []byte("before"))
			require.NoError(t, err)
			require.Equal(t, "before"+string(values[i]), string(got))
		}
	}
	check()
	for round := range 4 {
		w := l.Writer()
		for i := range 50 {
			slot := i % 7
			values[slot] = bytes.Repeat([]byte{byte(i)}, i*2)
			require.NoError(t, w.Write(slot, values[slot]))
		}
		require.NoError(t, w.Write(3, nil))
		delete(values, 3)
		check()
		if round == 1 {
			require.NoError(t, l.Clear())
			clear(values)
			check()
			continue
		}
		if round == 2 {
			require.NoError(t, f.Close()) // as if the process had died
		} else {
			require.NoError(t, l.Close())
			require.ErrorIs(t, w.Write(0, nil), os.ErrClosed)
		}
		f = reopen(t, path)
		l, err = OpenArray(f)
		require.NoError(t, err)
		require.Equal(t, Recovery{Clean: round != 2, Records: uint64(len(values))}, l.Recovered())
		check()
	}
}

func TestWhatASlotRefuses(t *testing.T) {
	o := ArrayOptions{Slots: 2, Capacity: 100}
	l, err := CreateArray(file(t, ArraySize(o), pmem.None), o)
	require.NoError(t, err)
	w := l.Writer()
	require.Equal(t, ErrTooLarge, w.Write(0, make([]byte, 101)))
	require.ErrorContains(t, w.Write(2, nil), "slot 2: the log has 2")
	_, err = l.Read(-1, nil)
	require.ErrorContains(t, err, "slot -1")
	for _, bad := range []ArrayOptions{{}, {Slots: 1}, {Slots: 1, Capacity: 1, Padding: 8}, {Slots: 2, Capacity: 4000}} {
		_, err := CreateArray(file(t, 16<<10, pmem.None), bad)
		require.ErrorContains(t, err, "want")
	}
}

func TestWritersOfSlotsSideBySide(t *testing.T) {
	o := ArrayOptions{Slots: 3, Capacity: 300}
	l, err := CreateArray(file(t, ArraySize(o), pmem.None), o)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			w := l.Writer()
			for n := range 200 {
				if err := w.Write(i%3, bytes.Repeat([]byte{byte(i)}, 1+n)); err != nil {
					t.Error(err)
				}
				if p, err := l.Read(i%3, nil); err != nil || len(p) > 0 && (p[0]%3 != byte(i)%3 || p[0] != p[len(p)-1]) { // another writer may clear it meanwhile
					t.Error(p, err)
				}
				if n == 100 && i == 0 {
					if err := l.Clear(); err != nil {
						t.Error(err)
					}
					if err := w.Write(0, []byte{0}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
}

// TestAClearBesideWritesLosesNone: after a clear, a slot's first value has the number 1; otherwise a recovery would think that the value before it
// was lost.
func TestAClearBesideWritesLosesNone(t *testing.T) {
	o := ArrayOptions{Slots: 1, Capacity: 8}
	l, err := CreateArray(&pmemtest.Memory{Bytes: make([]byte, ArraySize(o))}, o)
	require.NoError(t, err)
	var wait sync.WaitGroup
	var done atomic.Bool
	wait.Go(func() {
		for !done.Load() {
			if err := l.Clear(); err != nil {
				t.Error(err)
			}
		}
	})
	w, s := l.Writer(), &l.slots[0]
	for range 20_000 {
		before := s.era
		if err := w.Write(0, []byte("x")); err != nil {
			t.Error(err)
		}
		if s.era != before && s.seq != 1 {
			t.Errorf("value %d is the first of era %d", s.seq, s.era)
			break
		}
	}
	done.Store(true)
	wait.Wait()
}
