package command_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// The first plan also works for values of 1 MiB, both on a user's own server and on a built-in node, which once had room for 63 of its 10,000 keys,
// so that most gets missed.
func TestStarterWithLargeValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "starter.hcl")
	wrote := start(t, command(t, "plan", "init", path))
	require.Zero(t, wrote.wait(60*time.Second), "%s", &wrote.stderr)
	large := []string{"-var", "size=1MiB", "-var", "duration=300ms"}
	for name, more := range map[string][]string{
		"built-in": nil,
		"redis":    {"-var", `endpoints=["` + servertest.Redis(t) + `"]`, "-var", "keys=200"},
	} {
		t.Run(name, func(t *testing.T) {
			check := start(t, command(t, append(append([]string{"plan", "check", path}, large...), more...)...))
			require.Zero(t, check.wait(60*time.Second), "%s", &check.stderr)
			require.NotContains(t, check.stdout.String(), "evict")
			r := beginFile(t, path, append(large, more...)...).result(time.Minute)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			get := r.Phase["closed"].Op["get"]
			require.Positive(t, get.OK)
			require.Equal(t, get.Due, get.OK)
			require.Zero(t, r.Phase["fill"].Op["put"].Due-r.Phase["fill"].Op["put"].OK)
		})
	}
}

// The plan that is written for a driver and a server runs against that server as it is, and takes its keys with it where it is told to.
func TestStartersOfServers(t *testing.T) {
	t.Parallel()
	for driver, at := range map[string]func(t *testing.T) (endpoint string, vars []string){
		"redis":     func(t *testing.T) (string, []string) { return servertest.Redis(t), nil },
		"memcached": func(t *testing.T) (string, []string) { return servertest.Memcached(t), nil },
		"postgres": func(t *testing.T) (string, []string) {
			u, err := url.Parse(servertest.Postgres(t))
			require.NoError(t, err)
			return u.Host, []string{"-var", "user=loadgen"}
		},
		"web": func(t *testing.T) (string, []string) {
			server := servertest.Nginx(t, 0, nil)
			put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+server.Addr+"/page", strings.NewReader("text"))
			require.NoError(t, err)
			answer, err := http.DefaultClient.Do(put)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			return server.Addr, []string{"-var", "path=/page"}
		},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			endpoint, vars := at(t)
			path := filepath.Join(t.TempDir(), "starter.hcl")
			wrote := start(t, command(t, "plan", "init", "--driver", driver, "--endpoint", endpoint, path))
			require.Zero(t, wrote.wait(60*time.Second), "%s", &wrote.stderr)
			op := "page"
			if driver != "web" {
				op, vars = "get", append(vars, "-var", "keys=1k", "-var", "clear=true")
			}
			r := beginFile(t, path, append(vars, "-var", "duration=500ms")...).result(time.Minute)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			asked := r.Phase["closed"].Op[op]
			require.Positive(t, asked.OK)
			require.Equal(t, asked.Due, asked.OK)
			if driver != "web" {
				require.EqualValues(t, 1000, r.Phase["clear"].Op["delete"].OK)
			}
		})
	}
}
