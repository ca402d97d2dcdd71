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

func TestRoom(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	room := func(root fstest.MapFS) int64 {
		n, known := Room(root)
		require.True(t, known)
		return n
	}
	root := fstest.MapFS{}
	_, known := Room(root)
	require.False(t, known, "nothing says")

	root["proc/meminfo"] = file("MemAvailable:     500 kB\n")
	root["proc/self/cgroup"] = file("0::/a/b\n")
	require.EqualValues(t, 500<<10, room(root), "the machine's")

	root["sys/fs/cgroup/a/b/memory.max"] = file("max\n")
	root["sys/fs/cgroup/a/memory.max"] = file("10000\n")
	root["sys/fs/cgroup/a/memory.current"] = file("7000\n")
	root["sys/fs/cgroup/a/memory.stat"] = file("anon 4000\nfile 3000\nactive_file 1000\ninactive_file 1500\nodd\ninactive_file x\n")
	require.EqualValues(t, 5500, room(root), "the group around it, with what is in its caches")

	root["sys/fs/cgroup/a/b/memory.high"] = file("6000\n")
	root["sys/fs/cgroup/a/b/memory.current"] = file("2000\n")
	require.EqualValues(t, 4000, room(root), "it is slowed down before it is killed")

	root["sys/fs/cgroup/a/b/memory.current"] = file("9000\n")
	require.EqualValues(t, 0, room(root), "more is used than there may be")

	root["proc/self/cgroup"] = file("7:cpu,memory:/c\n2:cpuset:/c\n")
	root["sys/fs/cgroup/memory/c/memory.limit_in_bytes"] = file("10000\n")
	root["sys/fs/cgroup/memory/c/memory.usage_in_bytes"] = file("9000\n")
	root["sys/fs/cgroup/memory/c/memory.stat"] = file("active_file 0\ninactive_file 0\ntotal_active_file 300\ntotal_inactive_file 700\n")
	root["sys/fs/cgroup/cpuset/c/memory.max"] = file("1\n")
	require.EqualValues(t, 2000, room(root), "version 1")

	root["sys/fs/cgroup/memory/memory.limit_in_bytes"] = file("5000\n")
	root["sys/fs/cgroup/memory/memory.usage_in_bytes"] = file("4500\n")
	require.EqualValues(t, 500, room(root), "of one that is nested")
}
