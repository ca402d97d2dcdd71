package sockets

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A server that breaks a plain connection off has once crashed the worker, which looked for the certificate that it might have wanted.
func TestBrokenPlainConnectionIsNoMatterOfTLS(t *testing.T) {
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE} {
		err := fmt.Errorf("read: %w", broken)
		require.Equal(t, err, Connector{}.Explain(err))
	}
}
