package policy

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// never lists networks that must never be loaded: link-local addresses, clouds' metadata services, multicast and broadcast, and addresses of no host.
var never = []struct {
	net  netip.Prefix
	what string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address, where clouds keep a machine's credentials"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "no address of a host"},
	{netip.MustParsePrefix("::/128"), "no address of a host"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "where a cloud keeps a machine's credentials"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "where a cloud keeps a machine's credentials"},
	{netip.MustParsePrefix("100.100.100.200/32"), "where a cloud keeps a machine's credentials"},
	{netip.MustParsePrefix("192.0.0.192/32"), "where a cloud keeps a machine's credentials"},
	{netip.MustParsePrefix("168.63.129.16/32"), "where a cloud keeps a machine's credentials"},
}

// forbidden says why no policy can allow an address; "" if one can. For an IPv6 address, any IPv4 address it leads to counts as well.
func forbidden(addr netip.Addr) string {
	for _, a := range append(embedded(addr), addr.Unmap().WithZone("")) {
		for _, n := range never {
			if n.net.Contains(a) {
				return n.what
			}
		}
	}
	return ""
}

// Transition mechanisms: IPv6 addresses that contain an IPv4 address.
var (
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	compatible     = netip.MustParsePrefix("::/96")           // RFC 4291, 2.5.5.1
	translated     = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765: ::ffff:0:a.b.c.d
	sixToFour      = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo         = netip.MustParsePrefix("2001::/32")       // RFC 4380
	localNAT64     = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
)

// isatap are the two middle words of an interface identifier of RFC 5214, before the IPv4 address.
var isatap = []uint32{0x0000_5efe, 0x0200_5efe}

// embedded returns the IPv4 addresses that an IPv6 address stands for.
func embedded(addr netip.Addr) (found []netip.Addr) {
	if !addr.Is6() || addr.Is4In6() {
		return nil
	}
	b, addr := addr.As16(), addr.WithZone("")
	v4 := func(at int) { found = append(found, netip.AddrFrom4([4]byte(b[at:at+4]))) }
	loopbackOrNone := addr == netip.IPv6Loopback() || addr == netip.IPv6Unspecified()
	switch {
	case wellKnownNAT64.Contains(addr), translated.Contains(addr), compatible.Contains(addr) && !loopbackOrNone:
		v4(12)
	case localNAT64.Contains(addr): // RFC 6052 has a layout for each prefix length; with 96 bits, the IPv4 address comes last
		v4(12)
		found = append(found, netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}))
	case sixToFour.Contains(addr):
		v4(2)
	case teredo.Contains(addr):
		v4(4) // the Teredo server
		found = append(found, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if slices.Contains(isatap, binary.BigEndian.Uint32(b[8:])) {
		v4(12)
	}
	return found
}
