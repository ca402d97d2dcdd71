// Package web speaks HTTP/1.1. The plan says, op by op, what a request is and which status means which outcome. The defaults suit a plain store of
// keys:
//
//	verb    request                            ok             miss      conflict
//	get     GET /{key}                         200 to 299     404, 410  409, 412
//	put     PUT /{key}, the value its body     200 to 299               409, 412
//	delete  DELETE /{key}                      200 to 299     404, 410  409, 412
//	others  as the plan says                   200 to 299               409, 412
//
// Every other status is an error. A redirect is followed only if the plan says so: it counts as a request that was moved.
//
// Requests are the plan's bytes. Responses are read by github.com/valyala/fasthttp, whose Response can be reused without allocating, within bounds: a
// PUT through it took 36 µs and no allocation, where net/http took 50 µs and 48. Its HostClient is not used: it would be a pool of one connection
// with a cleaning goroutine, and would repeat requests unseen by any ledger. A client here has one connection. It sends a request once the response
// to the previous one has arrived (no pipelining, which servers do badly). If a server has announced that it closes, or has closed while no request
// was outstanding, the client dials again: that counts as a reconnect. The protocol is that of RFC 9110 and 9112.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// Driver is the driver of HTTP/1.1. Its zero value is ready to use.
type Driver struct{ vocabulary }

// vocabulary is what plans write of either version.
type vocabulary struct{}

var (
	_ driver.Dialer     = Driver{}
	_ driver.Identifier = Driver{}
	_ form.Former       = Driver{}
)

// Config holds what a web target takes beside the common attributes.
type Config struct {
	// Host is the Host header of requests. "" stands for the endpoint, without the port if it is the scheme's default, or localhost for a Unix
	// socket.
	Host string `hcl:"host,optional" json:"host"`
	// Authorization is the Authorization header of requests, such as "Bearer …"; nil for none.
	Authorization *driver.Secret `hcl:"authorization,optional" json:"authorization"`
	// Cookies says that scenarios keep the cookies that responses set, and send them.
	Cookies bool `hcl:"cookies,optional" json:"cookies,omitempty"`
	// MaxBody bounds a response's body, in bytes.
	MaxBody driver.Size `hcl:"max_body,optional" json:"max_body"`
	// Status is the path of the servers' status page, which has their figures; "" for /stub_status.
	Status string `hcl:"status,optional" json:"status,omitempty"`
}

const (
	defaultBody = 64 << 20
	mostBody    = 1 << 30
)

// Validate reports every attribute with which no request could be made.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Host) > 255 || strings.ContainsFunc(c.Host, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' }) {
		errs = append(errs, fmt.Errorf("host = %.300q: write a host's name as it stands in a URL, with a port if need be, and nothing else", c.Host))
	}
	if c.MaxBody < 1 || c.MaxBody > mostBody {
		errs = append(errs, fmt.Errorf("max_body = %d: write a size from 1 to 1GiB", int64(c.MaxBody)))
	}
	if c.Status != "" && (c.Status[0] != '/' || len(c.Status) > 1024 || strings.ContainsFunc(c.Status, func(r rune) bool { return r <= ' ' || r >= 0x7f })) {
		errs = append(errs, fmt.Errorf("status = %.300q: write the path of a page, such as %q", c.Status, "/server-status?auto"))
	}
	return errors.Join(errs...)
}

// Held returns the most bytes of a body that is checked.
func (c *Config) Held() int64 { return int64(c.MaxBody) }

// Name returns "web".
func (Driver) Name() string { return "web" }

// NewConfig returns a *Config: the endpoint as host, and bodies of up to 64 MiB.
func (vocabulary) NewConfig() any { return &Config{MaxBody: defaultBody} }

// Outcomes says that a get and a delete can miss, and that every verb can conflict.
func (vocabulary) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Get:    {driver.OK, driver.Miss, driver.Conflict},
	driver.Delete: {driver.OK, driver.Miss, driver.Conflict},
	driver.Put:    {driver.OK, driver.Conflict},
}

// Dial connects, and looks up the secret.
func (Driver) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	c, err := newClient(link, link.Endpoint)
	if err != nil {
		return nil, err
	}
	return c, c.connect(ctx)
}

// newClient returns a client of an endpoint, without a connection yet.
func newClient(link driver.Link, endpoint string) (*client, error) {
	cfg, authorization, err := settings(link)
	if err != nil {
		return nil, err
	}
	c := &client{dial: link.Dial, run: link.Run, host: host(cfg, endpoint), authorization: authorization, most: int(cfg.MaxBody), values: link.Values, room: link.Room, cookies: cfg.Cookies}
	if c.origin = "http://" + strings.ToLower(c.host); link.TLS {
		c.origin = "https://" + strings.ToLower(c.host)
	}
	if authorization != "" {
		c.secrets = []string{authorization}
	}
	return c, c.word(link.Forms, link.Secrets)
}

// settings returns a link's config, and the secret that it names; "" if it names none.
func settings(link driver.Link) (cfg *Config, authorization string, err error) {
	if cfg, err = driver.ConfigOf[*Config]("web", link.Config); err != nil {
		return nil, "", err
	}
	if authorization, err = link.Secret(cfg.Authorization); err != nil {
		return nil, "", fmt.Errorf("authorization: %w", err)
	}
	if !plain(authorization) {
		return nil, "", fmt.Errorf("authorization: secret %q holds what no header may: write printable characters on one line", cfg.Authorization.Name)
	}
	return cfg, authorization, nil
}

// host returns the Host header for an endpoint.
func host(cfg *Config, endpoint string) string {
	if cfg.Host != "" {
		return cfg.Host
	}
	if strings.HasPrefix(endpoint, "unix:") {
		return "localhost"
	}
	name, port, _ := net.SplitHostPort(endpoint)
	name, _, _ = strings.Cut(name, "%") // a zone means something on this machine alone (RFC 6874, section 4)
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port != "80" && port != "443" {
		name += ":" + port
	}
	return name
}

// Identify sends HEAD /. The status does not matter: servers identify themselves in the Server header.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	cfg, err := driver.ConfigOf[*Config]("web", link.Config)
	if err != nil {
		return nil, err
	}
	var response fasthttp.Response
	err = driver.Interruptible(ctx, conn, func() error {
		if _, err := fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nUser-Agent: loadgen\r\nConnection: close\r\n\r\n", host(cfg, link.Endpoint)); err != nil {
			return err
		}
		c := client{conn: conn, in: newReader(conn)}
		if err := c.await(); err != nil {
			return err
		}
		_, err := readHead(&response.Header, c.in, conn)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask for HEAD /: %w: it is not an HTTP/1.1 server, or needs TLS: then write tls {} in the target", err)
	}
	return identity(string(response.Header.Server())), nil
}

// identity reads a Server header.
func identity(server string) map[string]string {
	name, version, _ := strings.Cut(server, "/")
	if name == "" {
		return map[string]string{driver.Note: "the server says nothing of itself: its responses have no Server header"}
	}
	version, _, _ = strings.Cut(version, " ")
	id := map[string]string{"server": cut(name, 100)}
	if version != "" {
		id["version"] = cut(version, 100)
	} else {
		id[driver.Note] = "the server does not tell its version"
	}
	return id
}

// cut shortens a server's words.
func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "?") }
