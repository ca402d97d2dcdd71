// Package listen opens TCP ports. What has no authentication listens on the loopback only, and a name is no proof of that: a hosts file or a
// name server may say of localhost what it likes. So that name is resolved first, every address that it has is looked at, the port is opened
// at one of these, and what was opened is looked at once more. Other names are refused unasked.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ErrBeyond says that others than this machine could reach an address.
var ErrBeyond = errors.New("not this machine's loopback (127.0.0.1)")

// ErrForm says that a text is no address.
var ErrForm = errors.New("write HOST:PORT, such as 127.0.0.1:7464")

// lookupWithin is how long a name may take to be resolved.
const lookupWithin = 5 * time.Second

// Lookup resolves a name, as [net.Resolver.LookupNetIP] does for "ip".
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func system(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Loopback listens at HOST:PORT, port 0 for any free one, which has to be on the loopback.
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

// Beyond says whether HOST:PORT is an address that others than this machine could reach: one that is not on the loopback, or none, for all that this
// machine has. A name other than localhost is an error, since it may come to mean another address.
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

// Reach returns what others write to reach a port that was opened at all addresses of this machine, or at one.
func Reach(at *net.TCPAddr) string {
	addr := at.AddrPort().Addr().Unmap()
	if addr.IsUnspecified() {
		addr = own(addr.Is4())
	}
	return netip.AddrPortFrom(addr, uint16(at.Port)).String()
}

// own returns the address that this machine has for others: the one that it would speak to a distant host from, or else the first that its interfaces
// have. Only IPv4 counts where nothing else is listened at. A machine without any has its loopback.
func own(only4 bool) netip.Addr {
	for _, distant := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // nothing is sent there
		conn, err := net.Dial("udp", distant)
		if err != nil {
			continue
		}
		local, ok := conn.LocalAddr().(*net.UDPAddr)
		_ = conn.Close() // it was only looked at
		if ok && usable(local.AddrPort().Addr().Unmap(), only4) {
			return local.AddrPort().Addr().Unmap()
		}
	}
	addrs, _ := net.InterfaceAddrs() // without them there is the loopback
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

// Resolve returns the address on the loopback that HOST:PORT stands for. If any address of a name is another, that is [ErrBeyond].
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
