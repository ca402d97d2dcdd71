package servertest

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisCluster starts a Redis Cluster on the loopback and returns its nodes once each of them finds it whole: so many masters, and then as
// many replicas of each, with persistence off and the given further options.
func RedisCluster(t testing.TB, masters, replicas int, options ...string) []*Server {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		err = errors.New("redis-cli not found")
	}
	Require(t, "redis", err)
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

// RedisNode starts a Redis server that may be a node of a cluster and is none yet.
func RedisNode(t testing.TB, options ...string) *Server {
	t.Helper()
	return StartRedis(t, append(nodeOptions(t, "--port"), options...)...)
}

// RedisNodeTLS is RedisNode for one that speaks nothing but TLS, with its clients and with other nodes.
func RedisNodeTLS(t testing.TB, a *Authority, shows Certificate, options ...string) *Server {
	t.Helper()
	return StartRedisTLS(t, a, shows, append(append(nodeOptions(t, "--tls-port"), "--tls-cluster", "yes"), options...)...)
}

// nodeOptions are those of a node. Both ports are given, so that one that cannot have one of them ends the test with the reason.
func nodeOptions(t testing.TB, port string) []string {
	t.Helper()
	return []string{
		port, freePort(t), "--cluster-port", freePort(t), "--cluster-enabled", "yes",
		"--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0",
	}
}

// await asks a Redis server until its answer holds all of the words.
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

// inline returns the beginning of the answer to an inline command; "" without one.
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
	n, _ := conn.Read(answer) // of a broken connection there is nothing
	return string(answer[:n])
}
