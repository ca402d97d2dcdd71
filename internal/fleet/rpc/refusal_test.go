package rpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
)

// entrance is a coordinator's loopback port, as seen from other machines, and the coordinator's log.
type entrance struct {
	dir    string // of the coordinator's tokens
	server *rpc.Server
	said   *said
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	place, err := identity.Means{Dir: dir}.ListenAt("127.0.0.1:0")
	require.NoError(t, err)
	e := &entrance{dir: dir, said: &said{began: time.Now()}}
	e.server, err = rpc.Listen(rpc.Config{Place: place, Run: "r", Version: "v1", Timing: rpc.DefaultTiming(), Logger: slog.New(e.said)})
	require.NoError(t, err)
	t.Cleanup(e.server.Close)
	return e
}

// comes has the worker of a name try to join at a place.
func (e *entrance) comes(t *testing.T, place identity.Place, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := &said{began: time.Now()}
	ended := make(chan error, 1)
	go func() {
		ended <- rpc.Join(ctx, rpc.JoinConfig{Place: place, Name: name, Version: "v1", Logger: slog.New(log), New: func() rpc.Local { return newEngine(newMill(), nil) }})
	}()
	for {
		select {
		case err := <-ended:
			require.Error(t, err)
			return err.Error()
		case <-time.After(5 * time.Millisecond):
			if lines := log.with("trying until"); len(lines) > 0 {
				cancel()
				<-ended
				return lines[0]
			}
		}
	}
}

// client connects without a certificate, and returns what it receives.
func (e *entrance) client() string {
	conn, err := tls.Dial("tcp", e.server.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"loadgen/1"}})
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	return hears(conn)
}

// hears returns what a connection delivers until its other end closes it.
func hears(conn net.Conn) string {
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err.Error()
	}
	heard, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err.Error()
	}
	return string(heard)
}

// tokens are those of the coordinator.
func (e *entrance) tokens(t *testing.T) *identity.Tokens {
	t.Helper()
	tokens, err := identity.OpenTokens(e.dir)
	require.NoError(t, err)
	return tokens
}

// token is a new one for one worker.
func (e *entrance) token(t *testing.T, ttl time.Duration) *identity.Token {
	t.Helper()
	token, err := e.tokens(t).Create(ttl, 1)
	require.NoError(t, err)
	return token
}

// workerWith has a worker of a machine of its own try to join with a token.
func (e *entrance) workerWith(t *testing.T, token *identity.Token) string {
	t.Helper()
	place, err := identity.Means{Dir: filepath.Join(t.TempDir(), "fleet"), Token: token, Name: "w1"}.JoinAt(e.server.Addr())
	require.NoError(t, err)
	return e.comes(t, place, "w1")
}

func comesSecond(t *testing.T, e *entrance) string {
	used := e.token(t, time.Minute)
	if _, err := e.enrolled(t, filepath.Join(t.TempDir(), "fleet"), used); err != nil {
		return err.Error()
	}
	return e.workerWith(t, used)
}

// enrolled is the place of the worker w0, for which a token has got a certificate into a directory.
func (e *entrance) enrolled(t *testing.T, dir string, token *identity.Token) (identity.Place, error) {
	t.Helper()
	place, err := identity.Means{Dir: dir, Token: token, Name: "w0"}.JoinAt(e.server.Addr())
	require.NoError(t, err)
	return place, place.Enrol(t.Context())
}

// TestCertificateIsOfOneWorker: nobody joins under another name than that which its token was used for.
func TestCertificateIsOfOneWorker(t *testing.T) {
	e := newEntrance(t)
	place, err := e.enrolled(t, filepath.Join(t.TempDir(), "fleet"), e.token(t, time.Minute))
	require.NoError(t, err)
	require.Contains(t, e.comes(t, place, "w1"), `its certificate is for the worker "w0", and it calls itself "w1": join with a token of its own`)
	require.Empty(t, e.server.Status())
}

func comesFromElsewhere(t *testing.T, e *entrance) string {
	_, foreign, _, err := identity.Make()
	require.NoError(t, err)
	return e.workerWith(t, foreign)
}

// comesSilent says nothing until the coordinator hangs up.
func comesSilent(t *testing.T, e *entrance) string {
	conn, err := net.Dial("tcp", e.server.Addr())
	require.NoError(t, err)
	defer conn.Close()
	return hears(conn)
}

// TestRefusalsAreSaid connects unauthorised clients to a coordinator's port, and compares what each side says with what is wrong; package identity has
// the other reasons. That they are refused within a second follows from the reason in the log: a coordinator hangs up after 0.9 s of silence, and then
// logs a timeout. The test reads no clock of its own; a client that gets no time to speak on a busy machine tries again.
func TestRefusalsAreSaid(t *testing.T) {
	require.Less(t, identity.Silence, time.Second)
	for name, c := range map[string]struct {
		come        func(t *testing.T, e *entrance) string
		coordinator string // in its log
		other       string // what the other end says, or hears
	}{
		"token used again":             {comesSecond, "has been used as often as it may be", "has been used as often as it may be"},
		"token of another coordinator": {comesFromElsewhere, "remote error: tls:", "so the secret was not sent"},
		"no certificate":               {func(_ *testing.T, e *entrance) string { return e.client() }, "no certificate was shown: join with a token", "no certificate was shown: join with a token"},
		"silence":                      {comesSilent, "i/o timeout", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntrance(t)
			until := time.Now().Add(time.Minute)
			heard := c.come(t, e)
			for !strings.Contains(heard, c.other) && time.Now().Before(until) {
				heard = c.come(t, e)
			}
			require.Contains(t, heard, c.other)
			refused := func() bool {
				return slices.ContainsFunc(e.said.with("refused a connection from=127.0.0.1:"), func(line string) bool { return strings.Contains(line, c.coordinator) })
			}
			require.Eventually(t, refused, time.Minute, time.Millisecond, "%s", c.coordinator)
			require.Empty(t, e.said.with("use of closed"), "the reason, and no more")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := e.server.Wait(ctx, 1)
			require.ErrorContains(t, err, c.coordinator, "who waits for workers hears of it, too")
			require.Empty(t, e.server.Status(), "nobody was admitted")
		})
	}
}
