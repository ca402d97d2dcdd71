package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const briefly = `
plan "briefly" {}
target "t" { driver = "null" }` + tenSmall + `
phase "p" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed { iterations = 1000 }
}
`

// The certificates that docs/security.md makes with openssl let a worker join, over an address of this machine in the place of the page's host. A worker
// without them is told what it lacks.
func TestOwnPKI(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("openssl")
	servertest.Require(t, "openssl", err)
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	_, recipe, found := strings.Cut(string(page), "```sh\nkey=")
	require.True(t, found)
	recipe, _, _ = strings.Cut("key="+recipe, "```")
	require.Contains(t, recipe, "DNS:bench.example")
	dir := t.TempDir()
	shell := exec.CommandContext(t.Context(), "sh", "-euc", strings.ReplaceAll(recipe, "DNS:bench.example", "IP:127.0.0.1"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	own := func(role string) []string {
		return []string{"--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-cert", filepath.Join(dir, role+".pem"), "--tls-key", filepath.Join(dir, role+".key")}
	}
	tm := invite(t, 1, func(args ...string) *load { return begin(t, briefly, args...) }, own("coordinator")...)
	without := start(t, tm.command("worker", "--join", tm.addr, "--name", "w0", "--once"))
	without.until(func() bool {
		return strings.Contains(without.stderr.String(), "something listens there, but does not take this worker") &&
			strings.Contains(without.stderr.String(), "--tls-ca")
	})
	tm.join(tm.addr, own("worker")...)
	r := tm.result(time.Minute)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Equal(t, []string{"w1"}, r.Workers)
}
