// Package listen opens TCP ports. A port without authentication may only listen on the loopback, and a name does not prove that: a hosts file or a name
// server may map localhost to anything. So localhost is resolved first and all its addresses are checked; then the port is opened at one of them and
// checked again. Other names are refused without a look-up.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ErrBeyond says that other machines could reach an address.
var ErrBeyond = errors.New("not this machine's loopback (127.0.0.1)")

// ErrForm says that a text is not an address.
var ErrForm = errors.New("write HOST:PORT, such as 127.0.0.1:7464")

// lookupWithin is how long a name may take to be resolved.
const lookupWithin = 5 * time.Second

// Lookup resolves a name, as [net.Resolver.LookupNetIP] does for "ip".
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func system(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Loopback listens on HOST:PORT, which must be on the loopback. Port 0 means any free port.
func Loopback(address string) (net.Listener, error) { return loopbackBy(system, address) }

func loopbackBy(lookup Lookup, address string) (net.Listener, error) {
	at, err := resolveBy(context.Background(), lookup, address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(beyond(address, l.Addr().String()), l.Close())
	}
	return l, nil
}

// Beyond says whether other machines could reach HOST:PORT: the host is an address that is not on the loopback, or is empty, which means all
// addresses of this machine. A name other than localhost is an error, since it may come to mean another address.
func Beyond(address string) (bool, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil || service == "" {
		return false, fmt.Errorf("%q: %w", address, ErrForm)
	}
	if host == "localhost" {
		return false, nil
	}
	if host == "" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false, fmt.Errorf("%q: write an address of this machine instead of a name, or 0.0.0.0:%s for all that it has", address, service)
	}
	return !ip.Unmap().IsLoopback(), nil
}

// Reach returns the address for others to use, given a port that was opened at all addresses of this machine or at one.
func Reach(at *net.TCPAddr) string {
	addr := at.AddrPort().Addr().Unmap()
	if addr.IsUnspecified() {
		addr = own(addr.Is4())
	}
	return netip.AddrPortFrom(addr, uint16(at.Port)).String()
}

// own returns this machine's address for others: the source address it would use towards a distant host, otherwise the first address of its
// interfaces. If it listens on IPv4 only, only IPv4 counts. A machine with no such address has its loopback.
func own(only4 bool) netip.Addr {
	for _, distant := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // no packet is sent to these addresses
		conn, err := net.Dial("udp", distant)
		if err != nil {
			continue
		}
		local, ok := conn.LocalAddr().(*net.UDPAddr)
		_ = conn.Close() // only its local address was needed
		if ok && usable(local.AddrPort().Addr().Unmap(), only4) {
			return local.AddrPort().Addr().Unmap()
		}
	}
	addrs, _ := net.InterfaceAddrs() // if there are none, the loopback remains
	for _, only4 := range []bool{true, only4} {
		for _, a := range addrs {
			if network, err := netip.ParsePrefix(a.String()); err == nil && usable(network.Addr(), only4) {
				return network.Addr()
			}
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

func usable(a netip.Addr, only4 bool) bool {
	return a.IsGlobalUnicast() && (a.Is4() || !only4)
}

// Resolve returns the loopback address that HOST:PORT stands for. If any address of a name is not on the loopback, the error is [ErrBeyond].
func Resolve(ctx context.Context, address string) (netip.AddrPort, error) {
	return resolveBy(ctx, system, address)
}

func resolveBy(ctx context.Context, lookup Lookup, address string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil || service == "" {
		return netip.AddrPort{}, fmt.Errorf("%q: %w", address, ErrForm)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		return netip.AddrPort{}, beyond(address, host)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return netip.AddrPort{}, err
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var chosen netip.Addr
	for _, ip := range found {
		ip = ip.Unmap()
		if !ip.IsLoopback() || ip.Zone() != "" {
			return netip.AddrPort{}, beyond(address, ip.String())
		}
		if !chosen.IsValid() || ip.Is4() && !chosen.Is4() {
			chosen = ip
		}
	}
	if !chosen.IsValid() {
		return netip.AddrPort{}, fmt.Errorf("%q: the name has no address", address)
	}
	return netip.AddrPortFrom(chosen, uint16(port)), nil
}

func beyond(address string, at string) error {
	return fmt.Errorf("address %q is at %s, %w", address, at, ErrBeyond)
}
