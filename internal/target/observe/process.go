package observe

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/plan"
)

// ticks is Linux's unit of processor time, per second (USER_HZ, the same on every architecture that Go runs on).
const ticks = 100

// process reads what the kernel counts for the processes that listen somewhere, or for one process given by its PID.
type process struct {
	proc    string // path of procfs
	o       *plan.Observe
	grouped bool     // their control groups are wanted
	where   []string // host:port, or unix:// and a path, that the processes listen on; empty for a PID
	found   []known  // the processes found by the last take; looked up again when one of them is gone
}

// known is a process that was found. Another process may get its PID later, but not with the same start time.
type known struct {
	pid   int
	start string
	at    string // the endpoint it was found by
}

func newProcess(proc string, o *plan.Observe, endpoints []string) *process {
	p := &process{proc: proc, o: o, where: endpoints}
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
		stat, err := readStat(p.proc, k.pid)
		if err != nil || stat.start != k.start {
			p.found = nil
			return nil, nil, false
		}
		f := stat.figures()
		readIO(p.proc, k.pid, f)
		if p.grouped {
			readGroup(p.proc, k.pid, groups, f)
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
func (p *process) find(ctx context.Context) error {
	if p.o.PID != 0 {
		stat, err := readStat(p.proc, p.o.PID)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no process %d on this machine", p.o.PID)
		}
		if err != nil {
			return err
		}
		p.found = []known{{p.o.PID, stat.start, ""}}
		return nil
	}
	sockets, err := p.sockets(ctx)
	if err != nil {
		return err
	}
	owners, hidden, err := p.owners(ctx, sockets)
	if err != nil {
		return err
	}
	p.found = nil
	for _, at := range p.where {
		if !slices.ContainsFunc(owners, func(k known) bool { return k.at == at }) {
			return fmt.Errorf("who listens on %s cannot be seen%s", at, hidden)
		}
	}
	slices.SortFunc(owners, func(a, b known) int { return a.pid - b.pid })
	p.found = slices.CompactFunc(owners, func(a, b known) bool { return a.pid == b.pid })
	return nil
}

// sockets returns the inodes of the sockets that listen on the endpoints, each with its endpoints: a socket may listen on all of a machine's addresses.
func (p *process) sockets(ctx context.Context) (map[string][]string, error) {
	var listening []listener
	for _, name := range []string{"tcp", "tcp6"} {
		some, err := listeners(filepath.Join(p.proc, "self", "net", name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		listening = append(listening, some...)
	}
	sockets := map[string][]string{}
	for _, at := range p.where {
		if path, ok := plan.SocketPath(at); ok {
			socket, err := listenerAt(filepath.Join(p.proc, "self", "net", "unix"), path)
			if err != nil {
				return nil, err
			}
			sockets[socket] = append(sockets[socket], at)
			continue
		}
		want, err := addresses(ctx, at)
		if err != nil {
			return nil, err
		}
		found := false
		for _, l := range listening {
			if slices.ContainsFunc(want, l.takes) {
				sockets[l.socket], found = append(sockets[l.socket], at), true
			}
		}
		if !found {
			return nil, fmt.Errorf("nobody listens on %s on this machine", at)
		}
	}
	return sockets, nil
}

// addresses returns an endpoint's addresses. They must be this machine's own, since the processes of another machine are out of reach.
func addresses(ctx context.Context, at string) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	if host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, uint16(number))}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var here []netip.AddrPort
	for _, ip := range ips {
		ip = ip.Unmap()
		mine := slices.ContainsFunc(own, func(a net.Addr) bool {
			prefix, err := netip.ParsePrefix(a.String())
			return err == nil && prefix.Addr().Unmap() == ip
		})
		if ip.IsLoopback() || mine {
			here = append(here, netip.AddrPortFrom(ip, uint16(number)))
		}
	}
	if len(here) == 0 {
		return nil, fmt.Errorf("%s is not on this machine, and a process can be observed only where the coordinator runs", at)
	}
	return here, nil
}

// listener is a socket that takes connections.
type listener struct {
	at     netip.AddrPort
	socket string // its inode, the N of socket:[N]
}

// takes says whether connections to an address reach this listener. An address without a host stands for any.
func (l listener) takes(to netip.AddrPort) bool {
	return l.at.Port() == to.Port() && (!to.Addr().IsValid() || l.at.Addr() == to.Addr() || l.at.Addr().IsUnspecified())
}

// listeners parses a table of sockets (proc_pid_net(5), tcp). After the header comes a line for each, whose second field is its own address, the
// fourth its state and the tenth its inode.
func listeners(path string) ([]listener, error) {
	const listen = "0A"
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []listener
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listen {
			continue
		}
		if at, ok := parseAddress(fields[1]); ok {
			all = append(all, listener{at, fields[9]})
		}
	}
	return all, lines.Err()
}

// listenerAt searches a table of Unix sockets (proc_pid_net(5), unix) for the one that listens at a path. After the header comes a line for each, whose
// fourth field holds its flags, the seventh its inode and the eighth its path.
func listenerAt(table, path string) (socket string, err error) {
	const listens = 1 << 16
	file, err := os.Open(table)
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 8 || fields[7] != path {
			continue
		}
		if flags, err := strconv.ParseUint(fields[3], 16, 32); err == nil && flags&listens != 0 {
			return fields[6], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("nobody listens on unix://%s on this machine", path)
}

// parseAddress parses an address in these tables: 32-bit words in the machine's byte order, which is little-endian wherever loadgen runs, and the port.
func parseAddress(text string) (at netip.AddrPort, ok bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		return at, false
	}
	for i := 0; i+4 <= len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	ip, ok := netip.AddrFromSlice(b)
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok && err == nil
}

// owners finds the processes that hold the sockets. hidden says what could not be searched.
func (p *process) owners(ctx context.Context, sockets map[string][]string) (all []known, hidden string, err error) {
	entries, err := os.ReadDir(p.proc)
	if err != nil {
		return nil, "", err
	}
	locked := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, "", errors.New("looking through the processes took too long")
		}
		files, err := os.ReadDir(filepath.Join(p.proc, e.Name(), "fd"))
		if errors.Is(err, fs.ErrPermission) {
			locked++
		}
		for _, f := range files {
			link, err := os.Readlink(filepath.Join(p.proc, e.Name(), "fd", f.Name()))
			if err != nil {
				continue
			}
			number, isSocket := strings.CutPrefix(link, "socket:[")
			if !isSocket {
				continue
			}
			for _, at := range sockets[strings.TrimSuffix(number, "]")] {
				if stat, err := readStat(p.proc, pid); err == nil {
					all = append(all, known{pid, stat.start, at})
				}
			}
		}
	}
	if locked > 0 {
		hidden = fmt.Sprintf(": %d processes are other users', whose files only they or root may see", locked)
	}
	return all, hidden, nil
}

// stat is the content of /proc/PID/stat.
type stat struct {
	start string
	field func(n int) float64 // by its number in proc_pid_stat(5)
}

// readStat reads the figures of a process. Its name, in parentheses, may contain anything.
func readStat(proc string, pid int) (stat, error) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	const behindName = 3 // the number of the first field after the name
	_, rest, ok := cutLast(string(b), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 24-behindName+1 {
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

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
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
func readIO(proc string, pid int, f figures) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "io"))
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
