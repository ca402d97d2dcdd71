package varint_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/varint"
)

func TestReaderStopsAtTheFirstError(t *testing.T) {
	for _, c := range []struct {
		form, want string
	}{
		{"", "it ends early"},
		{"\x80", "it ends early"},
		{"\x80\x00", "a number longer than need be"},
		{"\x81\x80\x00", "a number longer than need be"},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number above 2^64 − 1"},
	} {
		r := varint.Reader{Rest: []byte(c.form)}
		require.Zero(t, r.Uvarint())
		require.EqualError(t, r.Err, c.want)
		r.Fail("another error")
		require.EqualError(t, r.Err, c.want, "the first stays")
		require.Zero(t, r.Byte())
		require.Zero(t, r.Varint())
		require.Nil(t, r.Take(0))
		require.Equal(t, c.form, string(r.Rest))
	}
}

// FuzzNumbers reads numbers, each a pair of an unsigned and a signed one, and writes them again: the bytes are the same.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte("\x00\x01\x7f\x80\x01"))
	f.Add(binary.AppendVarint(binary.AppendUvarint(nil, 1<<64-1), -1<<63))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		r := varint.Reader{Rest: b}
		for len(r.Rest) > 0 && r.Err == nil {
			u := r.Uvarint()
			if r.Err == nil {
				again = binary.AppendUvarint(again, u)
			}
			i := r.Varint()
			if r.Err == nil {
				again = binary.AppendVarint(again, i)
			}
		}
		require.Equal(t, string(b), string(again)+string(r.Rest))
		if r.Err == nil {
			require.Empty(t, r.Rest)
		}
	})
}
