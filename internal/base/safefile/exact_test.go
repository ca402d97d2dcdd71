package safefile

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A file that grows or shrinks while it is read is an error, and nothing of what was added is passed on.
func TestExactLength(t *testing.T) {
	for text, whole := range map[string]bool{"": false, "0123": false, "01234": true, "012345": false, strings.Repeat("x", 100_000): false} {
		for name, slow := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "end with the last": iotest.DataErrReader,
		} {
			b, err := io.ReadAll(Exact(slow(strings.NewReader(text)), 5))
			require.Equal(t, text[:min(len(text), 5)], string(b), name)
			if whole {
				require.NoError(t, err, name)
			} else {
				require.ErrorIs(t, err, ErrLength, name)
			}
		}
	}
	b, err := io.ReadAll(Exact(strings.NewReader(""), 0))
	require.NoError(t, err)
	require.Empty(t, b)
}
