package engine

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
	"os"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/plan"
)

// connector connects to endpoints, over TLS where the target wants it.
type connector struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	tls  *tls.Config // nil: plain TCP

	allow func(to netip.AddrPort, socket string) error // may the target's secrets go there? nil: they may, or there are none
}

// newConnector has the files read that t names; t is nil for plain TCP.
func newConnector(dial func(ctx context.Context, network, addr string) (net.Conn, error), read func(path string) ([]byte, error), t *plan.TLS) (connector, error) {
	c := connector{dial: dial}
	if t == nil {
		return c, nil
	}
	// Records are full from the first on: a write is a record, as far as it fits.
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, DynamicRecordSizingDisabled: true}
	if t.CA != "" {
		roots, err := readAuthorities(read, t.CA)
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

// maxTLSFile bounds a file of certificates, or of a key.
const maxTLSFile = 4 << 20

// readFile reads a file of certificates or of a key.
func (e *Engine) readFile(path string) ([]byte, error) {
	file, err := e.openNamed(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTLSFile+1))
	if len(text) > maxTLSFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxTLSFile)
	}
	return text, err
}

func readAuthorities(read func(string) ([]byte, error), path string) (*x509.CertPool, error) {
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

// readPair reads a client's certificate and key. Its errors say nothing of what the key's file holds but the names of its blocks.
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

// to connects to an endpoint: to its address once that is known, before to what its text says.
func (c connector) to(ctx context.Context, end *endpoint) (net.Conn, error) {
	network, addr := "tcp", end.text
	switch {
	case end.path != "":
		network, addr = "unix", end.path
	case end.addr.IsValid():
		addr = end.addr.String()
	}
	conn, err := c.dial(ctx, network, addr)
	if err != nil {
		var what *net.OpError // it repeats the address
		if errors.As(err, &what) {
			err = what.Err
		}
		return nil, explainSocket(end, err)
	}
	if err := c.admit(conn); err != nil {
		return nil, err
	}
	if c.tls == nil {
		return conn, nil
	}
	cfg := c.tls
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(end.text)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the error that counts is the handshake's
		return nil, fmt.Errorf("TLS: %w", c.explain(err))
	}
	return secure, nil
}

// explainSocket adds to an error of connecting to a Unix socket what to do about it.
func explainSocket(end *endpoint, err error) error {
	remedy := ""
	switch {
	case end.path == "":
	case errors.Is(err, unix.ENOENT):
		remedy = "there is no such file where the load runs: start the server, and have it listen there (Redis: unixsocket PATH, memcached: -s PATH)"
	case errors.Is(err, unix.EACCES):
		remedy = "this user may not write to the socket, or not enter its directory: see their owner and mode (Redis: unixsocketperm 770, memcached: -a 770)"
	case errors.Is(err, unix.ECONNREFUSED):
		remedy = "nobody listens there: the server has ended and left the file, or it is no socket"
	case errors.Is(err, unix.EAGAIN):
		remedy = "the server's queue of connections is full: use fewer sessions, or a larger backlog (Redis: tcp-backlog, memcached: -b)"
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// facts says how a connection is encrypted.
func (c connector) facts(conn net.Conn) map[string]string {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := secure.ConnectionState()
	return map[string]string{"tls": tls.VersionName(state.Version) + ", " + tls.CipherSuiteName(state.CipherSuite)}
}

// explain adds to an error of a TLS connection what to do about it.
func (c connector) explain(err error) error {
	if c.tls == nil {
		return err
	}
	if remedy := c.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

func (c connector) remedy(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.As(err, &unknown):
		return `write the path of its authority's certificate: tls { ca = "PATH" }`
	case errors.As(err, &name):
		return `write the name that the certificate holds: tls { server_name = "NAME" }`
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, or set this machine's clock"
	case errors.As(err, &plain):
		return "the server does not speak TLS at this port: leave tls out of the target, or write the port of its TLS"
	case errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == "tls: protocol version not supported":
		return "the server takes neither TLS 1.3 nor 1.2"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return c.refusal()
	case errors.Is(err, context.DeadlineExceeded):
		return "the server may not speak TLS at this port"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE):
		return c.refusal() + ", or it does not speak TLS at this port"
	}
	return ""
}

// refusal says why a server may break the connection off.
func (c connector) refusal() string {
	if len(c.tls.Certificates) == 0 {
		return "the server may want a client's certificate: write cert = \"PATH\" and key = \"PATH\" in tls { … }"
	}
	return "the server does not take the client's certificate: it must be signed by an authority that the server trusts, and not be over"
}

// Dial connects to an endpoint of a target as the target's load does: over TLS where the plan wants it, with open and allow as in Config.
func Dial(ctx context.Context, t *plan.Target, addr string, open func(path string) (*os.File, error), allow Allow) (net.Conn, error) {
	e := &Engine{cfg: Config{Open: open, Allow: allow}}
	c, err := newConnector(new(net.Dialer).DialContext, e.readFile, t.TLS)
	if err != nil {
		return nil, err
	}
	c.allow = e.allowance(t.Config)
	end := newEndpoint("", addr)
	return c.to(ctx, &end)
}
