package coord_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// joiner makes members of workers, named w0, w1 and so on.
type joiner func(t *testing.T, workers []*fakeWorker) []worker.Member

// overBoth runs a test with workers in the coordinator's process, and with workers at the other end of a connection.
func overBoth(t *testing.T, test func(t *testing.T, join joiner)) {
	t.Run("local", func(t *testing.T) { test(t, local) })
	t.Run("remote", func(t *testing.T) { test(t, remote) })
}

func local(_ *testing.T, workers []*fakeWorker) []worker.Member {
	var members []worker.Member
	for i, w := range workers {
		members = append(members, worker.Member{Name: fmt.Sprintf("w%d", i), Worker: w})
	}
	return members
}

func remote(t *testing.T, workers []*fakeWorker) []worker.Member {
	lis := bufconn.Listen(1 << 20)
	log := slog.New(slog.DiscardHandler)
	keys, err := identity.NewAuthority()
	require.NoError(t, err)
	place := identity.Place{
		Name: "memory", Listen: func() (net.Listener, error) { return lis, nil }, Dial: lis.DialContext,
		Prove: func(role identity.Role) (credentials.TransportCredentials, error) { return keys.Credentials(role), nil },
	}
	server, err := rpc.Listen(rpc.Config{Place: place, Timing: rpc.DefaultTiming(), Logger: log})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	var joins sync.WaitGroup
	for i, w := range workers {
		joins.Go(func() {
			_ = rpc.Join(ctx, rpc.JoinConfig{ // how a run ends for it is what the test is about
				Place: place, Name: fmt.Sprintf("w%d", i), Once: true, Logger: log, New: func() rpc.Local { return w },
			})
		})
	}
	t.Cleanup(func() {
		server.Close()
		cancel()
		joins.Wait()
	})
	members, err := server.Wait(ctx, len(workers))
	require.NoError(t, err)
	return members
}
