package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

func TestThrottled(t *testing.T) {
	for name, tt := range map[string]struct {
		root sysfs
		want run.Throttled
	}{
		"version 2, the group and one around it": {
			root: sysfs{
				"proc/self/cgroup":                                 file("0::/system.slice/load.service\n"),
				"sys/fs/cgroup/system.slice/cpu.stat":              file("usage_usec 9\nnr_periods 90\nnr_throttled 2\nthrottled_usec 500000\n"),
				"sys/fs/cgroup/system.slice/load.service/cpu.stat": file("nr_throttled 3\nthrottled_usec 250000\n"),
			},
			want: run.Throttled{Periods: 5, Seconds: 0.75},
		},
		"version 1": {
			root: sysfs{
				"proc/self/cgroup":                       file("4:memory:/x\n3:cpu,cpuacct:/x\n2:cpuset:/x\n"),
				"sys/fs/cgroup/cpu/x/cpu.stat":           file("nr_periods 60\nnr_throttled 7\nthrottled_time 1500000000\n"),
				"sys/fs/cgroup/memory/x/cpu.stat":        file("nr_throttled 100\n"),
				"sys/fs/cgroup/cpu/cpu.stat":             file("nr_throttled 0\nthrottled_time 0\nodd line\n"),
				"sys/fs/cgroup/cpuacct/x/ignored/a.stat": file(""),
			},
			want: run.Throttled{Periods: 7, Seconds: 1.5},
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
