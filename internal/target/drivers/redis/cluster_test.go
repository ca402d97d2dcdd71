package redis

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// nodesText is the answer of a Redis 7.2 cluster in which a slot is moving, one master has failed and one node has just joined.
const nodesText = `07c3 10.0.0.4:7004@17004,cache-4,shard-id=69bc slave e7d1 0 1426238317239 4 connected
67ed 10.0.0.2:7002@17002,,shard-id=114f master - 0 1426238316232 2 connected 5461-10922
292f 10.0.0.3:7003@17003 master,fail - 0 1426238318243 3 disconnected 10923 10925-16383
6ec2 ::1:7005@17005,cache.example.org master - 0 1426238316232 5 connected
824f :0@0 slave,noaddr 292f 0 1426238317741 6 disconnected
9a11 10.0.0.9:7009@17009 handshake - 0 0 0 connected
e7d1 :7001@17001 myself,master - 0 0 1 connected 0-5460 10924 [77->-67ed] [78-<-292f]
`

func TestParseNodes(t *testing.T) {
	nodes, err := parseNodes(nodesText, "10.0.0.1")
	require.NoError(t, err)
	require.Equal(t, []driver.Node{
		{Addr: "10.0.0.4:7004", Aliases: []string{"cache-4:7004"}, Of: "10.0.0.1:7001"},
		{Addr: "10.0.0.2:7002", Slots: [][2]int{{5461, 10922}}},
		{Addr: "10.0.0.3:7003", Slots: [][2]int{{10923, 10923}, {10925, 16383}}},
		{Addr: "[::1]:7005", Aliases: []string{"::1:7005", "cache.example.org:7005"}},
		{Addr: "10.0.0.1:7001", Aliases: []string{":7001"}, Slots: [][2]int{{0, 5460}, {10924, 10924}}},
	}, nodes)
	for text, want := range map[string]string{
		"x 10.0.0.1:1@2 master\n":                          "a line of 3 words",
		"x 10.0.0.1 master - 0 0 1 connected\n":            `address "10.0.0.1": no port`,
		"x 10.0.0.1:0@10000 master - 0 0 1 connected\n":    "no port that a client can use",
		"x 10.0.0.1:1@2 master - 0 0 1 connected a-b\n":    `10.0.0.1:1: slots "a-b"`,
		"x 10.0.0.1:1@2 master - 0 0 1 connected 16384\n":  `slots "16384" are none from 0 to 16383`,
		"x 10.0.0.1:1@2 master - 0 0 1 connected 7-5\n":    `slots "7-5"`,
		"x 10.0.0.1:1@2 master - 0 0 1 connected 7--1\n":   `slots "7--1"`,
		"x 10.0.0.1:99999@2 master - 0 0 1 connected 7\n ": "no port",
	} {
		_, err := parseNodes(text, "h")
		require.ErrorContains(t, err, want, text)
	}
}

// FuzzParseNodes: whatever a server sends, slots are within bounds and addresses can be split.
func FuzzParseNodes(f *testing.F) {
	f.Add(nodesText)
	f.Add("x :1 - - 0 0 0 c 0-16383")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := parseNodes(text, "host")
		if err != nil {
			require.Empty(t, nodes)
			return
		}
		for _, n := range nodes {
			_, _, err := net.SplitHostPort(n.Addr)
			require.NoError(t, err)
			for _, r := range n.Slots {
				require.True(t, 0 <= r[0] && r[0] <= r[1] && r[1] <= lastSlot, "%v", r)
			}
		}
	})
}

func TestRedirect(t *testing.T) {
	c := newTestCodec(t, Config{Protocol: 2, Cluster: true})
	for message, want := range map[string]string{
		"MOVED 3999 127.0.0.1:6381":          "127.0.0.1:6381",
		"ASK 3999 cache.example.org:6381":    "ask cache.example.org:6381",
		"MOVED 3999 :6381":                   ":6381",
		"ASK 3999 ?:6381":                    "ask :6381",
		"MOVED 3999 ::1:6381":                "::1:6381",
		"MOVED 3999 ":                        "",
		"MOVED 3999":                         "none",
		"MOVED":                              "none",
		"ERR MOVED 3999 127.0.0.1:6381":      "none",
		"CLUSTERDOWN The cluster is down":    "none",
		"TRYAGAIN Multiple keys request ...": "none",
		"":                                   "none",
	} {
		addr, ask, ok := c.Redirect([]byte(message))
		got := string(addr)
		if ask {
			got = "ask " + got
		}
		if !ok {
			got = "none"
		}
		require.Equal(t, want, got, message)
	}
}

// TestAsking: a redirected request is preceded by ASKING, whose reply is a status.
func TestAsking(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		c, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: protocol, Cluster: true}})
		require.NoError(t, err)
		require.Equal(t, "*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
			string(c.AppendRequest(nil, &driver.Request{Verb: driver.Get, Key: []byte("k"), Asking: true})))
		r := c.(driver.Redirector)
		n, err := r.ParseAsking([]byte("+OK\r\n$1\r\n"))
		require.NoError(t, err)
		require.Equal(t, len("+OK\r\n"), n)
		n, err = r.ParseAsking([]byte("+O"))
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = r.ParseAsking([]byte("$1\r\nv\r\n"))
		require.ErrorContains(t, err, "ASKING: want +OK")
	}
}

// TestStrayRequests shows what a user reads who has not declared the server a cluster node.
func TestStrayRequests(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for _, words := range []string{"-MOVED 3999 127.0.0.1:6381\r\n", "-ASK 3999 127.0.0.1:6381\r\n"} {
			for _, cluster := range []bool{false, true} {
				c, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: protocol, Cluster: cluster}})
				require.NoError(t, err)
				var reply driver.Reply
				n, err := c.Parse([]byte(words), driver.Get, &reply)
				require.NoError(t, err)
				require.Equal(t, len(words), n)
				require.Equal(t, driver.Error, reply.Outcome)
				want := strings.TrimSpace(words[1:])
				if !cluster {
					want = "the server is a node of a cluster and does not have the key: write cluster = true in the target"
				}
				require.Equal(t, want, string(reply.Message))
			}
		}
	}
	require.ErrorContains(t, (&Config{Protocol: 2, Cluster: true, Database: 3}).Validate(), "database = 3 of a cluster: leave it out")
}

// TestReplicasOfServers asks a master and a Sentinel for replicas, and those who cannot know any.
func TestReplicasOfServers(t *testing.T) {
	master := servertest.Redis(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master)
	replica := servertest.Redis(t, "--replicaof", host+" "+port)
	sentinel := servertest.Sentinel(t, master)
	question := func(addr string, cfg *Config) ([]driver.Node, error) {
		conn, err := dialer(addr)()
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		return Driver{}.Nodes(context.Background(), conn, driver.Link{Config: cfg})
	}
	byRole, watched := &Config{Protocol: 3, Read: "replica"}, &Config{Protocol: 3, Read: "replica", Sentinel: &Sentinel{Master: "main"}}
	want := []driver.Node{{Addr: master, Slots: all}, {Addr: replica, Of: master}}
	for addr, cfg := range map[string]*Config{master: byRole, sentinel: watched} {
		require.Eventually(t, func() bool {
			got, err := question(addr, cfg)
			return err == nil && len(got) == 2 && got[1].Of != ""
		}, time.Minute, 50*time.Millisecond)
		got, err := question(addr, cfg)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := question(sentinel, &Config{Protocol: 2, Sentinel: &Sentinel{Master: "main"}})
	require.NoError(t, err)
	require.Equal(t, []driver.Node{{Addr: master, Slots: all}, {Addr: replica}}, got, "gets ask the master")
	_, err = question(replica, byRole)
	require.ErrorContains(t, err, "the server is not a master, but a slave")
	_, err = question(master, watched)
	require.ErrorContains(t, err, "the server is no Sentinel")
}

// TestNodesOfServers asks real nodes: each node of a cluster, over both protocols, and one outside a cluster.
func TestNodesOfServers(t *testing.T) {
	servers := servertest.RedisCluster(t, 3, 0)
	question := func(addr string, cfg *Config) ([]driver.Node, error) {
		conn, err := dialer(addr)()
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		return Driver{}.Nodes(context.Background(), conn, driver.Link{Config: cfg})
	}
	for i, s := range servers {
		nodes, err := question(s.Addr, &Config{Protocol: 2 + i%2, Cluster: true})
		require.NoError(t, err)
		require.Len(t, nodes, 3)
		slots := 0
		for _, n := range nodes {
			for _, r := range n.Slots {
				slots += r[1] - r[0] + 1
			}
		}
		require.Equal(t, lastSlot+1, slots)
	}
	_, err := question(servertest.Redis(t), &Config{Protocol: 2, Cluster: true})
	require.ErrorContains(t, err, "the server is in no cluster: leave cluster out of the target")

	conn, err := dialer(servers[0].Addr)()
	require.NoError(t, err)
	codec, err := Driver{}.NewCodec(driver.Link{Config: &Config{Protocol: 2}})
	require.NoError(t, err)
	x := drivertest.OverConn(t, codec, conn)
	replies := x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("foo")}) // slot 12182, which the last node has
	require.Equal(t, driver.Error, replies[0].Outcome)
	require.Equal(t, string(strayed), string(replies[0].Message))
}
