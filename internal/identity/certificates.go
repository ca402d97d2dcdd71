package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

const (
	roleScheme   = "loadgen" // of the URI that says what a certificate is for
	spiffeScheme = "spiffe"  // of one that SPIFFE's names are written as
)

// keyring is what one end of a connection shows the other, and what it knows the other by.
type keyring interface {
	// own returns this end's certificate.
	own() (*tls.Certificate, error)
	// roots certify the other end.
	roots() (*x509.CertPool, error)
	// trusts has a client check its server with the roots.
	trusts(cfg *tls.Config, roots *x509.CertPool)
	// stranger says what is wrong, and what to do, when none of the roots has certified the server.
	stranger() string
}

// certificates are TLS 1.3 with certificates on both sides, each for a role. What is needed of files is read for each connection.
type certificates struct {
	keys keyring
	role Role
	desk *desk // nil: nobody can enrol

	mu     sync.Mutex
	server credentials.TransportCredentials // of all handshakes of a coordinator; nil before the first
	meets  meets
}

// meets is how a coordinator meets its clients while its certificate and its roots stay the same: each connection holds on to it.
type meets struct {
	cert    *tls.Certificate
	roots   *x509.CertPool
	configs map[string]*tls.Config // by protocol
}

// baseConfig is what all our connections have in common.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, SessionTicketsDisabled: true}
}

// trustServer has a client look for a coordinator that roots have certified, wherever it is.
func trustServer(cfg *tls.Config, roots *x509.CertPool) {
	cfg.RootCAs, cfg.ServerName = roots, serverName
	cfg.VerifyConnection = func(s tls.ConnectionState) error { return checkRole(s, Coordinator) }
}

// ClientHandshake proves to a server that this end is of its role, if the server is a coordinator.
func (c *certificates) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := c.clientConfig()
	if err != nil {
		return nil, nil, err
	}
	secured, info, err := credentials.NewTLS(cfg).ClientHandshake(ctx, cfg.ServerName, conn)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		err = errors.New(c.keys.stranger())
	}
	if err != nil {
		return nil, nil, err
	}
	if proved, ok := info.(credentials.TLSInfo); ok && proved.State.NegotiatedProtocol == verdictProtocol {
		err = hear(secured)
	}
	return secured, info, err
}

func (c *certificates) clientConfig() (*tls.Config, error) {
	roots, err := c.keys.roots()
	if err != nil {
		return nil, err
	}
	cfg := baseConfig()
	cfg.NextProtos = []string{verdictProtocol}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.keys.own() }
	c.keys.trusts(cfg, roots)
	return cfg, nil
}

// ServerHandshake has a client prove that it is a worker. One that enrols is served, and the connection is over: the error is an *Enrolment.
func (c *certificates) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.handshakes().ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	proved, ok := info.(credentials.TLSInfo)
	switch {
	case !ok:
		err = errors.New("TLS says nothing about the connection")
	case proved.State.NegotiatedProtocol == enrolProtocol:
		err = c.desk.serve(secured, proved.State)
	case proved.State.NegotiatedProtocol == verdictProtocol:
		if err = tell(secured, c.judge(proved.State)); err == nil {
			return secured, info, nil
		}
	default:
		return secured, info, nil
	}
	return nil, nil, err // who asked for the handshake closes the connection
}

// handshakes are those of a coordinator.
func (c *certificates) handshakes() credentials.TransportCredentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		cfg := baseConfig()
		cfg.GetConfigForClient = c.serverConfig
		c.server = credentials.NewTLS(cfg)
	}
	return c.server
}

// serverConfig is how a coordinator meets a client.
func (c *certificates) serverConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	cert, err := c.keys.own()
	if err != nil {
		return nil, err
	}
	roots, err := c.keys.roots()
	if err != nil {
		return nil, err
	}
	protocol := "" // it has none of ours
	switch {
	case c.desk != nil && slices.Contains(hello.SupportedProtos, enrolProtocol):
		protocol = enrolProtocol
	case slices.Contains(hello.SupportedProtos, verdictProtocol):
		protocol = verdictProtocol
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meets.cert != cert || c.meets.roots != roots {
		c.meets = meets{cert, roots, map[string]*tls.Config{}}
	}
	cfg := c.meets.configs[protocol]
	if cfg == nil {
		cfg = c.configFor(protocol, cert, roots)
		c.meets.configs[protocol] = cfg
	}
	return cfg, nil
}

// configFor is how a coordinator meets a client that speaks a protocol.
func (c *certificates) configFor(protocol string, cert *tls.Certificate, roots *x509.CertPool) *tls.Config {
	cfg := baseConfig()
	cfg.Certificates, cfg.ClientCAs, cfg.ClientAuth = []tls.Certificate{*cert}, roots, tls.RequireAndVerifyClientCert
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if err := checkRole(s, c.other()); err != nil {
			return err
		}
		return checkDomain(cert.Leaf, s.PeerCertificates[0])
	}
	switch protocol {
	case enrolProtocol:
		c.desk.admit(cfg)
	case verdictProtocol:
		cfg.NextProtos, cfg.ClientAuth, cfg.VerifyConnection = []string{verdictProtocol}, tls.RequestClientCert, nil // judge looks at it
	}
	return cfg
}

// Info says what protects the connection.
func (c *certificates) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns the same: nothing of it changes.
func (c *certificates) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: who the server has to be is not decided by those who call it.
func (c *certificates) OverrideServerName(string) error { return nil }

// checkRole looks for the role in the other end's certificate, which has been verified.
func checkRole(s tls.ConnectionState, want Role) error {
	if len(s.VerifiedChains) == 0 {
		return errors.New("no certificate was verified")
	}
	_, err := roleIn(s.PeerCertificates[0], want)
	return err
}

// roleIn looks for a role in a certificate, and returns the URI that says it: loadgen://role/ROLE, or a SPIFFE ID that ends in /loadgen/ROLE.
func roleIn(c *x509.Certificate, want Role) (*url.URL, error) {
	for _, u := range c.URIs {
		if u.String() == roleURI(want).String() || u.Scheme == spiffeScheme && u.Host != "" && strings.HasSuffix(u.Path, "/loadgen/"+string(want)) {
			return u, nil
		}
	}
	var has []string
	for _, u := range c.URIs {
		has = append(has, fmt.Sprintf("%q", u.String()))
	}
	if len(has) == 0 {
		has = []string{"none"}
	}
	return nil, fmt.Errorf("its certificate is not for the role of %s: that takes a URI %s or spiffe://TRUST-DOMAIN/…/loadgen/%[1]s in its subject alternative names, which has %[3]s",
		want, roleURI(want), strings.Join(has, ", "))
}

// trustDomain is that of a certificate's SPIFFE ID; "" without one.
func trustDomain(c *x509.Certificate) string {
	if i := slices.IndexFunc(c.URIs, func(u *url.URL) bool { return u.Scheme == spiffeScheme }); i >= 0 {
		return c.URIs[i].Host
	}
	return ""
}

// checkDomain has two ends with SPIFFE IDs be of one trust domain.
func checkDomain(own, other *x509.Certificate) error {
	if here, there := trustDomain(own), trustDomain(other); here != "" && there != "" && here != there {
		return fmt.Errorf("it is of the trust domain %q, this end of %q", there, here)
	}
	return nil
}

func roleURI(role Role) *url.URL {
	return &url.URL{Scheme: roleScheme, Host: "role", Path: "/" + string(role)}
}

func poolOf(roots ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range roots {
		pool.AddCert(c)
	}
	return pool
}
