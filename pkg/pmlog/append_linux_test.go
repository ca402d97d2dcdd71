package pmlog

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// file makes a file of its own for a region.
func file(t testing.TB, size int64, mode pmem.Mode) *pmem.File {
	f, err := pmem.Create(filepath.Join(t.TempDir(), "log"), size, mode)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // logs close it themselves
	return f
}

// reopen closes a region's file and maps it again.
func reopen(t testing.TB, path string) *pmem.File {
	f, err := pmem.Open(path, pmem.None)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// records reads all that a log holds.
func records(t testing.TB, l *Append) [][]byte {
	list, err := readAll(l)
	require.NoError(t, err)
	return list
}

func TestAppendedRecordsAreThereWhenOpenedAgain(t *testing.T) {
	for _, o := range forms() {
		t.Run(o.name(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			f, err := pmem.Create(path, 512<<10, pmem.None)
			require.NoError(t, err)
			l, err := CreateAppend(f, o)
			require.NoError(t, err)
			require.Equal(t, o, l.Options())
			w, reader := l.Writer(), l.Reader()
			var want [][]byte
			for round := range 3 {
				for n := range 100 {
					p := bytes.Repeat([]byte{byte(n)}, n)
					seq, err := w.Append(p)
					require.NoError(t, err)
					want = append(want, p)
					require.EqualValues(t, len(want), seq)
					got, p2, err := reader.Next()
					require.NoError(t, err)
					require.Equal(t, seq, got)
					require.Equal(t, p, bytes.Clone(p2))
				}
				if round == 1 {
					require.NoError(t, l.Checkpoint())
				}
				require.Equal(t, want[:len(want):len(want)], records(t, l))
				if round == 0 {
					require.NoError(t, l.Close())
					_, err = w.Append(nil)
					require.ErrorIs(t, err, os.ErrClosed)
					l, err = OpenAppend(reopen(t, path))
					require.NoError(t, err)
					require.Equal(t, Recovery{Clean: true, Records: 100}, l.Recovered())
					w, reader = l.Writer(), l.Reader()
					for range want {
						_, _, err := reader.Next()
						require.NoError(t, err)
					}
				}
			}
			require.NoError(t, l.region.Close()) // as if the process had died
			l, err = OpenAppend(reopen(t, path))
			require.NoError(t, err)
			require.Equal(t, Recovery{Records: 300, Walked: 100}, l.Recovered())
			require.Equal(t, want, records(t, l))
			require.NoError(t, l.Clear())
			require.Empty(t, records(t, l))
			_, err = l.Writer().Append([]byte("next"))
			require.NoError(t, err)
			require.NoError(t, l.Close())
		})
	}
}

func TestAppendUntilFull(t *testing.T) {
	for _, o := range forms() {
		t.Run(o.name(), func(t *testing.T) {
			l, err := CreateAppend(file(t, AppendSize(o, 1001, 7), pmem.None), o)
			require.NoError(t, err)
			w, p := l.Writer(), make([]byte, 1001)
			for round := range 3 {
				for range 7 {
					_, err := w.Append(p)
					require.NoError(t, err)
				}
				_, err = w.Append(p)
				require.Equal(t, ErrFull, err)
				_, err = w.Append(make([]byte, 10_000))
				require.Equal(t, ErrTooLarge, err)
				require.Len(t, records(t, l), 7)
				stale := l.Reader()
				require.NoError(t, l.Clear())
				seq, none, err := stale.Next()
				require.Equal(t, ErrCleared, err)
				require.Zero(t, seq)
				require.Nil(t, none)
				require.Empty(t, records(t, l))
				p[0] = byte(round)
			}
		})
	}
}

// TestLogsEndAnywhere fills regions of all sizes, up to their last bytes.
func TestLogsEndAnywhere(t *testing.T) {
	for _, o := range forms() {
		for more := range int64(64) {
			for _, payload := range []int{0, 1, 7, 8, 9, 23, 24, 25, 39, 40, 41} {
				r := &pmemtest.Memory{Bytes: make([]byte, dataStart+256+more)}
				l, err := CreateAppend(r, o)
				require.NoError(t, err)
				w, appended := l.Writer(), uint64(0)
				for ; err == nil; appended++ {
					_, err = w.Append(make([]byte, payload))
				}
				appended--
				require.Equal(t, ErrFull, err, "%s, %d bytes more, payloads of %d", o.name(), more, payload)
				require.GreaterOrEqual(t, AppendSize(o, int64(payload), int64(appended)+1), r.Size())
				l, err = OpenAppend(r)
				require.NoError(t, err, "%s, %d bytes more, payloads of %d", o.name(), more, payload)
				require.Equal(t, appended, l.Recovered().Records)
			}
		}
	}
}

func TestWritersAppendSideBySide(t *testing.T) {
	for _, o := range forms() {
		t.Run(o.name(), func(t *testing.T) {
			l, err := CreateAppend(file(t, 1<<20, pmem.None), o)
			require.NoError(t, err)
			var wait sync.WaitGroup
			for i := range 4 {
				wait.Go(func() {
					w := l.Writer()
					for n := range 200 {
						if _, err := w.Append(bytes.Repeat([]byte{byte(i)}, 100+n)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wait.Wait()
			var next [4]int
			for _, p := range records(t, l) {
				i := p[0]
				require.Equal(t, bytes.Repeat([]byte{i}, 100+next[i]), p)
				next[i]++
			}
			require.Equal(t, [4]int{200, 200, 200, 200}, next)
		})
	}
}

// TestBytesOfARecord pins the form that the package comment describes.
func TestBytesOfARecord(t *testing.T) {
	f := file(t, dataStart+256, pmem.None)
	l, err := CreateAppend(f, AppendOptions{})
	require.NoError(t, err)
	_, err = l.Writer().Append([]byte("123456789"))
	require.NoError(t, err)
	p := make([]byte, 64)
	_, err = f.ReadAt(p, dataStart)
	require.NoError(t, err)
	m := mix(l.heads.salt+dataStart) ^ 1
	want := binary.LittleEndian.AppendUint32(nil, 0xe3069283^uint32(mix(m^mix(1^0x80000009<<32))))
	want = binary.LittleEndian.AppendUint32(want, 0x80000009)
	want = binary.LittleEndian.AppendUint64(want, 1)
	want = append(binary.LittleEndian.AppendUint64(want, m), "123456789"...)
	require.Equal(t, append(want, make([]byte, 31)...), p)
	require.Equal(t, uint64(0xe220a8397b1dcdaf), mix(0), "the first number of splitmix64 with the seed 0")
}
