package engine

import (
	"net"
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
)

// A server on this machine is looked for by its endpoint's address, which the text has if the driver connects by itself. One that is not seen is an
// error. This process is no server, and what listens elsewhere is none of this machine's.
func TestWhichServersAreFound(t *testing.T) {
	const nobody, elsewhere = "127.8.0.1:1", "192.0.2.1:1"
	own, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer own.Close()
	require.Equal(t, hosted{pids: []int{}}, findServers([]sockets.Endpoint{{Text: own.Addr().String()}, {Text: elsewhere}}))
	for _, end := range []sockets.Endpoint{{Text: nobody}, {Text: elsewhere, Addr: netip.MustParseAddrPort(nobody)}} {
		require.ErrorContains(t, findServers([]sockets.Endpoint{end}).err, "the process that listens on "+nobody)
	}
	require.NoError(t, findServers([]sockets.Endpoint{{Text: nobody, Addr: netip.MustParseAddrPort(elsewhere)}}).err)
}

// What was seen of the machine is in the report: here two seconds, of which one was idle and one nobody's who is known.
func TestNeighboursAreSeen(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{
		"proc/stat":        file("cpu0 100 0 0 100 0 0 0 0 0 0\n"),
		"proc/self/status": file("Cpus_allowed_list:\t0\n"),
		"proc/self/stat":   file("7 (loadgen) R 1 7 7 0 -1 0 0 0 0 0 10 20 0 0 20 0 1 0 5\n"),
	}
	n := watchNeighbours(root, hosted{})
	root["proc/stat"] = file("cpu0 200 0 0 200 0 0 0 0 0 0\n")
	var g measure.Generator
	n.enter(&g)
	require.Empty(t, g.MachineUnknown)
	require.NotNil(t, g.Machine)
	require.InDelta(t, 0.5, g.Machine.IdleShare, 1e-9)
	require.InDelta(t, 0.5, g.Machine.OthersShare, 1e-9)
}
