package rpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// guarded is a coordinator's listener as users have it: on TCP, or on a socket.
func guarded(t *testing.T, name string) (*rpc.Server, identity.Place) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	place, err := identity.At(dir, name)
	require.NoError(t, err)
	server, err := rpc.Listen(rpc.Config{Place: place, Run: "r", Version: "v1", Timing: rpc.DefaultTiming(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	place, err = identity.At(dir, server.Addr())
	require.NoError(t, err)
	return server, place
}

// open counts a place's connections that the other end has not closed within a time.
func open(t *testing.T, conns []net.Conn, within time.Duration) (open int) {
	t.Helper()
	until := time.Now().Add(within)
	for _, conn := range conns {
		require.NoError(t, conn.SetReadDeadline(until))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	return open
}

// TestIdleConnectionsDoNotDelayTheEnd: connections are opened that say little or nothing, and the coordinator still ends at once.
func TestIdleConnectionsDoNotDelayTheEnd(t *testing.T) {
	for _, says := range []string{"", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		for _, name := range []string{"127.0.0.1:0", ""} {
			server, place := guarded(t, name)
			for range 3 {
				conn, err := place.Dial(t.Context())
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, says)
				require.NoError(t, err)
			}
			time.Sleep(10 * time.Millisecond) // they have been let in
			began := time.Now()
			server.Close()
			require.Less(t, time.Since(began), identity.Within, "%q %q", name, says)
		}
	}
}

// TestIdleConnectionsAreEnded keeps connections open that say nothing, or go on saying little.
func TestIdleConnectionsAreEnded(t *testing.T) {
	t.Parallel()
	server, place := guarded(t, "127.0.0.1:0")
	defer server.Close()
	var conns []net.Conn
	for _, says := range []string{"", "\x16", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		conn, err := place.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, says)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Zero(t, open(t, conns, time.Minute))
}

// TestCrowdKeepsNobodyOut: more connections are opened than may wait. A worker that was there stays, and another one still gets in.
func TestCrowdKeepsNobodyOut(t *testing.T) {
	server, place := guarded(t, "127.0.0.1:0")
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var workers sync.WaitGroup
	join := func(name string) {
		workers.Go(func() {
			err := rpc.Join(ctx, rpc.JoinConfig{
				Place: place, Name: name, Version: "v1", Logger: slog.New(slog.DiscardHandler), New: func() rpc.Local { return newEngine(newMill(), nil) },
			})
			if err != nil {
				t.Error(err)
			}
		})
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(server.Status(), func(s worker.Status) bool { return s.Name == name })
		}, time.Minute, time.Millisecond)
	}
	join("w1")
	var conns []net.Conn
	for range 1500 {
		conn, err := place.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		conns = append(conns, conn)
	}
	join("w2")
	members, err := server.Wait(ctx, 2)
	require.NoError(t, err)
	require.Zero(t, open(t, conns, time.Minute))
	for _, m := range members {
		short, end := context.WithTimeout(ctx, time.Millisecond)
		require.Nil(t, m.Attend(short), "%s is there", m.Name)
		end()
	}
	cancel()
	workers.Wait()
}

// TestCleartextIsRefused speaks the protocol to a port without proving anything.
func TestCleartextIsRefused(t *testing.T) {
	server, place := guarded(t, "127.0.0.1:0")
	defer server.Close()
	cc, err := grpc.NewClient("passthrough:///"+place.Name, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := pb.NewControlClient(cc).Join(ctx)
	if err == nil {
		_ = stream.Send(&pb.FromWorker{Hello: &pb.Hello{Protocol: 6, Name: "w9", Incarnation: "x"}})
		_, err = stream.Recv()
	}
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "refused, and not kept waiting")
	require.Empty(t, server.Status())
}
