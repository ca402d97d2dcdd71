package machine

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestAvailable(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{}
	require.Zero(t, Available(root), "nothing says")
	root["proc/meminfo"] = file("MemTotal: 900 kB\nMemAvailable:     500 kB\n")
	require.EqualValues(t, 500<<10, Available(root))
	root["proc/self/cgroup"] = file("0::/a/b\n")
	root["sys/fs/cgroup/a/b/memory.max"] = file("max\n")
	require.EqualValues(t, 500<<10, Available(root))
	root["sys/fs/cgroup/a/memory.max"] = file("4096\n")
	require.EqualValues(t, 4096, Available(root), "the group around it")
	root["proc/self/cgroup"] = file("7:memory:/c\n")
	root["sys/fs/cgroup/memory/c/memory.limit_in_bytes"] = file("1024\n")
	require.EqualValues(t, 1024, Available(root), "version 1")
}
