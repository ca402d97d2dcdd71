package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
)

// form makes a cluster of nodes, which meet at a host and get a part of the slots each. links are connections to them.
func form(t *testing.T, host string, servers []*servertest.Server, links []*link) {
	t.Helper()
	for i, l := range links {
		require.Equal(t, "OK", l.ask("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)))
		first, last := i*op.NumSlots/len(links), (i+1)*op.NumSlots/len(links)-1
		require.Equal(t, "OK", l.ask("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)))
		if i > 0 {
			introduce(t, links[0], l, host, port(servers[0].Addr))
		}
	}
	require.Eventually(t, func() bool {
		for _, l := range links {
			info := l.ask("CLUSTER", "INFO")
			for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", len(links)), "cluster_slots_ok:16384"} {
				if !strings.Contains(info, want) {
					return false
				}
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond)
}

// TestClusterOverTLS loads a cluster that only speaks TLS and requires a password. Its nodes share one certificate, for a name.
func TestClusterOverTLS(t *testing.T) {
	t.Parallel()
	const password = "hush"
	a := servertest.NewAuthority(t)
	shows, client := a.Issue("cache.example.org", time.Hour), a.Issue("client.example.org", time.Hour)
	var servers []*servertest.Server
	var links []*link
	for range 3 {
		s := servertest.RedisNodeTLS(t, a, shows, "--cluster-node-timeout", "5000", "--requirepass", password)
		l := secureLink(t, s.Addr, a)
		require.Equal(t, "OK", l.ask("AUTH", password))
		servers, links = append(servers, s), append(links, l)
	}
	form(t, "127.0.0.1", servers, links)
	target := fmt.Sprintf(`cluster = true
		password = secret("CACHE")
		tls {
			ca          = %q
			cert        = %q
			key         = %q
			server_name = var.name
		}`, a.CA, client.Cert, client.Key)
	secure := "variable \"name\" { default = \"cache.example.org\" }\n" + strings.Replace(clusterPlan, "cluster   = true", target, 1)
	secure = strings.Replace(secure, "executor  = var.executor", "", 1)
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(patient(secure)), 0o600))
	beginWith := func(t *testing.T, secret string, vars ...string) *load {
		return beginBy(t, func(args ...string) *exec.Cmd {
			cmd := command(t, args...)
			cmd.Env = append(cmd.Env, "LOADGEN_SECRET_CACHE="+secret)
			return cmd
		}, path, append(vars, "-var", nodes(servers[1].Addr))...)
	}

	t.Run("slots move", func(t *testing.T) {
		l := beginWith(t, password, "-var", "duration=10s")
		l.underWay()
		m := &migration{t: t, from: links[0], to: links[2], other: links[1], auth: []string{"AUTH", password}}
		m.meet(servers[2].Addr)
		m.moveSome(10, 0)
		r := l.whole()
		requireNoErrors(t, r)
		requireAll(t, r)
		moved, _ := redirects(r.Phase["mixed"])
		require.Positive(t, moved)
		require.True(t, r.Phase["mixed"].Target.TLS)
		for _, s := range servers {
			require.Contains(t, r.Environment.Servers["cache"][s.Addr]["tls"], "TLS 1.3, TLS_")
		}
	})
	t.Run("no name is given", func(t *testing.T) {
		r := beginWith(t, password, "-var", "name=").result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "127.0.0.1")
		require.Contains(t, r.Verdict.Reasons[0], `tls { server_name = "NAME" }`)
	})
	t.Run("wrong password", func(t *testing.T) {
		r := beginWith(t, "loud").result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "WRONGPASS")
		require.NotContains(t, r.Verdict.Reasons[0], "loud")
	})
}

// TestClusterUnderOtherNames loads nodes that meet at an IPv6 address, and redirect requests by that address, by a host name, or by a port alone.
func TestClusterUnderOtherNames(t *testing.T) {
	t.Parallel()
	var servers []*servertest.Server
	var links []*link
	for range 3 {
		s := servertest.RedisNode(t, "--bind", "127.0.0.1", "::1", "--cluster-node-timeout", "5000", "--cluster-announce-hostname", "localhost")
		servers, links = append(servers, s), append(links, dial(t, s.Addr))
	}
	form(t, "::1", servers, links)
	first := 0
	for _, kind := range []string{"ip", "hostname", "unknown-endpoint"} {
		t.Run(kind, func(t *testing.T) {
			for _, s := range servers {
				require.Equal(t, "OK", ask(t, s.Addr, "CONFIG", "SET", "cluster-preferred-endpoint-type", kind))
			}
			l := begin(t, clusterPlan, "-var", nodes("[::1]:"+port(servers[1].Addr)), "-var", "duration=10s")
			l.underWay()
			first = newMigration(t, servers[0], servers[2], servers[1]).moveSome(5, first)
			r := l.whole()
			requireNoErrors(t, r)
			requireAll(t, r)
			moved, _ := redirects(r.Phase["mixed"])
			require.Positive(t, moved)
			require.Len(t, r.Phase["mixed"].Target.Endpoints, 3)
			for _, s := range servers {
				require.Contains(t, r.Phase["mixed"].Target.Endpoints, "[::1]:"+port(s.Addr))
			}
		})
	}
}
