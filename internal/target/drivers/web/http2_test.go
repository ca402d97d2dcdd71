package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// newOracle2 is newOracle over HTTP/2.
func newOracle2(t *testing.T) (*oracle, string) {
	o := &oracle{keys: map[string][]byte{}, count: map[string]int{}}
	s := httptest.NewUnstartedServer(o)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return o, s.Listener.Addr().String()
}

func TestHTTP2Conformance(t *testing.T) {
	_, addr := newOracle2(t)
	drivertest.Run(t, drivertest.Suite{Driver: HTTP2{}, Dial: dialTo(addr), Note: "the server says nothing of itself", Unordered: true})
}

func TestHTTP2ConformanceOfNginx(t *testing.T) {
	s := servertest.Nginx(t, 0, nil, "http2")
	drivertest.Run(t, drivertest.Suite{Driver: HTTP2{}, Dial: dialTo(s.Addr), TextKeys: true, MaxKey: 250, Unordered: true})
}
