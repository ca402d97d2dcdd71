package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxVisitors bounds a page's unproved connections; on the loopback these are all that were not made welcome.
const maxVisitors = 256

// Hall is a listener that tracks which of its connections are unproved. One more than it has places for closes the oldest, so that a crowd shuts
// nobody out.
type Hall struct {
	net.Listener
	places int

	mu      sync.Mutex
	shut    bool
	waiting []*visitor // oldest first
}

// NewHall returns a hall with that many places.
func NewHall(l net.Listener, places int) *Hall { return &Hall{Listener: l, places: places} }

// visitor is a connection.
type visitor struct {
	net.Conn
	hall *Hall
}

// Accept returns the next connection. It is unproved until its deadline is lifted, or [Welcome] is called with a request of it.
func (h *Hall) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{conn, h}
	h.mu.Lock()
	h.waiting = append(h.waiting, v)
	oldest, shut, full := h.waiting[0], h.shut, len(h.waiting) > h.places
	h.mu.Unlock()
	switch {
	case shut:
		_ = v.Close() // nobody waits for it
	case full:
		_ = oldest.Close() // it has had its chance
	}
	return v, nil
}

// Shut closes all unproved connections, now and from now on.
func (h *Hall) Shut() {
	h.mu.Lock()
	h.shut = true
	waiting := slices.Clone(h.waiting)
	h.mu.Unlock()
	for _, v := range waiting {
		_ = v.Close() // nothing it has sent was accepted
	}
}

// SetDeadline is called with a zero time by gRPC, once a connection has proved itself and begun to speak.
func (v *visitor) SetDeadline(t time.Time) error {
	if t.IsZero() {
		v.hall.forget(v)
	}
	return v.Conn.SetDeadline(t)
}

// Close ends the connection.
func (v *visitor) Close() error {
	v.hall.forget(v)
	return v.Conn.Close()
}

// SyscallConn gives access to the socket.
func (v *visitor) SyscallConn() (syscall.RawConn, error) { return socketOf(v.Conn) }

func (h *Hall) forget(v *visitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.waiting, v); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	}
}

// connectionKey is the context key of a request's connection. A visitor who has proved who they are keeps their connection.
type connectionKey struct{}

// Welcome removes a request's connection from the unproved ones. The caller must bound how many connections it makes welcome.
func Welcome(r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn) // or nil
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if v, ok := conn.(*visitor); ok {
		v.hall.forget(v)
	}
}

const (
	linkPath   = "/enter/"        // start of the path of the link that works once
	cookieName = "__Host-loadgen" // browsers accept it over TLS only, and send it to this host only (RFC 6265bis, section 4.1.3.2)
	cookieFor  = 12 * time.Hour

	notProved = "show the token of this page as a bearer token, or come by the link that loadgen has printed\n"
	wrongHost = "this server does not go by that name: it answers to addresses, and to those that --http-name names\n"
	wrongLoop = "this server answers to localhost and loopback addresses only, and to names that --http-name names\n"
	tooMany   = "too many wrong tokens came from there: wait\n"
)

// Guard makes a server, which is not yet serving, admit only visitors who use one of the page's names and, beyond the loopback, prove who they are.
// Any other name is refused, even if somebody's name server maps it to this address: otherwise their page could read this one in a browser (DNS
// rebinding).
func (p *Door) Guard(server *http.Server) {
	next := server.Handler
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		head.Set("Referrer-Policy", "no-referrer") // the link is secret until it is used
		switch {
		case !p.beyond && !p.goesBy(r.Host):
			refuse(w, wrongLoop, http.StatusForbidden)
		case !p.beyond:
			next.ServeHTTP(w, r)
		case !p.goesBy(r.Host):
			refuse(w, wrongHost, http.StatusForbidden)
		default:
			head.Set("Cache-Control", "no-store")
			p.admit(w, r, next)
		}
	})
}

// refuse rejects a visitor and closes the connection, so that nobody unproved occupies one.
func refuse(w http.ResponseWriter, why string, code int) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(why)) // an error means that the client is gone
}

// admit makes a visitor prove who they are.
func (p *Door) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	from := addressOf(r)
	if p.throttle.wait(from) > 0 {
		refuse(w, tooMany, http.StatusTooManyRequests)
		return
	}
	bearer, tried := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	link, entering := strings.CutPrefix(r.URL.Path, linkPath)
	cookie, _ := r.Cookie(cookieName) // or nil
	switch {
	case tried && p.isToken(bearer), !tried && !entering && cookie != nil && p.knows(cookie.Value):
		Welcome(r)
		next.ServeHTTP(w, r)
		return
	case !tried && entering && r.Method == http.MethodGet && (cookie != nil && p.knows(cookie.Value) || p.useLink(link) && p.remember(w)):
		w.Header().Set("Location", p.first)
		w.WriteHeader(http.StatusSeeOther)
		return
	case tried || entering:
		p.throttle.failed(from)
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="loadgen"`)
	refuse(w, notProved, http.StatusUnauthorized)
}

// remember gives a browser a cookie, unless no secret could be drawn for one.
func (p *Door) remember(w http.ResponseWriter) bool {
	secret, err := secretText()
	if err != nil {
		return false
	}
	p.mu.Lock()
	p.sessions[sha256.Sum256([]byte(secret))] = struct{}{}
	p.mu.Unlock()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", MaxAge: int(cookieFor / time.Second), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	return true
}

func (p *Door) isToken(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], p.token[:]) == 1
}

// useLink says whether a text is the link's secret, and accepts it only once.
func (p *Door) useLink(text string) bool {
	given, is := sha256.Sum256([]byte(text)), sha256.Sum256([]byte(p.link))
	if subtle.ConstantTimeCompare(given[:], is[:]) != 1 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.used
	p.used = true
	return first
}

// knows says whether the page issued a cookie. Cookies are looked up by hash, so that the time taken reveals nothing about them.
func (p *Door) knows(cookie string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.sessions[sha256.Sum256([]byte(cookie))]
	return ok
}

// goesBy says whether a Host header (RFC 9110, section 7.2: a host and an optional port) names the page. Addresses do too, since nobody can give them
// to another machine; on the loopback, only the page's own.
func (p *Door) goesBy(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil { // another name may stand there
			return false
		}
		host = name
	} else if name, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(name, "]") {
		host = strings.TrimSuffix(name, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return p.beyond || ip.IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || slices.Contains(p.names, host)
}

func addressOf(r *http.Request) net.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil
	}
	return net.TCPAddrFromAddrPort(at)
}
