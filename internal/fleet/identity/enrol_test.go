package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// office is a coordinator's port, and the outcome of its connections.
type office struct {
	dir       string // of the authority
	authority *Authority
	lis       net.Listener
	ends      chan error // of a connection's handshake; nil: it is a worker's
}

func newOffice(t *testing.T) *office {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	a, err := OpenAuthority(dir)
	require.NoError(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &office{dir: dir, authority: a, lis: lis, ends: make(chan error, 1000)}
	proof := Handshake(a.Credentials(Coordinator))
	var all sync.WaitGroup
	t.Cleanup(func() { lis.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_, _, err := proof.ServerHandshake(conn)
				o.ends <- err
			})
		}
	})
	return o
}

// token makes one of the office's.
func (o *office) token(t *testing.T, ttl time.Duration, uses int) *Token {
	t.Helper()
	token, err := o.authority.tokens.Create(ttl, uses)
	require.NoError(t, err)
	return token
}

// end is how the next connection ended.
func (o *office) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-o.ends:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the coordinator still waits")
		return nil
	}
}

// join is the place of the worker w1, with what the directory holds.
func (o *office) join(dir string, token *Token) (Place, error) {
	return Means{Dir: dir, Token: token, Name: "w1"}.JoinAt(o.lis.Addr().String())
}

// reach makes a worker prove itself as it does for a run.
func (o *office) reach(t *testing.T, p Place) {
	t.Helper()
	proof, err := p.Prove(Worker)
	require.NoError(t, err)
	conn, err := p.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, _, err = Handshake(proof).ClientHandshake(t.Context(), "", conn)
	require.NoError(t, err)
	require.NoError(t, o.end(t))
}

// TestWorkerJoinsWithAToken from another directory than the coordinator's, and comes back with its certificate.
func TestWorkerJoinsWithAToken(t *testing.T) {
	o := newOffice(t)
	dir := filepath.Join(t.TempDir(), "fleet")
	token := o.token(t, time.Minute, 1)
	p, err := o.join(dir, token)
	require.NoError(t, err)
	require.NoError(t, p.Enrol(t.Context()))
	var enrolment *Enrolment
	require.ErrorAs(t, o.end(t), &enrolment)
	require.NoError(t, enrolment.Refused)
	require.Equal(t, "token "+token.ID(), enrolment.By)
	o.reach(t, p)
	require.NoError(t, p.Enrol(t.Context()), "nothing is asked for again")
	require.Empty(t, o.ends)

	files, err := filepath.Glob(filepath.Join(dir, "joined", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	again, err := o.join(dir, token) // used up, but not needed
	require.NoError(t, err)
	require.NoError(t, again.Enrol(t.Context()))
	o.reach(t, again)
	alone, err := o.join(dir, nil)
	require.NoError(t, err)
	o.reach(t, alone)
}

// A worker that could not keep a certificate does not ask for one, and says why.
func TestCertificateThatCannotBeKept(t *testing.T) {
	o := newOffice(t)
	dir := filepath.Join(t.TempDir(), "fleet")
	p, err := o.join(dir, o.token(t, time.Minute, 1))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "joined")))
	var refused *RefusedError
	require.ErrorAs(t, p.Enrol(t.Context()), &refused)
	require.Contains(t, refused.Reason, "keep this worker's certificate: open "+dir)
	list, err := o.authority.tokens.List()
	require.NoError(t, err)
	require.Equal(t, 1, list[0].Uses)
}

// TestTokenOfAnotherAuthorityReplacesTheCertificate when a coordinator has made a new key.
func TestTokenOfAnotherAuthorityReplacesTheCertificate(t *testing.T) {
	before, o := newOffice(t), newOffice(t)
	dir := filepath.Join(t.TempDir(), "fleet")
	address := o.lis.Addr().String()
	dial := func(at *office) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) { return net.Dial("tcp", at.lis.Addr().String()) }
	}
	old, err := Means{Dir: dir, Token: before.token(t, time.Minute, 1), Name: "w1"}.openJoined(address, dial(before))
	require.NoError(t, err)
	require.NoError(t, old.enrol(t.Context()))
	renewed, err := Means{Dir: dir, Token: o.token(t, time.Minute, 1), Name: "w1"}.openJoined(address, dial(o))
	require.NoError(t, err)
	require.NoError(t, renewed.enrol(t.Context()))
	require.Equal(t, keyHash(o.authority.root), keyHash(renewed.held.root))
}

// TestLostAnswerCostsNoUse: a worker whose answer was lost asks again with the same key.
func TestLostAnswerCostsNoUse(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, time.Minute, 1)
	means := Means{Dir: filepath.Join(t.TempDir(), "fleet"), Token: token, Name: "w1"}
	p, err := means.openJoined(o.lis.Addr().String(), func(context.Context) (net.Conn, error) {
		conn, err := net.Dial("tcp", o.lis.Addr().String())
		return &deafConn{Conn: conn}, err
	})
	require.NoError(t, err)
	require.Error(t, p.enrol(t.Context()))
	var enrolment *Enrolment
	require.ErrorAs(t, o.end(t), &enrolment)
	require.NoError(t, enrolment.Refused, "a certificate was issued")
	p.dial = func(context.Context) (net.Conn, error) { return net.Dial("tcp", o.lis.Addr().String()) }
	require.NoError(t, p.enrol(t.Context()))
	for name, request := range map[string][]byte{
		"another machine's worker": certificateRequest(t, named("w1"), newKey(t)),
		"another of this machine":  certificateRequest(t, named("w2"), p.held.cert.PrivateKey.(crypto.Signer)),
	} {
		answer, err := enrolWith(o, &tls.Config{}, enrolRequest{token.secret[:], request})
		require.NoError(t, err)
		require.Contains(t, answer.Refused, "has been used as often as it may be", name)
	}
}

// deafConn receives nothing once it has sent what a worker sends to enrol: the two messages of its handshake, and the request.
type deafConn struct {
	net.Conn
	said int
}

func (c *deafConn) Write(b []byte) (int, error) {
	c.said++
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	if c.said < 3 {
		return c.Conn.Read(b)
	}
	_, _ = io.Copy(io.Discard, c.Conn) // until the coordinator has answered
	return 0, errors.New("connection reset")
}

// enrolWith is a client of its own that asks for a certificate.
func enrolWith(o *office, cfg *tls.Config, request enrolRequest) (enrolAnswer, error) {
	cfg.InsecureSkipVerify, cfg.NextProtos = true, []string{enrolProtocol}
	conn, err := tls.Dial("tcp", o.lis.Addr().String(), cfg)
	if err != nil {
		return enrolAnswer{}, err
	}
	defer conn.Close()
	if err := writeMessage(conn, request); err != nil {
		return enrolAnswer{}, err
	}
	var answer enrolAnswer
	return answer, readMessage(conn, &answer)
}

// named is a certificate request of a worker.
func named(name string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
}

func certificateRequest(t *testing.T, template *x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	require.NoError(t, err)
	return der
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// TestEnrolmentIsRefused if a client may not have a certificate: within a second, with the reason in the coordinator's log and, if the client may
// know it, in the answer. No use of a token is counted.
func TestEnrolmentIsRefused(t *testing.T) {
	o, other := newOffice(t), newOffice(t)
	valid := o.token(t, time.Minute, 1)
	expired, used, revoked := o.token(t, time.Minute, 1), o.token(t, time.Minute, 1), o.token(t, time.Minute, 1)
	require.NoError(t, o.authority.tokens.Revoke(revoked.ID()))
	require.NoError(t, o.authority.tokens.change(false, func(list []TokenInfo) ([]TokenInfo, error) {
		for i := range list {
			switch list[i].ID {
			case expired.ID():
				list[i].Expires = time.Now().Add(-time.Second)
			case used.ID():
				list[i].Uses = 0
			}
		}
		return list, nil
	}))
	certificate := func(a *Authority, role Role, at time.Time) *tls.Config {
		c, err := a.issue(role, at)
		require.NoError(t, err)
		return &tls.Config{Certificates: []tls.Certificate{*c}}
	}
	now := time.Now()
	request := certificateRequest(t, named("w1"), newKey(t))
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	forged := append([]byte(nil), request...)
	forged[len(forged)-1] ^= 1
	foreign := other.token(t, time.Minute, 1)
	for name, c := range map[string]struct {
		cfg     *tls.Config
		request enrolRequest
		says    string
		heard   bool
	}{
		"unknown token":                 {&tls.Config{}, enrolRequest{foreign.secret[:], request}, "token " + foreign.ID() + " is not known here", true},
		"expired token":                 {&tls.Config{}, enrolRequest{expired.secret[:], request}, "token " + expired.ID() + " expired at", true},
		"token used up":                 {&tls.Config{}, enrolRequest{used.secret[:], request}, "has been used as often as it may be", true},
		"revoked token":                 {&tls.Config{}, enrolRequest{revoked.secret[:], request}, "is not known here: it was revoked", true},
		"short secret":                  {&tls.Config{}, enrolRequest{valid.secret[:15], request}, "is not known here", true},
		"neither token nor certificate": {&tls.Config{}, enrolRequest{nil, request}, "neither a token nor a certificate", true},
		"no request":                    {&tls.Config{}, enrolRequest{valid.secret[:], nil}, "asn1", true},
		"forged request":                {&tls.Config{}, enrolRequest{valid.secret[:], forged}, "", true},
		"another kind of key":           {&tls.Config{}, enrolRequest{valid.secret[:], certificateRequest(t, named("w1"), weak)}, "not for an ECDSA key", true},
		"a request without a name":      {&tls.Config{}, enrolRequest{valid.secret[:], certificateRequest(t, named(""), newKey(t))}, "a worker's name is 1 to 64", true},
		"a name that is a path":         {&tls.Config{}, enrolRequest{valid.secret[:], certificateRequest(t, named("../w1"), newKey(t))}, "a worker's name is 1 to 64", true},
		"a certificate for no name":     {certificate(o.authority, Worker, now), enrolRequest{nil, request}, "a worker's name is 1 to 64", true},
		"a coordinator's certificate":   {certificate(o.authority, Coordinator, now), enrolRequest{nil, request}, "incompatible key usage", false},
		"another authority's":           {certificate(other.authority, Worker, now), enrolRequest{nil, request}, "unknown authority", false},
		"expired certificate":           {certificate(o.authority, Worker, now.Add(-certified-time.Minute)), enrolRequest{nil, request}, "expired", false},
		"certificate of tomorrow":       {certificate(o.authority, Worker, now.Add(2*backdated)), enrolRequest{nil, request}, "not yet valid", false},
		"TLS 1.2":                       {&tls.Config{MaxVersion: tls.VersionTLS12}, enrolRequest{valid.secret[:], request}, "unsupported versions", false},
		"too long":                      {&tls.Config{}, enrolRequest{valid.secret[:], make([]byte, maxEnrol)}, "enrol: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			answer, heard := enrolWith(o, c.cfg, c.request)
			require.Empty(t, answer.Certificate)
			if name == "too long" { // which no client of ours would send
				sendTooLong(t, o)
			}
			err := o.end(t)
			require.ErrorContains(t, err, c.says)
			require.Less(t, time.Since(began), Within)
			if c.heard {
				require.NoError(t, heard)
				require.Contains(t, answer.Refused, c.says)
			} else {
				require.Error(t, heard)
			}
			for len(o.ends) > 0 {
				<-o.ends
			}
		})
	}
	list, err := o.authority.tokens.List()
	require.NoError(t, err)
	require.Equal(t, 1, list[0].Uses, "none was used")
	require.Len(t, list, 3)
}

// sendTooLong announces more than a message may have.
func sendTooLong(t *testing.T, o *office) {
	t.Helper()
	_ = o.end(t) // of the one that has said nothing
	conn, err := tls.Dial("tcp", o.lis.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{enrolProtocol}})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte{0xff, 0xff})
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err)
}

// TestStrangersReachOnlyEnrolment: a client without a certificate may not speak gRPC, whatever protocols it names.
func TestStrangersReachOnlyEnrolment(t *testing.T) {
	o := newOffice(t)
	for _, protocols := range [][]string{{"h2"}, {"h2", enrolProtocol}, {enrolProtocol, "h2"}, {"http/1.1"}, nil} {
		conn, err := tls.Dial("tcp", o.lis.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err == nil {
			if p := conn.ConnectionState().NegotiatedProtocol; p != enrolProtocol {
				_, err = conn.Read(make([]byte, 1))
				require.Error(t, err, protocols)
			}
			require.NoError(t, conn.Close())
		}
		require.Error(t, o.end(t), protocols)
	}
}

// TestRequestDecidesNothingButKeyAndName asks for everything that a worker must not have.
func TestRequestDecidesNothingButKeyAndName(t *testing.T) {
	o := newOffice(t)
	key := newKey(t)
	answer, err := enrolWith(o, &tls.Config{}, enrolRequest{o.token(t, time.Minute, 1).secret[:], certificateRequest(t, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "w1", Organization: []string{"all"}}, URIs: []*url.URL{roleURI(Coordinator), nameURI("w2")},
		DNSNames: []string{serverName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, key)})
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(answer.Certificate)
	require.NoError(t, err)
	require.Equal(t, []*url.URL{roleURI(Worker), nameURI("w1")}, leaf.URIs)
	require.Equal(t, "CN=worker", leaf.Subject.String())
	require.Empty(t, leaf.DNSNames)
	require.Empty(t, leaf.IPAddresses)
	require.False(t, leaf.IsCA)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, leaf.ExtKeyUsage)
	require.WithinDuration(t, time.Now().Add(certified), leaf.NotAfter, time.Minute)
	require.True(t, key.PublicKey.Equal(leaf.PublicKey))
}

// TestSecretGoesToTheRightCoordinatorOnly: a worker meets a coordinator that cannot have made its token, and does not send the secret.
func TestSecretGoesToTheRightCoordinatorOnly(t *testing.T) {
	own, false1 := newOffice(t), newOffice(t)
	token := own.token(t, time.Minute, 1)
	stolen := &x509.Certificate{Raw: own.authority.root.Raw}
	for name, chain := range map[string]func(*tls.Certificate){
		"another authority's chain": func(*tls.Certificate) {},
		"with the right root shown": func(c *tls.Certificate) { c.Certificate = append(c.Certificate, stolen.Raw) },
	} {
		t.Run(name, func(t *testing.T) {
			cert, err := false1.authority.issue(Coordinator, time.Now())
			require.NoError(t, err)
			chain(cert)
			here, there := net.Pipe()
			said := make(chan []byte, 1)
			go func() {
				server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{enrolProtocol}})
				b, _ := io.ReadAll(server)
				said <- b
			}()
			j := &joined{place: "x", token: token, dial: func(context.Context) (net.Conn, error) { return here, nil }}
			err = j.enrol(t.Context())
			require.Error(t, err)
			require.Empty(t, <-said)
			if name == "another authority's chain" {
				var refused *RefusedError
				require.ErrorAs(t, err, &refused)
				require.ErrorContains(t, err, "does not have the key that token "+token.ID()+" names, so the secret was not sent")
			}
		})
	}
}

// TestCertificateOfAWorkerMakesNoCoordinator: a worker does not enrol with another worker.
func TestCertificateOfAWorkerMakesNoCoordinator(t *testing.T) {
	o := newOffice(t)
	token := o.token(t, time.Minute, 1)
	cert, err := o.authority.issue(Worker, time.Now())
	require.NoError(t, err)
	cert.Certificate = append(cert.Certificate, o.authority.root.Raw)
	here, there := net.Pipe()
	said := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(tls.Server(there, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{enrolProtocol}}))
		said <- b
	}()
	j := &joined{place: "x", token: token, dial: func(context.Context) (net.Conn, error) { return here, nil }}
	require.Error(t, j.enrol(t.Context()))
	require.Empty(t, <-said)
}

// enrolled is a worker that has a certificate of an age.
func enrolled(t *testing.T, o *office, age time.Duration) *joined {
	t.Helper()
	means := Means{Dir: filepath.Join(t.TempDir(), "fleet"), Token: o.token(t, time.Minute, 1), Name: "w1"}
	j, err := means.openJoined(o.lis.Addr().String(), func(context.Context) (net.Conn, error) {
		return net.Dial("tcp", o.lis.Addr().String())
	})
	require.NoError(t, err)
	cert, err := issued(func(key crypto.PublicKey) (*x509.Certificate, error) {
		return o.authority.certify(key, Worker, "w1", time.Now().Add(-age))
	})
	require.NoError(t, err)
	j.held = &membership{cert, o.authority.root}
	require.NoError(t, j.held.write(j.path))
	j.token = nil
	return j
}

// TestJoinedCertificateIsRenewed after two thirds of its lifetime, automatically; while no coordinator is there, the old one stays in use.
func TestJoinedCertificateIsRenewed(t *testing.T) {
	o := newOffice(t)
	young := enrolled(t, o, 2*certified/3-time.Minute)
	first := young.held
	require.NoError(t, young.enrol(t.Context()))
	require.Same(t, first, young.held)

	old := enrolled(t, o, 2*certified/3+time.Minute)
	first, old.name = old.held, "w2"
	require.NoError(t, old.enrol(t.Context()))
	require.NotSame(t, first, old.held)
	require.WithinDuration(t, time.Now().Add(certified), old.held.cert.Leaf.NotAfter, time.Minute)
	var enrolment *Enrolment
	require.ErrorAs(t, o.end(t), &enrolment)
	require.NoError(t, enrolment.Refused)
	kept, err := readMembership(old.path)
	require.NoError(t, err)
	require.True(t, kept.cert.Leaf.Equal(old.held.cert.Leaf))
	require.Equal(t, "w1", nameIn(kept.cert.Leaf), "whatever name it asked for")

	alone := enrolled(t, o, 2*certified/3+time.Minute)
	alone.dial = func(context.Context) (net.Conn, error) { return nil, errors.New("no route to host") }
	var renewal *RenewalError
	require.ErrorAs(t, alone.enrol(t.Context()), &renewal)
	_, err = alone.own()
	require.NoError(t, err)
}

// TestExpiredCertificateAsksForAToken instead of contacting the coordinator, which could not help.
func TestExpiredCertificateAsksForAToken(t *testing.T) {
	o := newOffice(t)
	j := enrolled(t, o, certified+time.Minute)
	var refused *RefusedError
	err := j.enrol(t.Context())
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "expired at")
	require.ErrorContains(t, err, "loadgen token create")
	require.Empty(t, o.ends)
}

// TestDamagedMembership says what to do.
func TestDamagedMembership(t *testing.T) {
	o := newOffice(t)
	j := enrolled(t, o, 0)
	text, err := os.ReadFile(j.path)
	require.NoError(t, err)
	other, err := NewAuthority()
	require.NoError(t, err)
	for name, damage := range map[string]func() error{
		"empty":          func() error { return os.WriteFile(j.path, nil, 0o600) },
		"cut off":        func() error { return os.WriteFile(j.path, text[:len(text)/2], 0o600) },
		"open to others": func() error { return errors.Join(os.WriteFile(j.path, text, 0o600), os.Chmod(j.path, 0o644)) },
		"another root": func() error {
			return errors.Join(os.Chmod(j.path, 0o600), (&membership{j.held.cert, other.root}).write(j.path))
		},
	} {
		require.NoError(t, damage())
		_, err := Means{Dir: filepath.Dir(filepath.Dir(j.path)), Name: j.name}.openJoined(j.place, j.dial)
		require.ErrorContains(t, err, j.path, name)
		require.ErrorContains(t, err, "delete it", name)
		require.NoError(t, os.Chmod(j.path, 0o600))
	}
}

// TestWrongTokensAreThrottled: after ten from one network, none from there is accepted, while others are served.
func TestWrongTokensAreThrottled(t *testing.T) {
	o := newOffice(t)
	desk := &desk{authority: o.authority, throttle: newThrottle()}
	request := certificateRequest(t, named("w1"), newKey(t))
	right := o.token(t, time.Minute, 3)
	ask := func(secret []byte, from string) enrolAnswer {
		addr, err := net.ResolveTCPAddr("tcp", from)
		require.NoError(t, err)
		answer, _ := desk.decide(enrolRequest{secret, request}, tls.ConnectionState{}, addr)
		return answer
	}
	for i := range 2 * mayFail {
		answer := ask(make([]byte, secretBytes), fmt.Sprintf("[2001:db8::%x]:1", i))
		require.Equal(t, i >= mayFail, strings.Contains(answer.Refused, "too many wrong tokens"), i)
		require.Equal(t, i >= mayFail, answer.Later)
	}
	require.Contains(t, ask(right.secret[:], "[2001:db8::ffff]:1").Refused, "too many wrong tokens")
	require.Empty(t, ask(right.secret[:], "[2001:db8:0:1::1]:1").Refused)
	require.Empty(t, ask(right.secret[:], "192.0.2.1:1").Refused)
}

// FuzzEnrolMessages reads what strangers may send.
func FuzzEnrolMessages(f *testing.F) {
	f.Add([]byte("\x00\x02{}"))
	f.Add([]byte("\x00\x10{\"secret\":\"AAAA\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var request enrolRequest
		if readMessage(strings.NewReader(string(b)), &request) != nil {
			return
		}
		_, _ = readRequest(request.Request)
		var answer enrolAnswer
		if json.Unmarshal(b[2:], &answer) == nil {
			_, err := answer.membership(nil)
			require.Error(t, err)
		}
	})
}
