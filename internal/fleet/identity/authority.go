package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

const (
	keyFile     = "authority.pem"
	maxKeyFile  = 4 << 10
	keyBlock    = "PRIVATE KEY"
	certified   = 24 * time.Hour        // lifetime of a certificate, which is replaced after two thirds of it
	backdated   = time.Hour             // allows for clocks that are set back
	fleetName   = "loadgen fleet"       // of the authority
	pageName    = "loadgen page"        // of a page's certificate
	serverName  = "coordinator.loadgen" // the name workers look for
	anytimeFrom = 1990                  // the authority itself is valid as long as its file exists
	anytimeTo   = 2200
)

// Authority certifies the ends of a user's fleets. Anyone who has its key is one of them.
type Authority struct {
	path   string // path of its key; "" if the key is in memory only
	key    *ecdsa.PrivateKey
	root   *x509.Certificate
	pool   *x509.CertPool // holds the root
	tokens *Tokens        // that workers may enrol with; nil if none can
	life   time.Duration  // lifetime of certificates
}

// NewAuthority returns an authority whose key exists in this process only.
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
	if err != nil {
		return nil, err
	}
	return &Authority{key: key, root: root, pool: poolOf(root), life: certified}, nil
}

// certText is a certificate as PEM.
func certText(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: c.Raw})
}

// keyText is a key as PEM.
func keyText(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), err
}

// OpenAuthority reads the key in a directory, and makes one if there is none. If several processes do so at once, all get the same key. It refuses a
// key that is not this user's, or that others may read.
func OpenAuthority(dir string) (*Authority, error) {
	if err := openDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, keyFile)
	text, err := readOrMake(path, func() ([]byte, error) {
		a, err := NewAuthority()
		if err != nil {
			return nil, err
		}
		return keyText(a.key)
	})
	var key *ecdsa.PrivateKey
	if err == nil {
		key, err = parseKey(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("key of this user's fleets: %w", err)
	}
	a, err := authorityOf(key)
	if err != nil {
		return nil, err
	}
	a.path = path
	a.tokens = &Tokens{dir: dir, authority: keyHash(a.root)}
	return a, nil
}

// parseKey parses the text of the file at path.
func parseKey(path string, text []byte) (*ecdsa.PrivateKey, error) {
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

// issue makes a key and a certificate for a role.
func (a *Authority) issue(role Role, now time.Time) (*tls.Certificate, error) {
	return issued(func(key crypto.PublicKey) (*x509.Certificate, error) { return a.certify(key, role, "", now) })
}

// issuePage makes a key and a certificate for a page. The certificate has no role, so its holder is neither a coordinator nor a worker.
func (a *Authority) issuePage(names []string, addresses []net.IP, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: pageName}, DNSNames: names, IPAddresses: addresses, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return issued(func(key crypto.PublicKey) (*x509.Certificate, error) { return a.sign(template, key, now) })
}

// issued makes a key and has it certified.
func issued(certify func(crypto.PublicKey) (*x509.Certificate, error)) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := certify(key.Public())
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// certify signs a certificate for a role, and for the end with this name; "" allows any name.
func (a *Authority) certify(key crypto.PublicKey, role Role, name string, now time.Time) (*x509.Certificate, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: string(role)}, URIs: []*url.URL{roleURI(role)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if role == Coordinator {
		template.ExtKeyUsage, template.DNSNames = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []string{serverName}
	}
	if name != "" {
		template.URIs = append(template.URIs, nameURI(name))
	}
	return a.sign(template, key, now)
}

// sign completes a certificate.
func (a *Authority) sign(template *x509.Certificate, key crypto.PublicKey, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.KeyUsage = serial, x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(a.life)
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// renewable says when a certificate should be replaced: after two thirds of its lifetime.
func renewable(leaf *x509.Certificate) time.Time {
	issued := leaf.NotBefore.Add(backdated)
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(issued) / 3)
}

// keyHash is the SHA-256 of a certificate's public key, which tokens use to name an authority.
func keyHash(c *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// Credentials returns the credentials of one end of a connection. That end proves its role, and the other end must prove the other role. A
// coordinator's credentials also serve workers that enrol.
func (a *Authority) Credentials(role Role) credentials.TransportCredentials {
	c := &certificates{keys: &holder{authority: a, issue: func(now time.Time) (*tls.Certificate, error) { return a.issue(role, now) }}, role: role}
	if role == Coordinator && a.tokens != nil {
		c.desk = &desk{authority: a, throttle: newThrottle()}
	}
	return c
}

// holder makes a certificate when one is needed, and replaces it in good time.
type holder struct {
	authority *Authority
	issue     func(now time.Time) (*tls.Certificate, error)

	mu   sync.Mutex
	held *tls.Certificate
}

func (h *holder) own() (*tls.Certificate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.held == nil || now.After(renewable(h.held.Leaf)) || now.Before(h.held.Leaf.NotBefore) {
		made, err := h.issue(now)
		if err != nil {
			return nil, err
		}
		h.held = made
	}
	return h.held, nil
}

func (h *holder) roots() (*x509.CertPool, error) { return h.authority.pool, nil }

func (h *holder) trusts(cfg *tls.Config, roots *x509.CertPool) { trustServer(cfg, roots) }

func (h *holder) stranger() string {
	return fmt.Sprintf("what listens there does not hold the key in %s, so it is not your coordinator: run both as the same user, with the same XDG_STATE_HOME; or join another's with --token, or with --tls-ca, --tls-cert and --tls-key", h.authority.path)
}

// Make returns the key of a new authority in the form [Install] takes, a token that its coordinators can [Tokens.Adopt], and the certificate that its
// pages are verified with. Nothing is kept here.
func Make() (key []byte, token *Token, root []byte, err error) {
	a, err := NewAuthority()
	if err != nil {
		return nil, nil, nil, err
	}
	if token, err = newToken(keyHash(a.root)); err != nil {
		return nil, nil, nil, err
	}
	key, err = keyText(a.key)
	return key, token, certText(a.root), err
}

// Install puts an authority's key into a directory, where its coordinators look for it, and the token of those who scrape their pages, unless that is
// empty. It makes the directory if needed. Anything already there must be the same.
func Install(dir string, key, scrape []byte) error {
	if err := openDir(dir); err != nil {
		return err
	}
	if err := installed(filepath.Join(dir, keyFile), key); err != nil || len(scrape) == 0 {
		return err
	}
	return installed(filepath.Join(dir, pageTokenFile), scrape)
}

func installed(path string, text []byte) error {
	there, err := readOrMake(path, func() ([]byte, error) { return text, nil })
	if err == nil && !bytes.Equal(there, text) {
		err = fmt.Errorf("%s holds another secret than the one that was given", path)
	}
	return err
}
