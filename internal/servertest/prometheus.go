package servertest

import (
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Prometheus starts a prometheus with native histograms, the given configuration file and its own database on a free loopback port, and returns its
// address once it answers queries. It is killed at the end of the test.
func Prometheus(t testing.TB, config string) (addr string) {
	t.Helper()
	exe := lookPath(t, "prometheus")
	for {
		s := &Server{t: t, done: make(chan struct{})}
		s.Addr = net.JoinHostPort("127.0.0.1", freePort(t))
		s.start(exec.Command(exe, "--enable-feature=native-histograms", "--config.file="+config,
			"--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+s.Addr, "--log.level=warn"))
		if s.answersHTTP("/-/ready") {
			return s.Addr
		}
		s.Kill()
		// Another process can take a free port before the server does.
		if !strings.Contains(s.output.String(), "address already in use") {
			t.Fatalf("prometheus with %s does not answer at %s:\n%s", config, s.Addr, &s.output)
		}
	}
}

// Promtool runs promtool, which comes with prometheus, and returns its output. If promtool fails, so does the test.
func Promtool(t testing.TB, args ...string) string {
	t.Helper()
	output, err := exec.Command(lookPath(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// lookPath returns the path of a program of the part "prometheus".
func lookPath(t testing.TB, name string) string {
	t.Helper()
	exe, err := exec.LookPath(name)
	if err != nil {
		err = errors.New(name + " not found")
	}
	Require(t, "prometheus", err)
	return exe
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
