package identity

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// door is a served page, and a client that trusts its authority.
type door struct {
	*Door
	t      testing.TB
	client *http.Client
	port   string
	token  string // that is kept
}

// opened serves a page that has one word.
func opened(t testing.TB, m PageMeans) *door {
	t.Helper()
	p, err := m.Open()
	require.NoError(t, err)
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "counts") }),
		ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
	}
	p.Guard(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(p.Listener()) }()
	pool := x509.NewCertPool()
	if p.ca != "" {
		text, err := os.ReadFile(p.ca)
		require.NoError(t, err)
		require.True(t, pool.AppendCertsFromPEM(text))
	}
	d := &door{Door: p, t: t, client: &http.Client{
		Timeout:       10 * time.Second,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	_, d.port, err = net.SplitHostPort(p.Address())
	require.NoError(t, err)
	if p.kept != "" {
		text, err := os.ReadFile(p.kept)
		require.NoError(t, err)
		d.token = strings.TrimSpace(string(text))
	}
	t.Cleanup(func() {
		d.client.CloseIdleConnections()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return d
}

// ask makes a request; each header is a name and a value.
func (d *door) ask(method, path string, headers ...string) *http.Response {
	d.t.Helper()
	scheme, _, _ := strings.Cut(d.URL(), "://")
	r, err := http.NewRequestWithContext(d.t.Context(), method, scheme+"://127.0.0.1:"+d.port+path, nil)
	require.NoError(d.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	reply, err := d.client.Do(r)
	require.NoError(d.t, err)
	b, err := io.ReadAll(reply.Body)
	require.NoError(d.t, err)
	require.NoError(d.t, reply.Body.Close())
	if reply.StatusCode != http.StatusOK {
		require.NotContains(d.t, string(b), "counts")
	}
	return reply
}

func (d *door) code(method, path string, headers ...string) int {
	d.t.Helper()
	return d.ask(method, path, headers...).StatusCode
}

func fleetAt(t testing.TB) string { return filepath.Join(t.TempDir(), "fleet") }

// TestPageOnTheLoopback is open to everyone on the machine, under its own names only.
func TestPageOnTheLoopback(t *testing.T) {
	d := opened(t, PageMeans{Address: "127.0.0.1:0", Names: []string{"Proxy.example."}, Dir: fleetAt(t)})
	require.Regexp(t, `^metrics at http://127\.0\.0\.1:\d+/metrics\n$`, d.Words())
	for host, code := range map[string]int{
		"127.0.0.1": 200, "localhost:9": 200, "LOCALHOST.": 200, "[::1]": 200, "[::1]:9": 200, "127.9.9.9": 200, "proxy.example:443": 200,
		"evil.example": 403, "evil.example:9464": 403, "10.0.0.1": 403, "[::ffff:10.0.0.1]:1": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "proxy.example.evil": 403, "[": 403, "localhost:9.evil.example": 403, "[::1].evil.example": 403,
	} {
		require.Equal(t, code, d.code("GET", "/metrics", "Host", host), host)
	}
	_, err := PageMeans{Address: "127.0.0.1:0", Token: "0123456789abcdef"}.Open()
	require.ErrorContains(t, err, "is on the loopback, where the page is served in cleartext")
}

// TestPageBeyondTheLoopback has visitors prove who they are.
func TestPageBeyondTheLoopback(t *testing.T) {
	dir := fleetAt(t)
	d := opened(t, PageMeans{Address: "0.0.0.0:0", Names: []string{"cache-7.example"}, Dir: dir})
	host, err := os.Hostname()
	require.NoError(t, err)
	bearer := []string{"Authorization", "Bearer " + d.token}
	require.Equal(t, 200, d.code("GET", "/metrics", bearer...))
	require.Equal(t, 200, d.code("GET", "/metrics", append(bearer, "Host", host)...))
	require.Equal(t, 200, d.code("GET", "/metrics", append(bearer, "Host", "CACHE-7.example:9464")...))
	require.Equal(t, 403, d.code("GET", "/metrics", append(bearer, "Host", "evil.example")...), "a name server of theirs has named this address")
	for _, path := range []string{"/", "/stream", "/metrics", "/sd", "/healthz", "/enter", "/enter/", "/../metrics"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			reply := d.ask(method, path)
			require.Equal(t, 401, reply.StatusCode, "%s %s", method, path)
			require.Equal(t, `Bearer realm="loadgen"`, reply.Header.Get("WWW-Authenticate"))
			require.True(t, reply.Close, "nobody keeps a place who has not proved that it is theirs")
		}
		d.throttle = newThrottle() // /enter/ counts as a wrong one
	}
	for _, wrong := range [][]string{
		{"Authorization", "Bearer "},
		{"Authorization", "Bearer " + d.token + "x"},
		{"Authorization", "bearer " + d.token},
		{"Authorization", "Basic " + d.token},
		{"Authorization", d.token},
		{"Cookie", cookieName + "=" + d.token},
		{"Cookie", cookieName + "="},
		{"X-Forwarded-For", "127.0.0.1"},
	} {
		require.Equal(t, 401, d.code("GET", "/metrics", wrong...), "%q", wrong)
	}
	require.NotContains(t, d.Words(), d.token)

	again := opened(t, PageMeans{Address: "[::]:0", Dir: dir})
	require.Equal(t, d.token, again.token, "scrapers keep theirs from run to run")
	require.Equal(t, 401, again.code("GET", "/metrics"))
	require.NoError(t, os.Chmod(again.kept, 0o644))
	_, err = PageMeans{Address: "0.0.0.0:0", Dir: dir}.Open()
	require.ErrorContains(t, err, "is open to others")
}

// TestLinkWorksOnce: it lets a browser in, with a cookie that scripts and other sites cannot use.
func TestLinkWorksOnce(t *testing.T) {
	d := opened(t, PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Live: true})
	path := regexp.MustCompile(`https://\S+(/enter/\S+), which works once`).FindStringSubmatch(d.Words())
	require.NotNil(t, path, d.Words())
	require.Equal(t, 401, d.code("HEAD", path[1]), "who only looks does not use it up")
	require.Equal(t, 401, d.code("GET", path[1]+"x"))
	require.Equal(t, 401, d.code("GET", path[1], "Authorization", "Bearer wrong"))
	require.Equal(t, 403, d.code("GET", path[1], "Host", "evil.example"))
	reply := d.ask("GET", path[1])
	require.Equal(t, 303, reply.StatusCode)
	require.Equal(t, "/", reply.Header.Get("Location"))
	require.Equal(t, "no-store", reply.Header.Get("Cache-Control"))
	require.Equal(t, "no-referrer", reply.Header.Get("Referrer-Policy"))
	require.Len(t, reply.Cookies(), 1)
	cookie := reply.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.True(t, cookie.Secure)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "__Host-loadgen", cookie.Name)
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	require.Equal(t, 200, d.code("GET", "/metrics", "Cookie", cookie.Name+"="+cookie.Value))
	require.Equal(t, 403, d.code("GET", "/metrics", "Cookie", cookie.Name+"="+cookie.Value, "Host", "evil.example"))
	require.Equal(t, 401, d.code("GET", path[1]), "it was used")
	again := d.ask("GET", path[1], "Cookie", cookie.Name+"="+cookie.Value)
	require.Equal(t, 303, again.StatusCode, "a page that is loaded again")
	require.Empty(t, again.Cookies())

	worker := opened(t, PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t)})
	require.Equal(t, "/metrics", worker.ask("GET", linkPath+worker.link).Header.Get("Location"), "it has nothing else to show")
}

// TestGuessingIsThrottled: for a while, even the right token is refused.
func TestGuessingIsThrottled(t *testing.T) {
	d := opened(t, PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Token: "sixteen bytes ok"})
	require.Equal(t, 200, d.code("GET", "/metrics", "Authorization", "Bearer sixteen bytes ok"))
	for range mayFail {
		require.Equal(t, 401, d.code("GET", "/metrics", "Authorization", "Bearer sixteen bytes no"))
	}
	require.Equal(t, 429, d.code("GET", "/metrics", "Authorization", "Bearer sixteen bytes ok"))
	_, err := PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Token: "hunter2"}.Open()
	require.ErrorContains(t, err, "can be guessed")
}

// TestPagesCertificate works with TLS 1.3 only, for the page's names, and for neither role.
func TestPagesCertificate(t *testing.T) {
	d := opened(t, PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t)})
	_, err := tls.Dial("tcp", "127.0.0.1:"+d.port, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	require.Error(t, err)
	conn, err := tls.Dial("tcp", "127.0.0.1:"+d.port, d.client.Transport.(*http.Transport).TLSClientConfig)
	require.NoError(t, err)
	leaf := conn.ConnectionState().PeerCertificates[0]
	require.NoError(t, conn.Close())
	for _, role := range []Role{Coordinator, Worker} {
		_, err := roleIn(leaf, role)
		require.ErrorContains(t, err, "is not for the role")
	}
	require.Error(t, leaf.VerifyHostname(serverName))
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, leaf.ExtKeyUsage)

	plain, err := net.Dial("tcp", "127.0.0.1:"+d.port)
	require.NoError(t, err)
	defer plain.Close()
	_, err = io.WriteString(plain, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+d.token+"\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, plain.SetDeadline(time.Now().Add(10*time.Second)))
	b, _ := io.ReadAll(plain) // however it is closed
	require.NotContains(t, string(b), "counts")
}

// TestOwnCertificateOfAPage is read again when it has changed, and its key must be private.
func TestOwnCertificateOfAPage(t *testing.T) {
	const anything = "https://metrics.example"
	ca := newPKI(t)
	files := ca.files(anything)
	cert, key := files.Cert, files.Key
	p, err := PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Cert: cert, Key: key}.Open()
	require.NoError(t, err)
	defer p.Listener().Close()
	require.NotContains(t, p.Words(), "the CA in")
	own, err := PageMeans{Cert: cert, Key: key}.certificate(nil)
	require.NoError(t, err)
	before, err := own(nil)
	require.NoError(t, err)
	ca.write(files, anything)
	after, err := own(nil)
	require.NoError(t, err)
	require.NotEqual(t, before.Leaf.SerialNumber, after.Leaf.SerialNumber)
	require.NoError(t, os.WriteFile(cert, []byte("half of it"), 0o600))
	still, err := own(nil)
	require.NoError(t, err)
	require.Equal(t, after, still)

	ca.write(files, anything)
	require.NoError(t, os.Chmod(key, 0o640))
	_, err = PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Cert: cert, Key: key}.Open()
	require.ErrorContains(t, err, "--http-key "+key+" is open to others")
	_, err = PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t), Cert: cert}.Open()
	require.ErrorContains(t, err, "belong together")
}

// TestCrowdLeavesRoomForScrapers opens more silent connections than there are places.
func TestCrowdLeavesRoomForScrapers(t *testing.T) {
	d := opened(t, PageMeans{Address: "0.0.0.0:0", Dir: fleetAt(t)})
	bearer := []string{"Authorization", "Bearer " + d.token}
	require.Equal(t, 200, d.code("GET", "/metrics", bearer...))
	for range maxVisitors + 50 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+d.port)
		require.NoError(t, err)
		defer conn.Close()
	}
	began := time.Now()
	require.Equal(t, 200, d.code("GET", "/metrics", bearer...), "its connection was kept")
	d.client.CloseIdleConnections()
	require.Equal(t, 200, d.code("GET", "/metrics", bearer...), "a new one finds room")
	require.Less(t, time.Since(began), 3*time.Second)
}

// TestCrowdOnTheLoopbackIsBounded opens more connections there than there are places: the oldest are closed, and a visitor is still served.
func TestCrowdOnTheLoopbackIsBounded(t *testing.T) {
	d := opened(t, PageMeans{Address: "127.0.0.1:0", Dir: fleetAt(t)})
	var crowd []net.Conn
	for range maxVisitors + 50 {
		conn, err := net.Dial("tcp", "127.0.0.1:"+d.port)
		require.NoError(t, err)
		defer conn.Close()
		crowd = append(crowd, conn)
	}
	require.Equal(t, 200, d.code("GET", "/metrics"))
	hall, ok := d.Listener().(*Hall)
	require.True(t, ok)
	hall.mu.Lock()
	require.LessOrEqual(t, len(hall.waiting), maxVisitors)
	hall.mu.Unlock()
	for _, conn := range crowd[:50] {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
}
