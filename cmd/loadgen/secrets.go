package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/engine"
)

// bindings say where secrets may go: the values of --secret.
type bindings struct {
	texts []string
	of    map[string][]binding
}

// binding is a place that a secret may go to.
type binding struct {
	socket      string // path of a Unix socket; "": an address
	host        string // a name; "": nets
	nets        []netip.Prefix
	first, last uint16 // ports
}

var secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

const writeBinding = "write NAME=HOST:PORT, such as CACHE=10.0.0.0/8:6379, CACHE=cache.example:6379 or CACHE=unix:///run/redis.sock"

// Set takes a value of the flag.
func (b *bindings) Set(text string) error {
	name, places, ok := strings.Cut(text, "=")
	if !ok || !secretName.MatchString(name) {
		return errors.New(writeBinding)
	}
	for place := range strings.SplitSeq(places, ",") {
		parsed, err := parseBinding(place)
		if err != nil {
			return err
		}
		if b.of == nil {
			b.of = map[string][]binding{}
		}
		b.of[name] = append(b.of[name], parsed)
	}
	b.texts = append(b.texts, text)
	return nil
}

func (b *bindings) String() string { return strings.Join(b.texts, " ") }

// Type names the flag's value for help.
func (b *bindings) Type() string { return "binding" }

// parseBinding reads unix://PATH, HOST:PORT or HOST:PORT-PORT, where HOST is an address, a network or a name.
func parseBinding(text string) (binding, error) {
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return binding{}, errors.New(writeBinding)
		}
		return binding{socket: path}, nil
	}
	at := strings.LastIndexByte(text, ':')
	if at <= 0 {
		return binding{}, errors.New(writeBinding)
	}
	host, ports := strings.Trim(text[:at], "[]"), text[at+1:]
	low, high, ranged := strings.Cut(ports, "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || first == 0 || last < first {
		return binding{}, errors.New(writeBinding)
	}
	b := binding{first: uint16(first), last: uint16(last)}
	if net, err := netip.ParsePrefix(host); err == nil {
		b.nets = []netip.Prefix{net.Masked()}
	} else if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		b.nets = []netip.Prefix{netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())}
	} else if host == "localhost" {
		b.nets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	} else if strings.ContainsAny(host, "/:*%") {
		return binding{}, errors.New(writeBinding)
	} else {
		b.host = host
	}
	return b, nil
}

// lookupWithin is how long a name in a binding may take to be resolved.
const lookupWithin = 2 * time.Second

// takes says whether a secret may go to an address, which is no name any more, or a socket.
func (b *binding) takes(to netip.AddrPort, socket string) bool {
	if b.socket != "" || socket != "" {
		return b.socket != "" && b.socket == socket
	}
	if to.Port() < b.first || to.Port() > b.last {
		return false
	}
	if b.host == "" {
		return slices.ContainsFunc(b.nets, func(n netip.Prefix) bool { return n.Contains(to.Addr()) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupWithin)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", b.host)
	return err == nil && slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == to.Addr() })
}

// allow returns what checks where secrets go. A worker of its user's own sends one that has no binding to where the plan says, which the user has
// chosen; one whose plans come from elsewhere sends it nowhere.
func (b *bindings) allow(foreign bool) engine.Allow {
	return func(name string, to netip.AddrPort, socket string) error {
		bound := b.of[name]
		if !foreign && len(bound) == 0 {
			return nil
		}
		if slices.ContainsFunc(bound, func(p binding) bool { return p.takes(to, socket) }) {
			return nil
		}
		place := "unix://" + socket
		if socket == "" {
			place = to.String()
		}
		return fmt.Errorf("it is not to go to %s: to let it, start the worker with --secret %s=%s", place, name, place)
	}
}

// environmentSecrets looks secrets up in this process' environment.
func environmentSecrets(name string) (string, error) {
	key := "LOADGEN_SECRET_" + name
	value, ok := os.LookupEnv(key)
	if !ok {
		return "", fmt.Errorf("secret %q: the environment variable %s is not set", name, key)
	}
	return value, nil
}
