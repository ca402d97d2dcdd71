package command_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestIdleConnectionsThatTheServerClosed cost reconnects and no op: each of four sessions asks every 800 ms, and the server waits for 50 ms.
func TestIdleConnectionsThatTheServerClosed(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	issued := authority.Issue("127.0.0.1", time.Hour)
	certificate, err := tls.LoadX509KeyPair(issued.Cert, issued.Key)
	require.NoError(t, err)
	for name, secure := range map[string]string{"plain": "", "TLS": `tls { ca = "` + authority.CA + `" }`, "socket": ""} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.IdleTimeout = 50 * time.Millisecond
			endpoint := server.Listener.Addr().String()
			switch name {
			case "TLS":
				server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
				server.StartTLS()
			case "socket":
				path := filepath.Join(t.TempDir(), "s")
				at, err := net.Listen("unix", path)
				require.NoError(t, err)
				server.Listener.Close()
				server.Listener, endpoint = at, "unix://"+path
				fallthrough
			default:
				server.Start()
			}
			defer server.Close()
			r := begin(t, idlePlan(`driver = "web"
	endpoints = ["`+endpoint+`"]
	`+secure, 4)).result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			load := r.Phase["load"]
			require.Equal(t, []uint64{20, 20}, []uint64{load.Op["get"].Due, load.Op["get"].Miss}, load.Errors)
			require.Positive(t, load.Reconnects, "on a slow machine gets follow each other so closely that few find their connection closed")
		})
	}
}

// farewell is a server's TLS connection that says it is closed once it has been idle, and leaves the socket open.
type farewell struct{ *tls.Conn }

func (c farewell) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if err != nil {
		_ = c.CloseWrite()                      // the client may have gone
		_, _ = io.Copy(io.Discard, c.NetConn()) // until then
	}
	return n, err
}

// TestIdleConnectionsThatTheServerLeaves are reopened as those that it closes: TLS says that nothing more will come.
func TestIdleConnectionsThatTheServerLeaves(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	issued := authority.Issue("127.0.0.1", time.Hour)
	certificate, err := tls.LoadX509KeyPair(issued.Cert, issued.Key)
	require.NoError(t, err)
	for driver, talk := range map[string]func(net.Conn){
		"redis": (&hostileServer{answer: says("$-1\r\n")}).talk,
		"web": func(conn net.Conn) {
			for in := bufio.NewReader(conn); ; {
				line, err := in.ReadString('\n')
				if err == nil && line == "\r\n" {
					_, err = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				}
				if err != nil {
					return
				}
			}
		},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			addr := servertest.Serve(t, nil, func(conn net.Conn) {
				talk(farewell{tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})})
			})
			r := begin(t, idlePlan(`driver = "`+driver+`"
	endpoints = ["`+addr+`"]
	tls { ca = "`+authority.CA+`" }`, 4)).result(60 * time.Second)
			load := r.Phase["load"]
			require.Equal(t, []uint64{20, 20}, []uint64{load.Op["get"].Due, load.Op["get"].Miss}, load.Errors)
			require.Positive(t, load.Reconnects)
		})
	}
}

// idlePlan gets five times a second from a target with these attributes, in turn over that many sessions. A server that ends connections which have
// idled for 300 ms does so between two gets.
func idlePlan(target string, sessions int) string {
	return fmt.Sprintf(`plan "idle" {}
target "t" {
	%s
}
dataset "d" {
	keys { count = 10 }
	values { size = 24 }
}
phase "load" {
	target      = target.t
	dataset     = dataset.d
	ops         = { get = 1 }
	expect_hits = 0
	open {
		rate     = "5/s"
		duration = "4s"
		sessions = %d
		arrivals = "constant"
	}
}
`, target, sessions)
}
