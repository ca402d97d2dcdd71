package identity

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFalseWorkersAreRefused: a coordinator meets workers that trust anyone and cannot prove who they are.
func TestFalseWorkersAreRefused(t *testing.T) {
	own, err := NewAuthority()
	require.NoError(t, err)
	other, err := NewAuthority()
	require.NoError(t, err)
	certificate := func(a *Authority, role Role, at time.Time) []tls.Certificate {
		c, err := a.issue(role, at)
		require.NoError(t, err)
		return []tls.Certificate{*c}
	}
	now := time.Now()
	for name, c := range map[string]struct {
		shown   []tls.Certificate
		version uint16
		right   bool
	}{
		"right":           {certificate(own, Worker, now), tls.VersionTLS13, true},
		"no certificate":  {nil, tls.VersionTLS13, false},
		"another key":     {certificate(other, Worker, now), tls.VersionTLS13, false},
		"a coordinator's": {certificate(own, Coordinator, now), tls.VersionTLS13, false},
		"expired":         {certificate(own, Worker, now.Add(-certified-time.Minute)), tls.VersionTLS13, false},
		"not yet":         {certificate(own, Worker, now.Add(2*backdated)), tls.VersionTLS13, false},
		"TLS 1.2":         {certificate(own, Worker, now), tls.VersionTLS12, false},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			client := tls.Client(here, &tls.Config{
				InsecureSkipVerify: true, Certificates: c.shown, MaxVersion: c.version, NextProtos: []string{"h2"},
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				if client.Handshake() == nil {
					_, _ = client.Read(make([]byte, 1))
				}
				_ = here.Close()
			}()
			conn, _, err := Handshake(own.Credentials(Coordinator)).ServerHandshake(there)
			if c.right {
				require.NoError(t, err)
				require.NoError(t, conn.Close())
			} else {
				require.Error(t, err)
			}
			<-done
		})
	}
}

// TestCertificatesAreRenewed after two thirds of their lifetime, and not before.
func TestCertificatesAreRenewed(t *testing.T) {
	a, err := NewAuthority()
	require.NoError(t, err)
	h := &holder{authority: a, issue: func(now time.Time) (*tls.Certificate, error) { return a.issue(Worker, now) }}
	first, err := h.own()
	require.NoError(t, err)
	again, err := h.own()
	require.NoError(t, err)
	require.Same(t, first, again)
	h.held, err = a.issue(Worker, time.Now().Add(-2*certified/3-time.Minute))
	require.NoError(t, err)
	old := h.held
	renewed, err := h.own()
	require.NoError(t, err)
	require.NotSame(t, old, renewed)
}
