package pmlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// mashonaForms are the options of a log, and what testdata/Mashona.java calls them.
var mashonaForms = map[string]MashonaOptions{
	"l": {}, "": {Relaxed: true}, "bl": {Blocks: true}, "b": {Blocks: true, Relaxed: true}, "lc": {},
}

// TestFilesOfMashonaGoBothWays lets the Java library and this package write to the same files in turn.
func TestFilesOfMashonaGoBothWays(t *testing.T) {
	dir := t.TempDir()
	const lengths = "1,2,3,4,55,56,57,200,255"
	var args []string
	for _, from := range []string{"java", "go"} {
		for form, o := range mashonaForms {
			path := filepath.Join(dir, from+form)
			if from == "java" {
				require.NoError(t, os.WriteFile(path, make([]byte, 32<<10), 0o600))
			} else if form != "lc" { // its checkpoint is one of Java's
				f, err := pmem.Create(path, 32<<10, pmem.Msync)
				require.NoError(t, err)
				l, err := CreateMashona(f, o)
				require.NoError(t, err)
				writeMashona(t, l, lengths)
				require.NoError(t, l.Close())
			} else {
				continue
			}
			args = append(args, path, form, lengths)
		}
	}
	run := func() []string { return strings.Split(servertest.Mashona(t, "testdata/Mashona.java", args...), "\n") }
	want := map[string]int{}
	for round := range 3 {
		lines := run()
		for i := 0; i < len(args); i += 3 {
			path := args[i]
			if round == 0 && strings.HasPrefix(filepath.Base(path), "go") {
				want[path] = 1
			}
			require.Equal(t, strings.TrimSpace(strings.Repeat("1:1 2:2 3:3 4:4 55:55 56:56 57:57 200:200 255:255 ", want[path])), lines[i/3], path)
			want[path]++

			f, err := pmem.Open(path, pmem.Msync)
			require.NoError(t, err)
			l, err := OpenMashona(f)
			require.NoError(t, err)
			require.Equal(t, mashonaForms[args[i+1]], l.Options(), path)
			got, err := mashonas{l}.items()
			require.NoError(t, err, path)
			require.Len(t, got, 9*want[path])
			for n, p := range got {
				require.Equal(t, bytes.Repeat([]byte{byte(len(p))}, len(p)), p)
				require.Equal(t, got[n%9], p)
			}
			writeMashona(t, l, lengths)
			want[path]++
			if round == 1 {
				require.NoError(t, l.Clear())
				want[path] = 0
			}
			require.NoError(t, l.Close())
		}
	}
}

// writeMashona appends what the Java program does.
func writeMashona(t *testing.T, l *Mashona, lengths string) {
	for length := range strings.SplitSeq(lengths, ",") {
		var n int
		_, err := fmt.Sscan(length, &n)
		require.NoError(t, err)
		require.NoError(t, l.Append(bytes.Repeat([]byte{byte(n)}, n)))
	}
}

func TestBytesOfMashona(t *testing.T) {
	for blocks, want := range map[bool]string{
		false: "TRBAOL01\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00\x09" + check + "123456789\x00\x00\x00" +
			"\x00\x00\x00\x09" + check + "123456789",
		true: "TRBAOL01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00\x09" + check + "123456789" + strings.Repeat("\x00", 256-37) +
			"\x00\x00\x00\x09" + check + "123456789",
	} {
		m := &pmemtest.Memory{Bytes: make([]byte, 1024)}
		l, err := CreateMashona(m, MashonaOptions{Blocks: blocks})
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, l.Append([]byte("123456789")))
		}
		require.Equal(t, want, string(m.Bytes[:len(want)]))
		require.True(t, blank(m.Bytes[len(want):]))
	}
}

func TestWhatAMashonaLogRefuses(t *testing.T) {
	l, err := CreateMashona(&pmemtest.Memory{Bytes: make([]byte, 100)}, MashonaOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, l.Append(nil), "at least a byte")
	require.Equal(t, ErrTooLarge, l.Append(make([]byte, 73)))
	require.NoError(t, l.Append(make([]byte, 72)))
	require.Equal(t, ErrFull, l.Append([]byte{1}))
	r := l.Reader()
	require.NoError(t, l.Clear())
	_, err = r.Next()
	require.Equal(t, ErrCleared, err)
	_, err = CreateMashona(&pmemtest.Memory{Bytes: make([]byte, 20)}, MashonaOptions{})
	require.ErrorContains(t, err, "want 28")
}

// TestMashonaChannel reads a side file as MappedFileChannel writes it: 256 bytes, the index behind the magic.
func TestMashonaChannel(t *testing.T) {
	side := append([]byte("TRBMFCM1\x00\x00\x01\x02"), make([]byte, 244)...)
	n, err := MashonaChannelLen(bytes.NewReader(side), 1000)
	require.NoError(t, err)
	require.EqualValues(t, 258, n)
	n, err = MashonaChannelLen(strings.NewReader("TRBMFCM1\x00\x00\x00\x00"), 1000)
	require.NoError(t, err)
	require.Zero(t, n, "nothing has been written")
	for _, bad := range []string{"", "TRBMFCM1\x00\x00", "TRBMFCM2\x00\x00\x00\x00", "TRBMFCM1\x00\x00\x03\xe9", "TRBMFCM1\xff\xff\xff\xff"} {
		_, err := MashonaChannelLen(strings.NewReader(bad), 1000)
		require.Error(t, err)
	}
}

// TestMashonaArray reads slots as ArrayStore writes them, here of 300 bytes: two blocks each.
func TestMashonaArray(t *testing.T) {
	file := make([]byte, 4*512)
	copy(file, "\x00\x00\x00\x09"+check+"123456789")
	copy(file[2*512:], "\x00\x00\x00\x09"+check+"123456788")
	copy(file[3*512:], "\x00\x00\x01\x2d")
	r := bytes.NewReader(file)
	p, err := MashonaSlot(r, 300, 0, []byte("= "))
	require.NoError(t, err)
	require.Equal(t, "= 123456789", string(p))
	p, err = MashonaSlot(r, 300, 1, nil)
	require.NoError(t, err)
	require.Empty(t, p)
	for _, slot := range []int{2, 3} {
		_, err = MashonaSlot(r, 300, slot, nil)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	_, err = MashonaSlot(r, 300, 4, nil)
	require.Error(t, err)
}
