package drivertest

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// dialling counts the connections that a Dialer's clients have opened and still have open.
type dialling struct {
	s     *Suite
	made  atomic.Int64
	tried atomic.Int64
	open  atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	fails error // of further attempts
}

// counted is a connection that a dialling counts.
type counted struct {
	net.Conn
	of     *dialling
	closed sync.Once
}

func (c *counted) Close() error {
	c.closed.Do(func() { c.of.open.Add(-1) })
	return c.Conn.Close()
}

func (d *dialling) dial(context.Context) (net.Conn, error) {
	d.tried.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return nil, d.fails
	}
	conn, err := d.s.Dial()
	if err != nil {
		return nil, err
	}
	d.made.Add(1)
	d.open.Add(1)
	d.conns = append(d.conns, conn)
	return &counted{Conn: conn, of: d}, nil
}

// cut closes all connections from below and fails further attempts.
func (d *dialling) cut(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = why
	for _, conn := range d.conns {
		_ = conn.Close() // the client may have closed it
	}
}

// connect makes a client whose connections are counted.
func (s *Suite) connect(d driver.Dialer, to *dialling) (driver.Session, error) {
	link := s.link()
	link.Dial = to.dial
	if conn, err := s.Dial(); err == nil {
		link.Endpoint = conn.RemoteAddr().String()
		_ = conn.Close() // it was made for its address
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.Dial(ctx, link)
}

// overSession carries out requests one at a time.
type overSession struct{ session driver.Session }

// Do implements Executor.
func (x overSession) Do(t testing.TB, reqs ...driver.Request) []driver.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	replies := make([]driver.Reply, len(reqs))
	for i := range reqs {
		replies[i] = driver.Reply{}
		require.NoError(t, x.session.Do(ctx, &reqs[i], &replies[i]))
		replies[i].Value, replies[i].Message = slices.Clone(replies[i].Value), slices.Clone(replies[i].Message)
	}
	return replies
}

// openSession begins a session and closes it at the end of the test.
func (s *Suite) openSession(t testing.TB, d driver.Dialer) Executor {
	t.Helper()
	session, err := s.connect(d, &dialling{s: s})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return overSession{session}
}

// session checks what an executor relies on beside replies: how connections are opened, and how calls end.
func (s *Suite) session(t *testing.T, d driver.Dialer) {
	nobody := errors.New("nobody is there")
	if known, ok := d.(driver.Identifier); ok {
		t.Run("identity", func(t *testing.T) { s.identity(t, known) })
	}
	t.Run("connections", func(t *testing.T) {
		to := &dialling{s: s}
		session, err := s.connect(d, to)
		require.NoError(t, err)
		k := key(t, "session")
		overSession{session}.Do(t, put(k, driver.Value{Size: 10}), get(k), del(k))
		require.Positive(t, to.made.Load(), "connections that the link's Dial has made")
		require.LessOrEqual(t, to.made.Load(), int64(max(1, s.Connections)), "connections that the link's Dial has made")
		require.NoError(t, session.Close())
		require.Zero(t, to.open.Load(), "connections that are open after Close")
	})
	t.Run("no connection", func(t *testing.T) {
		to := &dialling{s: s, fails: nobody}
		session, err := s.connect(d, to)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, reply := get(key(t, "unreachable")), driver.Reply{}
			err = session.Do(ctx, &req, &reply)
			_ = session.Close() // it has failed
		}
		require.Error(t, err, "a client has no connections but the link's")
		require.Positive(t, to.tried.Load(), "a client has no connections but the link's")
	})
	t.Run("lost connection", func(t *testing.T) {
		to := &dialling{s: s}
		session, err := s.connect(d, to)
		require.NoError(t, err)
		k := key(t, "lost")
		overSession{session}.Do(t, get(k))
		to.cut(nobody)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, reply := put(k, driver.Value{Size: 10}), driver.Reply{}
		require.Error(t, session.Do(ctx, &req, &reply))
		_ = session.Close() // it has failed
		require.Zero(t, to.open.Load(), "connections that are open after Close")
	})
	t.Run("deadline", func(t *testing.T) { s.deadline(t, d) })
	t.Run("goroutines", func(t *testing.T) { s.leaves(t, d) })
}

// leaves checks that clients leave no goroutine behind.
func (s *Suite) leaves(t *testing.T, d driver.Dialer) {
	const clients = 64
	before := runtime.NumGoroutine()
	for range clients {
		session, err := s.connect(d, &dialling{s: s})
		require.NoError(t, err)
		overSession{session}.Do(t, get(key(t, "brief")))
		require.NoError(t, session.Close())
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() >= before+clients/2; time.Sleep(time.Millisecond) { // other tests may start some, too
		require.True(t, time.Now().Before(end), "%d clients have left %d goroutines behind", clients, runtime.NumGoroutine()-before)
	}
}

// deadline tests against a server that accepts connections and says nothing.
func (s *Suite) deadline(t *testing.T, d driver.Dialer) {
	near, far := net.Pipe()
	defer far.Close()
	go func() { // ends when the test closes far
		for b := make([]byte, 4096); ; {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	link := s.link()
	link.Endpoint, link.Dial = "127.0.0.1:1", func(context.Context) (net.Conn, error) { return near, nil }
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	session, err := d.Dial(ctx, link)
	if err == nil {
		req, reply := get(key(t, "silent")), driver.Reply{}
		err = session.Do(ctx, &req, &reply)
		_ = session.Close() // it has failed
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second, "a call that ends by its deadline")
}

// Room is a [driver.Room] on the heap, without a limit.
type Room struct{ b []byte }

// Grow implements [driver.Room].
func (r *Room) Grow(b []byte, n int) ([]byte, error) {
	r.b = slices.Grow(r.b[:len(b)], n)
	return r.b, nil
}
