package policy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Place is where connections may lead: a network with ports, or a Unix socket.
type Place struct {
	text        string
	socket      string // path of a Unix socket; "" for an address
	host        string // a name; "" if nets are used
	nets        []netip.Prefix
	first, last uint16 // ports
}

// ErrPlace says how to write a place.
var ErrPlace = errors.New("write HOST:PORT, such as 10.0.0.0/8:6379, cache.example:6379 or 127.0.0.1:7000-7005, or unix:///run/redis.sock")

// ParsePlace parses unix://PATH, HOST:PORT or HOST:PORT-PORT, where HOST is an address, a network or a name. In a network, the bits after its prefix
// are ignored.
func ParsePlace(text string) (Place, error) {
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return Place{}, ErrPlace
		}
		return Place{text: text, socket: path}, nil
	}
	at := strings.LastIndexByte(text, ':')
	if at <= 0 {
		return Place{}, ErrPlace
	}
	host, ports := strings.Trim(text[:at], "[]"), text[at+1:]
	low, high, ranged := strings.Cut(ports, "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || first == 0 || last < first {
		return Place{}, ErrPlace
	}
	p := Place{text: text, first: uint16(first), last: uint16(last)}
	if net, err := netip.ParsePrefix(host); err == nil {
		p.nets = []netip.Prefix{net.Masked()}
	} else if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		p.nets = []netip.Prefix{netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())}
	} else if host == "localhost" {
		p.nets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	} else if host == "" || strings.ContainsAny(host, "/:*%") {
		return Place{}, ErrPlace
	} else {
		p.host = host
	}
	return p, nil
}

// String returns the text that the place was parsed from.
func (p Place) String() string { return p.text }

// lookupWithin is how long a name may take to be resolved.
const lookupWithin = 2 * time.Second

// Takes says whether a connection to an address (not a name) or to a socket is one to this place. A place's name is resolved each time.
func (p Place) Takes(to netip.AddrPort, socket string) bool {
	if p.socket != "" || socket != "" {
		return p.socket != "" && p.socket == socket
	}
	if to.Port() < p.first || to.Port() > p.last {
		return false
	}
	addr := to.Addr().Unmap()
	if p.host == "" {
		return slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(addr.WithZone("")) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupWithin)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.host)
	return err == nil && slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == addr })
}

// TextOf writes a connection's destination in the notation of a Place.
func TextOf(to netip.AddrPort, socket string) string {
	if socket != "" {
		return "unix://" + socket
	}
	return to.String()
}
