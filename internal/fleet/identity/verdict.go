package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// In TLS 1.3 a client finishes its handshake before the server has checked its certificate, and learns of a refusal only from an alert, which is a
// number. So both ends speak a protocol of their own, with its own name (ALPN), in which the server first sends its verdict: the length of a text, as
// two bytes in network order, and the text, which says why it refuses. An empty text admits the client, and gRPC follows. The client can believe the
// verdict, since it knows by then who the server is.
const (
	verdictProtocol = "loadgen/1"
	maxVerdict      = 500 // bytes
)

// hear makes a client wait for the verdict.
func hear(conn net.Conn) error {
	text, err := readFrame(conn, maxVerdict)
	if err != nil {
		return fmt.Errorf("await the coordinator's verdict: %w", err)
	}
	if len(text) > 0 {
		return fmt.Errorf("the coordinator refuses this worker: %s", shown(string(text)))
	}
	return nil
}

// tell sends a server's verdict, and returns it.
func tell(conn net.Conn, verdict error) error {
	text := ""
	if verdict != nil {
		text = verdict.Error()
		text = text[:min(len(text), maxVerdict)]
	}
	err := writeFrame(conn, []byte(text))
	if verdict != nil {
		return verdict
	}
	return err
}

// judge says why a client is refused; nil if it is admitted. The handshake has shown that it holds the certificate's key.
func (c *certificates) judge(s tls.ConnectionState) error {
	own, err := c.keys.own()
	if err != nil {
		return errors.New("the coordinator has no certificate of its own at the moment")
	}
	roots, err := c.keys.roots()
	if err != nil {
		return errors.New("the coordinator cannot look at certificates at the moment")
	}
	if len(s.PeerCertificates) == 0 {
		return errors.New("no certificate was shown: join with a token")
	}
	leaf := s.PeerCertificates[0]
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: poolOf(s.PeerCertificates[1:]...), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return errors.New("its certificate is of an authority that is unknown here: join with a token of this coordinator's, or give the coordinator the CA as --tls-ca")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("its certificate is valid from %s to %s: join with a new token, or renew it; and compare the clocks",
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	case err != nil:
		return fmt.Errorf("its certificate: %w", err)
	}
	if _, err := roleIn(leaf, c.other()); err != nil {
		return err
	}
	return checkDomain(own.Leaf, leaf)
}

// other is the other end's role.
func (c *certificates) other() Role {
	if c.role == Worker {
		return Coordinator
	}
	return Worker
}
