package command_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const secretPlan = `
plan "secret" {}` + anyEndpoints + `
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	password  = secret("CACHE")
}
dataset "items" {
	keys { count = 100 }
	values { size = 10 }
}` + fillItems + `
`

// canary is a password that occurs nowhere else.
const canary = "canary-7f3a-9c41"

// TestPasswordStandsNowhere runs a plan with a right, a wrong and an unneeded password. None appears in any file of the run, output or error. Errors
// name the endpoint and what it refused.
func TestPasswordStandsNowhere(t *testing.T) {
	t.Parallel()
	guarded := servertest.Redis(t, "--requirepass", canary)
	other := servertest.Redis(t, "--requirepass", "another")
	open := servertest.Redis(t)
	for _, tt := range []struct {
		name, addr, want string
		completeness     run.Completeness
	}{
		{"right", guarded, "", run.Complete},
		{"wrong", other, "n0 (" + other + "): ask redis what it is: AUTH: server says WRONGPASS ", run.Failed},
		{"needless", open, "n0 (" + open + "): ask redis what it is: AUTH: server says ERR ", run.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := beginSecret(t, tt.addr)
			r := l.result(60 * time.Second)
			require.Equal(t, tt.completeness, r.Verdict.Completeness, r.Verdict.Reasons)
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
			want := 4 // plan, snapshots and result, and the result once more
			if tt.completeness == run.Complete {
				want++ // what the server counted
			}
			require.Equal(t, want, files)
		})
	}
}

// beginSecret runs the plan with the canary as its secret, and with all possible output.
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
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte(canary+"\n"), 0o600))
	node := serving(start(t, command(t, "target", "serve", "--listen", "127.0.0.1:0", "--password-file", password)))
	beginSecret(t, node.addr).whole()
	refused := begin(t, millions, "-var", nodes(node.addr)).result(60 * time.Second)
	require.Equal(t, exit.Failed, refused.ExitCode)
	require.Contains(t, refused.Verdict.Reasons[0], "NOAUTH")
}

// TestSecretsGoWhereTheWorkerSays runs a plan with a password on remote workers: a worker sends it to the places of its --secret and nowhere else,
// whatever the plan says, and says so before any load.
func TestSecretsGoWhereTheWorkerSays(t *testing.T) {
	t.Parallel()
	guarded := servertest.Redis(t, "--requirepass", canary)
	port := guarded[strings.LastIndexByte(guarded, ':')+1:]
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var taken text
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for {
			conn, err := thief.Accept()
			if err != nil {
				return
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = io.Copy(&taken, conn)
			_ = conn.Close()
		}
	}()
	refusal := func(addr string) string {
		return `secret "CACHE": it is not to go to ` + addr + ": to let it, start the worker with --secret CACHE=" + addr
	}
	for name, c := range map[string]struct {
		addr, refusal string
		args          []string
	}{
		"a network":        {guarded, "", []string{"--secret", "CACHE=127.0.0.0/8:" + port}},
		"one of several":   {guarded, "", []string{"--secret", "CACHE=10.0.0.0/8:6379,localhost:" + port}},
		"a name":           {guarded, "", []string{"--secret", "CACHE=ip6-localhost:1", "--secret", "CACHE=127.0.0.1:1-65535"}},
		"no binding":       {guarded, refusal(guarded), nil},
		"another port":     {guarded, refusal(guarded), []string{"--secret", "CACHE=127.0.0.1:1"}},
		"another name":     {guarded, refusal(guarded), []string{"--secret", "OTHER=127.0.0.1:" + port}},
		"another network":  {guarded, refusal(guarded), []string{"--secret", "CACHE=10.0.0.0/8:" + port}},
		"somebody's place": {thief.Addr().String(), refusal(thief.Addr().String()), []string{"--secret", "CACHE=127.0.0.1:" + port}},
	} {
		t.Run(name, func(t *testing.T) {
			tm := invite(t, 1, func(args ...string) *load { return begin(t, secretPlan, args...) }, "-var", nodes(c.addr))
			worker := tm.command(append([]string{"worker", "--join", tm.addr, "--name", "w1", "--once"}, c.args...)...)
			worker.Env = append(worker.Env, "LOADGEN_SECRET_CACHE="+canary)
			start(t, worker)
			r := tm.result(60 * time.Second)
			if c.refusal == "" {
				require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
				return
			}
			require.Equal(t, exit.Failed, r.ExitCode)
			require.Contains(t, r.Verdict.Reasons[0], c.refusal)
			require.Nil(t, r.Phase["fill"], "nothing was sent")
		})
	}
	require.NoError(t, thief.Close())
	<-heard
	require.NotContains(t, taken.String(), canary)
}
