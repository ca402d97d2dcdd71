package command_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

const overSocket = `plan "socket" {}
variable "driver" {}
variable "executor" { default = "event loop" }
variable "path" {}
target "t" {
	driver    = var.driver
	endpoints = ["unix://${var.path}"]
	executor  = var.executor
}
dataset "d" {
	keys { count = 500 }
	values {
		size    = 100
		checked = true
	}
}` + fillD + `
phase "mixed" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 0.5, put = 0.5 }
	closed {
		sessions   = 8
		pipeline   = 4
		iterations = 1000
	}
}
observe "server" {
	server {
		target = target.t
	}
}
observe "process" {
	process { target = target.t }
}
`

// TestUnixSockets loads and observes servers that listen on a path.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	redis := servertest.SocketPath(t)
	servertest.StartRedis(t, "--unixsocket", redis, "--unixsocketperm", "777")
	for driver, path := range map[string]string{"redis": redis, "memcached": servertest.MemcachedSocket(t)} {
		for _, executor := range []string{"event loop", "blocking"} {
			t.Run(driver+", "+executor, func(t *testing.T) {
				r := begin(t, overSocket, "-var", "driver="+driver, "-var", "path="+path, "-var", "executor="+executor).result(60 * time.Second)
				mixed := r.Phase["mixed"]
				require.Equal(t, []string{"unix://" + path}, mixed.Target.Endpoints)
				require.EqualValues(t, 8000, mixed.Op["get"].OK+mixed.Op["put"].OK)
				require.Equal(t, executor, mixed.Generator.Executor)
				require.Nil(t, mixed.Generator.TCP)
				require.NotNil(t, mixed.Observe["process"]["rss_bytes"].Last, r.Phase["mixed"].Nulls)
				for _, row := range mixed.Requests {
					require.Equal(t, "unix://"+path, row.Endpoint)
					require.Equal(t, row.Sent, row.Answered)
				}
				require.NotEmpty(t, mixed.Observe["server"])
			})
		}
	}
}

// TestUnixSocketErrors: what a user reads who cannot connect.
func TestUnixSocketErrors(t *testing.T) {
	left := servertest.SocketPath(t)
	l, err := net.Listen("unix", left)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	tests := map[string]string{
		servertest.SocketPath(t): "no such file or directory: there is no such file where the load runs: start the server",
		left:                     "connection refused: nobody listens there: the server has ended and left the file",
	}
	for path, want := range tests {
		p := begin(t, overSocket, "-var", "driver=redis", "-var", "path="+path)
		require.Equal(t, 6, p.wait(60*time.Second))
		require.Contains(t, strings.Join(strings.Fields(p.stdout.String()), " "), "n0 (unix://"+path+"): connect: "+want)
	}
}

// TestUnixSocketOfSomebodyElse loads as a user who may not write to the socket. Root may, so as root the test starts the load as another user.
func TestUnixSocketOfSomebodyElse(t *testing.T) {
	shut := servertest.SocketPath(t)
	servertest.StartRedis(t, "--unixsocket", shut)
	require.NoError(t, os.Chmod(shut, 0))
	exe, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(exe), 0o755)) // so that others may begin it
	dir := filepath.Dir(servertest.SocketPath(t))          // where everybody may write
	file := filepath.Join(dir, "plan.hcl")
	require.NoError(t, os.WriteFile(file, []byte(overSocket), 0o600))
	require.NoError(t, os.Chmod(file, 0o644))
	cmd := exec.Command(exe, "coordinator", "run", file, "-var", "driver=redis", "-var", "path="+shut, "--runs", filepath.Join(dir, "runs"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	p := start(t, cmd)
	require.Equal(t, 6, p.wait(60*time.Second), "%s%s", &p.stdout, &p.stderr)
	require.Contains(t, strings.Join(strings.Fields(p.stdout.String()), " "),
		"n0 (unix://"+shut+"): connect: permission denied: this user may not write to the socket")
}
