package cachenode

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// TestPackageCommentHasAllCommands compares the package comment with the commands.
func TestPackageCommentHasAllCommands(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(doc), "// # Commands of Redis\n")
	text, _, _ = strings.Cut(text, "\n//\n// They answer")
	for _, cmd := range respCommands {
		require.Regexp(t, `(?m)[\t ]`+strings.ToUpper(cmd.name)+`( |,|$)`, text)
		require.NotEmpty(t, cmd.summary, cmd.name)
	}
}

// TestCounting adds to numbers, which keep their expiry.
func TestCounting(t *testing.T) {
	n := startNode(t, Config{Memory: 1000})
	s := open(t, n)
	require.Equal(t, ":1\r\n", s.do("INCR", "n"))
	require.Equal(t, ":-9\r\n", s.do("DECRBY", "n", "10"))
	require.Equal(t, ":-1\r\n", s.do("TTL", "n"))
	require.Equal(t, ":1\r\n", s.do("EXPIRE", "n", "100"))
	require.Equal(t, ":-8\r\n", s.do("INCRBY", "n", "1"))
	require.Equal(t, ":100\r\n", s.do("TTL", "n"))
	require.Equal(t, ":99\r\n", s.do("MEMORY", "USAGE", "n"), "1 + 2 + 96")
	require.Contains(t, s.do("INFO", "memory"), "used_memory:99\r\n")
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", s.do("INCR", strings.Repeat("k", 1000)))
	require.Equal(t, "-ERR a key has at most 65536 bytes here\r\n", s.do("INCR", strings.Repeat("k", maxKey+1)))
	require.Equal(t, ":-8\r\n", s.do("INCRBY", "n", "0"), "nothing was evicted for what does not fit")
}

// TestLibraryOfPython lets a client library that people use talk to a node.
func TestLibraryOfPython(t *testing.T) {
	python, missing := pythonWithRedis(t)
	servertest.Require(t, "redis-py", missing)
	_, port, err := net.SplitHostPort(startNode(t, Config{Password: "s3cret"}).Addr().String())
	require.NoError(t, err)
	out, err := command(t, python, "testdata/client.py", port, "s3cret").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "all as expected\n", string(out))
}

// pythonWithRedis returns an interpreter that has redis-py: Debian's has it, but another one may precede it on PATH.
func pythonWithRedis(t *testing.T) (path string, err error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if err = command(t, python, "-c", "import redis").Run(); err == nil {
			return python, nil
		}
	}
	return "", err
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}
