package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// oracle is a server of keys that counts requests.
type oracle struct {
	mu    sync.Mutex
	keys  map[string][]byte
	count map[string]int // by method
	heard []string       // request lines and headers of the last request
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[r.Method]++
	o.heard = []string{r.Method + " " + r.RequestURI, "Host: " + r.Host, fmt.Sprintf("body of %d", len(body))}
	for name, values := range r.Header {
		o.heard = append(o.heard, name+": "+strings.Join(values, "|"))
	}
	held, there := o.keys[r.URL.Path]
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == "PUT":
		o.keys[r.URL.Path] = body
		w.WriteHeader(http.StatusNoContent)
	case !there:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == "DELETE":
		delete(o.keys, r.URL.Path)
	default:
		_, _ = w.Write(held) // the client may have gone
	}
}

func newOracle(t *testing.T) (*oracle, string) {
	o := &oracle{keys: map[string][]byte{}, count: map[string]int{}}
	s := httptest.NewUnstartedServer(o)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return o, s.Listener.Addr().String()
}

func dialTo(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp", addr) }
}

func TestConformance(t *testing.T) {
	_, addr := newOracle(t)
	for _, d := range []driver.Driver{Driver{}, HTTP2{}} {
		t.Run(d.Name(), func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{Driver: d, Dial: dialTo(addr), Note: "the server says nothing of itself", Unordered: d == HTTP2{}})
		})
	}
}

func TestConformanceOfNginx(t *testing.T) {
	for d, also := range map[driver.Driver][]string{Driver{}: nil, HTTP2{}: {"http2"}} {
		t.Run(d.Name(), func(t *testing.T) {
			s := servertest.Nginx(t, 0, nil, also...)
			drivertest.Run(t, drivertest.Suite{Driver: d, Dial: dialTo(s.Addr), TextKeys: true, MaxKey: 250, Unordered: d == HTTP2{}})
		})
	}
}

// open connects a client with some forms to a server.
func open(t *testing.T, addr string, cfg *Config, forms ...driver.Form) driver.Session {
	t.Helper()
	require.NoError(t, cfg.Validate())
	s, err := Driver{}.Dial(t.Context(), driver.Link{
		Endpoint: addr, Run: "r7", Config: cfg, Forms: forms,
		Secrets: func(string) (string, error) { return "Bearer abc", nil },
		Values:  true, Room: new(drivertest.Room),
		Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // a test may have ended it
	return s
}

func do(t *testing.T, s driver.Session, req *driver.Request) (driver.Reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var reply driver.Reply
	err := s.Do(ctx, req, &reply)
	return reply, err
}

// TestFormsAsTheyAreSent has a form use every placeholder, with a key that tries to be more than a key.
func TestFormsAsTheyAreSent(t *testing.T) {
	o, addr := newOracle(t)
	words := &Form{Request: Request{
		Method: "PUT", Path: "/kv/{key}?run={run}&n={n}", Headers: map[string]string{"X-Key": "k {key}", "Content-Type": "text/plain"}, Body: "<{value}>",
	}}
	cfg := &Config{MaxBody: 1000, Host: "shop.example.org", Authorization: &driver.Secret{Name: "token"}}
	s := open(t, addr, cfg, driver.Form{Verb: driver.Put, Name: "put", Words: words})
	key := "a/b c?d&e\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1%"
	reply, err := do(t, s, &driver.Request{Verb: driver.Put, N: 41, Key: []byte(key), Value: &driver.Value{Size: 10}})
	require.NoError(t, err)
	require.Equal(t, driver.OK, reply.Outcome)
	require.ElementsMatch(t, []string{
		"PUT /kv/a/b%20c%3Fd%26e%0D%0AX-Evil:%201%0D%0A%0D%0AGET%20/%20HTTP/1.1%25?run=r7&n=41", "Host: shop.example.org", "body of 12",
		"X-Key: k a/b c?d&e%0D%0AX-Evil: 1%0D%0A%0D%0AGET / HTTP/1.1%", "Content-Type: text/plain", "User-Agent: loadgen", "Authorization: Bearer abc",
		"Content-Length: 12",
	}, o.heard)
}

// TestStatuses has a server answer with each status, which the usual wording and a form's own interpret.
func TestStatuses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := 0
		_, err := fmt.Sscanf(r.URL.Path, "/%d", &status)
		if err != nil {
			status = 500
		}
		if status/100 == 3 {
			w.Header().Set("Location", "https://elsewhere.example/x")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	words := &Form{Request: Request{Method: "POST", Path: "/{key}"}, Expect: &Expect{OK: []int{201, 302}, Miss: []int{204}, Conflict: []int{400}}}
	visit := driver.Verb(driver.Clear + 1)
	s := open(t, server.Listener.Addr().String(), &Config{MaxBody: 1000}, driver.Form{Verb: visit, Name: "visit", Words: words})
	for _, c := range []struct {
		verb   driver.Verb
		status int
		want   driver.Outcome
		says   string
	}{
		{driver.Get, 200, driver.OK, ""},
		{driver.Get, 204, driver.OK, ""},
		{driver.Get, 404, driver.Miss, ""},
		{driver.Get, 410, driver.Miss, ""},
		{driver.Delete, 404, driver.Miss, ""},
		{driver.Put, 404, driver.Error, "status 404 Not Found"},
		{driver.Put, 412, driver.Conflict, ""},
		{driver.Get, 503, driver.Error, "status 503 Service Unavailable"},
		{driver.Get, 304, driver.Error, "status 304"},
		{driver.Get, 301, driver.Error, "status 301 Moved Permanently to https://elsewhere.example/x, which is not followed: write follow = 1 in the request"},
		{visit, 201, driver.OK, ""},
		{visit, 302, driver.OK, ""},
		{visit, 200, driver.Error, "status 200 OK"},
		{visit, 204, driver.Miss, ""},
		{visit, 400, driver.Conflict, ""},
		{visit, 409, driver.Error, "status 409"},
		{visit, 404, driver.Error, "status 404"}, // the form has its own misses
	} {
		reply, err := do(t, s, &driver.Request{Verb: c.verb, Key: fmt.Append(nil, c.status), Value: &driver.Value{}})
		require.NoError(t, err)
		require.Equal(t, c.want.String(), reply.Outcome.String(), "%v %d", c.verb, c.status)
		require.Contains(t, string(reply.Message), c.says)
	}
}

// TestHostileServers answer what no client should take.
func TestHostileServers(t *testing.T) {
	for name, says := range map[string]string{
		"a body beyond the bound":      "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001),
		"a length beyond all":          "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
		"chunks beyond the bound":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) + "\r\n0\r\n\r\n",
		"a chunk that is none":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no end, without length":       "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 100_000),
		"a head without end":           "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300_000),
		"another response behind":      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
		"interim responses for ever":   strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10_000),
		"another protocol":             "+PONG\r\n",
		"nothing":                      "",
		"half a response":              "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"a status that is no number":   "HTTP/1.1 abc OK\r\n\r\n",
		"a status beyond all":          "HTTP/1.1 99999 OK\r\nContent-Length: 0\r\n\r\n",
		"a length that is no number":   "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"a status below all":           "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
		"a status of two digits":       "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
		"a status behind two spaces":   "HTTP/1.1  000 OK\r\nContent-Length: 0\r\n\r\n",
		"000 behind an interim answer": "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
		"an interim answer alone":      "HTTP/1.1 100 Continue\r\n\r\n",
		"bytes behind an empty answer": "HTTP/1.1 204 No Content\r\n\r\nmore",
	} {
		t.Run(name, func(t *testing.T) {
			addr := servertest.Serve(t, nil, func(conn net.Conn) {
				if _, err := conn.Read(make([]byte, 1000)); err == nil {
					_, _ = io.WriteString(conn, says) // the client hangs up in the middle
				}
			})
			s := open(t, addr, &Config{MaxBody: 1000})
			reply, err := do(t, s, &driver.Request{Verb: driver.Get, Key: []byte("k")})
			if err == nil {
				require.Equal(t, driver.Error, reply.Outcome)
			}
			require.NoError(t, s.Close())
		})
	}
}

// TestInterimResponses are skipped: the response follows them, with a head of almost 256 KiB.
func TestInterimResponses(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() { // ends with its answer
		_, _ = far.Read(make([]byte, 4096))
		long := "Set-Cookie: " + strings.Repeat("x", 250<<10) + "\r\n" // of a response that needs a larger buffer
		_, _ = io.WriteString(far, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"+long+"Content-Length: 1\r\n\r\nv")
	}()
	s, err := Driver{}.Dial(t.Context(), driver.Link{
		Endpoint: "h:80", Config: Driver{}.NewConfig(), Values: true, Room: new(drivertest.Room),
		Dial: func(context.Context) (net.Conn, error) { return near, nil },
	})
	require.NoError(t, err)
	reply, err := do(t, s, &driver.Request{Verb: driver.Get, Key: []byte("k")})
	require.NoError(t, err)
	require.Equal(t, driver.OK, reply.Outcome)
	require.Equal(t, "v", string(reply.Value))
}

// TestABodyThatIsRefusedUnread has the server's status, whether or not it ends the connection while the body is being sent.
func TestABodyThatIsRefusedUnread(t *testing.T) {
	addr := servertest.Serve(t, nil, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 100))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\n\r\nno")
		_ = conn.Close() // resets the connection: there are bytes that were not read
	})
	s := open(t, addr, Driver{}.NewConfig().(*Config))
	for _, size := range []int{1 << 10, 16 << 20} {
		reply, err := do(t, s, &driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: size}})
		require.NoError(t, err)
		require.Equal(t, "status 413 Request Entity Too Large", string(reply.Message))
	}
}

// TestServerThatCloses announces it with a response: the next request uses a new connection, and none fails.
func TestServerThatCloses(t *testing.T) {
	s := servertest.Nginx(t, 3, nil)
	made := 0
	session, err := Driver{}.Dial(t.Context(), driver.Link{Endpoint: s.Addr, Config: Driver{}.NewConfig(), Dial: func(ctx context.Context) (net.Conn, error) {
		made++
		return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	}})
	require.NoError(t, err)
	for range 10 {
		reply, err := do(t, session, &driver.Request{Verb: driver.Get, Key: []byte("k")})
		require.NoError(t, err)
		require.Equal(t, driver.Miss, reply.Outcome)
	}
	require.NoError(t, session.Close())
	require.Equal(t, 4, made)
	require.Equal(t, map[string]int{"GET 404": 10}, s.Counts(10))
}

// TestFormsThatAreWrong checks that errors name the attribute and say what to write.
func TestFormsThatAreWrong(t *testing.T) {
	for want, f := range map[string]Form{
		"method = \"get\": write GET":                 {Request: Request{Method: "get", Path: "/"}},
		"method = \"A B\"":                            {Request: Request{Method: "A B", Path: "/"}},
		"path = \"x\": write a path that begins":      {Request: Request{Method: "GET", Path: "x"}},
		"path = \"/a b\"":                             {Request: Request{Method: "GET", Path: "/a b"}},
		"path = \"/{kye}\": unknown placeholder":      {Request: Request{Method: "GET", Path: "/{kye}"}},
		"write {value} in the body":                   {Request: Request{Method: "PUT", Path: "/{value}"}},
		"body of a GET":                               {Request: Request{Method: "GET", Path: "/", Body: "x"}},
		"headers has \"Host\": write host":            {Request: Request{Method: "GET", Path: "/", Headers: map[string]string{"Host": "x"}}},
		"headers has \"a b\"":                         {Request: Request{Method: "GET", Path: "/", Headers: map[string]string{"a b": "x"}}},
		"headers has \"x\\r\\ny\"":                    {Request: Request{Method: "GET", Path: "/", Headers: map[string]string{"X": "x\r\ny"}}},
		"ok has the status 999":                       {Request: Request{Method: "GET", Path: "/"}, Expect: &Expect{OK: []int{999}}},
		"miss has the status 200, which another list": {Request: Request{Method: "GET", Path: "/"}, Expect: &Expect{OK: []int{200}, Miss: []int{200}}},
	} {
		_, err := Driver{}.CheckForm(Driver{}.NewConfig(), driver.Form{Verb: driver.Get, Words: &f})
		require.ErrorContains(t, err, want)
	}
}

func TestShownAsItWillBeSent(t *testing.T) {
	words := &Form{Request: Request{Method: "POST", Path: "/{key}", Headers: map[string]string{"X-N": "{n}"}, Body: "{value}"}}
	w, err := Driver{}.CheckForm(Driver{}.NewConfig(), driver.Form{Verb: driver.Put, Words: words})
	require.NoError(t, err)
	require.True(t, w.Stores && w.Keyed)
	require.Equal(t, []driver.Outcome{driver.OK, driver.Conflict}, w.Outcomes)
	text := Driver{}.ShowForm(Driver{}.NewConfig(), driver.Form{Verb: driver.Put, Words: words}, &driver.Request{N: 3, Key: []byte("a b"), Value: &driver.Value{Size: 90, Fill: driver.Fill{Alike: true, Byte: 'v'}}}, "r1")
	require.Equal(t, "POST /a%20b HTTP/1.1\nHost: HOST:PORT\nUser-Agent: loadgen\nX-N: 3\nContent-Length: 90\n"+strings.Repeat("v", 80)+"… (90 bytes)", text)
}

// TestHostHasNoZone and a port only if it is not the scheme's.
func TestHostHasNoZone(t *testing.T) {
	for endpoint, want := range map[string]string{"[::1%lo]:18081": "[::1]:18081", "[fe80::1%eth0]:80": "[fe80::1]", "h:81": "h:81", "h:443": "h"} {
		require.Equal(t, want, host(new(Config), endpoint))
	}
}

// TestRequestsAllocateNothing exchanges requests with a peer that always sends the same answer.
func TestRequestsAllocateNothing(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go func() { // ends with far
		b, answer := make([]byte, 4096), []byte("HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n")
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
			if _, err := far.Write(answer); err != nil {
				return
			}
		}
	}()
	s, err := Driver{}.Dial(t.Context(), driver.Link{Endpoint: "h:80", Config: Driver{}.NewConfig(), Dial: func(context.Context) (net.Conn, error) { return near, nil }})
	require.NoError(t, err)
	req, reply, ctx := driver.Request{Verb: driver.Put, Key: []byte("key:000001"), Value: &driver.Value{Size: 200}}, driver.Reply{}, context.Background()
	require.Less(t, testing.AllocsPerRun(200, func() {
		if err := s.Do(ctx, &req, &reply); err != nil {
			t.Error(err)
		}
	}), 1.0)
}

// TestRequestsThatAreKeys are sent as they are, with what they lack.
func TestRequestsThatAreKeys(t *testing.T) {
	o, addr := newOracle(t)
	cfg := &Config{MaxBody: 1000, Host: "shop.example.org", Authorization: &driver.Secret{Name: "token"}}
	replay := driver.Verb(driver.Clear + 1)
	s := open(t, addr, cfg, driver.Form{Verb: replay, Name: "replay", Words: &Form{Request: Request{Form: "vegeta"}}})
	common := []string{"Host: shop.example.org"}
	for _, c := range []struct {
		key  string
		want driver.Outcome
		says []string
	}{
		{
			"PUT /a%20b?c HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", driver.OK,
			[]string{"PUT /a%20b?c", "body of 5", "Content-Length: 5", "User-Agent: loadgen", "Authorization: Bearer abc"},
		},
		{
			"HEAD /a%20b HTTP/1.1\r\nuser-agent: me\r\nX-User-Agent: x\r\n\r\n", driver.OK,
			[]string{"HEAD /a%20b", "body of 0", "User-Agent: me", "X-User-Agent: x", "Authorization: Bearer abc"},
		},
		{
			"GET /none HTTP/1.1\r\nAuthorization: Basic eA==\r\nA: User-Agent:\r\n\r\n", driver.Error,
			[]string{"GET /none", "body of 0", "User-Agent: loadgen", "A: User-Agent:", "Authorization: Basic eA=="},
		},
	} {
		reply, err := do(t, s, &driver.Request{Verb: replay, Key: []byte(c.key)})
		require.NoError(t, err)
		require.Equal(t, c.want, reply.Outcome)
		require.ElementsMatch(t, append(c.says, common...), o.heard)
	}
	for _, key := range []string{"", "key:1", "GET / HTTP/1.1\r\n", "\r\n\r\nGET / HTTP/1.1\r\n"} {
		_, err := do(t, s, &driver.Request{Verb: replay, Key: []byte(key)})
		require.ErrorContains(t, err, "a key that is not a request", "%q", key)
	}
	w, err := compile(&Form{Request: Request{Form: "vegeta"}}, replay)
	require.NoError(t, err)
	w.head(&client{host: "h"})
	key, out := []byte("GET / HTTP/1.1\r\nA: b\r\n\r\n"), make([]byte, 0, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { out, _ = w.appendWhole(out[:0], key) }))
}
