package pmlog

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

func TestBytesOfAChannelAreThereWhenOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	data, side := filepath.Join(dir, "log"), filepath.Join(dir, "log.index")
	a, err := pmem.Create(data, 10_000, pmem.None)
	require.NoError(t, err)
	b, err := pmem.Create(side, SideSize, pmem.None)
	require.NoError(t, err)
	l, err := CreateChannel(a, b)
	require.NoError(t, err)
	var want []byte
	for round := range 4 {
		for n := range 25 {
			p := bytes.Repeat([]byte{byte(n + 1)}, 1+n)
			off, err := l.Writer().Append(p)
			require.NoError(t, err)
			require.EqualValues(t, len(want), off)
			want = append(want, p...)
		}
		require.EqualValues(t, len(want), l.Len())
		got, err := io.ReadAll(io.NewSectionReader(l, 0, 1<<40))
		require.NoError(t, err)
		require.Equal(t, want, got)
		if round == 1 {
			require.NoError(t, l.Clear())
			require.Zero(t, l.Len())
			want = nil
			continue
		}
		require.NoError(t, l.Close())
		_, err = l.Writer().Append([]byte("x"))
		require.Error(t, err)
		file, err := os.ReadFile(data)
		require.NoError(t, err)
		require.Equal(t, want, file[:len(want)], "bare bytes")
		l, err = OpenChannel(reopen(t, data), reopen(t, side))
		require.NoError(t, err)
	}
	off, err := l.Writer().Append(make([]byte, 10_001))
	require.Equal(t, ErrTooLarge, err)
	require.Zero(t, off)
	off, err = l.Writer().Append(make([]byte, 10_000))
	require.Equal(t, ErrFull, err)
	require.Zero(t, off)
	_, err = l.Writer().Append(make([]byte, 10_000-len(want)))
	require.NoError(t, err)
	_, err = l.Writer().Append([]byte{1})
	require.Equal(t, ErrFull, err)
	_, err = l.ReadAt(make([]byte, 1), -1)
	require.Error(t, err)
}
