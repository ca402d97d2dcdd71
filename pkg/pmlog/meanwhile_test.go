package pmlog

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// Damage to an open log is found when the bytes are read: to a payload or a length, of any record. A relaxed Mashona log skips damaged payloads, as
// it would after a crash.
func TestDamageToAnOpenLogIsFound(t *testing.T) {
	payload := func(n int) []byte { return bytes.Repeat([]byte{byte(n + 1)}, 40) }
	for _, o := range []MashonaOptions{{}, {Blocks: true}, {Relaxed: true}} {
		for damaged := range 3 {
			for what, at := range map[string]int64{"payload": mashonaHeader + 1, "length": 1} {
				m := &pmemtest.Memory{Bytes: make([]byte, 8<<10)}
				l, err := CreateMashona(m, o)
				require.NoError(t, err)
				var begins []int64
				for n := range 3 {
					begins = append(begins, l.end)
					require.NoError(t, l.Append(payload(n)))
				}
				m.Bytes[begins[damaged]+at] ^= 0x55
				r := l.Reader()
				var got []int
				var end error
				for end == nil {
					var p []byte
					if p, end = r.Next(); end == nil {
						got = append(got, int(p[0])-1)
					}
				}
				if o.Relaxed && what == "payload" {
					require.Equal(t, io.EOF, end)
					require.Len(t, got, 2)
					require.NotContains(t, got, damaged)
					continue
				}
				require.ErrorIs(t, end, ErrCorrupt, "%+v: %s of record %d", o, what, damaged)
				require.Len(t, got, damaged, "%+v: %s of record %d", o, what, damaged)
			}
			m := &pmemtest.Memory{Bytes: make([]byte, 8<<10)}
			l, err := CreateMashona(m, o)
			require.NoError(t, err)
			var begin int64
			for n := range 3 {
				if n == damaged {
					begin = l.end
				}
				require.NoError(t, l.Append(payload(n)))
			}
			clear(m.Bytes[begin:][:4])
			r := l.Reader()
			for range damaged {
				_, err := r.Next()
				require.NoError(t, err)
			}
			_, err = r.Next()
			require.EqualError(t, err, fmt.Sprintf("record at %d: %v", begin, ErrCorrupt), "%+v: no length of record %d", o, damaged)
		}
	}
	for _, o := range forms() {
		for damaged := range 3 {
			for at := range int64(recordHeader + 40) {
				m := &pmemtest.Memory{Bytes: make([]byte, dataStart+4000)}
				l, err := CreateAppend(m, o)
				require.NoError(t, err)
				w := l.Writer()
				var begins []int64
				for n := range 3 {
					begins = append(begins, l.end)
					_, err := w.Append(payload(n))
					require.NoError(t, err)
				}
				m.Bytes[begins[damaged]+at] ^= 0x55
				r := l.Reader()
				for n := range damaged {
					_, p, err := r.Next()
					require.NoError(t, err)
					require.Equal(t, payload(n), p)
				}
				seq, p, err := r.Next()
				require.ErrorIs(t, err, ErrCorrupt, "%s: byte %d of record %d", o.name(), at, damaged)
				require.Zero(t, seq)
				require.Nil(t, p)
			}
		}
	}
}
