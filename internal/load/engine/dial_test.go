package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A connection to a target, as the load would make it, is held to the same bounds.
func TestDial(t *testing.T) {
	s := serveTickets(t, nil)
	target := &plan.Target{Config: &struct{ Password driver.Secret }{driver.Secret{Name: "password"}}}
	refuse := func(secret string, at netip.AddrPort, _ string) error {
		require.Equal(t, [2]string{"password", s.addr}, [2]string{secret, at.String()})
		return errors.New("not there")
	}
	conn, err := Dial(t.Context(), target, s.addr, nil, nil)
	require.NoError(t, err)
	require.Equal(t, s.addr, conn.RemoteAddr().String())
	require.NoError(t, conn.Close())
	_, err = Dial(t.Context(), target, s.addr, nil, refuse)
	require.ErrorContains(t, err, `secret "password": not there`)
	target.TLS = &plan.TLS{CA: "ca.pem"}
	_, err = Dial(t.Context(), target, s.addr, nil, nil)
	require.ErrorContains(t, err, "ca.pem")
	require.ErrorContains(t, err, "opens no files")
}

// halfway is a driver whose clients fail once they have connected.
type halfway struct {
	driver.Driver
	made chan net.Conn
}

func (halfway) Name() string { return "halfway" }

func (h halfway) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	conn, err := link.Dial(ctx)
	if err != nil {
		return nil, err
	}
	h.made <- conn
	return nil, errors.New("no such user")
}

// What a client has connected before it fails is closed.
func TestClientsThatFailLeaveNoConnection(t *testing.T) {
	h := halfway{null.Driver{}, make(chan net.Conn, 100)}
	_, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{h}}, strings.Replace(linePlan(serveTickets(t, nil).addr, "", lineLoad), "liner", "halfway", 1))
	require.ErrorContains(t, err, "no such user")
	close(h.made)
	require.NotEmpty(t, h.made)
	for conn := range h.made {
		_, err := conn.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

// A file of certificates may have 4 MiB.
func TestLengthOfCertificates(t *testing.T) {
	dir := t.TempDir()
	e := New(Config{Open: in(dir)})
	for length, ok := range map[int]bool{0: true, maxTLSFile: true, maxTLSFile + 1: false} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), make([]byte, length), 0o600))
		text, err := e.readFile(t.Context(), "ca.pem")
		if ok {
			require.NoError(t, err)
			require.Len(t, text, length)
		} else {
			require.EqualError(t, err, "ca.pem has more than 4194304 bytes")
			require.Empty(t, text)
		}
	}
}
