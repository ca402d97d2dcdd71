package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	keyFile     = "authority.pem"
	maxKeyFile  = 4 << 10
	keyBlock    = "PRIVATE KEY"
	certified   = 24 * time.Hour        // for how long a certificate holds; another one is made after two thirds of it
	backdated   = time.Hour             // clocks are set back now and then
	fleetName   = "loadgen fleet"       // of the authority
	serverName  = "coordinator.loadgen" // which workers look for
	roleScheme  = "loadgen"             // of the URI that says what a certificate is for
	anytimeFrom = 1990                  // the authority itself holds as long as its file is there
	anytimeTo   = 2200
)

// Authority certifies the ends of a user's fleets. Whoever has its key is one of them.
type Authority struct {
	path string // of its key; "": it is in memory only
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

// NewAuthority returns one whose key is in this process alone.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return authorityOf(key)
}

func authorityOf(key *ecdsa.PrivateKey) (*Authority, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fleetName},
		NotBefore: time.Date(anytimeFrom, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(anytimeTo, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	return &Authority{key: key, root: root}, err
}

// OpenAuthority reads the key in a directory. Where there is none it makes one, once: of several that come at the same time, all get the
// same. It refuses a key that is not this user's, or that others may read.
func OpenAuthority(dir string) (*Authority, error) {
	if err := openDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, keyFile)
	key, err := readKey(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := makeKey(dir, path); err != nil {
			return nil, fmt.Errorf("make the key of this user's fleets: %w", err)
		}
		key, err = readKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("key of this user's fleets: %w", err)
	}
	a, err := authorityOf(key)
	if err != nil {
		return nil, err
	}
	a.path = path
	return a, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: delete it, and one is made", path)
	}
	if err := private(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("%s holds no key: delete it, and one is made", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if ec, ok := key.(*ecdsa.PrivateKey); ok {
		return ec, nil
	}
	return nil, errors.Join(fmt.Errorf("%s holds no ECDSA key: delete it, and one is made", path), err)
}

// makeKey writes a key beside its place and puts it there, unless another one has come before it.
func makeKey(dir, path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, keyFile+"-*") // mode 0600
	if err != nil {
		return err
	}
	err = pem.Encode(file, &pem.Block{Type: keyBlock, Bytes: der})
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		if err = os.Link(file.Name(), path); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(file.Name()))
}

// issue makes a key and a certificate for a role.
func (a *Authority) issue(role Role, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: string(role)}, URIs: []*url.URL{roleURI(role)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(certified), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if role == Coordinator {
		template.ExtKeyUsage, template.DNSNames = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []string{serverName}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

func roleURI(role Role) *url.URL {
	return &url.URL{Scheme: roleScheme, Host: "role", Path: "/" + string(role)}
}

// Credentials returns those of one end of a connection: it proves that it is of a role, and has the other end prove that it is of the other.
func (a *Authority) Credentials(role Role) credentials.TransportCredentials {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	held := &holder{authority: a, role: role}
	other := Worker
	if role == Worker {
		other = Coordinator
	}
	return &certificates{
		TransportCredentials: credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, SessionTicketsDisabled: true,
			RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return held.certificate() },
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return held.certificate() },
			VerifyConnection:     func(s tls.ConnectionState) error { return checkRole(s, other) },
		}),
		authority: a,
	}
}

// checkRole looks for the role in a certificate that the authority has signed.
func checkRole(s tls.ConnectionState, want Role) error {
	if len(s.VerifiedChains) == 0 {
		return errors.New("no certificate was verified")
	}
	uri := roleURI(want).String()
	if slices.ContainsFunc(s.PeerCertificates[0].URIs, func(u *url.URL) bool { return u.String() == uri }) {
		return nil
	}
	return fmt.Errorf("its certificate is not for the role of %s", want)
}

// holder makes a certificate when one is needed, and another one in good time.
type holder struct {
	authority *Authority
	role      Role

	mu   sync.Mutex
	held *tls.Certificate
}

func (h *holder) certificate() (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.held == nil || now.After(h.held.Leaf.NotAfter.Add(-certified/3)) || now.Before(h.held.Leaf.NotBefore) {
		made, err := h.authority.issue(h.role, now)
		if err != nil {
			return nil, err
		}
		h.held = made
	}
	return h.held, nil
}

// certificates are TLS whose name for the coordinator is the same everywhere, and whose refusals say what to do.
type certificates struct {
	credentials.TransportCredentials
	authority *Authority
}

func (c *certificates) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ClientHandshake(ctx, serverName, conn)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		err = fmt.Errorf("what listens there does not hold the key in %s, so it is no coordinator of yours: run both as the same user, with the same XDG_STATE_HOME", c.authority.path)
	}
	return secured, info, err
}

func (c *certificates) Clone() credentials.TransportCredentials {
	return &certificates{c.TransportCredentials.Clone(), c.authority}
}
