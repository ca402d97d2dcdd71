package sockets

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A server that broke a plain connection off once crashed the worker, which looked for the certificate that the server might have wanted.
func TestBrokenPlainConnectionIsNoMatterOfTLS(t *testing.T) {
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE} {
		err := fmt.Errorf("read: %w", broken)
		require.Equal(t, err, Connector{}.Explain(err))
	}
}
