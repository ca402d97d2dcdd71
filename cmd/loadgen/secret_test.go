package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const secretPlan = `
plan "secret" {}
variable "nodes" {
	type    = list(string)
	default = []
}
target "t" {
	driver    = "redis"
	endpoints = var.nodes
	password  = secret("CACHE")
}
dataset "items" {
	keys { count = 100 }
	values { size = 10 }
}
phase "fill" {
	target  = target.t
	dataset = dataset.items
	populate {}
}
`

// canary is a password that stands nowhere else.
const canary = "canary-7f3a-9c41"

// TestPasswordStandsNowhere runs a plan with a right, a wrong and a needless password. It is in no file of the run, in no output and in no
// error, which name the endpoint and what it refused.
func TestPasswordStandsNowhere(t *testing.T) {
	guarded := servertest.Redis(t, "--requirepass", canary)
	other := servertest.Redis(t, "--requirepass", "another")
	open := servertest.Redis(t)
	for _, tt := range []struct {
		name, addr, want string
		code             int
	}{
		{"right", guarded, "", run.ExitOK},
		{"wrong", other, "n0 (" + other + "): ask redis what it is: AUTH: server says WRONGPASS ", run.ExitFailed},
		{"needless", open, "n0 (" + open + "): ask redis what it is: AUTH: server says ERR ", run.ExitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := beginSecret(t, tt.addr)
			r := l.result(30 * time.Second)
			require.Equal(t, tt.code, r.ExitCode, r.Verdict.Reasons)
			if tt.want != "" {
				require.Len(t, r.Verdict.Reasons, 1)
				require.Contains(t, r.Verdict.Reasons[0], tt.want)
			}
			require.NotContains(t, l.stdout.String(), canary)
			require.NotContains(t, l.stderr.String(), canary)
			files := 0
			require.NoError(t, filepath.WalkDir(filepath.Dir(l.out), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				files++
				b, err := os.ReadFile(path)
				require.NotContains(t, string(b), canary, path)
				return err
			}))
			require.Equal(t, 4, files, "plan, snapshots and result, and the result once more")
		})
	}
}

// beginSecret runs the plan with the canary for its secret, and everything said that can be.
func beginSecret(t *testing.T, addr string) *load {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(secretPlan), 0o600))
	l := &load{runs: filepath.Join(dir, "runs"), out: filepath.Join(dir, "run.json")}
	cmd := command(t, "coordinator", "run", path, "--runs", l.runs, "--out", l.out, "--debug", "-var", nodes(addr))
	cmd.Env = append(cmd.Env, "LOADGEN_SECRET_CACHE="+canary)
	l.process = start(t, cmd)
	return l
}

// TestPasswordOfATarget guards a built-in node that was started by hand.
func TestPasswordOfATarget(t *testing.T) {
	cmd := command(t, "target", "serve", "--listen", "127.0.0.1:0", "--password-env", "NODE_PASSWORD")
	cmd.Env = append(cmd.Env, "NODE_PASSWORD="+canary)
	node := serving(start(t, cmd))
	require.Equal(t, run.ExitOK, beginSecret(t, node.addr).result(30*time.Second).ExitCode)
	refused := begin(t, millions, "-var", nodes(node.addr)).result(30 * time.Second)
	require.Equal(t, run.ExitFailed, refused.ExitCode)
	require.Contains(t, refused.Verdict.Reasons[0], "NOAUTH")
}
