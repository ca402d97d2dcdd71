package rpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

func newEntrance(t *testing.T, means identity.Means) *entrance {
	t.Helper()
	place, err := means.ListenAt("127.0.0.1:0")
	require.NoError(t, err)
	e := &entrance{dir: means.Dir, said: &said{began: time.Now()}}
	e.server, err = rpc.Listen(rpc.Config{Place: place, Run: "r", Version: "v1", Timing: rpc.DefaultTiming(), Logger: slog.New(e.said)})
	require.NoError(t, err)
	t.Cleanup(e.server.Close)
	return e
}

// worker has a worker try to join, and returns the first thing it says, in its log or as its final error.
func (e *entrance) worker(t *testing.T, means identity.Means) string {
	t.Helper()
	means.Name = "w1"
	place, err := means.JoinAt(e.server.Addr())
	require.NoError(t, err)
	return e.comes(t, place, means.Name)
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

// client connects with a certificate, or none, and returns what it receives.
func (e *entrance) client(shown ...tls.Certificate) string {
	conn, err := tls.Dial("tcp", e.server.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"loadgen/1"}, Certificates: shown})
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

// signer certifies what a test asks for.
type signer struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{}
	s.key, s.root = s.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return s
}

// issue certifies a new key; the signer's own, before it has one.
func (s *signer) issue(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, template.NotBefore = big.NewInt(1), time.Now().Add(-2*time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	by, with := s.root, s.key
	if by == nil {
		by, with = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return key, cert
}

// certificate is a role's certificate, valid for the given time from now.
func (s *signer) certificate(t *testing.T, role string, until time.Duration) tls.Certificate {
	t.Helper()
	uri, err := url.Parse("loadgen://role/" + role)
	require.NoError(t, err)
	key, cert := s.issue(t, &x509.Certificate{
		URIs: []*url.URL{uri}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(until),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// means are the files of an end with a role, which trusts a signer.
func (s *signer) means(t *testing.T, role string, believes *signer) identity.Means {
	t.Helper()
	cert := s.certificate(t, role, time.Hour)
	secret, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	return identity.Means{Dir: dir, TLS: identity.Files{
		CA: write("ca.pem", "CERTIFICATE", believes.root.Raw), Cert: write("cert.pem", "CERTIFICATE", cert.Certificate[0]), Key: write("key.pem", "PRIVATE KEY", secret),
	}}
}

// recorded is a connection that keeps what is written to it.
type recorded struct {
	net.Conn
	mu      sync.Mutex
	written []byte
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, b...)
	return r.Conn.Write(b)
}

// replay lets a client with a worker's certificate connect, then sends all its bytes again on another connection, which gets no verdict.
func (e *entrance) replay(cert tls.Certificate) string {
	conn, err := net.Dial("tcp", e.server.Addr())
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	kept := &recorded{Conn: conn}
	client := tls.Client(kept, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"loadgen/1"}, Certificates: []tls.Certificate{cert}})
	verdict := make([]byte, 2)
	if _, err := io.ReadFull(client, verdict); err != nil || verdict[0]|verdict[1] != 0 {
		return fmt.Sprintf("not let in: %q, %v", verdict, err)
	}
	again, err := net.Dial("tcp", e.server.Addr())
	if err != nil {
		return err.Error()
	}
	defer again.Close()
	if _, err := again.Write(kept.written); err != nil {
		return err.Error()
	}
	_ = hears(again) // the server's half of another handshake
	return "no verdict"
}

// TestRefusalsAreSaid connects unauthorised clients to a coordinator's port, and compares what each side says with what is wrong. That they are
// refused within a second follows from the reason in the log: a coordinator hangs up after 0.9 s of silence, and then logs a timeout. The test reads
// no clock of its own; a client that gets no time to speak on a busy machine tries again.
func TestRefusalsAreSaid(t *testing.T) {
	require.Less(t, identity.Silence, time.Second)
	own, other := newSigner(t), newSigner(t)
	byFiles := own.means(t, "coordinator", own)
	for _, c := range []struct {
		name        string
		means       identity.Means // of the coordinator; none: workers come to it with tokens
		come        func(t *testing.T, e *entrance) string
		coordinator string // in its log
		other       string // what the other end says, or hears
	}{
		{"expired token", identity.Means{}, comesLate, "expired at", "expired at"},
		{"token used again", identity.Means{}, comesSecond, "has been used as often as it may be", "has been used as often as it may be"},
		{"token used by another of the machine", identity.Means{}, comesBeside, "has been used as often as it may be", "has been used as often as it may be"},
		{"revoked token", identity.Means{}, comesRevoked, "is not known here: it was revoked", "is not known here: it was revoked"},
		{"token of another coordinator", identity.Means{}, comesFromElsewhere, "remote error: tls:", "so the secret was not sent"},
		{
			"another CA", byFiles, func(t *testing.T, e *entrance) string { return e.worker(t, other.means(t, "worker", own)) },
			"its certificate is of an authority that is unknown here", "the coordinator refuses this worker: its certificate is of an authority that is unknown here",
		},
		{
			"another CA's coordinator", byFiles, func(t *testing.T, e *entrance) string { return e.worker(t, own.means(t, "worker", other)) },
			"remote error: tls:", "give both ends the CA that certifies the other as --tls-ca",
		},
		{
			"expired certificate", byFiles, func(t *testing.T, e *entrance) string { return e.client(own.certificate(t, "worker", -time.Minute)) },
			"join with a new token, or renew it; and compare the clocks", "join with a new token, or renew it; and compare the clocks",
		},
		{
			"wrong role", byFiles, func(t *testing.T, e *entrance) string { return e.client(own.certificate(t, "coordinator", time.Hour)) },
			"its certificate is not for the role of worker", "its certificate is not for the role of worker",
		},
		{
			"no certificate", byFiles, func(_ *testing.T, e *entrance) string { return e.client() },
			"no certificate was shown: join with a token", "no certificate was shown: join with a token",
		},
		{
			"words said before", byFiles, func(t *testing.T, e *entrance) string { return e.replay(own.certificate(t, "worker", time.Hour)) },
			"tls: ", "no verdict",
		},
		{"silence", byFiles, comesSilent, "i/o timeout", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.means.Dir == "" {
				c.means.Dir = filepath.Join(t.TempDir(), "fleet")
			}
			e := newEntrance(t, c.means)
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
			require.Empty(t, e.server.Status(), "nobody was admitted")
		})
	}
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
	return e.worker(t, identity.Means{Dir: filepath.Join(t.TempDir(), "fleet"), Token: token})
}

func comesLate(t *testing.T, e *entrance) string {
	expired := e.token(t, time.Second)
	list, err := e.tokens(t).List()
	require.NoError(t, err)
	time.Sleep(time.Until(list[len(list)-1].Expires))
	return e.workerWith(t, expired)
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

// comesBeside is a worker with the same state directory as one that has joined.
func comesBeside(t *testing.T, e *entrance) string {
	dir, used := filepath.Join(t.TempDir(), "fleet"), e.token(t, time.Minute)
	if _, err := e.enrolled(t, dir, used); err != nil {
		return err.Error()
	}
	return e.worker(t, identity.Means{Dir: dir, Token: used})
}

// TestCertificateIsOfOneWorker: nobody joins under another name than that which its token was used for.
func TestCertificateIsOfOneWorker(t *testing.T) {
	e := newEntrance(t, identity.Means{Dir: filepath.Join(t.TempDir(), "fleet")})
	place, err := e.enrolled(t, filepath.Join(t.TempDir(), "fleet"), e.token(t, time.Minute))
	require.NoError(t, err)
	require.Contains(t, e.comes(t, place, "w1"), `its certificate is for the worker "w0", and it calls itself "w1": join with a token of its own`)
	require.Empty(t, e.server.Status())
}

func comesRevoked(t *testing.T, e *entrance) string {
	revoked := e.token(t, time.Minute)
	require.NoError(t, e.tokens(t).Revoke(revoked.ID()))
	return e.workerWith(t, revoked)
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
