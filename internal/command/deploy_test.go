package command_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/servertest"
)

// secretOf writes the files of a printed Secret to a directory, as they are mounted.
func secretOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"authority.pem", "token", "authority.crt", "scrape"} {
		_, rest, found := strings.Cut(string(b), "\n  "+name+": \"")
		require.True(t, found, name)
		text, _, _ := strings.Cut(rest, "\"\n")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, `\n`, "\n")), 0o440))
	}
	return dir
}

// scraped is what a coordinator's page says to a Prometheus that has the Secret's token and certificate.
func scraped(t *testing.T, coordinator *process, credentials string) string {
	t.Helper()
	port := securePage.FindStringSubmatch(eventually(t, coordinator, securePage))[1]
	root, err := os.ReadFile(filepath.Join(credentials, "authority.crt"))
	require.NoError(t, err)
	token, err := os.ReadFile(filepath.Join(credentials, "scrape"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(root))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+string(token))
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
	defer client.CloseIdleConnections()
	reply, err := client.Do(request)
	require.NoError(t, err)
	defer reply.Body.Close()
	require.Equal(t, http.StatusOK, reply.StatusCode)
	page, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return string(page)
}

// TestPodsOfAJob does what the manifests' pods do, each with its own state: they find each other by the Secret, and the first one has the result.
func TestPodsOfAJob(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	dir := t.TempDir()
	plan, secret := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "secret.yaml")
	require.NoError(t, os.WriteFile(plan, []byte(fixedPlan), 0o600))
	printed := start(t, command(t, "deploy", "kubernetes", plan, "--workers", "2", "--credentials", secret, "--pod-monitor", "-var", nodes(node.addr)))
	require.Zero(t, printed.wait(60*time.Second), "%s", &printed.stderr)
	require.Contains(t, printed.stdout.String(), "kind: Job")
	require.Contains(t, printed.stdout.String(), strconv.Quote("--var="+nodes(node.addr)))
	require.NotContains(t, printed.stdout.String(), "ReadWriteMany")
	info, err := os.Stat(secret)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	again := start(t, command(t, "deploy", "kubernetes", plan, "--workers", "2", "--credentials", secret, "-var", nodes(node.addr)))
	require.Equal(t, 2, again.wait(60*time.Second))
	require.Contains(t, again.stderr.String(), "already exists")
	require.Empty(t, again.stdout.String())

	credentials := secretOf(t, secret)
	runs := t.TempDir()
	var pods []*process
	for i := range 3 {
		cmd := command(t, "deploy", "pod", fmt.Sprintf("--index=%d", i), "--workers=2", "--coordinator=localhost:7464", "--credentials="+credentials, "--runs="+runs, "--page=0.0.0.0:0", "--var="+nodes(node.addr), plan)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir())
		pods = append(pods, start(t, cmd))
		if i == 0 { // the run does not begin without the others
			require.Contains(t, scraped(t, pods[0], credentials), "loadgen_")
		}
	}
	requireOneRun(t, pods, runs)

	certificates := mounted(t)
	runs, pods = t.TempDir(), nil
	for i := range 3 {
		cmd := command(t, "deploy", "pod", fmt.Sprintf("--index=%d", i), "--workers=2", "--coordinator=localhost:7464", "--certificates="+certificates, "--runs="+runs, "--var="+nodes(node.addr), plan)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir())
		pods = append(pods, start(t, cmd))
	}
	requireOneRun(t, pods, runs)
	require.NotContains(t, pods[0].stderr.String(), "--token")
}

// mounted is a directory as cert-manager's Secrets are mounted by the manifests.
func mounted(t *testing.T) string {
	t.Helper()
	dir, authority := t.TempDir(), servertest.NewAuthority(t)
	for _, role := range []string{"coordinator", "worker"} {
		cert := authority.Issue("localhost", time.Hour, "loadgen://role/"+role)
		require.NoError(t, os.Mkdir(filepath.Join(dir, role), 0o700))
		for name, path := range map[string]string{"ca.crt": authority.CA, "tls.crt": cert.Cert, "tls.key": cert.Key} {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, role, name), b, 0o400))
		}
	}
	return dir
}

// requireOneRun waits for the pods, of which the first has the result.
func requireOneRun(t *testing.T, pods []*process, runs string) {
	t.Helper()
	require.Contains(t, []int{exit.OK, exit.Invalid}, pods[0].wait(60*time.Second), "%s%s", &pods[0].stdout, &pods[0].stderr)
	require.Contains(t, pods[0].stderr.String(), "2 of 2 workers: worker-1, worker-2")
	for _, p := range pods[1:] {
		require.Zero(t, p.wait(60*time.Second), "%s", &p.stderr)
	}
	results, err := filepath.Glob(filepath.Join(runs, "*", "result.json"))
	require.NoError(t, err)
	require.Len(t, results, 1)
}
