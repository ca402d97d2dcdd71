package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/credentials"
)

// Enrolling is an exchange of two messages on its own TLS connection, distinguished from gRPC by its protocol name (ALPN). A client that enrols with
// a token has proved nothing yet; one that renews has shown its current certificate. Each message is JSON of at most 8 KiB, preceded by its length as
// two bytes in network order.
const (
	enrolProtocol = "loadgen-enrol/1"
	maxEnrol      = 8 << 10
)

// enrolRequest is the worker's message.
type enrolRequest struct {
	Secret  []byte `json:"secret,omitempty"` // a token's secret; without one, the connection has proved who this is
	Request []byte `json:"request"`          // request for a certificate (PKCS #10), of which only the key and, with a token, the common name are used
}

// enrolAnswer is the coordinator's message.
type enrolAnswer struct {
	Certificate []byte `json:"certificate,omitempty"`
	Root        []byte `json:"root,omitempty"` // of the authority
	Refused     string `json:"refused,omitempty"`
	Later       bool   `json:"later,omitempty"` // refused, but may try again
}

// Enrolment is the outcome of a connection that asked a coordinator for a certificate. It is an error so that gRPC never sees the connection.
type Enrolment struct {
	By      string // what the worker showed: a token, by its ID, or a certificate
	Refused error  // why enrolment was refused; nil if a certificate was issued
}

func (e *Enrolment) Error() string {
	if e.Refused != nil {
		return "it wants a certificate: " + e.Refused.Error()
	}
	return "enrolled with " + e.By
}

// Unwrap tells gRPC that the connection has been dealt with.
func (e *Enrolment) Unwrap() error { return credentials.ErrConnDispatched }

// desk certifies workers with a coordinator's authority.
type desk struct {
	authority *Authority
	throttle  *throttle
}

// admit lets in a client without a certificate, but only to enrol. The client is also shown the authority, whose key it may know from a token.
func (d *desk) admit(cfg *tls.Config) {
	cert := cfg.Certificates[0]
	cert.Certificate = [][]byte{cert.Certificate[0], d.authority.root.Raw}
	cfg.Certificates[0] = cert
	cfg.NextProtos, cfg.ClientAuth = []string{enrolProtocol}, tls.VerifyClientCertIfGiven
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		switch {
		case s.NegotiatedProtocol != enrolProtocol:
			return errors.New("no certificate was shown")
		case len(s.PeerCertificates) == 0:
			return nil
		}
		return checkRole(s, Worker)
	}
}

// serve answers a client, and returns the outcome as an *Enrolment.
func (d *desk) serve(conn net.Conn, state tls.ConnectionState) error {
	var request enrolRequest
	if err := readMessage(conn, &request); err != nil {
		return fmt.Errorf("enrol: %w", err)
	}
	answer, outcome := d.decide(request, state, conn.RemoteAddr())
	if err := writeMessage(conn, answer); err != nil {
		return fmt.Errorf("enrol: %w", err)
	}
	return outcome
}

// decide issues a certificate, or says why not.
func (d *desk) decide(request enrolRequest, state tls.ConnectionState, from net.Addr) (enrolAnswer, *Enrolment) {
	var leaf *x509.Certificate
	asked, err := readRequest(request.Request)
	issue := func() error {
		if err == nil {
			err = CheckName(asked.name)
		}
		if err == nil {
			leaf, err = d.authority.certify(asked.key, Worker, asked.name, time.Now())
		}
		return err
	}
	outcome := &Enrolment{By: "its certificate"}
	later := false
	switch {
	case len(request.Secret) > 0:
		outcome.By = "a token"
		if wait := d.throttle.wait(from); wait > 0 {
			outcome.Refused, later = fmt.Errorf("too many wrong tokens came from there: try again in %v", wait.Round(time.Second)), true
			break
		}
		var id string
		id, outcome.Refused = d.authority.tokens.use(request.Secret, asked.sum, issue)
		outcome.By = "token " + id
		if _, ok := errors.AsType[*wrongTokenError](outcome.Refused); ok {
			d.throttle.failed(from)
		} else {
			later = outcome.Refused != nil
		}
	case len(state.PeerCertificates) > 0:
		asked.name = nameIn(state.PeerCertificates[0])
		outcome.Refused = issue()
	default:
		outcome.By, outcome.Refused = "nothing", errors.New("neither a token nor a certificate was shown")
	}
	if outcome.Refused != nil {
		return enrolAnswer{Refused: outcome.Refused.Error(), Later: later}, outcome
	}
	return enrolAnswer{Certificate: leaf.Raw, Root: d.authority.root.Raw}, outcome
}

// asking holds the parts of a certificate request that are used.
type asking struct {
	key  *ecdsa.PublicKey
	name string            // of the worker
	sum  [sha256.Size]byte // SHA-256 of the key and the name; zero if it is not a request
}

func readRequest(der []byte) (asking, error) {
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return asking{}, err
	}
	a := asking{name: request.Subject.CommonName}
	a.sum = sha256.Sum256(append(slices.Clip(request.RawSubjectPublicKeyInfo), a.name...)) // the key, in DER, says how long it is
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return a, errors.New("the request is not for an ECDSA key on P-256")
	}
	a.key = key
	return a, request.CheckSignature()
}

// readFrame reads a length, as two bytes in network order, and that many bytes.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > most {
		return nil, fmt.Errorf("a message of %d bytes; the longest may have %d", n, most)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// writeFrame writes what readFrame reads.
func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	return err
}

func readMessage(r io.Reader, into any) error {
	b, err := readFrame(r, maxEnrol)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

func writeMessage(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxEnrol {
		return fmt.Errorf("a message of %d bytes; the longest may have %d", len(b), maxEnrol)
	}
	return writeFrame(w, b)
}

// RefusedError says that a worker will not be enrolled, now or later, and what to do.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// membership holds what a worker has once it is enrolled.
type membership struct {
	cert *tls.Certificate
	root *x509.Certificate
}

// ask enrols the worker over a connection to a coordinator, which the client checks as cfg says.
func (j *joined) ask(ctx context.Context, conn net.Conn, cfg *tls.Config, secret []byte) (*membership, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(Within)); err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: j.name}}, j.key)
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = []string{enrolProtocol}
	secured := tls.Client(conn, cfg)
	defer secured.Close()
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if secured.ConnectionState().NegotiatedProtocol != enrolProtocol {
		return nil, errNoEnrolment
	}
	if err := writeMessage(secured, enrolRequest{Secret: secret, Request: request}); err != nil {
		return nil, err
	}
	var answer enrolAnswer
	if err := readMessage(secured, &answer); err != nil {
		return nil, err
	}
	return answer.membership(j.key)
}

var errNoEnrolment = errors.New("the coordinator there enrols nobody: it may use certificates of its own (--tls-cert), or be of another version")

// membership checks the answer against what was asked for.
func (a enrolAnswer) membership(key *ecdsa.PrivateKey) (*membership, error) {
	switch {
	case a.Refused != "" && a.Later:
		return nil, errors.New(shown(a.Refused))
	case a.Refused != "":
		return nil, &RefusedError{shown(a.Refused)}
	}
	leaf, err := x509.ParseCertificate(a.Certificate)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(a.Root)
	if err != nil {
		return nil, err
	}
	m := &membership{&tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, root}
	return m, m.check()
}

// check checks that the root issued the certificate for a worker with the key.
func (m *membership) check() error {
	leaf := m.cert.Leaf
	if key, ok := m.cert.PrivateKey.(*ecdsa.PrivateKey); !ok || !key.PublicKey.Equal(leaf.PublicKey) {
		return errors.New("the certificate is for another key")
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: poolOf(m.root), CurrentTime: leaf.NotBefore.Add(backdated), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return err
	}
	_, err := roleIn(leaf, Worker)
	return err
}

// trustToken makes a client recognise its coordinator by the authority that a token names: one of the certificates shown must have that authority's
// key, and must have certified the coordinator.
func trustToken(cfg *tls.Config, token *Token) {
	cfg.ServerName = serverName
	cfg.InsecureSkipVerify = true // verified below instead
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		for _, c := range s.PeerCertificates {
			if keyHash(c) != token.authority {
				continue
			}
			chains, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: poolOf(c), DNSName: serverName})
			if err != nil {
				return err
			}
			s.VerifiedChains = chains
			return checkRole(s, Coordinator)
		}
		return &RefusedError{fmt.Sprintf("what listens there does not have the key that %v names, so the secret was not sent: "+
			"it is another coordinator than the one that made the token, or somebody in between", token)}
	}
}

// shown makes text from another end safe to show: one line of printable characters.
func shown(text string) string {
	const longest = 500
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), longest)], string(unicode.ReplacementChar)))
}
