package cachenode

import (
	"fmt"
	"net"
	"os"
	"time"
)

// spokenVersion is in the place where a client looks for Redis' version.
const spokenVersion = "0-loadgen"

// section is a part of INFO. Sections that are not common appear only if named, or with "all".
type section struct {
	name   string
	common bool
	append func(*Node, []byte) []byte
}

var sections = [...]section{
	{"server", true, (*Node).appendServer},
	{"clients", true, (*Node).appendClients},
	{"memory", true, (*Node).appendMemory},
	{"persistence", true, (*Node).appendPersistence},
	{"stats", true, (*Node).appendStats},
	{"commandstats", true, (*Node).appendCommandStats},
	{"faults", true, (*Node).appendFaults},
	{"keyspace", true, (*Node).appendKeyspace},
	{"peers", false, (*Node).appendPeers},
	{"queue", false, (*Node).appendQueue},
}

// info returns the requested sections, or the common ones if none is.
func (n *Node) info(names [][]byte) (dst []byte) {
	for _, s := range sections {
		if !s.wanted(names) {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, "\r\n"...)
		}
		dst = s.append(n, dst)
	}
	return dst
}

func (s *section) wanted(names [][]byte) bool {
	for _, name := range names {
		switch {
		case sameWord(name, s.name), sameWord(name, "all"), sameWord(name, "everything"):
			return true
		case sameWord(name, "default") && s.common:
			return true
		}
	}
	return len(names) == 0 && s.common
}

func (n *Node) appendServer(dst []byte) []byte {
	port := 0
	if addr, ok := n.Addr().(*net.TCPAddr); ok {
		port = addr.Port
	}
	return fmt.Appendf(dst, "# Server\r\nredis_version:"+spokenVersion+"\r\nredis_mode:standalone\r\nserver_name:loadgen\r\n"+
		"loadgen_version:%s\r\nprocess_id:%d\r\ntcp_port:%d\r\nuptime_in_seconds:%d\r\n",
		n.cfg.Version, os.Getpid(), port, int64(time.Since(n.gate.epoch).Seconds()))
}

func (n *Node) appendClients(dst []byte) []byte {
	return fmt.Appendf(dst, "# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n", n.connections(), n.cfg.MaxConnections)
}

// appendMemory reports memory as the bound counts it: keys, values and a fixed overhead per entry, not the process's memory.
func (n *Node) appendMemory(dst []byte) []byte {
	return fmt.Appendf(dst, "# Memory\r\nused_memory:%d\r\nmaxmemory:%d\r\nmaxmemory_policy:allkeys-lru\r\n",
		n.store.stats().used, n.cfg.Memory)
}

func (n *Node) appendPersistence(dst []byte) []byte {
	return append(dst, "# Persistence\r\nloading:0\r\naof_enabled:0\r\n"...)
}

func (n *Node) appendStats(dst []byte) []byte {
	var commands uint64
	for _, requests := range n.peers.total() {
		commands += requests
	}
	st := n.store.stats()
	return fmt.Appendf(dst, "# Stats\r\ntotal_connections_received:%d\r\nrejected_connections:%d\r\n"+
		"total_commands_processed:%d\r\ntotal_net_input_bytes:%d\r\ntotal_net_output_bytes:%d\r\nevicted_keys:%d\r\nkeyspace_hits:%d\r\nkeyspace_misses:%d\r\n",
		n.accepted.Load(), n.refused.Load(), commands, n.received.Load(), n.sent.Load(), st.evictions, st.hits, st.misses)
}

func (n *Node) appendCommandStats(dst []byte) []byte {
	total := n.peers.total()
	return fmt.Appendf(dst, "# Commandstats\r\ncmdstat_get:calls=%d\r\ncmdstat_set:calls=%d\r\ncmdstat_del:calls=%d\r\n"+
		"cmdstat_other:calls=%d\r\n", total[verbGet], total[verbSet], total[verbDel], total[verbOther])
}

func (n *Node) appendKeyspace(dst []byte) []byte {
	dst = append(dst, "# Keyspace\r\n"...)
	st := n.store.stats()
	for db, keys := range st.keys {
		if keys > 0 {
			dst = fmt.Appendf(dst, "db%d:keys=%d,expires=%d,avg_ttl=0\r\n", db, keys, st.mortal[db])
		}
	}
	return dst
}

func (n *Node) appendPeers(dst []byte) []byte {
	dst = append(dst, "# Peers\r\n"...)
	n.peers.each(func(addr string, requests [numVerbs]uint64) {
		dst = fmt.Appendf(dst, "peer_%s:get=%d,set=%d,del=%d,other=%d\r\n",
			addr, requests[verbGet], requests[verbSet], requests[verbDel], requests[verbOther])
	})
	return dst
}
