package engine

import (
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/sockets"
)

// hosted lists the targets' processes on this machine; err says why they are not known.
type hosted struct {
	pids []int
	err  error
}

// findServers finds the local processes behind the endpoints, except this one.
func findServers(endpoints []sockets.Endpoint) hosted {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return hosted{err: err}
	}
	var all []machine.Endpoint
	for _, e := range endpoints {
		at := machine.Endpoint{Addr: e.Addr, Path: e.Path}
		if !at.Addr.IsValid() { // the driver connects by itself
			at.Addr, _ = netip.ParseAddrPort(e.Text)
		}
		all = append(all, at)
	}
	pids, err := machine.Servers(os.DirFS("/"), all, func(a netip.Addr) bool { return machine.Here(a, addrs) })
	return hosted{slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err}
}

// neighbours watches other processes on the machine while a load is measured.
type neighbours struct {
	watch *machine.Watch
	err   error
}

// watchNeighbours begins to watch.
func watchNeighbours(root fs.FS, servers hosted) *neighbours {
	if servers.err != nil {
		return &neighbours{err: servers.err}
	}
	w, err := machine.NewWatch(root, servers.pids)
	return &neighbours{watch: w, err: err}
}

// enter adds what was seen to the process's own report. A nil receiver has seen nothing.
func (n *neighbours) enter(g *measure.Generator) {
	if n == nil {
		return
	}
	if n.err == nil {
		var m measure.Machine
		if m, n.err = n.watch.Stop(); n.err == nil {
			g.Machine = &m
			return
		}
	}
	g.MachineUnknown = n.err.Error()
}
