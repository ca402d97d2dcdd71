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

// together is a log whose writers share syncs.
type together struct {
	write  func(writer int) error
	data   *slowly
	sizes  func() GroupSizes
	waited func(writer int) time.Duration
}

// joint returns a grouped append log, and a channel.
func joint(t *testing.T, limit Group) map[string]func() together {
	return map[string]func() together{
		"append": func() together {
			data := &slowly{Memory: &pmemtest.Memory{Bytes: make([]byte, dataStart+64<<10)}}
			l, err := CreateAppend(data, AppendOptions{Order: Grouped})
			require.NoError(t, err)
			l.Group(limit)
			s, err := appendSubject(l, nil)
			require.NoError(t, err)
			data.fences = 0
			return together{
				func(writer int) error { return s.write(writer, 0, bytes.Repeat([]byte{1}, 104)) }, data, l.Groups,
				func(writer int) time.Duration { return s.(*appends).w[writer].Waited() },
			}
		},
		"channel": func() together {
			data := &slowly{Memory: &pmemtest.Memory{Bytes: make([]byte, 64<<10)}}
			l, err := CreateChannel(data, &pmemtest.Memory{Bytes: make([]byte, SideSize)})
			require.NoError(t, err)
			l.Group(limit)
			w := [writers]*ChannelWriter{}
			for i := range w {
				w[i] = l.Writer()
			}
			return together{func(writer int) error {
				_, err := w[writer].Append(bytes.Repeat([]byte{1}, 128))
				return err
			}, data, l.Groups, func(writer int) time.Duration { return w[writer].Waited() }}
		},
	}
}

// Writers that come at the same time share syncs: the first syncs for itself at once, and the second one of those that came meanwhile for all. Each
// knows how long it has waited.
func TestWritersOfAGroupShareSyncs(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Group
		sizes GroupSizes
		took  time.Duration
		first time.Duration // the wait of the first writer; the others wait until the end
	}{
		{"at once", Group{}, GroupSizes{0: 1, 1: 1}, 2 * time.Millisecond, time.Millisecond},
		{"after a delay", Group{MaxDelay: 5 * time.Millisecond}, GroupSizes{2: 1}, 6 * time.Millisecond, 6 * time.Millisecond},
		{"after bytes enough", Group{MaxDelay: time.Hour, MaxBytes: 3 * 128}, GroupSizes{2: 1}, time.Millisecond, time.Millisecond},
	} {
		for layout, make := range joint(t, c.limit) {
			servertest.Bubble(t, func(t *testing.T) {
				l := make()
				began := time.Now()
				var wait sync.WaitGroup
				for writer := range writers {
					wait.Go(func() {
						if err := l.write(writer); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				wait.Wait()
				require.Equal(t, c.sizes, l.sizes(), "%s, %s", layout, c.name)
				require.Equal(t, c.took, time.Since(began), "%s, %s", layout, c.name)
				require.Equal(t, int(c.took%(5*time.Millisecond)/time.Millisecond), l.data.fences, "%s, %s", layout, c.name)
				for writer, want := range [writers]time.Duration{c.first, c.took, c.took} {
					require.Equal(t, want, l.waited(writer), "%s, %s, writer %d", layout, c.name, writer)
				}
			})
		}
	}
}

// If a sync fails, all that wait for it, or for a later one, are told.
func TestAFailedSyncFailsItsGroup(t *testing.T) {
	for layout, make := range joint(t, Group{}) {
		servertest.Bubble(t, func(t *testing.T) {
			l := make()
			l.data.fails = 2
			var wait sync.WaitGroup
			errs := [writers]error{}
			for writer := range writers {
				wait.Go(func() { errs[writer] = l.write(writer) })
				synctest.Wait()
			}
			wait.Wait()
			require.NoError(t, errs[0], layout)
			for _, err := range append(errs[1:], l.write(0)) {
				require.ErrorIs(t, err, errWornOut, layout)
			}
			require.Equal(t, 2, l.data.fences, layout)
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
