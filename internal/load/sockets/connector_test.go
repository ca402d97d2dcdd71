package sockets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A server that broke a plain connection off once crashed the worker, which looked for the certificate that the server might have wanted.
func TestBrokenPlainConnectionIsNoMatterOfTLS(t *testing.T) {
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE} {
		err := fmt.Errorf("read: %w", broken)
		require.Equal(t, err, Connector{}.Explain(err))
	}
}

func tcp(t *testing.T) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// A connection leads to the endpoint's address or socket, over TLS if the plan says so, and not where the node's owner forbids. An error says what to do.
func TestConnections(t *testing.T) {
	ours, others := servertest.NewAuthority(t), servertest.NewAuthority(t)
	server, old := ours.Issue("127.0.0.1", time.Hour), ours.Issue("127.0.0.1", -time.Hour)
	known, stranger := ours.Issue("client", time.Hour), others.Issue("client", time.Hour)
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(ours.CA)
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(ca))
	over := func(shows servertest.Certificate, change func(*tls.Config)) string {
		pair, err := tls.LoadX509KeyPair(shows.Cert, shows.Key)
		require.NoError(t, err)
		cfg := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots}
		change(cfg)
		return servertest.Serve(t, tls.NewListener(tcp(t), cfg), echo)
	}
	as := func(*tls.Config) {}
	secure, expired := over(server, as), over(old, as)
	strict := over(server, func(cfg *tls.Config) {
		cfg.ClientAuth, cfg.MaxVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS12
	})
	plain := servertest.Serve(t, tcp(t), echo)
	words := servertest.Serve(t, tcp(t), func(conn net.Conn) { _, _ = io.WriteString(conn, "-ERR unknown command\r\n") })
	closing := servertest.Serve(t, tcp(t), func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)); _ = conn.Close() })
	socket := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", socket)
	require.NoError(t, err)
	servertest.Serve(t, local, echo)
	silent := tcp(t)
	free := silent.Addr().String()
	require.NoError(t, silent.Close())

	trusts := &plan.TLS{CA: ours.CA}
	for name, c := range map[string]struct {
		at, path string
		secure   *plan.TLS
		forbid   bool
		says     string // "": it echoes
		facts    bool
	}{
		"plain":                    {at: plain},
		"a socket":                 {at: "unix://" + socket, path: socket},
		"nobody":                   {at: free, says: "connection refused"},
		"no socket":                {at: "unix://" + socket + "x", path: socket + "x", says: "there is no such file where the load runs: start the server"},
		"encrypted":                {at: secure, secure: trusts, facts: true},
		"with another name":        {at: secure, secure: &plan.TLS{CA: ours.CA, ServerName: "elsewhere"}, says: `write the name that the certificate holds: tls { server_name = "NAME" }`},
		"of a stranger":            {at: secure, secure: &plan.TLS{CA: others.CA}, says: `write the path of its authority's certificate: tls { ca = "PATH" }`},
		"over":                     {at: expired, secure: trusts, says: "renew the server's certificate, or set this machine's clock"},
		"where none is spoken":     {at: words, secure: trusts, says: "the server does not speak TLS at this port"},
		"where nobody says a word": {at: closing, secure: trusts, says: "the server may want a client's certificate: write cert = \"PATH\" and key = \"PATH\" in tls { … }, or it does not speak TLS"},
		"without a certificate":    {at: strict, secure: trusts, says: "the server may want a client's certificate"},
		"with a certificate":       {at: strict, secure: &plan.TLS{CA: ours.CA, Cert: known.Cert, Key: known.Key}, facts: true},
		"with a stranger's":        {at: strict, secure: &plan.TLS{CA: ours.CA, Cert: stranger.Cert, Key: stranger.Key}, says: "the server does not take the client's certificate: it must be signed by an authority that the server trusts"},
		"forbidden":                {at: plain, forbid: true, says: "not there"},
		"a forbidden socket":       {at: "unix://" + socket, path: socket, forbid: true, says: "not there"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			connector, err := NewConnector(new(net.Dialer).DialContext, os.ReadFile, c.secure)
			require.NoError(t, err)
			end := NewEndpoint("n0", c.at)
			require.Equal(t, c.path, end.Path)
			require.Equal(t, "n0 ("+c.at+")", end.String())
			if end.Path == "" {
				end.Addr = netip.MustParseAddrPort(c.at)
			}
			connector.Allow = func(to netip.AddrPort, socket string) error {
				require.Equal(t, end.Addr, to)
				require.Equal(t, end.Path, socket)
				if c.forbid {
					return errors.New("not there")
				}
				return nil
			}
			require.Equal(t, c.forbid, connector.Admits(&end) != nil)
			conn, err := connector.To(ctx, &end)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			_, err = io.WriteString(conn, "hello")
			require.NoError(t, err)
			got := make([]byte, 5)
			_, err = io.ReadFull(conn, got)
			require.NoError(t, err)
			require.Equal(t, "hello", string(got))
			require.Equal(t, c.facts, len(connector.Facts(conn)) > 0)
		})
	}
}

// What is wrong with the files of a certificate is said before anything is connected, and nothing of a key is.
func TestFilesOfCertificates(t *testing.T) {
	a := servertest.NewAuthority(t)
	one, two := a.Issue("one", time.Hour), a.Issue("two", time.Hour)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	text := write("text", "no certificate")
	locked := write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\naGVsbG8=\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for says, files := range map[string]*plan.TLS{
		"tls, ca: open " + dir + "/none":                                {CA: dir + "/none"},
		"tls, ca: " + text + " holds no certificate: it must be PEM":    {CA: text},
		"tls, cert: open " + dir + "/none":                              {Cert: dir + "/none", Key: one.Key},
		"tls, key: open " + dir + "/none":                               {Cert: one.Cert, Key: dir + "/none"},
		"tls, key: " + locked + " is encrypted: write it without a pas": {Cert: one.Cert, Key: locked},
		"tls, cert " + one.Cert + " and key " + two.Key + ": ":          {Cert: one.Cert, Key: two.Key},
	} {
		_, err := NewConnector(new(net.Dialer).DialContext, os.ReadFile, files)
		require.ErrorContains(t, err, says)
	}
	_, err := NewConnector(new(net.Dialer).DialContext, os.ReadFile, &plan.TLS{CA: a.CA, Cert: one.Cert, Key: one.Key})
	require.NoError(t, err)
}

// What hinders a connection is said with its remedy, once.
func TestErrorsOfConnecting(t *testing.T) {
	six, four := Endpoint{Addr: netip.MustParseAddrPort("[::1]:1")}, Endpoint{Addr: netip.MustParseAddrPort("127.0.0.1:1")}
	socket := NewEndpoint("n0", "unix:///s")
	for _, c := range []struct {
		end  *Endpoint
		err  error
		says string
	}{
		{&six, unix.EADDRNOTAVAIL, "no local port is left, or no IPv6 address: keep connections open"},
		{&four, unix.EADDRNOTAVAIL, "no local port is left: keep connections open"},
		{&four, unix.ENOENT, ""},
		{&socket, unix.EACCES, "this user may not write to the socket"},
		{&socket, unix.ECONNREFUSED, "nobody listens there: the server has ended and left the file, or it is not a socket"},
		{&socket, unix.EAGAIN, "the server's queue of connections is full"},
		{&socket, unix.EIO, ""},
	} {
		err := c.end.Explain(fmt.Errorf("connect: %w", c.err))
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, c.says == "", err.Error() == "connect: "+c.err.Error())
		require.Equal(t, err, c.end.Explain(err))
	}
}

// The first bytes of a far end, or that there are none, tell what it is if it is not what the driver speaks to.
func TestWhatAnswersInstead(t *testing.T) {
	for first, says := range map[string]string{
		"HTTP/1.1 400 Bad Request": "a web server answers at this port: write the endpoint of the target",
		"\x15\x03\x01\x00\x02":     "the server speaks TLS at this port: write tls {} in the target",
		"":                         "another kind of server may listen there, or one that speaks TLS at this port: then write tls {} in the target",
		"-ERR":                     "",
	} {
		near, far := net.Pipe()
		go func() { // ends with its write
			_, _ = io.WriteString(far, first)
			_ = far.Close()
		}()
		w := &Witness{Conn: near}
		_, err := io.ReadAll(w)
		require.NoError(t, err)
		bad := errors.New("no reply")
		require.ErrorIs(t, w.Explain(bad), bad)
		require.ErrorContains(t, w.Explain(bad), says)
		require.Equal(t, says == "", w.Explain(bad) == bad)
		require.ErrorContains(t, w.Explain(unix.ECONNRESET), says)
	}
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(far, far) }() // ends with the connection
	w := &Witness{Conn: near}
	_, err := io.WriteString(w, "HTTP/1.1 HTTP/1.1")
	require.NoError(t, err)
	_, err = io.ReadFull(w, make([]byte, 17))
	require.NoError(t, err)
	bad := errors.New("no such page")
	require.Equal(t, bad, w.Explain(bad), "the driver speaks HTTP itself")
	require.NoError(t, near.Close())
}

// A meter counts the bytes of its client's connections, and what the kernel has counted on them, whether they are open, closed or cut.
func TestMeter(t *testing.T) {
	at := servertest.Serve(t, tcp(t), func(conn net.Conn) {
		_, _ = io.CopyN(conn, conn, 5)
		_ = conn.Close()
	})
	refuse := false
	m := NewMeter(func(ctx context.Context) (net.Conn, error) {
		if refuse {
			return nil, unix.ECONNREFUSED
		}
		return new(net.Dialer).DialContext(ctx, "tcp", at)
	}, 0, func() int64 { return 0 })
	for i := range uint64(3) {
		conn, err := m.Dial(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		ended := conn.(interface{ Ended() bool }).Ended
		require.False(t, ended())
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		require.True(t, ended())
		in, out := m.Bytes()
		require.Equal(t, []uint64{5 * (i + 1), 5 * (i + 1), i + 1}, []uint64{in, out, m.Made()})
		switch i {
		case 0:
			require.NoError(t, conn.Close())
			require.True(t, ended(), "it is closed")
		case 1:
			m.Cut()
			_, err = conn.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed)
		}
		require.GreaterOrEqual(t, m.Traffic().BytesSent, 5*(i+1))
	}
	refuse = true
	_, err := m.Dial(t.Context())
	require.ErrorIs(t, err, unix.ECONNREFUSED)
	require.EqualValues(t, 3, m.Made())
	before := m.Traffic()
	require.Equal(t, Traffic{}, m.Traffic().Since(before))
	m.Cut()

	near, far := net.Pipe() // no socket
	defer far.Close()
	var clock int64
	m = NewMeter(func(context.Context) (net.Conn, error) { return near, nil }, time.Second, func() int64 { return clock })
	conn, err := m.Dial(t.Context())
	require.NoError(t, err)
	clock = int64(time.Second) - 1
	require.False(t, conn.(interface{ Ended() bool }).Ended())
	clock++
	require.True(t, conn.(interface{ Ended() bool }).Ended(), "it has idled for a second")
	go func() { _, _ = far.Write([]byte("x")) }()
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	require.False(t, conn.(interface{ Ended() bool }).Ended())
	require.Equal(t, Traffic{}, m.Traffic())
	require.NoError(t, conn.Close())
}
