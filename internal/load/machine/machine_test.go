package machine

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// sysfs is a file system of the given texts.
type sysfs = fstest.MapFS

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestRead(t *testing.T) {
	e := Read(sysfs{
		"proc/sys/kernel/osrelease":                                       file("6.1.0-18-amd64\n"),
		"proc/sys/kernel/hostname":                                        file("node3\n"),
		"sys/devices/system/clocksource/clocksource0/current_clocksource": file("tsc\n"),
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            file("performance\n"),
		"proc/cpuinfo":                       file("processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nmodel name\t: other\n"),
		"proc/meminfo":                       file("MemTotal:        8131432 kB\nMemFree: 1 kB\n"),
		"proc/self/limits":                   file("Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 unlimited            files\n"),
		"proc/self/cgroup":                   file("0::/system.slice/load.service\n"),
		"sys/fs/cgroup/system.slice/cpu.max": file("150000 100000\n"),
		"sys/fs/cgroup/system.slice/load.service/cpu.max":    file("max 100000\n"),
		"sys/fs/cgroup/system.slice/load.service/memory.max": file("1073741824\n"),
	})
	require.Equal(t, runtime.Version(), e.Go)
	require.Equal(t, runtime.NumCPU(), e.CPUs)
	require.Equal(t, "6.1.0-18-amd64", e.Kernel)
	require.Equal(t, "node3", e.Hostname)
	require.Equal(t, "tsc", e.ClockSource)
	require.Equal(t, "performance", e.Governor)
	require.Equal(t, "Intel(R) Xeon(R)", e.CPUModel)
	require.Equal(t, int64(8131432*1024), *e.MemoryBytes)
	require.Equal(t, int64(1024), *e.FDSoft)
	require.Equal(t, 1.5, *e.CgroupCPUs)
	require.Equal(t, int64(1<<30), *e.MemoryLimitBytes)
	require.Nil(t, e.FDHard)
	require.Equal(t, map[string]string{"fd_hard": "unlimited"}, e.Nulls)
}

func TestCgroupV1(t *testing.T) {
	e := Read(sysfs{
		"proc/self/cgroup": file("4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n"),
		"sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us":         file("50000\n"),
		"sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us":        file("100000\n"),
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us":                  file("-1\n"),
		"sys/fs/cgroup/cpu/cpu.cfs_period_us":                 file("100000\n"),
		"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": file("9223372036854771712\n"),
		"sys/fs/cgroup/memory/docker/memory.limit_in_bytes":   file("2147483648\n"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712\n"),
	})
	require.Equal(t, 0.5, *e.CgroupCPUs)
	require.Equal(t, int64(2<<30), *e.MemoryLimitBytes)
}

// What cannot be read or understood is null with the reason.
func TestReadOddFiles(t *testing.T) {
	for name, root := range map[string]sysfs{
		"nothing there": {},
		"other words": {
			"proc/meminfo":     file("MemTotal: lots\n"),
			"proc/self/limits": file("Max open files  few many files\n"),
			"proc/self/cgroup": file("none\n"),
			"proc/cpuinfo":     file("BogoMIPS: 50\n"),
		},
		"cut short": {"proc/self/limits": file("Max open"), "proc/meminfo": file("MemFree: 1 kB\n")},
	} {
		t.Run(name, func(t *testing.T) {
			e := Read(root)
			for _, fact := range []string{"memory_bytes", "memory_limit_bytes", "cgroup_cpus", "fd_soft", "fd_hard", "cpu_model", "kernel"} {
				require.NotEmpty(t, e.Nulls[fact], fact)
			}
			require.Nil(t, e.MemoryBytes)
			require.Nil(t, e.FDSoft)
		})
	}
}

// This machine answers what any Linux answers.
func TestReadHere(t *testing.T) {
	e := Read(os.DirFS("/"))
	require.NotEmpty(t, e.Kernel)
	require.NotEmpty(t, e.Hostname)
	require.NotNil(t, e.FDSoft)
	require.NotNil(t, e.MemoryBytes)
}
