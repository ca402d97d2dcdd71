package command_test

import (
	"bufio"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/servertest"
)

const securePlan = `
plan "secure" {}
variable "driver" {}
variable "node" {}
variable "ca" { default = "" }
variable "cert" { default = "" }
variable "key" { default = "" }
variable "name" { default = "" }
target "t" {
	driver    = var.driver
	endpoints = [var.node]
	tls {
		ca          = var.ca
		cert        = var.cert
		key         = var.key
		server_name = var.name
	}
}
dataset "items" {
	keys { count = 500 }
	values { size = 1000 }
}` + fillItems + `
phase "mixed" {
	target  = target.t
	dataset = dataset.items
	ops     = {
		get = 3
		put = 1
	}
	closed {
		sessions   = 4
		pipeline   = 8
		iterations = 1000
	}
}
`

// secureLink connects to a server as a client of its authority.
func secureLink(t testing.TB, addr string, a *servertest.Authority) *link {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, a.Client())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(60*time.Second)))
	return &link{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// secured is how to start a server of each kind over TLS, and how to read its counters.
var secured = map[string]struct {
	start func(t testing.TB, a *servertest.Authority, shows servertest.Certificate, options ...string) *servertest.Server
	count func(t testing.TB, l *link) calls
}{
	"redis":     {servertest.StartRedisTLS, func(t testing.TB, l *link) calls { return parseCalls(t, l.ask("INFO", "commandstats")) }},
	"memcached": {servertest.StartMemcachedTLS, func(t testing.TB, l *link) calls { return callsOf(t, l.stats()) }},
}

// TestServersCountWhatWasSentOverTLS compares the servers' own counters with the ledger of requests.
func TestServersCountWhatWasSentOverTLS(t *testing.T) {
	t.Parallel()
	for driver, kind := range secured {
		t.Run(driver, func(t *testing.T) {
			a := servertest.NewAuthority(t)
			client := a.Issue("client.example.org", time.Hour)
			s := kind.start(t, a, a.Issue("127.0.0.1", time.Hour))
			l := secureLink(t, s.Addr, a)
			before := kind.count(t, l)
			r := begin(t, securePlan, "-var", "driver="+driver, "-var", "node="+s.Addr,
				"-var", "ca="+a.CA, "-var", "cert="+client.Cert, "-var", "key="+client.Key).whole()
			after := kind.count(t, l)
			sent := sums(r)[s.Addr]
			require.EqualValues(t, 4500, sent["get"].Sent+sent["put"].Sent)
			for _, verb := range []string{"get", "put"} {
				require.Equal(t, sent[verb].Sent, after[verb]-before[verb], verb)
				require.Equal(t, sent[verb].Sent, sent[verb].Answered, verb)
			}
			for _, ph := range r.Phase {
				require.Equal(t, "blocking", ph.Generator.Executor)
				require.True(t, ph.Target.TLS)
			}
			require.Contains(t, r.Environment.Servers["t"][s.Addr]["tls"], "TLS 1.3, TLS_")
		})
	}
}

// TestWhatIsWrongWithTLS shows what a user reads if a server is not trusted, does not trust, or does not exist.
func TestWhatIsWrongWithTLS(t *testing.T) {
	t.Parallel()
	for driver, kind := range secured {
		t.Run(driver, func(t *testing.T) {
			a, other := servertest.NewAuthority(t), servertest.NewAuthority(t)
			client, stranger := a.Issue("client.example.org", time.Hour), other.Issue("client.example.org", time.Hour)
			good := kind.start(t, a, a.Issue("127.0.0.1", time.Hour)).Addr
			named := kind.start(t, a, a.Issue("cache.example.org", time.Hour)).Addr
			old := kind.start(t, a, a.Issue("127.0.0.1", -time.Hour)).Addr
			trusts := []string{"ca=" + a.CA, "cert=" + client.Cert, "key=" + client.Key}
			for _, test := range []struct {
				name, node string
				vars       []string
				want       []string
			}{
				{"server is not trusted", good, []string{"cert=" + client.Cert, "key=" + client.Key}, []string{"signed by unknown authority", `tls { ca = "PATH" }`}},
				{"another authority", good, []string{"ca=" + other.CA}, []string{"signed by unknown authority", `tls { ca = "PATH" }`}},
				{"another name", named, trusts, []string{"127.0.0.1", `tls { server_name = "NAME" }`}},
				{"name given", named, append(trusts, "name=cache.example.org"), nil},
				{"wrong name given", good, append(trusts, "name=elsewhere.example.org"), []string{"elsewhere.example.org", `tls { server_name = "NAME" }`}},
				{"certificate has expired", old, trusts, []string{"expired", "renew the server's certificate"}},
				{"no client certificate", good, []string{"ca=" + a.CA}, []string{"the server may want a client's certificate"}},
				{"stranger's client certificate", good, []string{"ca=" + a.CA, "cert=" + stranger.Cert, "key=" + stranger.Key}, []string{"does not take the client's certificate"}},
				{"no such file", good, []string{"ca=/nowhere/ca.pem"}, []string{"tls, ca: open /nowhere/ca.pem", "paths begin where the plan is"}},
				{"no certificate in it", good, []string{"ca=" + client.Key}, []string{client.Key + " holds no certificate", "PEM"}},
				{"key of another", good, []string{"ca=" + a.CA, "cert=" + client.Cert, "key=" + stranger.Key}, []string{client.Cert, stranger.Key, "private key does not match public key"}},
			} {
				t.Run(test.name, func(t *testing.T) {
					args := []string{"-var", "driver=" + driver, "-var", "node=" + test.node}
					for _, v := range test.vars {
						args = append(args, "-var", v)
					}
					l := begin(t, securePlan, args...)
					if test.want == nil {
						l.clean(60 * time.Second)
						return
					}
					r := l.result(60 * time.Second)
					require.Equal(t, exit.Failed, r.ExitCode)
					require.Len(t, r.Verdict.Reasons, 1)
					for _, want := range test.want {
						require.Contains(t, r.Verdict.Reasons[0], want)
					}
				})
			}
		})
	}
}

// TestPlainServerDoesNotSpeakTLS uses the port of a server without TLS.
func TestPlainServerDoesNotSpeakTLS(t *testing.T) {
	t.Parallel()
	r := begin(t, securePlan, "-var", "driver=redis", "-var", "node="+servertest.Redis(t)).result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Len(t, r.Verdict.Reasons, 1)
	require.Contains(t, r.Verdict.Reasons[0], "TLS")
	require.Contains(t, r.Verdict.Reasons[0], "at this port")
}
