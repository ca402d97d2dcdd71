package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// TestEndpointsOfOneServer: endpoints are the same server's if a chain of equal addresses or instances connects them.
func TestEndpointsOfOneServer(t *testing.T) {
	facts := map[string]map[string]string{
		"a": {Address: "10.0.0.1:1, 10.0.0.2:1"},
		"b": {Address: "10.0.0.3:1", Instance: "x"},
		"c": {Address: "10.0.0.4:1"},
		"d": {Address: "10.0.0.2:1", Instance: "x"},
		"e": {Instance: "y"},
		"f": {},
		"g": {Address: "10.0.0.5:1", Instance: "y"},
	}
	groups := OneServer([]string{"a", "b", "c", "d", "e", "f", "g"}, facts)
	require.Len(t, groups, 2)
	require.ElementsMatch(t, []string{"a", "b", "d"}, groups[0])
	require.ElementsMatch(t, []string{"e", "g"}, groups[1])
}

// TestWorkersThatReachDifferentServers: the first worker whose server differs is named. An instance says more than an address, which differs by route.
func TestWorkersThatReachDifferentServers(t *testing.T) {
	all := map[string]map[string]string{}
	for _, w := range []struct{ name, address, instance string }{{"w1", "10.0.0.1:1", "x"}, {"w2", "10.0.0.9:1", "x"}, {"w3", "10.0.0.3:1", "y"}, {"w4", "10.0.0.4:1", "z"}} {
		MergeServers(all, map[string]map[string]string{"a": {Address: w.address, Instance: w.instance}, "b": {Address: "10.0.0.2:1"}}, w.name)
	}
	require.Equal(t, map[string]map[string]string{
		"a": {Address: "10.0.0.1:1", Instance: "x", Elsewhere: "worker w3: 10.0.0.3:1"},
		"b": {Address: "10.0.0.2:1"},
	}, all)
	MergeServers(all, map[string]map[string]string{"b": {Address: "10.0.0.5:1"}}, "w5")
	require.Equal(t, "worker w5: 10.0.0.5:1", all["b"][Elsewhere])
}

// TestDevicesOfOneMachine: two workers on one machine watch the same device, which is counted once.
func TestDevicesOfOneMachine(t *testing.T) {
	n := func(f float64) *float64 { return &f }
	watched := func(machine string, bytes, flushes *float64, before float64) Device {
		return Device{Number: "8:1", Machine: machine, Seconds: 10, Bytes: bytes, Flushes: flushes, Before: Beside{Seconds: 1, Bytes: before}, After: Beside{Seconds: 1, Bytes: 2 * before}}
	}
	all := AddDevices(nil, []Device{watched("m", n(5), nil, 100), {}})
	all = AddDevices(all, []Device{watched("m", n(7), n(2), 40), watched("other", n(1), n(1), 0), {}})
	all = AddDevices(all, []Device{watched("m", n(6), nil, 60)})
	require.Equal(t, []Device{watched("m", n(7), n(2), 40), {}, watched("other", n(1), n(1), 0), {}}, all)
}

// TestSizeOfEntries: mixed entries are as large as their largest, and as those written in the mean.
func TestSizeOfEntries(t *testing.T) {
	l := &Log{EntryBytes: 512}
	require.Equal(t, "512 bytes", l.EntrySize())
	require.EqualValues(t, 512, l.MeanBytes())
	l = &Log{Log: localfile.Log{Entries: 4, Bytes: 1000}, EntryBytes: 512, EntrySizes: "uniform"}
	require.Equal(t, "up to 512 bytes, uniform", l.EntrySize())
	require.EqualValues(t, 250, l.MeanBytes())
}
