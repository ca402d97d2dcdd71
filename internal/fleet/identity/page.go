package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/base/listen"
)

// Paths of pages.
const (
	metricsPath = "/metrics"
	livePath    = "/"
)

const (
	pageTokenFile = "http-token"    // what scrapers present
	rootFile      = "authority.crt" // the authority's certificate, for clients to verify the page with
	leastToken    = 16              // minimum bytes of a token that the user wrote
)

// PageMeans say how a page is served over HTTP. On the loopback it is open to everyone on this machine, in cleartext. Elsewhere it requires TLS 1.3,
// and visitors prove who they are: scrapers with a token, people with a link that works once.
type PageMeans struct {
	Address string   // HOST:PORT; port 0 for any free one
	Names   []string // other names of the page, besides its addresses and this machine's name
	Cert    string   // PEM files of a certificate and its key; "" if the authority in Dir issues one
	Key     string
	Token   string // token for scrapers; "" if one is kept in Dir
	Dir     string // directory of this user's fleets
	Live    bool   // the page at / shows a run
}

// Door is an open port for a page, with what guards it.
type Door struct {
	listener net.Listener
	address  string
	names    []string // in lower case
	beyond   bool
	ca       string // file with the certificate of the page's issuer; "" if the user knows it
	kept     string // file with the token; "" if the user knows it
	first    string // path of the page that the link leads to

	token    [sha256.Size]byte
	link     string // works once
	throttle *throttle

	mu       sync.Mutex
	used     bool                           // the link has been used
	sessions map[[sha256.Size]byte]struct{} // browser sessions, by the hash of their cookies
}

// Open opens the port. Its errors say which flag to change.
func (m PageMeans) Open() (*Door, error) {
	beyond, err := listen.Beyond(m.Address)
	if err != nil {
		return nil, err
	}
	p := &Door{names: lower(m.Names), beyond: beyond, first: metricsPath}
	if m.Live {
		p.first = livePath
	}
	if !beyond {
		if m.Cert != "" || m.Key != "" || m.Token != "" {
			return nil, fmt.Errorf("%s is on the loopback, where the page is served in cleartext to everybody on this machine: leave certificate and token out, or write an address of the network", m.Address)
		}
		open, err := listen.Loopback(m.Address)
		if err != nil {
			return nil, err
		}
		p.listener, p.address = NewHall(open, maxVisitors), open.Addr().String()
		return p, nil
	}
	if err := m.guard(p); err != nil {
		return nil, err
	}
	certificate, err := m.certificate(p)
	if err != nil {
		return nil, err
	}
	tcp, err := net.Listen("tcp", m.Address)
	if err != nil {
		return nil, err
	}
	cfg := baseConfig()
	cfg.GetCertificate, cfg.NextProtos = certificate, []string{"http/1.1"}
	p.listener = tls.NewListener(NewHall(tcp, maxVisitors), cfg)
	p.address = tcp.Addr().String()
	if at, ok := tcp.Addr().(*net.TCPAddr); ok {
		p.address = listen.Reach(at)
	}
	return p, nil
}

// guard sets up how visitors of a page prove themselves.
func (m PageMeans) guard(p *Door) error {
	token := m.Token
	if token == "" {
		if err := openDir(m.Dir); err != nil {
			return err
		}
		p.kept = filepath.Join(m.Dir, pageTokenFile)
		text, err := readOrMake(p.kept, func() ([]byte, error) {
			made, err := secretText()
			return []byte(made + "\n"), err
		})
		if err != nil {
			return fmt.Errorf("token of scrapers: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	if len(token) < leastToken {
		return fmt.Errorf("a token of %d bytes can be guessed: write one of at least %d, such as `openssl rand -hex 16` prints", len(token), leastToken)
	}
	link, err := secretText()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	p.names = append(p.names, strings.ToLower(host))
	p.token, p.link, p.throttle, p.sessions = sha256.Sum256([]byte(token)), link, newThrottle(), map[[sha256.Size]byte]struct{}{}
	return nil
}

// secretText returns a random secret of 128 bits.
func secretText() (string, error) {
	var b [secretBytes]byte
	_, err := rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:]), err
}

// certificate returns a function that returns the page's certificate.
func (m PageMeans) certificate(p *Door) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	switch {
	case m.Cert == "" && m.Key == "":
		return m.issued(p)
	case m.Cert == "" || m.Key == "":
		return nil, errors.New("a certificate and its key belong together: give both")
	}
	f := &reread[*tls.Certificate]{paths: []string{m.Cert, m.Key}, read: func() (*tls.Certificate, error) {
		return readPair(m.Cert, "--http-cert", m.Key, "--http-key")
	}}
	own := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, failed := f.now()
		if cert == nil {
			return nil, failed
		}
		return cert, nil
	}
	_, err := own(nil)
	return own, err
}

// issued has the authority certify the page, and writes the authority's certificate for clients.
func (m PageMeans) issued(p *Door) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	a, err := OpenAuthority(m.Dir)
	if err != nil {
		return nil, err
	}
	addresses, err := addressesOf(m.Address)
	if err != nil {
		return nil, err
	}
	p.ca = filepath.Join(m.Dir, rootFile)
	if err := writePrivate(p.ca, certText(a.root), false); err != nil {
		return nil, err
	}
	h := &holder{authority: a, issue: func(now time.Time) (*tls.Certificate, error) { return a.issuePage(p.names, addresses, now) }}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.own() }, nil
}

// addressesOf lists the addresses of a page: its own, or all of this machine.
func addressesOf(address string) ([]net.IP, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if at, err := netip.ParseAddr(host); err == nil && !at.IsUnspecified() {
		return []net.IP{at.Unmap().AsSlice()}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var found []net.IP
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok {
			found = append(found, network.IP)
		}
	}
	return found, nil
}

// Listener is the port. Every connection it accepts is TLS, except on the loopback.
func (p *Door) Listener() net.Listener { return p.listener }

// Address is the page's host:port, with the actual port.
func (p *Door) Address() string { return p.address }

// URL is the page's URL, without a path.
func (p *Door) URL() string {
	if p.beyond {
		return "https://" + p.address
	}
	return "http://" + p.address
}

// Words tell the page's user where it is and how to get in. They contain the link that works once, and are for this user only.
func (p *Door) Words() string {
	words := "metrics at " + p.URL() + metricsPath + "\n"
	if p.first == livePath {
		words = "live page at " + p.URL() + livePath + "\n" + words
	}
	if !p.beyond {
		return words
	}
	var scrapers []string
	if p.kept != "" {
		scrapers = append(scrapers, "the token in "+p.kept)
	}
	if p.ca != "" {
		scrapers = append(scrapers, "the CA in "+p.ca)
	}
	if len(scrapers) > 0 {
		words += "  Prometheus takes " + strings.Join(scrapers, " and ") + "\n"
	}
	return words + "  a browser takes " + p.URL() + linkPath + p.link + ", which works once\n"
}

func lower(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strings.ToLower(strings.TrimSuffix(name, "."))
	}
	return all
}
