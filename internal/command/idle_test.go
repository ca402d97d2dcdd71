package command_test

import (
	"crypto/tls"
	"fmt"
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

// TestIdleConnectionsThatTheServerClosed cost reconnects and no op: each of four sessions asks every 400 ms, and the server waits for 50 ms.
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

// idlePlan gets ten times a second from a target with these attributes, in turn over that many sessions.
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
		rate     = "10/s"
		duration = "2s"
		sessions = %d
		arrivals = "constant"
	}
}
`, target, sessions)
}
