package servertest

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	outputOf(t, exec.CommandContext(ctx, cli, create...))
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
		answer := answer(s.Addr, question+"\r\n", nil) // to an inline command
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(answer, word) })
		if len(missing) == 0 {
			return
		}
		require.True(s.t, time.Now().Before(deadline), "%s at %s: no %s after %v:\n%s", question, s.Addr, missing, startTimeout, answer)
		time.Sleep(20 * time.Millisecond)
	}
}
