package sockets

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// stopwatch returns a clock that starts at 0.
func stopwatch() func() int64 {
	zero := time.Now()
	return func() int64 { return int64(time.Since(zero)) }
}

// TestPipeWritesNothingAfterTheLease hands over bytes that may not leave any more.
func TestPipeWritesNothingAfterTheLease(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		over := func(now int64) bool { return now >= int64(time.Second) }
		p := NewPipes(stopwatch(), over, func(context.Context, int32) (net.Conn, error) { return near, nil })
		fd, err := p.Connect(new(Endpoint), 0)
		require.NoError(t, err)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		n, err := p.Write(fd, []byte("too late"))
		require.NoError(t, err)
		require.Equal(t, 8, n)
		synctest.Wait()
		require.True(t, p.Lapsed())
		_, begun := p.Began(fd)
		require.False(t, begun)
		require.True(t, p.Withdraw(fd))
		require.False(t, p.Withdraw(fd))
		p.Close(fd)
		p.Release()
		_, err = far.Read(make([]byte, 8))
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestPipeKeepsReading has bytes, an end and an error wait for the loop in their order.
func TestPipeKeepsReading(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		over := func(int64) bool { return false }
		p := NewPipes(stopwatch(), over, func(_ context.Context, token int32) (net.Conn, error) {
			if token > 0 {
				return nil, errors.New("nobody there")
			}
			return near, nil
		})
		fd, err := p.Connect(new(Endpoint), 0)
		require.NoError(t, err)
		ready := make([]Readiness, 4)
		n, err := p.Wait(ready, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []Readiness{{Token: 0, Write: true}}, ready[:n])
		require.NoError(t, p.Connected(fd))
		require.NoError(t, p.Watch(fd, 0, false))
		buf := make([]byte, 64)
		_, err = p.Read(fd, buf)
		require.Equal(t, ErrAgain, err)
		go func() { // ends with its writes
			_, _ = far.Write([]byte("one"))
			time.Sleep(time.Second)
			_, _ = far.Write([]byte("two"))
			_ = far.Close()
		}()
		time.Sleep(time.Minute) // both have come long ago
		for i, want := range []string{"one", "two"} {
			n, err = p.Wait(ready, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []Readiness{{Token: 0, Read: true, Write: true}}, ready[:n])
			n, err = p.Read(fd, buf)
			require.NoError(t, err)
			require.Equal(t, want, string(buf[:n]))
			require.Equal(t, int64(i)*int64(time.Second), p.Arrived(fd))
			synctest.Wait()
		}
		n, err = p.Read(fd, buf)
		require.NoError(t, err)
		require.Zero(t, n)
		p.Close(fd)

		other, err := p.Connect(new(Endpoint), 1)
		require.NoError(t, err)
		synctest.Wait()
		n, err = p.Wait(ready, time.Minute)
		require.NoError(t, err)
		require.Equal(t, []Readiness{{Token: 1, Write: true}}, ready[:n])
		require.EqualError(t, p.Connected(other), "nobody there")
		p.Close(other)
		p.Release()
	})
}

// TestPipeWritesInParts has what was handed over with cuts leave in as many writes, and the error of one end the connection.
func TestPipeWritesInParts(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		p := NewPipes(stopwatch(), func(int64) bool { return false }, func(context.Context, int32) (net.Conn, error) { return near, nil })
		fd, err := p.Connect(new(Endpoint), 0)
		require.NoError(t, err)
		synctest.Wait()
		time.Sleep(time.Second)
		n, err := p.Hand(fd, []byte("onetwo"), []int{3})
		require.NoError(t, err)
		require.Equal(t, 6, n)
		synctest.Wait()
		_, err = p.Write(fd, []byte("more"))
		require.Equal(t, ErrAgain, err, "the first is still being written")
		at, begun := p.Began(fd)
		require.True(t, begun)
		require.Equal(t, int64(time.Second), at)
		require.NoError(t, p.Watch(fd, 0, true))
		b := make([]byte, 64)
		for _, want := range []string{"one", "two"} {
			n, err := far.Read(b)
			require.NoError(t, err)
			require.Equal(t, want, string(b[:n]))
		}
		synctest.Wait()
		ready := make([]Readiness, 1)
		n, err = p.Wait(ready, 0)
		require.NoError(t, err)
		require.Equal(t, []Readiness{{Write: true}}, ready[:n], "there is room")

		require.NoError(t, near.SetWriteDeadline(time.Now()))
		n, err = p.Hand(fd, []byte("threefour"), []int{5})
		require.NoError(t, err)
		require.Equal(t, 9, n)
		synctest.Wait()
		_, err = p.Write(fd, []byte("five"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = p.Read(fd, b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		p.Notify()
		_, err = p.Wait(nil, time.Hour)
		require.NoError(t, err)
		p.Close(fd)
		p.Release()
	})
}

// TestPipeThatIsClosedFirst gives up the attempt to connect, and closes what it made.
func TestPipeThatIsClosedFirst(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		p := NewPipes(stopwatch(), func(int64) bool { return false }, func(ctx context.Context, token int32) (net.Conn, error) {
			<-ctx.Done()
			return near, nil
		})
		fd, err := p.Connect(new(Endpoint), 0)
		require.NoError(t, err)
		p.Close(fd)
		p.Release()
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}
