package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

const (
	ownScheme    = "loadgen" // scheme of the URIs that state a certificate's role and its worker's name
	nameHost     = "name"    // host of the URI that states the name
	spiffeScheme = "spiffe"  // scheme of a SPIFFE ID
)

// keyring holds what one end of a connection shows the other, and how it recognises the other.
type keyring interface {
	// own returns this end's certificate.
	own() (*tls.Certificate, error)
	// roots returns the certificates that certify the other end.
	roots() (*x509.CertPool, error)
	// trusts makes a client check its server against the roots.
	trusts(cfg *tls.Config, roots *x509.CertPool)
	// stranger says what is wrong, and what to do, when no root has certified the server.
	stranger() string
}

// certificates implements TLS 1.3 with certificates on both sides, one per role. Any files are read again for each connection.
type certificates struct {
	keys keyring
	role Role
	desk *desk // nil if no worker can enrol

	mu     sync.Mutex
	server credentials.TransportCredentials // for all of a coordinator's handshakes; nil before the first
	meets  meets
}

// meets holds the TLS configurations of a coordinator while its certificate and roots stay the same. Connections share them, since each connection
// keeps its configuration in memory.
type meets struct {
	cert    *tls.Certificate
	roots   *x509.CertPool
	configs map[string]*tls.Config // by protocol
}

// baseConfig is the TLS configuration common to all connections.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, SessionTicketsDisabled: true}
}

// trustServer makes a client accept a coordinator that the roots have certified, at any address.
func trustServer(cfg *tls.Config, roots *x509.CertPool) {
	cfg.RootCAs, cfg.ServerName = roots, serverName
	cfg.VerifyConnection = func(s tls.ConnectionState) error { return checkRole(s, Coordinator) }
}

// ClientHandshake proves this end's role to the server, which must prove to be a coordinator.
func (c *certificates) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := c.clientConfig()
	if err != nil {
		return nil, nil, err
	}
	secured, info, err := credentials.NewTLS(cfg).ClientHandshake(ctx, cfg.ServerName, conn)
	if errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError)) && cfg.ServerName == serverName { // certificates of a PKI have no such name
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

// ServerHandshake has a client prove that it is a worker. A client that enrols is served and its connection ends: the error is then an *Enrolment.
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
	return nil, nil, err // the caller closes the connection
}

// handshakes returns a coordinator's credentials for all handshakes.
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

// serverConfig returns a coordinator's TLS configuration for a client.
func (c *certificates) serverConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	cert, err := c.keys.own()
	if err != nil {
		return nil, err
	}
	roots, err := c.keys.roots()
	if err != nil {
		return nil, err
	}
	protocol := "" // the client offers none of our protocols
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

// configFor returns a coordinator's TLS configuration for a client's protocol.
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
		cfg.NextProtos, cfg.ClientAuth, cfg.VerifyConnection = []string{verdictProtocol}, tls.RequestClientCert, nil // judge checks the certificate
	}
	return cfg
}

// Info says what protects the connection.
func (c *certificates) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns c itself: its configuration never changes.
func (c *certificates) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: the caller does not decide who the server must be.
func (c *certificates) OverrideServerName(string) error { return nil }

// checkRole checks the role in the other end's certificate, which must already be verified.
func checkRole(s tls.ConnectionState, want Role) error {
	if len(s.VerifiedChains) == 0 {
		return errors.New("no certificate was verified")
	}
	_, err := roleIn(s.PeerCertificates[0], want)
	return err
}

// roleIn looks for a role in a certificate, and returns the URI that states it: loadgen://role/ROLE, or a SPIFFE ID that ends in /loadgen/ROLE.
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

// trustDomain is the trust domain of a certificate's SPIFFE ID; "" without one.
func trustDomain(c *x509.Certificate) string {
	if i := slices.IndexFunc(c.URIs, func(u *url.URL) bool { return u.Scheme == spiffeScheme }); i >= 0 {
		return c.URIs[i].Host
	}
	return ""
}

// checkDomain requires two ends that both have SPIFFE IDs to be in the same trust domain.
func checkDomain(own, other *x509.Certificate) error {
	if here, there := trustDomain(own), trustDomain(other); here != "" && there != "" && here != there {
		return fmt.Errorf("it is of the trust domain %q, this end of %q", there, here)
	}
	return nil
}

func roleURI(role Role) *url.URL {
	return &url.URL{Scheme: ownScheme, Host: "role", Path: "/" + string(role)}
}

func nameURI(name string) *url.URL {
	return &url.URL{Scheme: ownScheme, Host: nameHost, Path: "/" + name}
}

// nameIn is the name of the worker that a certificate is for, from its URI loadgen://name/NAME; "" without one.
func nameIn(c *x509.Certificate) string {
	if i := slices.IndexFunc(c.URIs, func(u *url.URL) bool { return u.Scheme == ownScheme && u.Host == nameHost }); i >= 0 {
		return strings.TrimPrefix(c.URIs[i].Path, "/")
	}
	return ""
}

// CheckBound returns an error if the certificate by which a worker has proved itself is for a worker of another name. Certificates that a token got
// are for one name; a socket, the loopback's key and a PKI without such URIs are not bound to a name.
func CheckBound(proof credentials.AuthInfo, name string) error {
	proved, ok := proof.(credentials.TLSInfo)
	if !ok || len(proved.State.PeerCertificates) == 0 {
		return nil
	}
	if bound := nameIn(proved.State.PeerCertificates[0]); bound != "" && bound != name {
		return fmt.Errorf("its certificate is for the worker %q, and it calls itself %q: join with a token of its own", bound, name)
	}
	return nil
}

// validName is the pattern of a worker's name. It serves as a label, in file records, names of files and sentences.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName says what is wrong with the name of a worker.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return errors.New("a worker's name is 1 to 64 letters, digits, dots, hyphens and underscores, the first a letter or digit")
	}
	return nil
}

func poolOf(roots ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range roots {
		pool.AddCert(c)
	}
	return pool
}
