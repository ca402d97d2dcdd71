package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

const stat = "cpu  9 9 9 9 9 9 9 9 0 0\n" +
	"cpu0 100 0 100 1000 0 0 50 0 0 0\n" +
	"cpu1 0 0 0 0 0 0 0 0 0 0\n" +
	"cpu2 900 0 0 0 0 0 0 0 0 0\n" +
	"cpu10 0 0 0 0 0 0 0 0 0 0\n" +
	"intr 5 0 0\n"

// aMachine has this process on CPU 0, and a server with a child on CPU 1; CPU 2 does not matter.
func aMachine() fstest.MapFS {
	return fstest.MapFS{
		"proc/sys/kernel/random/boot_id": file("b007\n"),
		"proc/stat":                      file(stat),
		"proc/self/status":               file("Name:\tloadgen\nCpus_allowed_list:\t0\n"),
		"proc/self/stat":                 file("7 (load) gen) R 1 7 7 0 -1 0 0 0 0 0 10 20 900 900 20 0 1 0 5\n"),
		"proc/7/stat":                    file("7 (load) gen) R 1 7 7 0 -1 0 0 0 0 0 10 20 900 900 20 0 1 0 5\n"),
		"proc/40/status":                 file("Cpus_allowed_list:\t0-1\n"),
		"proc/40/stat":                   file("40 (a server) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5\n"),
		"proc/41/stat":                   file("41 (its child) S 40 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5\n"),
		"proc/50/stat":                   file("50 (another) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5\n"),
	}
}

// after is the machine two seconds later: of the 400 ticks of CPUs 0 and 1, 300 were used, 20 of them by nobody known, and 20 were stolen.
func after(m fstest.MapFS) {
	m["proc/stat"] = file("cpu0 200 0 160 1010 10 5 65 0 0 0\ncpu1 60 20 40 50 0 0 10 20 0 0\ncpu2 0 0 0 999 0 0 0 0 0 0\n")
	m["proc/self/stat"] = file("7 (load) gen) R 1 7 7 0 -1 0 0 0 0 0 70 60 999 999 20 0 1 0 5\n")
	m["proc/7/stat"] = m["proc/self/stat"]
	m["proc/40/stat"] = file("40 (a server) S 1 7 7 0 -1 0 0 0 0 0 41 42 23 14 20 0 1 0 5\n")
	m["proc/41/stat"] = file("41 (its child) S 40 7 7 0 -1 0 0 0 0 0 20 10 0 0 20 0 1 0 5\n")
	m["proc/50/stat"] = file("50 (another) S 1 7 7 0 -1 0 0 0 0 0 20 0 0 0 20 0 1 0 5\n")
}

func TestWatch(t *testing.T) {
	root := aMachine()
	w, err := NewWatch(root, []int{40})
	require.NoError(t, err)
	after(root)
	m, err := w.Stop()
	require.NoError(t, err)
	require.Equal(t, "b007", m.Host)
	require.InDelta(t, 4, m.Seconds, 1e-9)
	require.InDelta(t, 70.0/400, m.IdleShare, 1e-9, "waiting for a disk is idle")
	require.InDelta(t, (300.0-100-80-30-30)/400, m.OthersShare, 1e-9, "this process had 100 ticks, the server 80, its living child 30, one it has waited for 30")
}

func TestWatchWithoutServers(t *testing.T) {
	root := aMachine()
	w, err := NewWatch(root, nil)
	require.NoError(t, err)
	after(root)
	m, err := w.Stop()
	require.NoError(t, err)
	require.InDelta(t, 2, m.Seconds, 1e-9, "of CPU 0 alone")
	require.InDelta(t, 20.0/200, m.IdleShare, 1e-9)
	require.InDelta(t, 60.0/200, m.OthersShare, 1e-9)
}

// A server that may run on one processor only starves there, whatever the others do.
func TestWatchOfAStarvedServer(t *testing.T) {
	for name, c := range map[string]struct {
		server       string // its processors
		cpu0, cpu1   string // two seconds later: user, nice, system, idle
		here, there  int    // ticks of this process, which may run on CPU 0, and of the server
		seconds      float64
		others, idle float64
		doubtful     bool
		elsewhereToo string // processors of this process, where they are not 0
	}{
		"alone":                     {"1", "200 0 200 1000", "150 0 50 1000", 200, 200, 4, 0, 0, false, ""},
		"beside others":             {"1", "150 0 150 1100", "200 0 0 1000", 100, 100, 2, 0.5, 0, true, ""},
		"with room":                 {"1", "100 0 100 1200", "150 0 0 1050", 0, 50, 2, 0.5, 0.25, false, ""},
		"others beside this":        {"1", "200 0 200 1000", "0 0 0 1200", 100, 0, 2, 0.5, 0, true, ""},
		"this may be what it met":   {"1", "100 0 100 1200", "200 0 0 1000", 100, 100, 4, 0, 0.5, false, "0-1"},
		"more than this can be":     {"1", "100 0 100 1200", "200 0 0 1000", 20, 100, 2, 0.4, 0, true, "0-1"},
		"no processor of its own":   {"0", "200 0 200 1000", "0 0 0 1200", 50, 50, 2, 0.5, 0, true, ""},
		"anywhere, and all is idle": {"0-1", "200 0 100 1100", "0 0 0 1200", 0, 50, 4, 0.125, 0.75, false, "0-1"},
	} {
		root := aMachine()
		root["proc/40/status"] = file("Cpus_allowed_list:\t" + c.server + "\n")
		if c.elsewhereToo != "" {
			root["proc/self/status"] = file("Cpus_allowed_list:\t" + c.elsewhereToo + "\n")
		}
		root["proc/stat"] = file("cpu0 100 0 100 1000 0 0 50 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n")
		w, err := NewWatch(root, []int{40})
		require.NoError(t, err)
		root["proc/stat"] = file("cpu0 " + c.cpu0 + " 0 0 50 0 0 0\ncpu1 " + c.cpu1 + " 0 0 0 0 0 0\n")
		root["proc/self/stat"] = file(fmt.Sprintf("7 (load) gen) R 1 7 7 0 -1 0 0 0 0 0 %d 20 900 900 20 0 1 0 5\n", 10+c.here))
		root["proc/7/stat"] = root["proc/self/stat"]
		root["proc/40/stat"] = file(fmt.Sprintf("40 (a server) S 1 7 7 0 -1 0 0 0 0 0 %d 2 3 4 20 0 1 0 5\n", 1+c.there))
		m, err := w.Stop()
		require.NoError(t, err, name)
		require.InDelta(t, c.seconds, m.Seconds, 1e-9, name)
		require.InDelta(t, c.others, m.OthersShare, 1e-9, name)
		require.InDelta(t, c.idle, m.IdleShare, 1e-9, name)
		require.Equal(t, c.doubtful, m.Doubtful(), name)
	}
}

// What is unknown gives an error, not a share.
func TestWatchOddMachines(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"no processes":         {func(m fstest.MapFS) { delete(m, "proc/self/stat") }, "proc/self/stat"},
		"no processors":        {func(m fstest.MapFS) { delete(m, "proc/stat") }, "proc/stat"},
		"a server that ended":  {func(m fstest.MapFS) { delete(m, "proc/40/stat") }, "process 40 of the target has ended"},
		"other processors":     {func(m fstest.MapFS) { m["proc/stat"] = file("cpu7 1 1 1 1 1 1 1 1\n") }, "says nothing of the processors"},
		"short lines":          {func(m fstest.MapFS) { m["proc/stat"] = file("cpu0 1 1 1 1\n") }, "says nothing of the processors"},
		"words for numbers":    {func(m fstest.MapFS) { m["proc/stat"] = file("cpu0 1 1 1 x 1 1 1 1\n") }, "proc/stat: "},
		"a process cut short":  {func(m fstest.MapFS) { m["proc/self/stat"] = file("7 (x) R 1 7\n") }, "proc/self/stat has too few fields"},
		"a process of letters": {func(m fstest.MapFS) { m["proc/self/stat"] = file("7 (x) R 1 7 7 0 -1 0 0 0 0 0 a 60 0 0 20 0\n") }, "proc/self/stat: "},
	} {
		root := aMachine()
		c.change(root)
		_, err := NewWatch(root, []int{40})
		require.ErrorContains(t, err, c.want, name+", at the start")
		root = aMachine()
		w, err := NewWatch(root, []int{40})
		require.NoError(t, err)
		after(root)
		c.change(root)
		_, err = w.Stop()
		require.ErrorContains(t, err, c.want, name+", at the end")
	}
	root := aMachine()
	root["proc/40/status"] = file("Name:\tx\n")
	_, err := NewWatch(root, []int{40})
	require.ErrorContains(t, err, "proc/40/status does not say which processors")

	w, err := NewWatch(aMachine(), []int{40})
	require.NoError(t, err)
	_, err = w.Stop()
	require.ErrorContains(t, err, "less than 1 s")
}

// Process 1 may listen on behalf of anything, so its descendants do not all belong to the target.
func TestAncestor(t *testing.T) {
	every := map[int]process{1: {pid: 1}, 40: {parent: 1}, 41: {parent: 40}, 50: {parent: 1}, 60: {parent: 61}, 61: {parent: 60}}
	for _, c := range []struct {
		pid     int
		servers []int
		want    int // 0: none
	}{{41, []int{40}, 40}, {40, []int{40}, 40}, {41, []int{40, 41}, 41}, {50, []int{40}, 0}, {1, []int{1}, 1}, {50, []int{1}, 0}, {41, []int{1, 40}, 40}, {60, []int{40}, 0}} {
		of, ok := ancestor(every, c.pid, c.servers)
		require.Equal(t, c.want, of, c)
		require.Equal(t, c.want != 0, ok, c)
	}
}

// TestWatchHere counts what a real child uses.
func TestWatchHere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	child := exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done")
	require.NoError(t, child.Start())
	w, err := NewWatch(os.DirFS("/"), []int{child.Process.Pid})
	require.NoError(t, err)
	before, err := w.own()
	require.NoError(t, err)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(began), 25*time.Second)
		now, err := w.own()
		require.NoError(t, err)
		if now[child.Process.Pid]-before[child.Process.Pid] >= 20 && time.Since(began) > 1500*time.Millisecond {
			break
		}
	}
	m, err := w.Stop()
	require.NoError(t, err)
	require.NotEmpty(t, m.Host)
	require.LessOrEqual(t, m.OthersShare+m.IdleShare, 1.0)
	cancel()
	require.Error(t, child.Wait())
	_, err = w.Stop()
	require.ErrorContains(t, err, "of the target has ended")
}
