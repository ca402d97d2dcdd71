package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/pkg/plan"
)

// ticks is Linux's unit of processor time, per second (USER_HZ, the same on every architecture that Go runs on).
const ticks = 100

// process reads what the kernel counts for the processes that listen somewhere, or for one process given by its PID.
type process struct {
	o       *plan.Observe
	grouped bool     // their control groups are wanted
	where   []string // host:port, or unix:// and a path, that the processes listen on; empty for a PID
	found   []known  // the processes found by the last take; looked up again when one of them is gone
}

// known is a process that was found. Another process may get its PID later, but not with the same start time.
type known struct {
	pid   int
	start string
}

func newProcess(o *plan.Observe, endpoints []string) *process {
	p := &process{o: o, where: endpoints}
	p.grouped = slices.ContainsFunc(o.Fields, func(f plan.Field) bool { return f.Name == plan.GroupField })
	if o.Port != 0 {
		p.where = []string{fmt.Sprintf(":%d", o.Port)}
	}
	return p
}

func (p *process) Of() string {
	if p.o.PID != 0 {
		return fmt.Sprintf("process %d", p.o.PID)
	}
	return "who listens on " + strings.Join(p.where, ", ")
}

func (p *process) Close() {}

// Take reads each process once, even if it listens on several endpoints.
func (p *process) Take(ctx context.Context) (value map[string]float64, missing map[string]string) {
	if value, missing, ok := p.read(); ok {
		return value, missing
	}
	if err := p.find(ctx); err != nil {
		return nothing("%v", err)
	}
	value, missing, ok := p.read()
	if !ok {
		return nothing("the process has ended")
	}
	return value, missing
}

// read reads the processes found before; ok is false if there are none, or one is gone.
func (p *process) read() (value map[string]float64, missing map[string]string, ok bool) {
	var all []figures
	var names []string
	groups := map[string]bool{}
	for _, k := range p.found {
		stat, err := readStat(k.pid)
		if err != nil || stat.start != k.start {
			p.found = nil
			return nil, nil, false
		}
		f := stat.figures()
		readIO(k.pid, f)
		if p.grouped {
			readGroup(k.pid, groups, f)
		}
		all, names = append(all, f), append(names, fmt.Sprintf("process %d", k.pid))
	}
	if len(all) == 0 {
		return nil, nil, false
	}
	value, missing = combine(p.o.Combine, p.o.Fields, names, all)
	return value, missing, true
}

// find looks for the processes.
func (p *process) find(ctx context.Context) (err error) {
	pids := []int{p.o.PID}
	if p.o.PID == 0 {
		if pids, err = p.listening(ctx); err != nil {
			return err
		}
	}
	p.found = nil
	for _, pid := range pids {
		stat, err := readStat(pid)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no process %d on this machine", pid)
		}
		if err != nil {
			return err
		}
		p.found = append(p.found, known{pid, stat.start})
	}
	return nil
}

// listening returns the processes that listen on the endpoints, each once.
func (p *process) listening(ctx context.Context) (pids []int, err error) {
	places := make([][]machine.Endpoint, len(p.where))
	for i, at := range p.where {
		if places[i], err = placesOf(ctx, at); err != nil {
			return nil, err
		}
	}
	found, err := machine.Listeners(ctx, os.DirFS("/"), slices.Concat(places...))
	if err != nil {
		return nil, err
	}
	for i, at := range p.where {
		listens, before := false, len(pids)
		for _, place := range places[i] {
			some, ok := found[place]
			listens, pids = listens || ok, append(pids, some...)
		}
		switch {
		case !listens:
			return nil, fmt.Errorf("nobody listens on %s on this machine", at)
		case len(pids) == before:
			return nil, fmt.Errorf("who listens on %s cannot be seen: run loadgen as its user, in its namespaces, or as root", at)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// placesOf returns an endpoint's path or addresses. These must be this machine's own, since the processes of another machine are out of reach.
func placesOf(ctx context.Context, at string) (here []machine.Endpoint, err error) {
	if path, ok := plan.SocketPath(at); ok {
		return []machine.Endpoint{{Path: path}}, nil
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	if host == "" {
		return []machine.Endpoint{{Addr: netip.AddrPortFrom(netip.Addr{}, uint16(number))}}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); machine.Here(ip, own) {
			here = append(here, machine.Endpoint{Addr: netip.AddrPortFrom(ip, uint16(number))})
		}
	}
	if len(here) == 0 {
		return nil, fmt.Errorf("%s is not on this machine, and a process can be observed only where the coordinator runs", at)
	}
	return here, nil
}

// stat is the content of /proc/PID/stat.
type stat struct {
	start string
	field func(n int) float64 // by its number in proc_pid_stat(5)
}

// readStat reads the figures of a process. Its name, in parentheses, may contain anything.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	const behindName = 3 // the number of the first field after the name
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 24-behindName+1 {
		return stat{}, fmt.Errorf("/proc/%d/stat has another form", pid)
	}
	return stat{start: fields[22-behindName], field: func(n int) float64 {
		v, err := strconv.ParseFloat(fields[n-behindName], 64)
		if err != nil {
			return 0 // the kernel's numbers are never negative
		}
		return v
	}}, nil
}

func (s stat) figures() figures {
	f := newFigures()
	user, system := s.field(14)/ticks, s.field(15)/ticks
	f.set("minor_faults", s.field(10))
	f.set("major_faults", s.field(12))
	f.set("cpu_user_seconds", user)
	f.set("cpu_system_seconds", system)
	f.set("cpu_seconds", user+system)
	f.set("threads", s.field(20))
	f.set("rss_bytes", s.field(24)*float64(os.Getpagesize()))
	return f
}

// readIO adds what a process has read from storage and written to it. The kernel tells only its owner.
func readIO(pid int, f figures) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		why := err.Error()
		if errors.Is(err, fs.ErrPermission) {
			why = "another user's process: only it or root may see its I/O"
		}
		f.missing["read_bytes"], f.missing["write_bytes"] = why, why
		return
	}
	told := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
		told[name] = v
	}
	for _, name := range []string{"read_bytes", "write_bytes"} {
		if v, ok := told[name]; ok {
			f.parse(name, v)
		} else {
			f.missing[name] = "the kernel does not count it"
		}
	}
}
