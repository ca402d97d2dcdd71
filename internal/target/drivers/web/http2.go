package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// HTTP2 is the driver of HTTP/2 (RFC 9113), in the words of driver web. A session has one connection to an endpoint, and its ops in flight are the
// connection's streams. Without TLS, the server must know that it gets HTTP/2; over TLS, ALPN says so. Its zero value is ready to use.
type HTTP2 struct{ vocabulary }

var (
	_ driver.Wire       = HTTP2{}
	_ driver.Identifier = HTTP2{}
	_ driver.IdleCloser = HTTP2{}
	_ driver.Negotiator = HTTP2{}
	_ form.Former       = HTTP2{}
	_ driver.Stateful   = (*conn)(nil)
	_ driver.Tagged     = (*conn)(nil)
	_ driver.Aside      = (*conn)(nil)
	_ driver.Owing      = (*conn)(nil)
	_ driver.Leaver     = (*conn)(nil)
)

// Name returns "http2".
func (HTTP2) Name() string { return "http2" }

// CheckForm implements form.Former. A request is a stream, so there is none for a redirect to be followed.
func (h HTTP2) CheckForm(config any, f driver.Form) (form.Wording, error) {
	if words, ok := f.Words.(*Form); ok && words.Request.Follow != 0 {
		return form.Wording{}, errors.New(`follow of driver "http2": leave it out, or write driver = "web"`)
	}
	return h.vocabulary.CheckForm(config, f)
}

// Builtin returns "": no built-in node speaks the protocol.
func (HTTP2) Builtin() string { return "" }

// ALPN implements driver.Negotiator.
func (HTTP2) ALPN() string { return http2.NextProtoTLS }

// IdleTimeout implements driver.IdleCloser: nginx closes connections that are idle for 75 s.
func (HTTP2) IdleTimeout() time.Duration { return time.Minute }

// NewCodec looks up the secrets.
func (HTTP2) NewCodec(link driver.Link) (driver.Codec, error) {
	h := &hub{link: link, worded: map[string]*client{}, newest: map[place]*conn{}, reader: newFields()}
	_, err := h.word(link.Endpoint)
	return &conn{hub: h}, err
}

// Identify sends HEAD /. The status does not matter: servers identify themselves in the Server header.
func (HTTP2) Identify(ctx context.Context, c net.Conn, link driver.Link) (map[string]string, error) {
	cfg, err := driver.ConfigOf[*Config]("http2", link.Config)
	if err != nil {
		return nil, err
	}
	scheme := "http://"
	if link.TLS {
		scheme = "https://"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, scheme+host(cfg, link.Endpoint)+"/", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "loadgen")
	response, err := RoundTrip(c, r)
	if err != nil {
		return nil, fmt.Errorf("ask for HEAD /: %w", err)
	}
	return identity(response.Header.Get("Server")), nil
}

// RoundTrip exchanges the head of a response for a request, over a connection of its own.
func RoundTrip(c net.Conn, r *http.Request) (response *http.Response, err error) {
	dial := func(context.Context, string, string) (net.Conn, error) { return c, nil }
	t := &http.Transport{DialContext: dial, DialTLSContext: dial, DisableCompression: true, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	defer t.CloseIdleConnections()
	response, err = t.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: it does not speak HTTP/2 at this port, or needs TLS: write driver = \"web\", or tls {} in the target", err)
	}
	_ = response.Body.Close() // nobody reads it
	return response, nil
}
