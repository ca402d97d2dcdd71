package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/selfcheck"
	"github.com/loadgen/loadgen/internal/load/bareclient"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestSelfcheck runs it where other tests have real servers, too. Whether all answers are right depends on this machine and what else runs on it; but
// the exit code must say which, and wrong answers must come with a reason.
func TestSelfcheck(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	p := start(t, command(t, "selfcheck", "--json"))
	code := p.wait(5 * time.Minute)
	var r selfcheck.Result
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &r), &p.stderr)
	t.Logf("%v\n%s", p.ended.Sub(p.began), &p.stdout)
	require.Len(t, r.Answers, 6)
	right := true
	for _, c := range r.Answers {
		right = right && c.OK
	}
	require.Equal(t, right, r.OK)
	require.Equal(t, map[bool]int{true: 0, false: 4}[right], code)
	require.Positive(t, r.Floors.GeneratorNS)
	require.Positive(t, r.Floors.P50)
	require.NotNil(t, r.Machine.OtherCPUs)
	require.True(t, right || len(r.Doubts) > 0, "something came out wrong, and nothing that would explain it was found")
}

// TestSelfcheckStops interrupts it once its nodes have been started.
func TestSelfcheckStops(t *testing.T) {
	p := start(t, command(t, "selfcheck"))
	p.until(func() bool {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
		require.NoError(t, err)
		nodes := 0
		for _, path := range lists {
			b, err := os.ReadFile(path)
			if err == nil { // else the thread has ended
				nodes += len(strings.Fields(string(b)))
			}
		}
		return nodes == 6
	})
	p.signal(syscall.SIGINT)
	require.Equal(t, 5, p.wait(60*time.Second), &p.stderr)
	require.Equal(t, "loadgen: stopped by the user\n", p.stderr.String())
}

// TestFloor puts and gets one key on a built-in node.
func TestFloor(t *testing.T) {
	node := beginTarget(t)
	missing := start(t, command(t, "selfcheck", "floor", node.addr))
	require.Equal(t, 6, missing.wait(60*time.Second))
	require.Contains(t, missing.stderr.String(), "get key:000000000000: it is not there: put it first")

	put := start(t, command(t, "selfcheck", "floor", node.addr, "--op", "put", "--sessions", "2", "--pipeline", "8", "--ops", "1000", "--json"))
	require.Zero(t, put.wait(60*time.Second), &put.stderr)
	var r bareclient.Result
	require.NoError(t, json.Unmarshal([]byte(put.stdout.String()), &r))
	require.EqualValues(t, 1000, r.Ops)
	require.EqualValues(t, 125, r.Writes)

	get := start(t, command(t, "selfcheck", "floor", node.addr, "--sessions", "2", "--pipeline", "8", "--ops", "1000"))
	require.Zero(t, get.wait(60*time.Second), &get.stderr)
	require.Regexp(t, `^floor of get at `+node.addr+`, 2 sessions, pipeline 8

  processor time of an op  +\d+ ns  \(user \d+ ns, system \d+ ns\)
  system calls of an op    +\d\.\d{3}     \(write 0\.125, read \d\.\d{3}, epoll \d\.\d{3}\)
  ops                      +1000     in \d+\.\d{3} s, \d+/s
$`, get.stdout.String())
}

func TestFloorRefuses(t *testing.T) {
	for words, args := range map[string][]string{
		`--driver "null": write redis or memcached`:                            {"127.0.0.1:1", "--driver", "null"},
		`--op "delete": write get or put`:                                      {"127.0.0.1:1", "--op", "delete"},
		`0 sessions, a pipeline of 1 and 1000000 ops: write numbers above 0`:   {"127.0.0.1:1", "--sessions", "0"},
		`want one endpoint, got 0 arguments: write loadgen selfcheck floor HO`: {},
	} {
		p := start(t, command(t, append([]string{"selfcheck", "floor"}, args...)...))
		require.Equal(t, 2, p.wait(60*time.Second))
		require.Contains(t, p.stderr.String(), words)
	}
}
