package servertest

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WebServer is a running nginx that stores what is put.
type WebServer struct {
	*Server
	log string
}

// Nginx starts an nginx on a free loopback port. It stores bodies of PUT as files, and closes a connection after the given number of requests; never
// if that is 0. It speaks TLS if it is given a certificate. It is killed at the end of the test.
func Nginx(t testing.TB, requests int, shows *Certificate, also ...string) *WebServer {
	t.Helper()
	return startNginx(t, requests, shows, `location / { dav_methods PUT DELETE; create_full_put_path on; }
		location /elsewhere { return 302 /here; }
		location = /stub_status { stub_status; access_log off; }`, "127.0.0.1:1", also...)
}

// Proxy starts an nginx that speaks TLS and HTTP/1.1 or 2, and passes requests on to a server behind it.
func Proxy(t testing.TB, behind string, shows *Certificate) *WebServer {
	t.Helper()
	return startNginx(t, 0, shows, `location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; }`, behind, "http2")
}

func startNginx(t testing.TB, requests int, shows *Certificate, locations, behind string, also ...string) *WebServer {
	t.Helper()
	exe, dir := program(t, "nginx", "nginx"), t.TempDir()
	w := &WebServer{local(t), filepath.Join(dir, "access.log")}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	if requests == 0 {
		requests = 1 << 30
	}
	listen := strings.Join(append([]string{w.Addr}, also...), " ")
	if shows != nil {
		listen += fmt.Sprintf(" ssl;\n\t\tssl_certificate %s;\n\t\tssl_certificate_key %s", shows.Cert, shows.Key)
	}
	config := fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	log_format counted '$request_method $status $request_uri';
	access_log %[2]s counted;
	keepalive_requests %[3]d;
	client_max_body_size 16m;
	upstream behind { server %[6]s; keepalive 64; }
	server {
		listen %[4]s;
		root %[1]s/data;
		%[5]s
	}
}
`, dir, w.log, requests, listen, locations, behind)
	var secure *tls.Config
	if shows != nil {
		secure = &tls.Config{InsecureSkipVerify: true} // it only talks to the server under test
	}
	w.up(exec.Command(exe, "-c", written(t, "nginx.conf", config), "-p", dir), "HEAD / HTTP/1.0\r\n\r\n", secure)
	return w
}

// Counts returns how many requests the server has had, by method and status: "PUT 201". It waits for the expected number, as the server logs a
// request only after it has answered.
func (w *WebServer) Counts(expected int) map[string]int {
	w.t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(w.log)
		require.NoError(w.t, err)
		counts, all := map[string]int{}, 0
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) == 3 && words[2] != "/" {
				counts[words[0]+" "+words[1]]++
				all++
			}
		}
		if all >= expected || time.Now().After(deadline) {
			return counts
		}
	}
}
