package rpc

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// shown is what a connection reveals.
type shown struct {
	credentials.TransportCredentials
	err error
}

func (s shown) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if s.err != nil {
		return nil, nil, s.err
	}
	return conn, nil, nil
}

// A connection that asked for a certificate ends without being a refusal; one whose certificate was refused is one.
func TestWhatTheDoorSays(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		err  error
		logs string
	}{
		"proved":             {nil, ""},
		"refused":            {why, "level=WARN msg=\"refused a connection\" from=pipe why=why\n"},
		"a certificate":      {&identity.Enrolment{By: "token"}, "level=INFO msg=\"issued a certificate to a worker\" from=pipe for=token\n"},
		"none, for a reason": {&identity.Enrolment{Refused: why}, "level=WARN msg=\"refused a connection\" from=pipe why=\"it wants a certificate: why\"\n"},
	} {
		var logs bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		g := &gate{TransportCredentials: shown{insecure.NewCredentials(), c.err}, log: log}
		conn, other := net.Pipe()
		proved, _, err := g.ServerHandshake(conn)
		require.Equal(t, c.err == nil, proved != nil, name)
		require.Equal(t, c.err == nil, err == nil, name)
		var enrolment *identity.Enrolment
		require.Equal(t, errors.As(c.err, &enrolment), errors.Is(err, credentials.ErrConnDispatched), name)
		require.Equal(t, c.logs, logs.String(), name)
		require.NoError(t, conn.Close())
		require.NoError(t, other.Close())
	}
}
