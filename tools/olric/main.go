// Command olric runs nodes of Olric, a distributed cache whose servers copy values among themselves, on the loopback: a target to load. It is a module of
// its own, so that loadgen needs none of this.
//
//	olric -port 22100 -node 0     the first node
//
// Node i answers clients at port + i, in Redis' protocol, and the other nodes at port + 50 + i. It joins the nodes before it, prints "joined" then and
// "ready" once each value has its copies, and leaves the others when it is told to end (SIGINT, SIGTERM). Start a node once the one before has joined: of
// nodes that find each other at one time two may take themselves for the coordinator, and one of these ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/olric-data/olric"
	"github.com/olric-data/olric/config"
)

// leaveTimeout is the time in which a node must leave the others.
const leaveTimeout = 3 * time.Second

func main() {
	port := flag.Int("port", 22100, "port of the first node")
	node := flag.Int("node", 0, "number of this node")
	n := flag.Int("n", 3, "copies of a value")
	w := flag.Int("w", 2, "copies that a put waits for")
	r := flag.Int("r", 1, "copies that a get reads")
	flag.Parse()
	c := configure(*port, *node)
	c.ReplicaCount, c.WriteQuorum, c.ReadQuorum = *n, *w, *r
	if err := run(c); err != nil {
		slog.Error("olric ended", "error", err)
		os.Exit(1)
	}
}

const host = "127.0.0.1"

// configure returns the settings that all nodes share, with the addresses of one node.
func configure(port, node int) *config.Config {
	c := config.New("local")
	c.BindAddr, c.BindPort = host, port+node
	c.PartitionCount = 71 // a few keys reach all nodes
	c.LogLevel, c.LogVerbosity, c.LogOutput = config.LogLevelWarn, 1, os.Stderr
	gossip := port + 50
	c.MemberlistConfig.BindAddr, c.MemberlistConfig.BindPort = host, gossip+node
	c.MemberlistConfig.AdvertiseAddr, c.MemberlistConfig.AdvertisePort = host, gossip+node
	for i := range node {
		c.Peers = append(c.Peers, net.JoinHostPort(host, strconv.Itoa(gossip+i)))
	}
	return c
}

// run starts a node, says when it is ready, and ends it on a signal.
func run(c *config.Config) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := make(chan struct{})
	c.Started = func() { close(started) }
	db, err := olric.New(c)
	if err != nil {
		return fmt.Errorf("configure a node at port %d: %w", c.BindPort, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Start() }() // ends with Shutdown
	var look <-chan time.Time           // nil before and after the time in which the node is asked
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("node at port %d: %w", c.BindPort, err)
		case <-ctx.Done():
			return leave(db)
		case <-started:
			started, look = nil, time.After(0)
			fmt.Println("joined")
		case <-look:
			look = time.After(20 * time.Millisecond)
			if complete(ctx, db, c) {
				look = nil
				fmt.Println("ready")
			}
		}
	}
}

// complete reports whether the node knows the nodes for each partition's copies, so that no quorum fails because nodes are missing.
func complete(ctx context.Context, db *olric.Olric, c *config.Config) bool {
	table, err := db.NewEmbeddedClient().RoutingTable(ctx)
	if err != nil || len(table) != int(c.PartitionCount) {
		return false
	}
	for _, partition := range table {
		if len(partition.ReplicaOwners) != c.ReplicaCount-1 {
			return false
		}
	}
	return true
}

// leave makes the other nodes take over the data of this one.
func leave(db *olric.Olric) error {
	bounded, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := db.Shutdown(bounded); err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	return nil
}
