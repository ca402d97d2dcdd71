package pmlog

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// slowly is a region whose fences take a millisecond each, in virtual time, and one of which may fail.
type slowly struct {
	*pmemtest.Memory
	fences int
	fails  int // the fence that fails, from 1 on
}

func (r *slowly) Writer() pmem.Medium { return slowMedium{r.Memory, r} }

type slowMedium struct {
	*pmemtest.Memory
	region *slowly
}

var errWornOut = errors.New("the medium is worn out")

func (m slowMedium) Fence() error {
	m.region.fences++
	failed := m.region.fences == m.region.fails
	time.Sleep(time.Millisecond)
	if failed {
		return errWornOut
	}
	return nil
}

// joint returns a grouped append log, and a channel, each with its region of data.
func joint(t *testing.T, limit Group) map[string]func() (write func(writer int) error, data *slowly, sizes func() GroupSizes) {
	return map[string]func() (func(int) error, *slowly, func() GroupSizes){
		"append": func() (func(int) error, *slowly, func() GroupSizes) {
			data := &slowly{Memory: &pmemtest.Memory{Bytes: make([]byte, dataStart+64<<10)}}
			l, err := CreateAppend(data, AppendOptions{Order: Grouped})
			require.NoError(t, err)
			l.Group(limit)
			s, err := appendSubject(l, nil)
			require.NoError(t, err)
			data.fences = 0
			return func(writer int) error { return s.write(writer, 0, bytes.Repeat([]byte{1}, 104)) }, data, l.Groups
		},
		"channel": func() (func(int) error, *slowly, func() GroupSizes) {
			data := &slowly{Memory: &pmemtest.Memory{Bytes: make([]byte, 64<<10)}}
			l, err := CreateChannel(data, &pmemtest.Memory{Bytes: make([]byte, SideSize)})
			require.NoError(t, err)
			l.Group(limit)
			return func(int) error {
				_, err := l.Append(bytes.Repeat([]byte{1}, 128))
				return err
			}, data, l.Groups
		},
	}
}

// Writers that come at the same time share syncs: the first syncs for itself at once, and the second one of those that came meanwhile for all.
func TestWritersOfAGroupShareSyncs(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Group
		sizes GroupSizes
		took  time.Duration
	}{
		{"at once", Group{}, GroupSizes{0: 1, 1: 1}, 2 * time.Millisecond},
		{"after a delay", Group{MaxDelay: 5 * time.Millisecond}, GroupSizes{2: 1}, 6 * time.Millisecond},
		{"after bytes enough", Group{MaxDelay: time.Hour, MaxBytes: 3 * 128}, GroupSizes{2: 1}, time.Millisecond},
	} {
		for layout, make := range joint(t, c.limit) {
			servertest.Bubble(t, func(t *testing.T) {
				write, data, sizes := make()
				began := time.Now()
				var wait sync.WaitGroup
				for writer := range writers {
					wait.Go(func() {
						if err := write(writer); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				wait.Wait()
				require.Equal(t, c.sizes, sizes(), "%s, %s", layout, c.name)
				require.Equal(t, c.took, time.Since(began), "%s, %s", layout, c.name)
				require.Equal(t, int(c.took%(5*time.Millisecond)/time.Millisecond), data.fences, "%s, %s", layout, c.name)
			})
		}
	}
}

// If a sync fails, all that wait for it, or for a later one, are told.
func TestAFailedSyncFailsItsGroup(t *testing.T) {
	for layout, make := range joint(t, Group{}) {
		servertest.Bubble(t, func(t *testing.T) {
			write, data, _ := make()
			data.fails = 2
			var wait sync.WaitGroup
			errs := [writers]error{}
			for writer := range writers {
				wait.Go(func() { errs[writer] = write(writer) })
				synctest.Wait()
			}
			wait.Wait()
			require.NoError(t, errs[0], layout)
			for _, err := range append(errs[1:], write(0)) {
				require.ErrorIs(t, err, errWornOut, layout)
			}
			require.Equal(t, 2, data.fences, layout)
		})
	}
}

// A record that is missing ends a grouped log if those after it were stored before it was durable. They do not come back. Otherwise it is corrupt.
func TestAGapInAGroupedLog(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, dataStart+4000)}
	l, err := CreateAppend(m, AppendOptions{Order: Grouped})
	require.NoError(t, err)
	w := l.Writer()
	for n := range 5 { // two groups: 1 and 2, and 3 to 5
		_, err := w.Store([]byte{byte(n + 1), 0xff})
		require.NoError(t, err)
		if n == 1 {
			require.NoError(t, l.Sync())
		}
	}
	for missing, want := range map[int]int{1: -1, 2: -1, 3: 2, 4: 3, 5: 4} {
		image := &pmemtest.Memory{Bytes: bytes.Clone(m.Bytes)}
		at := dataStart + 64*int64(missing-1)
		lost := bytes.Clone(image.Bytes[at:][:64])
		clear(image.Bytes[at:][:64])
		l, err := OpenAppend(image)
		if want < 0 {
			require.ErrorIs(t, err, ErrCorrupt, "record %d of 5", missing)
			continue
		}
		require.NoError(t, err, "record %d of 5", missing)
		require.Equal(t, Recovery{Records: uint64(want), Walked: uint64(want), Torn: 5 - missing}, l.Recovered(), "record %d of 5", missing)
		copy(image.Bytes[at:], lost)
		l, err = OpenAppend(image)
		require.NoError(t, err)
		require.Len(t, records(t, l), want, "record %d of 5 came back", missing)
	}
}
