package pmlog

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// Damage to an open log is found when the bytes are read: to any byte of any record.
func TestDamageToAnOpenLogIsFound(t *testing.T) {
	payload := func(n int) []byte { return bytes.Repeat([]byte{byte(n + 1)}, 40) }
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
