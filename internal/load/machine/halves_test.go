package machine

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Loops and servers get a half of the processors each, and the threads of a core stay together unless there is only one core.
func TestHalves(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed        string
		cores          []string
		quota          string
		loops, servers string
	}{
		"one":                         {"0", []string{"0"}, "max", "", ""},
		"two":                         {"0-1", []string{"0", "1"}, "max", "1", "0"},
		"two threads of one core":     {"0-1", []string{"0-1"}, "max", "1", "0"},
		"three":                       {"0-2", []string{"0", "1", "2"}, "max", "2", "0-1"},
		"two cores":                   {"0-3", []string{"0,2", "1,3"}, "max", "1,3", "0,2"},
		"three cores":                 {"0-5", []string{"0-1", "2-3", "4-5"}, "max", "4-5", "0-3"},
		"cores of two kinds":          {"0-5", []string{"0-1", "2-3", "4", "5"}, "max", "4-5", "0-3"},
		"some of them":                {"2-3,6-7", []string{"0,4", "1,5", "2,6", "3,7"}, "max", "3,7", "2,6"},
		"cores unknown":               {"4-7", nil, "max", "6-7", "4-5"},
		"time for one and a half":     {"0-7", nil, "150000", "", ""},
		"time for two":                {"0-3", nil, "200000", "2-3", "0-1"},
		"the kernel does not say":     {"", nil, "max", "", ""},
		"the kernel's list is broken": {"a-b", nil, "max", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{
				"proc/self/status":            file("Cpus_allowed_list:\t" + tt.allowed + "\n"),
				"proc/self/cgroup":            file("0::/a\n"),
				"sys/fs/cgroup/a/cpu.max":     file(tt.quota + " 100000\n"),
				"sys/devices/system/cpu/cpu0": {},
			}
			for _, core := range tt.cores {
				cpus, err := ParseList(core)
				require.NoError(t, err)
				for _, cpu := range cpus {
					root[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = file(core + "\n")
				}
			}
			loops, servers := Halves(root)
			require.Equal(t, []string{tt.loops, tt.servers}, []string{List(loops), List(servers)})
		})
	}
}

// A process that is started on some processors keeps to them, and the thread that has started it has its own back.
func TestOn(t *testing.T) {
	before, err := allowed(os.DirFS("/"), self)
	require.NoError(t, err)
	last := before[len(before)-1:]
	var child string
	require.NoError(t, On(last, func() error {
		out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
		child = strings.TrimSpace(strings.TrimPrefix(string(out), "Cpus_allowed_list:"))
		return err
	}))
	require.Equal(t, List(last), child)
	require.NoError(t, On(nil, func() error {
		out, err := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status").Output()
		child = strings.TrimSpace(strings.TrimPrefix(string(out), "Cpus_allowed_list:"))
		return err
	}))
	require.Equal(t, List(before), child)
	require.ErrorContains(t, On([]int{1023}, func() error { return nil }), "use CPUs 1023 only: ")
}
