package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
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

// A failed renewal is reported each time, unless the worker ends meanwhile, which is no failure.
func TestRenewalsThatFailAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		enrol func(ctx context.Context) error
		told  int
	}{
		"it fails":     {func(context.Context) error { return errors.New("no\nroute") }, 3},
		"it is there":  {func(context.Context) error { return nil }, 0},
		"it takes on":  {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
		"not one":      {nil, 0},
		"it is no use": {func(context.Context) error { return &identity.RefusedError{Reason: "revoked"} }, 3},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			var logs bytes.Buffer
			cfg := unreachable(c.enrol)
			cfg.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			end := keepEnrolled(t.Context(), cfg)
			time.Sleep(3*time.Minute + time.Second)
			end()
			require.Equal(t, c.told, strings.Count(logs.String(), `level=WARN msg="certificate not renewed" err=`), name)
			require.Equal(t, c.told, strings.Count(logs.String(), "\n"), name)
		})
	}
}

// Before a worker connects to a coordinator, it has a certificate, or one that will do for now; otherwise it does not connect.
func TestWhoNeedsACertificate(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		enrol   func(context.Context) error
		want    error
		refused bool
	}{
		"nobody":     {},
		"it is new":  {enrol: func(context.Context) error { return nil }},
		"it will do": {enrol: func(context.Context) error { return &identity.RenewalError{Err: why} }},
		"there is none": {
			enrol: func(context.Context) error { return why }, want: why,
		},
		"it is refused": {enrol: func(context.Context) error { return errRevoked }, want: errRevoked, refused: true},
	} {
		err := enrol(t.Context(), unreachable(c.enrol))
		require.Equal(t, c.want, err, name)
		require.Equal(t, c.refused, isRefused(err), name)
	}
	require.True(t, isRefused(fmt.Errorf("join: %w", &RefusedError{"why"})))
}

var errRevoked = &identity.RefusedError{Reason: "revoked"}
