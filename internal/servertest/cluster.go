package servertest

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisCluster starts a Redis Cluster on the loopback with the given numbers of masters and of replicas of each, with persistence off and the given
// further options. It returns the nodes, masters first, once each of them sees the whole cluster.
func RedisCluster(t testing.TB, masters, replicas int, options ...string) []*Server {
	t.Helper()
	cli := program(t, "redis", "redis-cli")
	create := []string{"--cluster", "create"}
	var nodes []*Server
	for range masters * (1 + replicas) {
		node := RedisNode(t, options...)
		nodes = append(nodes, node)
		create = append(create, node.Addr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	create = append(create, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")
	if out, err := exec.CommandContext(ctx, cli, create...).CombinedOutput(); err != nil {
		t.Fatalf("redis-cli %s: %v\n%s", strings.Join(create, " "), err, out)
	}
	for i, node := range nodes {
		node.await("CLUSTER INFO", "cluster_state:ok", "cluster_known_nodes:"+strconv.Itoa(len(nodes)), "cluster_slots_ok:16384")
		if i >= masters {
			node.await("INFO replication", "role:slave", "master_link_status:up")
		}
	}
	return nodes
}

// RedisNode starts a Redis server in cluster mode that has not joined a cluster yet.
func RedisNode(t testing.TB, options ...string) *Server {
	t.Helper()
	return StartRedis(t, append(nodeOptions(t, "--port"), options...)...)
}

// RedisNodeTLS is RedisNode for a server that speaks only TLS, with its clients and with other nodes.
func RedisNodeTLS(t testing.TB, a *Authority, shows Certificate, options ...string) *Server {
	t.Helper()
	return StartRedisTLS(t, a, shows, append(append(nodeOptions(t, "--tls-port"), "--tls-cluster", "yes"), options...)...)
}

// nodeOptions returns a node's options. It sets both ports, so that if the node cannot get one, the test ends with the reason.
func nodeOptions(t testing.TB, port string) []string {
	t.Helper()
	return []string{
		port, freePort(t), "--cluster-port", freePort(t), "--cluster-enabled", "yes",
		"--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0",
	}
}

// await asks a Redis server until its answer contains all of the words.
func (s *Server) await(question string, words ...string) {
	s.t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		answer := s.inline(question)
		missing := ""
		for _, word := range words {
			if !strings.Contains(answer, word) {
				missing = word
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s at %s: no %s after %v:\n%s", question, s.Addr, missing, startTimeout, answer)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// inline returns the beginning of the answer to an inline command; "" if there is none.
func (s *Server) inline(command string) string {
	conn, err := net.DialTimeout("tcp", s.Addr, 5*time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(5*time.Second)) != nil {
		return ""
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return ""
	}
	answer := make([]byte, 16<<10)
	n, _ := conn.Read(answer) // a broken connection yields nothing
	return string(answer[:n])
}
