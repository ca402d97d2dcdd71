package rundir

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// entry is a snapshot and who sent it.
type entry struct{ worker, snapshot string }

func encode(t require.TestingT, entries []entry) []byte {
	b := []byte(magic)
	for _, e := range entries {
		var err error
		b, err = appendRecord(b, e.worker, []byte(e.snapshot))
		require.NoError(t, err)
	}
	return b
}

// read returns the whole records of a log and where it is torn; -1 for nowhere.
func read(t require.TestingT, r io.Reader) (entries []entry, at int64) {
	err := readRecords(r, func(worker, snapshot []byte) error {
		entries = append(entries, entry{string(worker), string(snapshot)})
		return nil
	})
	var torn *TornError
	if errors.As(err, &torn) {
		return entries, torn.Offset
	}
	require.NoError(t, err)
	return entries, -1
}

func TestLogFormat(t *testing.T) {
	require.Equal(t, []byte("LGSNAP1\n"+
		"\x06\x00\x00\x00"+"\x39\x87\xfa\x36"+"\x02w1abc"),
		encode(t, []entry{{"w1", "abc"}}))
}

func TestLogRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOf(rapid.Custom(func(t *rapid.T) entry {
			return entry{
				worker:   string(rapid.SliceOfN(rapid.Byte(), 1, math.MaxUint8).Draw(t, "worker")),
				snapshot: string(rapid.SliceOf(rapid.Byte()).Draw(t, "snapshot")),
			}
		})).Draw(t, "entries")
		got, torn := read(t, iotest.OneByteReader(bytes.NewReader(encode(t, entries))))
		require.Equal(t, int64(-1), torn)
		require.Equal(t, len(entries), len(got))
		for i := range entries {
			require.Equal(t, entries[i], got[i])
		}
	})
}

// A log cut at any byte, and followed by zeros or the remains of another log, gives the records before the cut.
func TestLogCutAnywhere(t *testing.T) {
	entries := []entry{{"alpha", "first"}, {"b", ""}, {"c", strings.Repeat("x", 300)}, {"alpha", "last"}}
	whole := encode(t, entries)
	ends := []int64{int64(len(magic))}
	for i := range entries {
		ends = append(ends, int64(len(encode(t, entries[:i+1]))))
	}
	for cut := range len(whole) + 1 {
		records := -1
		for i, end := range ends {
			if int64(cut) >= end {
				records = i
			}
		}
		for name, tail := range map[string]string{"nothing": "", "zeros": strings.Repeat("\x00", 40), "old bytes": "\x05\x00\x00\x00????\x01wold!"} {
			got, torn := read(t, strings.NewReader(string(whole[:cut])+tail))
			require.Equal(t, entries[:max(records, 0)], append([]entry{}, got...), "cut at %d before %s", cut, name)
			switch {
			case records < 0:
				require.Equal(t, int64(0), torn)
			case tail == "" && int64(cut) == ends[records]:
				require.Equal(t, int64(-1), torn)
			default:
				require.Equal(t, ends[records], torn, "cut at %d before %s", cut, name)
			}
		}
	}
}

// Whichever bit of a log flips, no record comes out different from how it went in.
func TestLogTurnedBits(t *testing.T) {
	entries := []entry{{"alpha", "first"}, {"b", "second"}}
	whole := encode(t, entries)
	for i := range len(whole) * 8 {
		bad := bytes.Clone(whole)
		bad[i/8] ^= 1 << (i % 8)
		got, torn := read(t, bytes.NewReader(bad))
		require.NotEqual(t, int64(-1), torn, "bit %d", i)
		require.Equal(t, entries[:len(got)], append([]entry{}, got...), "bit %d", i)
	}
}

func TestLogErrors(t *testing.T) {
	whole := encode(t, []entry{{"w", "abc"}})
	boom := errors.New("boom")
	require.ErrorIs(t, readRecords(bytes.NewReader(whole), func(_, _ []byte) error { return boom }), boom)
	for _, n := range []int{0, 4, 10, 18} {
		err := readRecords(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(boom)), func(_, _ []byte) error { return nil })
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, "of the snapshot log")
	}
	require.EqualError(t, readRecords(strings.NewReader("<!DOCTYPE>"), nil),
		`no whole record at byte 0 of the snapshot log: it begins with "<!DOCTYP", not "LGSNAP1\n"`)
	require.EqualError(t, readRecords(strings.NewReader(magic+"\xff\xff\xff\xff\x00\x00\x00\x00"), nil),
		"no whole record at byte 8 of the snapshot log: a record of 4294967295 bytes")
	require.EqualError(t, readRecords(bytes.NewReader(whole[:len(whole)-1]), nil),
		"no whole record at byte 8 of the snapshot log: 4 of the 5 bytes of a record")

	_, err := appendRecord(nil, strings.Repeat("w", 256), nil)
	require.EqualError(t, err, "a worker's name of 256 bytes, at most 255 are kept")
	_, err = appendRecord(nil, "w", make([]byte, maxSnapshot+1))
	require.EqualError(t, err, "a snapshot of 16777217 bytes, at most 16777216 are kept")
}

// A size that promises 16 MiB costs no more memory than there are bytes.
func TestLogWrongSizeIsCheap(t *testing.T) {
	log := []byte(magic + "\x00\x00\x00\x01\x00\x00\x00\x00short")
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			require.Error(b, readRecords(bytes.NewReader(log), nil))
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(1<<20))
}

func FuzzReadLog(f *testing.F) {
	f.Add(encode(f, []entry{{"w1", "abc"}, {"w2", ""}}))
	f.Add([]byte(magic))
	f.Add([]byte(magic + "\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		entries, torn := read(t, bytes.NewReader(log))
		if torn == 0 {
			require.Empty(t, entries)
			return
		}
		if torn < 0 {
			torn = int64(len(log))
		}
		require.Equal(t, log[:torn], encode(t, entries), "what was read is what was written")
	})
}
