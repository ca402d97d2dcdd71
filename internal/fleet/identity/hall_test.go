package identity

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// guest is a connection that says whether it was closed.
type guest struct {
	net.Conn
	closed bool
}

func (g *guest) Close() error              { g.closed = true; return nil }
func (*guest) SetDeadline(time.Time) error { return nil }

// street is where connections come from, one after another.
type street struct {
	net.Listener
	come []*guest
}

func (s *street) Accept() (net.Conn, error) {
	next := s.come[0]
	s.come = s.come[1:]
	return next, nil
}

// TestTheHallForgetsWhoHasComeIn: a connection that has proved itself, or is gone, takes no place any more. A deadline alone is no proof. One more than
// there are places closes the oldest, and no other.
func TestTheHallForgetsWhoHasComeIn(t *testing.T) {
	const places = 8
	come := make([]*guest, places+3)
	for i := range come {
		come[i] = &guest{}
	}
	h := NewHall(&street{come: come}, places)
	accept := func(n int) (in []net.Conn) {
		for range n {
			conn, err := h.Accept()
			require.NoError(t, err)
			in = append(in, conn)
		}
		return in
	}
	in := accept(places)
	require.NoError(t, in[0].SetDeadline(time.Unix(5, 0)))
	require.NoError(t, in[1].SetDeadline(time.Time{}))
	require.NoError(t, in[2].Close())
	require.Len(t, h.waiting, places-2)
	accept(2)
	require.Equal(t, []bool{false, false, true, false}, []bool{come[0].closed, come[1].closed, come[2].closed, come[3].closed})
	accept(1)
	require.Equal(t, []bool{true, false, true, false}, []bool{come[0].closed, come[1].closed, come[2].closed, come[3].closed})
	h.Shut()
	require.False(t, come[1].closed)
	require.True(t, come[3].closed)
	require.Empty(t, h.waiting)
}
