package servertest

import (
	"os/exec"
	"strings"
	"testing"
)

// Prometheus starts a prometheus with native histograms, the given configuration file and its own database on a free loopback port, and returns its
// address once it answers queries. It is killed at the end of the test.
func Prometheus(t testing.TB, config string) (addr string) {
	t.Helper()
	return startPrometheus(t, local(t).Addr, "--config.file="+config, "--storage.tsdb.path="+t.TempDir()).Addr
}

// RemoteWrite starts a prometheus with native histograms that scrapes nothing and accepts remote writes. again starts it after it was killed, on the
// same port and with its stored data.
func RemoteWrite(t testing.TB) (s *Server, again func()) {
	t.Helper()
	addr, config, dir := local(t).Addr, written(t, "prometheus.yml", ""), t.TempDir()
	run := func() *Server {
		return startPrometheus(t, addr, "--config.file="+config, "--storage.tsdb.path="+dir, "--web.enable-remote-write-receiver")
	}
	return run(), func() { run() }
}

func startPrometheus(t testing.TB, addr string, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, Addr: addr, done: make(chan struct{})}
	s.start(exec.Command(program(t, "prometheus", "prometheus"), append(args, "--enable-feature=native-histograms", "--web.listen-address="+addr, "--log.level=warn")...))
	s.within(startTimeout, func() bool {
		return strings.HasPrefix(answer(addr, "GET /-/ready HTTP/1.0\r\n\r\n", nil), "HTTP/1.0 200 ")
	})
	return s
}

// Promtool runs promtool, which comes with prometheus, and returns its output. If promtool fails, so does the test.
func Promtool(t testing.TB, args ...string) string {
	t.Helper()
	return output(t, program(t, "prometheus", "promtool"), args...)
}
