package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

var (
	_ driver.Cluster    = Driver{}
	_ driver.Watched    = Driver{}
	_ driver.Redirector = (*codec)(nil)
)

// lastSlot is the highest number of a slot.
const lastSlot = 1<<14 - 1

// asking precedes a request that an ASK redirect has sent to a node; the reply is +OK.
const asking = "*1\r\n$6\r\nASKING\r\n"

// strayed replaces the words of a redirect that is not followed, so that they are the same for every slot.
var strayed = []byte("the server is a node of a cluster and does not have the key: write cluster = true in the target")

// told returns an error's words, with what to do about it if that is known, or strayed for a redirect that is not followed.
func (c *codec) told(words []byte) []byte {
	if !c.cluster {
		if _, _, redirected := c.Redirect(words); redirected {
			return strayed
		}
	}
	if says, known := remedies[string(words)]; known {
		return says
	}
	return words
}

// remedies are what is said instead of a server's own words: the same, and what to do about it.
var remedies = map[string][]byte{
	"OOM command not allowed when used memory > 'maxmemory'.":           []byte("OOM command not allowed when used memory > 'maxmemory': give the server more, or put fewer or smaller values"),
	"ERR Protocol error: invalid bulk length":                           []byte("ERR Protocol error: invalid bulk length: raise the server's proto-max-bulk-len, or put smaller values"),
	"WRONGTYPE Operation against a key holding the wrong kind of value": []byte("WRONGTYPE Operation against a key holding the wrong kind of value, which others have put: write keys { format } for keys of your own, or another database"),
}

// Clustered reports whether the config, a *Config, asks for a cluster, or for a master and its replicas, which count as a cluster with a single
// master.
func (Driver) Clustered(config any) bool {
	cfg, ok := config.(*Config)
	return ok && (cfg.Cluster || cfg.Sentinel != nil || cfg.Read == fromReplica)
}

// Watched reports whether the endpoints are Sentinels.
func (Driver) Watched(config any) bool {
	cfg, ok := config.(*Config)
	return ok && cfg.Sentinel != nil
}

// Nodes greets the server and asks for the nodes. A cluster's are listed by CLUSTER NODES, which every version has, and which also lists nodes without
// slots, such as those that are about to get some. Nodes without an address are left out.
func (d Driver) Nodes(ctx context.Context, conn net.Conn, link driver.Link) (nodes []driver.Node, err error) {
	cfg, err := driver.ConfigOf[*Config]("redis", link.Config)
	if err != nil {
		return nil, err
	}
	if s := cfg.Sentinel; s != nil {
		link.Config, link.Forms = &Config{Protocol: 2, Username: s.Username, Password: s.Password}, nil
	}
	c, err := d.NewCodec(link)
	if err != nil {
		return nil, err
	}
	err = driver.Interruptible(ctx, conn, func() (err error) {
		in := newAsker(conn)
		if err := in.Greet(c); err != nil {
			return err
		}
		switch {
		case cfg.Sentinel != nil:
			nodes, err = cfg.Sentinel.nodes(in)
		case cfg.Read == fromReplica && !cfg.Cluster:
			nodes, err = replicated(in)
		default:
			nodes, err = clusterNodes(in)
		}
		return err
	})
	switch {
	case err != nil && cfg.Sentinel != nil:
		return nil, fmt.Errorf("ask the Sentinel for its master: %w", err)
	case err != nil && cfg.Read == fromReplica && !cfg.Cluster:
		return nil, fmt.Errorf("ask redis for its replicas: %w", err)
	case err != nil:
		return nil, fmt.Errorf("ask redis for its cluster: %w", err)
	}
	for i := range nodes {
		if cfg.Read != fromReplica {
			nodes[i].Of = ""
		}
	}
	return nodes, nil
}

// clusterNodes asks a node for all nodes of the cluster.
func clusterNodes(in *asker) ([]driver.Node, error) {
	text, err := in.cluster()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(in.Conn.RemoteAddr().String())
	if err != nil {
		host = "127.0.0.1" // the peer is a Unix socket
	}
	return parseNodes(text, host)
}

// cluster asks for CLUSTER NODES.
func (a *asker) cluster() (string, error) {
	v, err := a.ask("CLUSTER", "NODES")
	switch {
	case err != nil:
		return "", err
	case v.kind == errorReply && bytes.Contains(v.text, []byte("cluster support disabled")):
		return "", errors.New("the server is in no cluster: leave cluster out of the target")
	case v.kind == errorReply && bytes.Contains(v.text, []byte("unknown command")):
		return "", fmt.Errorf("the server knows no CLUSTER NODES, as a Sentinel or a proxy: write an endpoint of a node, or leave cluster out of the target: %s", printable(v.text))
	case v.kind != bulk:
		return "", fmt.Errorf("CLUSTER NODES: want a text, server says %q", printable(v.text))
	}
	return string(v.text), nil
}

// parseNodes reads the lines of CLUSTER NODES:
//
//	ID HOST:PORT@BUS[,NAME…] FLAG[,FLAG…] MASTER PING PONG EPOCH LINK [SLOT|FIRST-LAST|[SLOT->-ID]|[SLOT-<-ID]]…
//
// A node that does not know its own host leaves it empty; it is the one that was asked.
func parseNodes(text, host string) ([]driver.Node, error) {
	var nodes []driver.Node
	masters, copies := map[string]string{}, map[string]string{} // addresses of nodes, and ids of masters by their replicas' addresses
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES: a line of %d words, want 8 or more: %q", len(words), printable([]byte(line)))
		}
		flags := strings.Split(words[2], ",")
		if slices.Contains(flags, "noaddr") || slices.Contains(flags, "handshake") {
			continue
		}
		n, err := parseNode(words[1], host)
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES: address %q: %w", words[1], err)
		}
		if n.Slots, err = parseSlots(words[8:]); err != nil {
			return nil, fmt.Errorf("CLUSTER NODES: %s: %w", n.Addr, err)
		}
		masters[words[0]] = n.Addr
		if slices.Contains(flags, "slave") && !slices.Contains(flags, "fail") && !slices.Contains(flags, "fail?") {
			copies[n.Addr] = words[3]
		}
		nodes = append(nodes, n)
	}
	for i := range nodes {
		nodes[i].Of = masters[copies[nodes[i].Addr]]
	}
	return nodes, nil
}

// parseNode reads HOST:PORT@BUS,NAME… An IPv6 address has no brackets.
func parseNode(text, host string) (n driver.Node, err error) {
	addr, further, _ := strings.Cut(text, ",")
	addr, _, _ = strings.Cut(addr, "@")
	at := strings.LastIndexByte(addr, ':')
	if at < 0 {
		return n, errors.New("no port")
	}
	port := addr[at+1:]
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return n, errors.New("no port that a client can use")
	}
	if at > 0 {
		host = addr[:at]
	}
	n.Addr = net.JoinHostPort(host, port)
	if addr != n.Addr {
		n.Aliases = append(n.Aliases, addr)
	}
	if name, _, _ := strings.Cut(further, ","); name != "" && !strings.Contains(name, "=") {
		n.Aliases = append(n.Aliases, net.JoinHostPort(name, port))
	}
	return n, nil
}

// parseSlots reads slots and ranges of them. Slots on the move appear a second time, in brackets.
func parseSlots(words []string) (ranges [][2]int, err error) {
	for _, word := range words {
		if strings.HasPrefix(word, "[") {
			continue
		}
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("slots %q are no numbers", word)
		}
		last, err := strconv.Atoi(to)
		if err != nil || first < 0 || last > lastSlot || first > last {
			return nil, fmt.Errorf("slots %q are none from 0 to %d", word, lastSlot)
		}
		ranges = append(ranges, [2]int{first, last})
	}
	return ranges, nil
}

// ParseAsking reads +OK.
func (c *codec) ParseAsking(b []byte) (int, error) {
	v, n, err := c.read(b)
	if err == nil && n > 0 && (v.kind != status || string(v.text) != "OK") {
		return 0, fmt.Errorf("ASKING: want +OK, got %s", quote(b[:n]))
	}
	return n, err
}

// Redirect reads "MOVED SLOT HOST:PORT" and "ASK SLOT HOST:PORT". If the server does not know the host, it is empty or a question mark.
func (*codec) Redirect(message []byte) (addr []byte, ask, ok bool) {
	rest, moved := bytes.CutPrefix(message, []byte("MOVED "))
	if !moved {
		if rest, ask = bytes.CutPrefix(message, []byte("ASK ")); !ask {
			return nil, false, false
		}
	}
	at := bytes.IndexByte(rest, ' ')
	if at < 0 {
		return nil, false, false
	}
	addr = rest[at+1:]
	if len(addr) > 0 && addr[0] == '?' {
		addr = addr[1:]
	}
	return addr, ask, true
}
