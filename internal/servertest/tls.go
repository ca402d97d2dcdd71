package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates that live as long as a test.
type Authority struct {
	CA string // path of its own certificate

	t      testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issued int64
}

// NewAuthority makes an authority, with files that any user can read.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: openDir(t, 0o755)}
	template := a.template("loadgen test authority", time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.CA, _ = a.write(template)
	return a
}

// Certificate is the paths of a certificate and its key.
type Certificate struct{ Cert, Key string }

// Issue signs a certificate for a host name or an IP address, for servers and clients alike. It expires after lasts, which may be negative. It may
// also name URIs; for "" it names no host.
func (a *Authority) Issue(host string, lasts time.Duration, uris ...string) Certificate {
	a.t.Helper()
	template := a.template(host, lasts)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else if host != "" {
		template.DNSNames = []string{host}
	}
	for _, text := range uris {
		u, err := url.Parse(text)
		require.NoError(a.t, err, "certify a URI")
		template.URIs = append(template.URIs, u)
	}
	cert, key := a.write(template)
	return Certificate{cert, key}
}

func (a *Authority) template(name string, lasts time.Duration) *x509.Certificate {
	a.issued++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(lasts),
	}
}

// write signs a certificate, the authority's own with itself, and returns the paths of the certificate and its key.
func (a *Authority) write(template *x509.Certificate) (cert, key string) {
	a.t.Helper()
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err, "make a key")
	if a.cert == nil {
		a.cert, a.key = template, fresh
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.cert, &fresh.PublicKey, a.key)
	require.NoError(a.t, err, "sign a certificate")
	private, err := x509.MarshalPKCS8PrivateKey(fresh)
	require.NoError(a.t, err, "encode a key")
	base := filepath.Join(a.dir, strconv.FormatInt(a.issued, 10))
	cert, key = base+".pem", base+".key"
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o644), "write a certificate")
	}
	return cert, key
}

// Client returns the settings of a client that trusts the authority's servers and shows a certificate of its own.
func (a *Authority) Client() *tls.Config {
	a.t.Helper()
	own := a.Issue("127.0.0.1", time.Hour)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	require.NoError(a.t, err, "read a certificate")
	return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true} // it only talks to the server under test
}

// StartRedisTLS starts a redis-server that shows a certificate, requires one signed by the authority from its clients, and speaks only TLS.
func StartRedisTLS(t testing.TB, a *Authority, shows Certificate, options ...string) *Server {
	t.Helper()
	return startKind(t, kind{
		part: "redis", exe: "redis-server", port: "--tls-port",
		args: []string{
			"--port", "0", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
			"--tls-cert-file", shows.Cert, "--tls-key-file", shows.Key, "--tls-ca-cert-file", a.CA, "--tls-auth-clients", "yes",
		},
		ask: "*1\r\n$4\r\nPING\r\n", tls: a.Client(),
	}, options)
}

// StartMemcachedTLS is StartRedisTLS for memcached.
func StartMemcachedTLS(t testing.TB, a *Authority, shows Certificate, options ...string) *Server {
	t.Helper()
	args := asNobody("-l", "127.0.0.1", "-U", "0", "-m", "64", "-Z",
		"-o", "ssl_chain_cert="+shows.Cert+",ssl_key="+shows.Key+",ssl_ca_cert="+a.CA+",ssl_verify_mode=2")
	return startKind(t, kind{part: "memcached", exe: "memcached", port: "-p", args: args, ask: "version\r\n", tls: a.Client()}, options)
}
