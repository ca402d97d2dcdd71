package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// shows is a worker that shows whatever certificate it likes.
type shows struct {
	keyring
	cert *tls.Certificate
}

func (s shows) own() (*tls.Certificate, error) { return s.cert, nil }

// TestRefusedWorkerHearsWhy, within a second, and so does the coordinator's log.
func TestRefusedWorkerHearsWhy(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	other, err := NewAuthority()
	require.NoError(t, err)
	issue := func(by *Authority, role Role, at time.Time) *tls.Certificate {
		cert, err := by.issue(role, at)
		require.NoError(t, err)
		return cert
	}
	ofRole := func(uris ...string) *tls.Certificate {
		key := newKey(t)
		template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		for _, text := range uris {
			u, err := url.Parse(text)
			require.NoError(t, err)
			template.URIs = append(template.URIs, u)
		}
		leaf, err := a.sign(template, key.Public(), time.Now())
		require.NoError(t, err)
		return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	}
	stolen := issue(a, Worker, time.Now())
	stolen.PrivateKey = newKey(t)
	for name, c := range map[string]struct {
		cert *tls.Certificate
		says string // "": both ends are content
	}{
		"a worker":            {issue(a, Worker, time.Now()), ""},
		"expired":             {issue(a, Worker, time.Now().Add(-25*time.Hour)), "join with a new token, or renew it; and compare the clocks"},
		"of the future":       {issue(a, Worker, time.Now().Add(2*time.Hour)), "compare the clocks"},
		"of another":          {issue(other, Worker, time.Now()), "its certificate is of an authority that is unknown here: join with a token of this coordinator's"},
		"of the coordinator":  {issue(a, Coordinator, time.Now()), "incompatible key usage"},
		"role of the other":   {ofRole(coordinatorURI), "its certificate is not for the role of worker"},
		"no role":             {ofRole(), "its certificate is not for the role of worker"},
		"hostile role":        {ofRole("x:%E2%80%AE" + strings.Repeat("y", 900)), "its certificate is not for the role of worker"},
		"none":                {&tls.Certificate{}, "no certificate was shown: join with a token"},
		"somebody else's key": {stolen, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			coordinator, ok := a.Credentials(Coordinator).(*certificates)
			require.True(t, ok)
			keys := a.Credentials(Worker).(*certificates).keys
			worker := &certificates{keys: shows{keys, c.cert}, role: Worker}
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer lis.Close()
			refused := make(chan error, 1)
			go func() {
				conn, err := lis.Accept()
				if err == nil {
					_, _, err = Handshake(coordinator).ServerHandshake(conn)
				}
				refused <- err
			}()
			conn, err := net.Dial("tcp", lis.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, _, ofWorker := Handshake(worker).ClientHandshake(t.Context(), "x", conn)
			ofCoordinator := <-refused
			switch c.says {
			case "":
				require.NoError(t, errors.Join(ofWorker, ofCoordinator))
			case "-":
				require.Error(t, ofWorker)
				require.Error(t, ofCoordinator)
			default:
				require.ErrorContains(t, ofWorker, "the coordinator refuses this worker: ")
				require.ErrorContains(t, ofWorker, c.says)
				require.ErrorContains(t, ofCoordinator, c.says)
				require.False(t, strings.ContainsFunc(ofWorker.Error(), func(r rune) bool { return !unicode.IsPrint(r) }))
			}
		})
	}
}

// TestClientsOfOtherProtocolsAreRefused by an alert, as ever, before anything they say is read.
func TestClientsOfOtherProtocolsAreRefused(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	coordinator := a.Credentials(Coordinator)
	for _, protocols := range [][]string{nil, {"h2"}, {"h2", "loadgen/2"}} {
		here, there := net.Pipe()
		refused := make(chan error, 1)
		go func() {
			_, _, err := coordinator.ServerHandshake(there)
			_ = there.Close()
			refused <- err
		}()
		client := tls.Client(here, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		_, err := client.Read(make([]byte, 1))
		require.Error(t, err)
		require.Error(t, <-refused, "%q", protocols)
		_ = here.Close()
	}
}

// saying is a connection whose other end has sent something, and then repeats its last piece or ends.
type saying struct {
	net.Conn
	io.Reader
}

func (s saying) Read(b []byte) (int, error) { return s.Reader.Read(b) }

// FuzzVerdict sends a worker random verdicts.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add([]byte("\x00\x05no\x1b\xff!and more"))
	f.Add([]byte{0xff, 0xff, 'x'})
	f.Fuzz(func(t *testing.T, said []byte) {
		err := hear(saying{Reader: bytes.NewReader(said)})
		if len(said) >= 2 && said[0] == 0 && said[1] == 0 {
			require.NoError(t, err)
			return
		}
		require.Error(t, err)
		require.Less(t, len(err.Error()), 3*maxVerdict+100)
		require.False(t, strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }), "%q", err)
	})
}

// TestConnectionsShareTheirConfiguration: a thousand workers do not need one each, and another certificate has another.
func TestConnectionsShareTheirConfiguration(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	keys := &holder{authority: a, issue: func(now time.Time) (*tls.Certificate, error) { return a.issue(Coordinator, now) }}
	c := &certificates{keys: keys, role: Coordinator}
	meet := func(protocols ...string) *tls.Config {
		cfg, err := c.serverConfig(&tls.ClientHelloInfo{SupportedProtos: protocols})
		require.NoError(t, err)
		return cfg
	}
	first, other := meet(verdictProtocol), meet()
	require.Same(t, first, meet(verdictProtocol))
	require.Equal(t, tls.RequestClientCert, first.ClientAuth)
	require.Same(t, other, meet("h2"))
	require.Equal(t, tls.RequireAndVerifyClientCert, other.ClientAuth)
	keys.held = nil // it is renewed
	renewed := meet(verdictProtocol)
	require.NotSame(t, first, renewed)
	require.NotEqual(t, first.Certificates[0].Leaf.SerialNumber, renewed.Certificates[0].Leaf.SerialNumber)
}
