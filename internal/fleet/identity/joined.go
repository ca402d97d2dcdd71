package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

const (
	joinedDir     = "joined"
	certBlock     = "CERTIFICATE"
	maxJoinedFile = 16 << 10
)

// joined holds the certificate that a worker got from a coordinator's authority, usually on another machine. It is kept in a file, so that a
// restarted worker needs no token.
type joined struct {
	place string // HOST:PORT of the coordinator
	name  string // of the worker, which alone may use the certificate
	path  string // of the file
	token *Token // nil if none was given
	dial  func(context.Context) (net.Conn, error)

	asking sync.Mutex        // held by whoever asks for a certificate
	key    *ecdsa.PrivateKey // key to be certified, kept if no answer came; nil to make a new one

	mu   sync.Mutex
	held *membership // nil if there is none yet
}

var notInFileName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func joinedPath(dir, place, name string) string {
	return filepath.Join(dir, joinedDir, fmt.Sprintf("%s@%s.pem", name, notInFileName.ReplaceAllString(place, "_")))
}

// hasJoined says whether an earlier enrolment of a worker at a place left a certificate behind that is still valid.
func hasJoined(dir, place, name string) bool {
	held, err := readMembership(joinedPath(dir, place, name))
	return err == nil && time.Now().Before(held.cert.Leaf.NotAfter)
}

// openJoined reads what an earlier enrolment of this worker at a place left behind, and ignores it if the token is another authority's.
func (m Means) openJoined(place string, dial func(context.Context) (net.Conn, error)) (*joined, error) {
	if err := openDir(m.Dir); err != nil {
		return nil, err
	}
	if err := openDir(filepath.Join(m.Dir, joinedDir)); err != nil {
		return nil, err
	}
	token := m.Token
	j := &joined{place: place, name: m.Name, token: token, dial: dial, path: joinedPath(m.Dir, place, m.Name)}
	held, err := readMembership(j.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("certificate for %s: %w", place, err)
	case token == nil || keyHash(held.root) == token.authority:
		j.held = held
	}
	if j.held == nil && token == nil {
		return nil, fmt.Errorf("worker %s has not joined %s yet: %s", j.name, place, j.remedy())
	}
	return j, nil
}

func (j *joined) remedy() string {
	return fmt.Sprintf("on the coordinator's machine, loadgen token create makes a token; then loadgen worker --join %s --token TOKEN; where certificates are of your own PKI, --tls-ca, --tls-cert and --tls-key", j.place)
}

// membership returns the membership held, or nil.
func (j *joined) membership() *membership {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held
}

func (j *joined) own() (*tls.Certificate, error) {
	m := j.membership()
	if m == nil {
		return nil, errors.New("this worker has not enrolled yet")
	}
	return m.cert, nil
}

func (j *joined) roots() (*x509.CertPool, error) {
	m := j.membership()
	if m == nil {
		return nil, errors.New("this worker has not enrolled yet")
	}
	return poolOf(m.root), nil
}

func (j *joined) trusts(cfg *tls.Config, roots *x509.CertPool) { trustServer(cfg, roots) }

func (j *joined) stranger() string {
	return fmt.Sprintf("what listens at %s does not have the key of the coordinator that this worker has joined. If that made a new one: %s; if another listens there now, delete %s",
		j.place, j.remedy(), j.path)
}

// RenewalError says that a certificate could not be renewed but is still valid.
type RenewalError struct {
	Until time.Time // end of its validity
	Err   error
}

func (e *RenewalError) Error() string {
	return fmt.Sprintf("renew this worker's certificate, which is valid until %s: %v", e.Until.Format(time.RFC3339), e.Err)
}

func (e *RenewalError) Unwrap() error { return e.Err }

// enrol makes sure that there is a certificate: it asks the coordinator for one if there is none, or if the current one should be renewed.
func (j *joined) enrol(ctx context.Context) error {
	j.asking.Lock()
	defer j.asking.Unlock()
	held := j.membership()
	now := time.Now()
	switch {
	case held != nil && now.Before(renewable(held.cert.Leaf)):
		return nil
	case held != nil && now.Before(held.cert.Leaf.NotAfter):
		if err := j.fetch(ctx, held); err != nil {
			return &RenewalError{held.cert.Leaf.NotAfter, err}
		}
		return nil
	case j.token != nil:
		return j.fetch(ctx, nil)
	}
	return &RefusedError{fmt.Sprintf("this worker's certificate for %s expired at %s (if this machine's clock is right): %s",
		j.place, held.cert.Leaf.NotAfter.Format(time.RFC3339), j.remedy())}
}

// fetch gets a certificate by showing the held one, or the token if held is nil.
func (j *joined) fetch(ctx context.Context, held *membership) error {
	if err := tryWriting(filepath.Dir(j.path)); err != nil { // before a use of the token is spent
		return unkept(err)
	}
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	conn, err := j.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	cfg := baseConfig()
	var secret []byte
	if held == nil {
		trustToken(cfg, j.token)
		secret = j.token.secret[:]
	} else {
		trustServer(cfg, poolOf(held.root))
		cfg.Certificates = []tls.Certificate{*held.cert}
	}
	if j.key == nil {
		if j.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	m, err := j.ask(ctx, conn, cfg, secret)
	if err != nil {
		return alertSaid(err)
	}
	want := j.membership()
	if held == nil && keyHash(m.root) != j.token.authority || held != nil && keyHash(m.root) != keyHash(want.root) {
		return errors.New("the coordinator answered with another authority's certificate")
	}
	if err := m.write(j.path); err != nil {
		return unkept(err)
	}
	j.key = nil
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = m
	return nil
}

// unkept returns the error for a certificate that cannot be stored on this machine.
func unkept(err error) error {
	return &RefusedError{fmt.Sprintf("keep this worker's certificate: %v: make the directory writable, or set XDG_STATE_HOME to one that is", err)}
}

// alertSaid explains the TLS alert of a server that enrols nobody.
func alertSaid(err error) error {
	const noApplicationProtocol = tls.AlertError(120)
	if alert, ok := errors.AsType[tls.AlertError](err); ok && alert == noApplicationProtocol {
		return &RefusedError{errNoEnrolment.Error()}
	}
	return err
}

// write stores the key, the certificate and the authority's certificate.
func (m *membership) write(path string) error {
	text, err := keyText(m.cert.PrivateKey)
	if err != nil {
		return err
	}
	return writePrivate(path, slices.Concat(text, certText(m.cert.Leaf), certText(m.root)), true)
}

// readMembership reads what write has stored.
func readMembership(path string) (*membership, error) {
	text, err := readPrivate(path, maxJoinedFile)
	if err != nil {
		return nil, err
	}
	m, err := parseMembership(text)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: delete it, and join with a token: %w", path, err)
	}
	return m, nil
}

func parseMembership(text []byte) (*membership, error) {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	if len(cert.Certificate) != 2 {
		return nil, errors.New("a key and two certificates are wanted")
	}
	root, err := x509.ParseCertificate(cert.Certificate[1])
	if err != nil {
		return nil, err
	}
	cert.Certificate = cert.Certificate[:1]
	m := &membership{&cert, root}
	return m, m.check()
}
