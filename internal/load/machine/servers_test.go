package machine

import (
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func link(text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink}
}

// TestServersHere finds this process behind sockets of each kind.
func TestServersHere(t *testing.T) {
	listen := func(network, at string) net.Listener {
		l, err := net.Listen(network, at)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	at := func(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }
	path := filepath.Join(t.TempDir(), "a socket")
	listen("unix", path)
	everywhere := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at(listen("tcp", ":0")).Port())
	for _, e := range []Endpoint{{Path: path}, {Addr: at(listen("tcp4", "127.0.0.1:0"))}, {Addr: everywhere}} {
		pids, err := Servers(os.DirFS("/"), []Endpoint{e}, netip.Addr.IsLoopback)
		require.NoError(t, err, e)
		require.Equal(t, []int{os.Getpid()}, pids, e)
	}
}

// An address is this machine's if every machine has it, or one of its interfaces does.
func TestWhichAddressesAreHere(t *testing.T) {
	addrs := []net.Addr{
		&net.IPAddr{IP: net.IPv4(10, 0, 0, 9)}, // no interface's
		&net.IPNet{},
		&net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.IPv4(10, 0, 0, 2).To4(), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)},
	}
	for addr, here := range map[string]bool{
		"127.0.0.1": true, "127.8.0.1": true, "::1": true, "0.0.0.0": true, "::": true,
		"10.0.0.1": true, "10.0.0.2": true, "fe80::1": true, "fe80::1%eth0": true,
		"10.0.0.3": false, "10.0.0.9": false, "fe80::2": false,
	} {
		require.Equal(t, here, Here(netip.MustParseAddr(addr), addrs), addr)
	}
	require.False(t, Here(netip.Addr{}, addrs), "no address")
}

func TestServers(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	root := fstest.MapFS{
		"proc/net/tcp": file(head +
			"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1\n" +
			"   1: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1\n" +
			"   2: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 102 1\n" +
			"   3: 0100007F:1F92 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1\n" +
			"   4: 00000000:1F94 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 107 1\n"),
		"proc/net/tcp6": file(head +
			"   0: 00000000000000000000000000000000:1F93 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 104 1\n" +
			"   1: 00000000000000000000000000000000:1F94 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 108 1\n"),
		"proc/net/unix": file("Num       RefCount Protocol Flags    Type St Inode Path\n" +
			"0000000000000000: 00000002 00000000 00010000 0001 01 105 /run/a b\n" +
			"0000000000000000: 00000003 00000000 00000000 0001 03 106 /run/a b\n"),
		"proc/40/fd/3": link("socket:[100]"),
		"proc/41/fd/3": link("socket:[100]"),
		"proc/42/fd/9": link("socket:[101]"),
		"proc/43/fd/1": link("socket:[104]"),
		"proc/44/fd/1": link("socket:[105]"),
		"proc/45/fd/1": link("socket:[102]"),
		"proc/45/fd/2": link("/dev/null"),
		"proc/46/fd/3": link("socket:[107]"),
		"proc/47/fd/3": link("socket:[108]"),
	}
	tcp := func(text string) Endpoint { return Endpoint{Addr: netip.MustParseAddrPort(text)} }
	for name, c := range map[string]struct {
		at   []Endpoint
		want []int
	}{
		"one socket of two processes": {[]Endpoint{tcp("127.0.0.1:8080")}, []int{40, 41}},
		"the same port elsewhere":     {[]Endpoint{tcp("127.0.0.2:8080"), tcp("127.0.0.2:8080")}, []int{42}},
		"any address":                 {[]Endpoint{tcp("127.0.0.1:8083"), tcp("[::1]:8083")}, []int{43}},
		"any address of IPv4":         {[]Endpoint{tcp("127.0.0.1:8084")}, []int{46}},
		"the same port of IPv6":       {[]Endpoint{tcp("[::1]:8084")}, []int{47}},
		"mapped":                      {[]Endpoint{tcp("[::ffff:127.0.0.2]:8080")}, []int{42}},
		"a path":                      {[]Endpoint{{Path: "/run/a b"}}, []int{44}},
		"another machine":             {[]Endpoint{tcp("192.0.2.1:8080")}, nil},
		"no address":                  {[]Endpoint{{}}, nil},
	} {
		got, err := Servers(root, c.at, netip.Addr.IsLoopback)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for name, at := range map[string]Endpoint{"nobody listens": tcp("127.0.0.1:8081"), "not to be seen": tcp("127.0.0.1:8082"), "no such path": {Path: "/run/a"}} {
		_, err := Servers(root, []Endpoint{tcp("127.0.0.1:8080"), at}, netip.Addr.IsLoopback)
		require.ErrorContains(t, err, "the process that listens on "+at.String()+" is on this machine and cannot be seen", name)
	}
}

// Lines of sockets that do not listen are not parsed, and once each endpoint is served they are not read.
func TestOtherSocketsCostNothing(t *testing.T) {
	const line = "   2: 0100007F:1F91 0100007F:9999 %02X 00000000:00000000 00:00000000 00000000     0        0 %d 1\n"
	table := func(others int) fs.FS {
		var b strings.Builder
		fmt.Fprintf(&b, line, 10, 100)
		for i := range others {
			fmt.Fprintf(&b, line, 1, 1000+i)
		}
		fmt.Fprintf(&b, line, 10, 101)
		return fstest.MapFS{"proc/net/tcp": file(b.String())}
	}
	at := func(port uint16) []Endpoint {
		return []Endpoint{{Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}}
	}
	all, err := listening(table(1), at(0x1F91))
	require.NoError(t, err)
	require.Len(t, all, 1, "the second comes after sockets that do not listen")
	allocs := func(root fs.FS) float64 {
		return testing.AllocsPerRun(10, func() {
			all, err := listening(root, at(0x1F92))
			require.NoError(t, err)
			require.Len(t, all, 2, "nobody serves it")
		})
	}
	require.Equal(t, allocs(table(0)), allocs(table(10_000)))
}
