package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/servertest"
)

// unreachable is the place of a coordinator that does not exist. It calls a function before each attempt to reach it.
func unreachable(enrol func(context.Context) error) JoinConfig {
	return JoinConfig{
		Name: "w1", Version: "v1", Logger: slog.New(slog.DiscardHandler), New: func() Local { return &simulated{} },
		Place: identity.Place{
			Name:  "nowhere:1",
			Dial:  func(context.Context) (net.Conn, error) { return nil, errors.New("no route to host") },
			Prove: func(identity.Role) (credentials.TransportCredentials, error) { return insecure.NewCredentials(), nil },
			Enrol: enrol,
		},
	}
}

// TestCertificateIsLookedAtWhileAWorkerRuns, every minute and whatever the worker does; that ends with the worker.
func TestCertificateIsLookedAtWhileAWorkerRuns(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var looked atomic.Int64
		cfg := unreachable(func(context.Context) error { looked.Add(1); return nil })
		end := keepEnrolled(t.Context(), cfg)
		time.Sleep(10*renewsEvery + time.Second)
		require.EqualValues(t, 10, looked.Load())
		end()
		time.Sleep(10 * renewsEvery)
		require.EqualValues(t, 10, looked.Load())
	})
}

// TestWorkerThatIsRefusedACertificateEnds, with the reason. One whose certificate merely could not be renewed goes on.
func TestWorkerThatIsRefusedACertificateEnds(t *testing.T) {
	attempts := 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := Join(ctx, unreachable(func(context.Context) error {
		if attempts++; attempts < 3 {
			return &identity.RenewalError{Until: time.Now().Add(time.Hour), Err: errors.New("timeout")}
		}
		return &identity.RefusedError{Reason: "token 3f2a91c0 has been revoked"}
	}))
	require.ErrorContains(t, err, "token 3f2a91c0 has been revoked")
	require.Equal(t, 3, attempts)
	require.NoError(t, ctx.Err())
}
