package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
)

func TestThreadsOf(t *testing.T) {
	l := &run.Log{Threads: []measure.Thread{
		{Session: 0, Sessions: 1, Pinned: true, CPU: 2, CPUAtEnd: 2, Node: 1, NodeAtEnd: 1},
		{Session: 1, Sessions: 1, CPU: 3, CPUAtEnd: 0, Node: 1, NodeAtEnd: 0},
		{Session: 2, Sessions: 2, CPU: 3, CPUAtEnd: 3, Node: -1, NodeAtEnd: -1},
		{Session: 4, Sessions: 1, CPU: -1, CPUAtEnd: -1, Node: -1, NodeAtEnd: -1},
	}}
	named := []string{
		"session 0 on CPU 2 of node 1 (pinned)", "session 1 on CPU 3 of node 1 (at the end CPU 0 of node 0)", "sessions 2 to 3 on CPU 3",
		"session 4 on a CPU that the kernel does not name",
	}
	require.Equal(t, named, threadsOf(l))
	l.Threads = append(append(l.Threads, l.Threads...), l.Threads[0], l.Threads[1])
	require.Len(t, threadsOf(l), maxThreads+1)
	require.Equal(t, "2 more threads (the JSON has all)", threadsOf(l)[maxThreads])
}
