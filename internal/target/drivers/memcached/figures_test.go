package memcached

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestFigures(t *testing.T) {
	b := []byte("STAT pid 12\r\nSTAT rusage_user 0.012345\r\nSTAT version 1.6.18\r\nSTAT empty\r\nEND\r\n")
	got, n, err := Driver{}.ParseFigures(append(b, "STAT more 1\r\n"...))
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	require.Equal(t, map[string]string{"pid": "12", "rusage_user": "0.012345", "version": "1.6.18", "empty": ""}, got)
	for cut := range b {
		_, n, err := Driver{}.ParseFigures(b[:cut])
		require.NoError(t, err, cut)
		require.Zero(t, n, cut)
	}
}

func TestFiguresAreRefused(t *testing.T) {
	for reply, why := range map[string]string{
		"ERROR\r\n":                        "stats: server says ERROR",
		"STAT a 1\r\nSERVER_ERROR out\r\n": "stats: server says SERVER_ERROR out",
		"VALUE a 0 1\r\n":                  "want STAT or END",
		"$3\r\nabc\r\n":                    "not the memcached protocol",
	} {
		_, _, err := Driver{}.ParseFigures([]byte(reply))
		require.ErrorContains(t, err, why, reply)
	}
}

func TestDescribe(t *testing.T) {
	for _, f := range []driver.Figure{
		{Name: "bytes", Unit: "bytes"},
		{Name: "rusage_user", Unit: "s", Counter: true},
		{Name: "cmd_touch", Counter: true},
		{Name: "hash_bytes", Unit: "bytes"},
		{Name: "threads"},
	} {
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
	for _, f := range (Driver{}).Figures() {
		require.Equal(t, f, Driver{}.Describe(f.Name))
	}
}

func FuzzParseFigures(f *testing.F) {
	f.Add([]byte("STAT pid 12\r\nEND\r\n"))
	f.Add([]byte("STAT \r\nERROR\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, n, err := Driver{}.ParseFigures(b)
		require.LessOrEqual(t, n, len(b))
		require.False(t, err != nil && n > 0)
	})
}
