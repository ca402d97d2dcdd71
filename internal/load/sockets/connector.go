package sockets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/plan"
)

// Connector connects to endpoints, over TLS if the target wants it.
type Connector struct {
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	tls  *tls.Config // nil for plain TCP

	Allow func(to netip.AddrPort, socket string) error // checks a connection's far end before anything is sent; nil if there is nothing to check
}

// NewConnector reads the files that t names; t is nil for plain TCP.
func NewConnector(dial func(ctx context.Context, network, addr string) (net.Conn, error), read func(path string) ([]byte, error), t *plan.TLS) (Connector, error) {
	c := Connector{Dial: dial}
	if t == nil {
		return c, nil
	}
	// Records are full from the first one on, so a write is one record if it fits.
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, DynamicRecordSizingDisabled: true, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		roots, err := Authorities(read, t.CA)
		if err != nil {
			return c, fmt.Errorf("tls, ca: %w", err)
		}
		c.tls.RootCAs = roots
	}
	if t.Cert != "" {
		pair, err := readPair(read, t.Cert, t.Key)
		if err != nil {
			return c, fmt.Errorf("tls, %w", err)
		}
		c.tls.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Negotiate has servers choose a protocol by ALPN, over TLS. One that does not is refused.
func (c *Connector) Negotiate(protocol string) {
	if c.tls != nil {
		c.tls.NextProtos = []string{protocol}
	}
}

// Authorities reads the certificates to be trusted from a file in PEM.
func Authorities(read func(string) ([]byte, error), path string) (*x509.CertPool, error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate: it must be PEM, with a block that begins -----BEGIN CERTIFICATE-----", path)
	}
	return pool, nil
}

// readPair reads a client's certificate and key. Its errors reveal nothing of the key file but the names of its blocks.
func readPair(read func(string) ([]byte, error), cert, key string) (pair tls.Certificate, err error) {
	certText, err := read(cert)
	if err != nil {
		return pair, fmt.Errorf("cert: %w", err)
	}
	keyText, err := read(key)
	if err != nil {
		return pair, fmt.Errorf("key: %w", err)
	}
	if block, _ := pem.Decode(keyText); block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "") {
		return pair, fmt.Errorf("key: %s is encrypted: write it without a passphrase (openssl pkey -in %s -out PATH), readable for the worker alone", key, key)
	}
	if pair, err = tls.X509KeyPair(certText, keyText); err != nil {
		return pair, fmt.Errorf("cert %s and key %s: %w", cert, key, err)
	}
	return pair, nil
}

// To connects to an endpoint: to its address if that is known, else to its text.
func (c Connector) To(ctx context.Context, end *Endpoint) (net.Conn, error) {
	network, addr := "tcp", end.Text
	switch {
	case end.Path != "":
		network, addr = "unix", end.Path
	case end.Addr.IsValid():
		addr = end.Addr.String()
	}
	conn, err := c.Dial(ctx, network, addr)
	if err != nil {
		if what, ok := errors.AsType[*net.OpError](err); ok { // its text repeats the address
			err = what.Err
		}
		return nil, end.Explain(err)
	}
	if err := c.admit(conn); err != nil {
		return nil, err
	}
	if c.tls == nil {
		return conn, nil
	}
	cfg := c.tls
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(end.Text)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the error that counts is the handshake's
		return nil, fmt.Errorf("TLS: %w", c.Explain(err))
	}
	if wanted := cfg.NextProtos; len(wanted) > 0 && secure.ConnectionState().NegotiatedProtocol != wanted[0] {
		_ = conn.Close() // nothing has been sent on it
		return nil, fmt.Errorf("TLS: the server chooses no protocol by ALPN: %s", c.declined())
	}
	return secure, nil
}

// Facts returns how a connection is encrypted; nil for plain TCP.
func (c Connector) Facts(conn net.Conn) map[string]string {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	how := tls.VersionName(state.Version) + ", " + tls.CipherSuiteName(state.CipherSuite)
	if c.tls.InsecureSkipVerify {
		how += ", certificate not verified"
	}
	return map[string]string{"tls": how}
}

// Explain adds to a TLS connection's error what to do about it.
func (c Connector) Explain(err error) error {
	if c.tls == nil {
		return err
	}
	if remedy := c.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

func (c Connector) remedy(err error) string {
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var remote *net.OpError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return `write the path of its authority's certificate: tls { ca = "PATH" }`
	case errors.As(err, &name) && len(name.Certificate.DNSNames)+len(name.Certificate.IPAddresses) == 0:
		return "the certificate names no host: issue one with a subjectAltName, or, where nobody can pose as the server, write tls { insecure = true }"
	case errors.As(err, &name):
		return `write the name that the certificate holds: tls { server_name = "NAME" }`
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, or set this machine's clock"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "the server does not speak TLS at this port: leave tls out of the target, or write the port of its TLS"
	case errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == "tls: protocol version not supported":
		return "the server takes neither TLS 1.3 nor 1.2"
	case errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == "tls: no application protocol":
		return c.declined()
	case errors.As(err, &remote) && remote.Op == "remote error":
		return c.refusal()
	case errors.Is(err, context.DeadlineExceeded):
		return "the server may not speak TLS at this port"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE):
		return c.refusal() + ", or it does not speak TLS at this port"
	}
	return ""
}

// refusal says why a server may have broken the connection off.
func (c Connector) refusal() string {
	if len(c.tls.Certificates) == 0 {
		return "the server may want a client's certificate: write cert = \"PATH\" and key = \"PATH\" in tls { … }"
	}
	return "the server does not take the client's certificate: it must be signed by an authority that the server trusts, and not be over"
}

// declined says what to do if a server does not speak the protocol that it was asked for.
func (c Connector) declined() string {
	return fmt.Sprintf("it does not speak %s at this port: turn that on there, or write the driver of what it speaks", c.tls.NextProtos[0])
}

// led returns the address of a connection's far end.
func led(conn net.Conn) (to netip.AddrPort, socket string, err error) {
	switch at := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		to := at.AddrPort()
		return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), "", nil
	case *net.UnixAddr:
		return netip.AddrPort{}, at.Name, nil
	}
	return to, "", errors.New("where this connection leads cannot be told")
}

// admit checks a connection's far end, and closes the connection if Allow refuses it.
func (c Connector) admit(conn net.Conn) error {
	if c.Allow == nil {
		return nil
	}
	to, socket, err := led(conn)
	if err == nil {
		err = c.Allow(to, socket)
	}
	if err != nil {
		_ = conn.Close() // nothing has been sent on it
	}
	return err
}

// Admits is admit for an endpoint of an event loop, whose address is known.
func (c Connector) Admits(end *Endpoint) error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(netip.AddrPortFrom(end.Addr.Addr().Unmap(), end.Addr.Port()), end.Path)
}
