package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/detail"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// TestMarkdownSaysWhatALogPromised beside its figures, as a terminal does.
func TestMarkdownSaysWhatALogPromised(t *testing.T) {
	r := run.New(run.Header{Plan: "p"}, run.Environment{})
	r.PhaseOrder = []string{"fill"}
	r.Phase["fill"] = &run.Phase{Log: &run.Log{
		Log: localfile.Log{
			Layout: "append", SyncAsked: "auto", SyncUsed: "msync", FileSystem: "tmpfs", Caveats: []string{"tmpfs lives in memory"}, Clear: "inside",
			Files: 2, FileBytes: 1 << 20, Bytes: 2000,
		},
		Threads: []measure.Thread{{Sessions: 1}},
		Proof:   &localfile.Proof{Acknowledged: 20, Verified: 19},
	}}
	var b strings.Builder
	require.NoError(t, Markdown(&b, []detail.Source{{Run: r}}))
	_, logs, _ := strings.Cut(b.String(), "|---|---|--:|--:|--:|--:|--:|--:|---|\n")
	require.Equal(t, `
| phase | | |
|---|---|---|
| fill | log | append, when full: inside, sync auto asked, msync used, NOT durable, 2 files of 1 MiB on tmpfs |
| fill | written | 2.00 kB of entries, 0 resets |
| fill | verified | 19/20 entries that had to be there, by another process |
| fill | caveat | tmpfs lives in memory |
`, logs)
}

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
