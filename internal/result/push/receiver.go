package push

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
)

// Receiver is a server that series are sent to.
type Receiver struct {
	url     *url.URL
	Headers http.Header    // further headers of each request
	Token   string         // bearer token; "" for none
	CAs     *x509.CertPool // nil for those of the system
}

// NewReceiver returns the receiver at a URL. It refuses one that holds a password, or no path.
func NewReceiver(text string) (*Receiver, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it does not parse: write a URL such as https://prometheus.example:9090/api/v1/write")
	case u.User != nil:
		return nil, errors.New("the URL holds a user or a password, which others on this machine can see: put a token into a file and name it with --remote-write-token-file")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%s does not begin with http:// or https:// and a host: write a URL such as https://prometheus.example:9090/api/v1/write", text)
	case strings.Trim(u.Path, "/") == "":
		return nil, fmt.Errorf("%s has no path: Prometheus receives at %s://%s/api/v1/write, others elsewhere", text, u.Scheme, u.Host)
	}
	return &Receiver{url: u, Headers: http.Header{}}, nil
}

var (
	headerName  = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	headerValue = regexp.MustCompile(`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`)
)

// reserved are headers that the protocol, the connection or the token set.
var reserved = []string{"Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Transfer-Encoding", "X-Prometheus-Remote-Write-Version"}

// Header adds a header, written as "Name: value".
func (r *Receiver) Header(text string) error {
	name, value, _ := strings.Cut(text, ":")
	name, value = http.CanonicalHeaderKey(name), strings.TrimSpace(value)
	switch {
	case !headerName.MatchString(name) || !headerValue.MatchString(value):
		return fmt.Errorf("%q is not a header: write a name, a colon and a value, such as 'X-Scope-OrgID: team'", text)
	case name == "Authorization":
		return errors.New("others on this machine can see what is in Authorization: put the token into a file and name it with --remote-write-token-file")
	case slices.Contains(reserved, name):
		return fmt.Errorf("%s is set by the protocol: leave it out", name)
	}
	r.Headers.Add(name, value)
	return nil
}

// Check refuses to send the token in cleartext to another machine, and a CA for a URL that is not https.
func (r *Receiver) Check() error {
	if r.url.Scheme == "https" {
		return nil
	}
	if r.CAs != nil {
		return fmt.Errorf("%s is not https, so no CA is asked about it: write https://, or leave --remote-write-ca out", r)
	}
	at, err := netip.ParseAddr(r.url.Hostname())
	if local := r.url.Hostname() == "localhost" || err == nil && at.IsLoopback(); r.Token != "" && !local {
		return fmt.Errorf("%s is not https, so the token would cross the network in cleartext: write https://", r)
	}
	return nil
}

// String returns the URL without its query, which may hold secrets.
func (r *Receiver) String() string {
	return (&url.URL{Scheme: r.url.Scheme, Host: r.url.Host, Path: r.url.Path}).String()
}

// Bounds of a request. A receiver's answer, of which a reason is shown, is cut off after maxAnswer bytes; one with a longer
// head than maxHead is an error.
const (
	maxSeries = 2000 // in a request
	maxAnswer = 512
	maxHead   = 64 << 10
	waitLeast = 100 * time.Millisecond // before the first retry; it doubles
	waitMost  = time.Second
	maxAfter  = 60 // longest Retry-After that is waited for, in seconds
)

// sender is the transport of one receiver's requests, one at a time.
type sender struct {
	to     *Receiver
	http   *http.Transport
	status int // status of the last answer; 0 if the last request got none
}

func newSender(to *Receiver) *sender {
	return &sender{to: to, http: &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: to.CAs, MinVersion: tls.VersionTLS12},
		MaxIdleConns:    1,

		MaxResponseHeaderBytes: maxHead,
	}}
}

// api returns a client of the receiver. It tries again, if that may help, until a request's context ends.
func (s *sender) api() (*remote.API, error) {
	client := &http.Client{
		Transport:     s,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // another host would get the headers
	}
	return remote.NewAPI(s.to.url.String(), remote.WithAPIPath(""), remote.WithAPIHTTPClient(client),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: waitLeast, Max: waitMost}))
}

// RoundTrip adds headers to a request, and bounds what its answer makes the client read and wait for.
func (s *sender) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, values := range s.to.Headers {
		request.Header[name] = values
	}
	request.Header.Set("User-Agent", "loadgen")
	if s.to.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.to.Token)
	}
	answer, err := s.http.RoundTrip(request)
	if err != nil {
		if request.Context().Err() == nil {
			s.status = 0
		}
		return nil, err
	}
	s.status = answer.StatusCode
	answer.Body = &cut{Reader: io.LimitReader(answer.Body, maxAnswer), Closer: answer.Body}
	if after, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || after < 0 || after > maxAfter {
		answer.Header.Del("Retry-After")
	}
	return answer, nil
}

// cut is a body whose rest is not read.
type cut struct {
	io.Reader
	io.Closer
}
