package servertest

import (
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Prometheus starts a prometheus with native histograms, the given configuration file and its own database on a free loopback port, and returns its
// address once it answers queries. It is killed at the end of the test.
func Prometheus(t testing.TB, config string) (addr string) {
	t.Helper()
	for {
		if s := startPrometheus(t, net.JoinHostPort("127.0.0.1", freePort(t)), "--config.file="+config, "--storage.tsdb.path="+t.TempDir()); s != nil {
			return s.Addr
		}
	}
}

// RemoteWrite starts a prometheus with native histograms that scrapes nothing and accepts remote writes. again starts it after it was killed, on the
// same port and with its stored data.
func RemoteWrite(t testing.TB) (s *Server, again func()) {
	t.Helper()
	dir := t.TempDir()
	config := written(t, "prometheus.yml", "")
	for {
		addr := net.JoinHostPort("127.0.0.1", freePort(t))
		run := func() *Server {
			return startPrometheus(t, addr, "--config.file="+config, "--storage.tsdb.path="+dir, "--web.enable-remote-write-receiver")
		}
		if s := run(); s != nil {
			return s, func() { require.NotNil(t, run(), "another process has taken the port") }
		}
	}
}

// startPrometheus returns nil if another process has taken the address, which was free, before the server did.
func startPrometheus(t testing.TB, addr string, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, Addr: addr, done: make(chan struct{})}
	s.start(exec.Command(program(t, "prometheus", "prometheus"), append(args, "--enable-feature=native-histograms", "--web.listen-address="+addr, "--log.level=warn")...))
	if s.answersHTTP("/-/ready") {
		return s
	}
	s.Kill()
	if !strings.Contains(s.output.String(), "address already in use") {
		t.Fatalf("prometheus %s does not answer at %s:\n%s", strings.Join(args, " "), addr, &s.output)
	}
	return nil
}

// Promtool runs promtool, which comes with prometheus, and returns its output. If promtool fails, so does the test.
func Promtool(t testing.TB, args ...string) string {
	t.Helper()
	output, err := exec.Command(program(t, "prometheus", "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// answersHTTP waits until the server answers a GET with 200.
func (s *Server) answersHTTP(path string) bool {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		select {
		case <-s.done:
			return false
		case <-time.After(20 * time.Millisecond):
		}
		response, err := client.Get("http://" + s.Addr + path)
		if err != nil {
			continue
		}
		_ = response.Body.Close() // only the status matters
		if response.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}
