package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
)

func TestThrottled(t *testing.T) {
	for name, tt := range map[string]struct {
		root sysfs
		want measure.Throttled
	}{
		"version 2, the group and one around it": {
			root: sysfs{
				"proc/self/cgroup":                                 file("0::/system.slice/load.service\n"),
				"sys/fs/cgroup/system.slice/cpu.stat":              file("usage_usec 9\nnr_periods 90\nnr_throttled 2\nthrottled_usec 500000\n"),
				"sys/fs/cgroup/system.slice/load.service/cpu.stat": file("nr_throttled 3\nthrottled_usec 250000\n"),
			},
			want: measure.Throttled{Periods: 5, Seconds: 0.75},
		},
		"version 1": {
			root: sysfs{
				"proc/self/cgroup":                       file("4:memory:/x\n3:cpu,cpuacct:/x\n2:cpuset:/x\n"),
				"sys/fs/cgroup/cpu/x/cpu.stat":           file("nr_periods 60\nnr_throttled 7\nthrottled_time 1500000000\n"),
				"sys/fs/cgroup/memory/x/cpu.stat":        file("nr_throttled 100\n"),
				"sys/fs/cgroup/cpu/cpu.stat":             file("nr_throttled 0\nthrottled_time 0\nodd line\n"),
				"sys/fs/cgroup/cpuacct/x/ignored/a.stat": file(""),
			},
			want: measure.Throttled{Periods: 7, Seconds: 1.5},
		},
		"no quota anywhere": {root: sysfs{"proc/self/cgroup": file("0::/\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Throttled(tt.root)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, err := Throttled(sysfs{})
	require.ErrorContains(t, err, "read how often control groups were throttled: ")
}

// Limits are found wherever a system keeps them, and the tightest one up to the root counts.
func TestLimitsOfControlGroups(t *testing.T) {
	const none1 = "9223372036854771712\n" // of version 1
	for name, tt := range map[string]struct {
		root   sysfs
		memory int64   // 0: unlimited
		cpus   float64 // 0: unlimited
	}{
		"version 2": {
			root: sysfs{
				"proc/self/cgroup":                      file("0::/load.service\n"),
				"sys/fs/cgroup/load.service/memory.max": file("67108864\n"),
				"sys/fs/cgroup/load.service/cpu.max":    file("150000 100000\n"),
			}, memory: 64 << 20, cpus: 1.5,
		},
		"version 2, max": {
			root: sysfs{
				"proc/self/cgroup":                      file("0::/load.service\n"),
				"sys/fs/cgroup/load.service/memory.max": file("max\n"),
				"sys/fs/cgroup/load.service/cpu.max":    file("max 100000\n"),
			},
		},
		"version 2, nested: the group around it is tighter": {
			root: sysfs{
				"proc/self/cgroup":                  file("0::/pod/load\n"),
				"sys/fs/cgroup/pod/load/memory.max": file("268435456\n"),
				"sys/fs/cgroup/pod/memory.max":      file("134217728\n"),
				"sys/fs/cgroup/pod/load/cpu.max":    file("max 100000\n"),
				"sys/fs/cgroup/pod/cpu.max":         file("50000 100000\n"),
			}, memory: 128 << 20, cpus: 0.5,
		},
		"version 2, in a namespace of its own": {
			root: sysfs{
				"proc/self/cgroup":         file("0::/\n"),
				"sys/fs/cgroup/memory.max": file("33554432\n"),
				"sys/fs/cgroup/cpu.max":    file("200000 100000\n"),
			}, memory: 32 << 20, cpus: 2,
		},
		"version 1, nested": {
			root: sysfs{
				"proc/self/cgroup": file("9:memory:/a/b\n3:cpu,cpuacct:/a/b\n"),
				"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": file(none1),
				"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   file("67108864\n"),
				"sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us":         file("-1\n"),
				"sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us":        file("100000\n"),
				"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":           file("75000\n"),
				"sys/fs/cgroup/cpu/a/cpu.cfs_period_us":          file("100000\n"),
			}, memory: 64 << 20, cpus: 0.75,
		},
		"version 1, whose groups a container does not see": {
			root: sysfs{
				"proc/self/cgroup":                           file("9:memory:/docker/x\n"),
				"sys/fs/cgroup/memory/memory.limit_in_bytes": file("67108864\n"),
			}, memory: 64 << 20,
		},
		"hybrid, memory of version 1": {
			root: sysfs{
				"proc/self/cgroup": file("9:memory:/user\n1:name=systemd:/user\n0::/user\n"),
				"sys/fs/cgroup/memory/user/memory.limit_in_bytes": file("67108864\n"),
				"sys/fs/cgroup/unified/user/cgroup.procs":         file("1\n"),
			}, memory: 64 << 20,
		},
		"hybrid, memory of version 2": {
			root: sysfs{
				"proc/self/cgroup":                           file("3:cpu,cpuacct:/user\n0::/user/load\n"),
				"sys/fs/cgroup/unified/user/memory.max":      file("67108864\n"),
				"sys/fs/cgroup/unified/user/load/memory.max": file("max\n"),
				"sys/fs/cgroup/cpu/user/cpu.cfs_quota_us":    file("100000\n"),
				"sys/fs/cgroup/cpu/user/cpu.cfs_period_us":   file("100000\n"),
			}, memory: 64 << 20, cpus: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := Read(tt.root)
			if tt.memory == 0 {
				require.Nil(t, e.MemoryLimitBytes)
				require.Equal(t, "unlimited", e.Nulls["memory_limit_bytes"])
			} else {
				require.NotNil(t, e.MemoryLimitBytes)
				require.Equal(t, tt.memory, *e.MemoryLimitBytes)
				require.Equal(t, tt.memory, Available(tt.root), "of a load")
			}
			if tt.cpus == 0 {
				require.Nil(t, e.CgroupCPUs)
			} else {
				require.InDelta(t, tt.cpus, *e.CgroupCPUs, 0)
			}
		})
	}
}
