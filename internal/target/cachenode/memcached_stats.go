package cachenode

import (
	"fmt"
	"os"
	"time"
)

// appendMemcachedStats appends the STAT lines of the requested group: none, "settings", "faults" or "peers". It reports false for any other.
func (n *Node) appendMemcachedStats(dst []byte, group [][]byte) ([]byte, bool) {
	switch {
	case len(group) == 0:
		return n.appendGeneralStats(dst), true
	case string(group[0]) == "settings":
		return appendStats(dst, []stat{{"maxbytes", n.cfg.Memory}, {"maxconns", n.cfg.MaxConnections}, {"evictions", "on"}}), true
	case string(group[0]) == "faults":
		stats := []stat{{"delay", *n.delays.times.Load()}, {"bandwidth", n.cfg.Bandwidth}}
		for _, c := range n.faults.counts() {
			stats = append(stats, stat{c.name, c.n})
		}
		return appendStats(dst, stats), true
	case string(group[0]) == "peers":
		n.peers.each(func(addr string, requests [numVerbs]uint64) {
			dst = fmt.Appendf(dst, "STAT peer_%s get=%d,set=%d,del=%d,other=%d\r\n",
				addr, requests[verbGet], requests[verbSet], requests[verbDel], requests[verbOther])
		})
		return dst, true
	}
	return dst, false
}

// stat is one figure.
type stat struct {
	name  string
	value any
}

func appendStats(dst []byte, stats []stat) []byte {
	for _, s := range stats {
		dst = fmt.Appendf(dst, "STAT %s %v\r\n", s.name, s.value)
	}
	return dst
}

// appendGeneralStats reports memory as the bound counts it: keys, values and a fixed overhead per entry.
func (n *Node) appendGeneralStats(dst []byte) []byte {
	st, requests := n.store.stats(), n.peers.total()
	return appendStats(dst, []stat{
		{"pid", os.Getpid()},
		{"uptime", int64(time.Since(n.gate.epoch).Seconds())},
		{"version", memcachedVersion},
		{"server_name", "loadgen"},
		{"loadgen_version", n.cfg.Version},
		{"curr_connections", n.connections()},
		{"total_connections", n.accepted.Load()},
		{"rejected_connections", n.refused.Load()},
		{"cmd_get", requests[verbGet]},
		{"cmd_set", requests[verbSet]},
		{"cmd_delete", requests[verbDel]},
		{"cmd_other", requests[verbOther]},
		{"get_hits", st.hits},
		{"get_misses", st.misses},
		{"bytes", st.used},
		{"curr_items", st.keys[0]},
		{"limit_maxbytes", n.cfg.Memory},
		{"evictions", st.evictions},
		{"bytes_read", n.received.Load()},
		{"bytes_written", n.sent.Load()},
	})
}
