package machine

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestNodes(t *testing.T) {
	root := fstest.MapFS{
		"sys/devices/system/cpu/cpu0/node0":       {},
		"sys/devices/system/cpu/cpu9/node1":       {},
		"sys/devices/system/cpu/cpu3/topology":    {},
		"sys/devices/system/node/node0/cpulist":   {Data: []byte("0-3,8\n")},
		"sys/devices/system/node/node1/cpulist":   {Data: []byte("9\n")},
		"sys/devices/system/node/node2/cpulist":   {Data: []byte("\n")},
		"sys/devices/system/node/node3/cpulist":   {Data: []byte("4-1\n")},
		"sys/devices/system/node/node4/cpulist":   {Data: []byte("0-99999\n")},
		"sys/devices/system/node/online":          {Data: []byte("0-4\n")},
		"sys/devices/system/node/has_cpu":         {Data: []byte("0-1\n")},
		"sys/devices/system/cpu/cpu12/node_or_so": {},
	}
	for cpu, node := range map[int]int{0: 0, 9: 1, 3: -1, 12: -1, 77: -1} {
		require.Equal(t, node, NodeOf(root, cpu), cpu)
	}
	for node, cpus := range map[int][]int{0: {0, 1, 2, 3, 8}, 1: {9}} {
		got, err := NodeCPUs(root, node)
		require.NoError(t, err)
		require.Equal(t, cpus, got)
	}
	for node, says := range map[int]string{2: "no CPUs", 3: `"4-1" is not a list`, 4: "is not a list", 5: "NUMA node 5 does not exist; there are 0-4"} {
		_, err := NodeCPUs(root, node)
		require.ErrorContains(t, err, says)
	}
	_, err := NodeCPUs(fstest.MapFS{}, 0)
	require.ErrorContains(t, err, "there are none")
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8,10-11")
	f.Add("0-8191,0-8191")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := ParseList(text)
		if err != nil {
			require.Empty(t, cpus)
		}
		for _, cpu := range cpus {
			require.Less(t, cpu, maxCPU)
		}
	})
}
