package machine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is where a server listens: a TCP address, or the path of a Unix socket.
type Endpoint struct {
	Addr netip.AddrPort
	Path string
}

// String returns the address, or the path.
func (e Endpoint) String() string {
	if e.Path != "" {
		return e.Path
	}
	return e.Addr.String()
}

// Servers returns the processes on this machine that listen on endpoints, and ignores endpoints on other machines. local says whether an address is
// this machine's. It returns an error if it sees no process listening on an endpoint of this machine: a server is out of sight if it is in another
// network or process namespace, or another user's.
func Servers(root fs.FS, endpoints []Endpoint, local func(netip.Addr) bool) ([]int, error) {
	here := slices.DeleteFunc(slices.Clone(endpoints), func(e Endpoint) bool {
		return e.Path == "" && (!e.Addr.IsValid() || !local(e.Addr.Addr().Unmap()))
	})
	if len(here) == 0 {
		return nil, nil
	}
	found, err := Listeners(context.Background(), root, here)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range here {
		if len(found[e]) == 0 {
			return nil, fmt.Errorf("the process that listens on %v is on this machine and cannot be seen: run loadgen as its user, in its namespaces, or as root", e)
		}
		pids = append(pids, found[e]...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// Listeners returns the processes on this machine that listen on each endpoint. An address without a host stands for its port of any. An endpoint on
// which no socket of this network namespace listens is not in the map; one whose processes are out of sight has none.
func Listeners(ctx context.Context, root fs.FS, endpoints []Endpoint) (map[Endpoint][]int, error) {
	sockets, err := listening(root, endpoints)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, s := range sockets {
		wanted[s.inode] = wanted[s.inode] || slices.ContainsFunc(endpoints, s.serves)
	}
	owned, err := owners(ctx, root, wanted)
	if err != nil {
		return nil, err
	}
	found := map[Endpoint][]int{}
	for _, s := range sockets {
		for _, e := range endpoints {
			if s.serves(e) {
				found[e] = append(found[e], owned[s.inode]...)
			}
		}
	}
	return found, nil
}

// Here reports whether an address is this machine's. addrs are those of its interfaces.
func Here(a netip.Addr, addrs []net.Addr) bool {
	return a.IsLoopback() || a.IsUnspecified() || slices.ContainsFunc(addrs, func(of net.Addr) bool {
		n, ok := of.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(n.IP)
		return ok && own.Unmap() == a.WithZone("")
	})
}

// socket is a listening socket.
type socket struct {
	at    Endpoint
	inode string
}

func (s socket) serves(e Endpoint) bool {
	if e.Path != "" || s.at.Path != "" {
		return s.at.Path == e.Path
	}
	at, to := s.at.Addr.Addr(), e.Addr.Addr().Unmap()
	return s.at.Addr.Port() == e.Addr.Port() && (!to.IsValid() || at.IsUnspecified() && (at.Is6() || to.Is4()) || at.Unmap() == to)
}

// listening lists listening sockets of this network namespace, at least those that serve the endpoints. A missing file means none: a kernel may lack
// IPv6.
//
// The kernel's tables list listening sockets first. Listing the other sockets takes milliseconds, since there may be a hundred thousand. So the
// tables are read only until every endpoint has a server, and each only up to the first socket that does not listen. IPv4 comes first: a server that
// listens on both may be asked by either.
func listening(root fs.FS, endpoints []Endpoint) (all []socket, err error) {
	unserved := func(e Endpoint) bool {
		return !slices.ContainsFunc(all, func(s socket) bool { return s.serves(e) })
	}
	read := func(t table) error {
		if !slices.ContainsFunc(endpoints, func(e Endpoint) bool { return (e.Path != "") == t.paths && unserved(e) }) {
			return nil
		}
		f, err := root.Open("proc/net/" + t.name)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, 512), bufio.MaxScanTokenSize) // the kernel goes on until it has filled the buffer
		listed := false
		for lines.Scan() {
			if bytes.Contains(lines.Bytes(), []byte(t.mark)) {
				if s, ok := t.parse(strings.Fields(lines.Text())); ok {
					all, listed = append(all, s), true
				}
				continue
			}
			if listed && !slices.ContainsFunc(endpoints, unserved) {
				break
			}
			listed = false
		}
		return lines.Err()
	}
	return all, errors.Join(read(table{"unix", true, " 00010000 ", parseUnix}), read(table{"tcp", false, " 0A ", parseTCP}), read(table{"tcp6", false, " 0A ", parseTCP}))
}

// table is a file of proc/net. Lines of listening sockets contain mark; the others are not parsed.
type table struct {
	name  string
	paths bool // the table lists Unix sockets
	mark  string
	parse func(words []string) (socket, bool)
}

// parseTCP parses a line of proc/net/tcp or tcp6: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …"; st 0A is LISTEN.
// Addresses are 32-bit words in the machine's byte order.
func parseTCP(words []string) (s socket, ok bool) {
	if len(words) < 10 || words[3] != "0A" {
		return s, false
	}
	host, port, _ := strings.Cut(words[1], ":")
	b, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return s, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b)
	return socket{at: Endpoint{Addr: netip.AddrPortFrom(addr, uint16(n))}, inode: words[9]}, true
}

// parseUnix parses a line of proc/net/unix: "Num RefCount Protocol Flags Type St Inode Path"; the flag 0x10000 (__SO_ACCEPTCON) marks a listening
// socket.
func parseUnix(words []string) (s socket, ok bool) {
	const accepts = 0x10000
	if len(words) < 8 {
		return s, false
	}
	flags, err := strconv.ParseUint(words[3], 16, 64)
	if err != nil || flags&accepts == 0 {
		return s, false
	}
	return socket{at: Endpoint{Path: strings.Join(words[7:], " ")}, inode: words[6]}, true
}

// owners returns the processes that hold a socket of each inode: proc/PID/fd has links such as "socket:[8813]". Other users' processes cannot be read.
func owners(ctx context.Context, root fs.FS, inodes map[string]bool) (map[string][]int, error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, err
	}
	owned := map[string][]int{}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, errors.New("looking through the processes took too long")
		}
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := "proc/" + e.Name() + "/fd"
		files, _ := fs.ReadDir(root, dir) // another user's process, or it has ended
		for _, f := range files {
			link, err := fs.ReadLink(root, dir+"/"+f.Name())
			inode, ok := strings.CutPrefix(strings.TrimSuffix(link, "]"), "socket:[")
			if err == nil && ok && inodes[inode] {
				owned[inode] = append(owned[inode], pid)
			}
		}
	}
	return owned, nil
}
