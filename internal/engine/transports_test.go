package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/drivers/null"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A transport that cannot be made is an error that says why: of the driver, of its codec, or of the sockets.
func TestTransportsThatCannotBeMade(t *testing.T) {
	failure := errors.New("no descriptors left")
	for want, d := range map[string]driver.Driver{
		`driver "null" has no transport`: struct{ driver.Driver }{null.Driver{}},
		`driver "redis" puts one key in a request, whose reply has an id: leave batch out of the phase`: ticket.Driver{},
		"no descriptors left": nil,
	} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nbatch = 2\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		if d != nil {
			b.g.driver = d
		}
		b.l.poll = nil
		b.e.newPoller = func() (sockets.Poller, error) { return nil, failure }
		_, err := b.g.newTransport(b.e, &b.l.lane)
		require.EqualError(t, err, want)
	}
}

// A connection, or a client that takes one request at a time, has as many requests as may be in flight, and 64 more that wait.
func TestRoomOfTransports(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n pipeline = 3\n iterations = 1\n}"), "load", 0)
	require.Equal(t, 64+3, b.l.tr.(*wire).limit)
	require.Equal(t, 64+1, newBlocking(&b.l.lane, 3, nil).limit)
	b.g.driver = null.Driver{}
	tr, err := b.g.newTransport(b.e, &b.l.lane)
	require.NoError(t, err)
	require.Equal(t, 64+3, tr.(*timed).limit)
}

// Wires of one loop share its poller.
func TestWiresShareAPoller(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
	b.e.newPoller = func() (sockets.Poller, error) { return nil, errors.New("another one") }
	tr, err := b.g.newTransport(b.e, &b.l.lane)
	require.NoError(t, err)
	require.Equal(t, b.l.poll, tr.(*wire).poll)
}

// A handshake that cannot be given a deadline does not take place, nor does one on a connection that was not made.
func TestHandshakesThatDoNotTakePlace(t *testing.T) {
	shake := shaking{shake: func(context.Context, net.Conn, driver.Link) (net.Conn, error) { panic("nobody is there") }}
	near, far := net.Pipe()
	require.NoError(t, far.Close())
	require.NoError(t, near.Close())
	x := &side{target: new(plan.Target)}
	_, err := x.shake(t.Context(), shake, near, "n0")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "driver panicked")

	inBubble(t, 1, "", getsForASecond, func(b *bench) {
		b.g.driver = shake
		failure := errors.New("nobody is there")
		b.g.connect.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, failure }
		p, err := b.g.newPoller(b.e, b.l)
		require.NoError(t, err)
		fd, err := p.Connect(nil, 0)
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, p.Connected(fd), failure)
		p.Close(fd)
		p.(*sockets.Pipes).Release()
	})
}

// lagging is a driver whose replies take a time.
type lagging struct {
	null.Driver
	takes time.Duration
}

func (d lagging) Reply(any, *driver.Request, *driver.Reply) time.Duration { return d.takes }

// A client of a driver without a transport waits for as long as the reply takes, unless the request ends before. A reply that takes no time is there.
func TestRepliesOfATimedSession(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for takes, want := range map[time.Duration]error{-1: nil, 0: nil, 1: context.Canceled, time.Hour: context.Canceled} {
			for range 100 { // a timer of no time would be no later than the end of the request
				require.Equal(t, want, timedSession{driver: lagging{takes: takes}}.Do(ended, nil, nil), fmt.Sprint(takes))
			}
		}
		began := time.Now()
		require.NoError(t, timedSession{driver: lagging{takes: time.Hour}}.Do(t.Context(), nil, nil))
		require.Equal(t, time.Hour, time.Since(began))
	})
}
