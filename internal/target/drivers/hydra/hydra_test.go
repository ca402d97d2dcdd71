package hydra

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// serve starts a node that waits 2 ms for others, unless space says otherwise.
func serve(t testing.TB, space cachenode.Space) *cachenode.Node {
	space.Wait = cmp.Or(space.Wait, 2*time.Millisecond)
	n, err := cachenode.New(cachenode.Config{Listen: "127.0.0.1:0", Protocol: "hydra", Memory: 64 << 20, Space: space})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- n.Serve(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		require.NoError(t, <-served)
	})
	return n
}

func dial(t testing.TB, n *cachenode.Node) net.Conn {
	conn, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestConformance(t *testing.T) {
	n := serve(t, cachenode.Space{N: 1, W: 1, R: 1})
	drivertest.Run(t, drivertest.Suite{
		Driver: Driver{}, Dial: func() (net.Conn, error) { return net.Dial("tcp", n.Addr().String()) }, BlindDeletes: true,
	})
}

// TestKeysThatServersKeep puts and gets what would be a page of the server, or cut off, if it were sent as it is; with fresh, a run does not see
// another's.
func TestKeysThatServersKeep(t *testing.T) {
	n := serve(t, cachenode.Space{N: 1, W: 1, R: 1})
	open := func(run string, fresh bool) drivertest.Executor {
		shared, err := Driver{}.NewCodec(driver.Link{Config: &Config{Points: 1, Fresh: fresh}, Run: run})
		require.NoError(t, err)
		own, err := shared.(driver.Stateful).Connection(n.Addr().String(), 1)
		require.NoError(t, err)
		return drivertest.OverConn(t, own, dial(t, n))
	}
	for i, key := range []string{"registry", "storage", "dump", "a/b", "b", "b?c", "b#c", "/b", "b/"} {
		x, value := open("one", false), &driver.Value{Size: 10 + i}
		require.Equal(t, driver.OK, x.Do(t, driver.Request{Verb: driver.Put, Key: []byte(key), Value: value})[0].Outcome, "it is no other key: %s", key)
		require.Equal(t, string(value.AppendTo(nil)), string(x.Do(t, driver.Request{Verb: driver.Get, Key: []byte(key)})[0].Value), key)
	}
	put := driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 10}}
	require.Equal(t, driver.OK, open("one", true).Do(t, put)[0].Outcome)
	require.Equal(t, driver.OK, open("two", true).Do(t, put)[0].Outcome)
	require.Equal(t, driver.Conflict, open("one", true).Do(t, put)[0].Outcome)
}

// TestRing looks keys up as the original client and the original test kit do.
func TestRing(t *testing.T) {
	file, err := os.Open("testdata/ring.txt")
	require.NoError(t, err)
	defer file.Close()
	var addresses []string
	rings := map[string]*op.Ring{}
	checked := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "nodes":
			addresses = words[1:]
			for name, points := range map[string]int{"2011": 1, "2009": 20} {
				var all [][]uint32
				for _, at := range addresses {
					all = append(all, Driver{}.Points(&Config{Points: points}, at))
				}
				rings[name] = op.NewRingOf(all)
			}
		default:
			require.Equal(t, words[2], addresses[rings[words[0]].Home([]byte(words[1]))], "%s in %s", words[1], words[0])
			checked++
		}
	}
	require.Equal(t, 48, checked)
}

// TestVersions has two sessions put a key: each put carries what its session was told last, on whatever connection, and a conflict tells nothing.
func TestVersions(t *testing.T) {
	n := serve(t, cachenode.Space{N: 1, W: 1, R: 1})
	shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	open := func(session int) drivertest.Executor {
		own, err := shared.(driver.Stateful).Connection(n.Addr().String(), session)
		require.NoError(t, err)
		return drivertest.OverConn(t, own, dial(t, n))
	}
	do := func(x drivertest.Executor, verb driver.Verb, want driver.Outcome) {
		t.Helper()
		r := x.Do(t, driver.Request{Verb: verb, Key: []byte("k"), Value: &driver.Value{Size: 30}})[0]
		require.Equal(t, want.String(), r.Outcome.String(), "%s", r.Message)
	}
	one, two := open(1), open(2)
	do(one, driver.Get, driver.Miss)
	do(one, driver.Put, driver.OK)
	do(open(1), driver.Put, driver.OK) // a new connection, with the version of the old one's reply
	do(two, driver.Put, driver.Conflict)
	do(two, driver.Put, driver.Conflict) // as before
	do(two, driver.Get, driver.OK)
	do(two, driver.Put, driver.OK)
	do(one, driver.Put, driver.Conflict)
	do(one, driver.Delete, driver.OK)
	do(one, driver.Put, driver.OK) // it is gone: the version begins anew
	pair := []driver.Request{}
	for range 2 {
		pair = append(pair, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 30}})
	}
	replies := one.Do(t, pair...)
	require.Equal(t, driver.OK, replies[0].Outcome)
	require.Equal(t, driver.Conflict, replies[1].Outcome, "sent before the first was answered, with the same version")
}

func TestQuorumFailed(t *testing.T) {
	n := serve(t, cachenode.Space{N: 3, W: 2, R: 1})
	shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	own, err := shared.(driver.Stateful).Connection(n.Addr().String(), 1)
	require.NoError(t, err)
	r := drivertest.OverConn(t, own, dial(t, n)).Do(t, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 30}})[0]
	require.Equal(t, driver.QuorumFailed, r.Outcome)
	require.Zero(t, r.Acks)
	require.EqualValues(t, 500, r.Code)
	require.Contains(t, string(r.Message), "expected[2] : received[0]")
	require.EqualValues(t, 12, received([]byte("… expected[20] : received[12]")))
}

// TestServersThatAreGone ends one of four servers, then another: a put waits for the first in vain, and misses its quorum without both, but where it came
// it stays. With W = 1 nothing is copied.
func TestServersThatAreGone(t *testing.T) {
	const wait = 200 * time.Millisecond
	space := func(n, w int, nodes int) (servers []*cachenode.Node, ask func(node int, verb driver.Verb, key string) driver.Reply) {
		var all []string
		for range nodes {
			s := serve(t, cachenode.Space{N: n, W: w, R: 1, Wait: wait})
			servers, all = append(servers, s), append(all, s.Addr().String())
		}
		shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
		require.NoError(t, err)
		for _, s := range servers {
			s.Join(all)
		}
		for _, s := range servers {
			_, err := Driver{}.Identify(t.Context(), dial(t, s), driver.Link{Config: Driver{}.NewConfig(), Endpoint: s.Addr().String(), Others: all})
			require.NoError(t, err)
		}
		return servers, func(node int, verb driver.Verb, key string) driver.Reply {
			own, err := shared.(driver.Stateful).Connection(all[node], 1)
			require.NoError(t, err)
			return drivertest.OverConn(t, own, dial(t, servers[node])).Do(t, driver.Request{Verb: verb, Key: []byte(key), Value: &driver.Value{Size: 30}})[0]
		}
	}
	servers, ask := space(3, 2, 4)
	require.Equal(t, driver.OK, ask(0, driver.Put, "a").Outcome)
	servers[3].Close()
	began := time.Now()
	require.Equal(t, driver.OK, ask(0, driver.Put, "a").Outcome)
	require.GreaterOrEqual(t, time.Since(began), wait)
	servers[2].Close()
	failed := ask(0, driver.Put, "b")
	require.Equal(t, driver.QuorumFailed, failed.Outcome)
	require.EqualValues(t, 1, failed.Acks)
	require.Equal(t, driver.OK, ask(1, driver.Get, "b").Outcome, "no roll-back")

	_, ask = space(1, 1, 2)
	require.Equal(t, driver.OK, ask(0, driver.Put, "a").Outcome)
	require.Equal(t, driver.Miss, ask(1, driver.Get, "a").Outcome)
}

func TestIdentify(t *testing.T) {
	n := serve(t, cachenode.Space{N: 3, W: 2, R: 1})
	at := n.Addr().String()
	id, err := Driver{}.Identify(t.Context(), dial(t, n), driver.Link{Config: Driver{}.NewConfig(), Endpoint: at, Others: []string{at}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"server": "hydra", "version": "1.1", "state": "2011", "n": "3", "w": "2", "r": "1", "max_memory": "67108864"}, id)

	_, err = Driver{}.Identify(t.Context(), dial(t, n), driver.Link{Config: &Config{Points: 1}, Endpoint: at, Others: []string{at, "127.0.0.1:1"}})
	require.ErrorContains(t, err, "/registry lists "+at+", and not 127.0.0.1:1")

	early := serve(t, cachenode.Space{N: 3, W: 2, R: 1, Early: true})
	id, err = Driver{}.Identify(t.Context(), dial(t, early), driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	require.Equal(t, "2009", id["state"])
	require.Equal(t, "the server does not say which N, W and R it has", id[driver.Note])
	require.NotContains(t, id, "n")
}

// TestDeletesOfEarlyServers: servers of 2009 know none, and the error says what to do.
func TestDeletesOfEarlyServers(t *testing.T) {
	n := serve(t, cachenode.Space{N: 1, W: 1, R: 1, Early: true})
	shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	own, err := shared.(driver.Stateful).Connection(n.Addr().String(), 1)
	require.NoError(t, err)
	r := drivertest.OverConn(t, own, dial(t, n)).Do(t, driver.Request{Verb: driver.Delete, Key: []byte("k")})[0]
	require.Equal(t, driver.Error, r.Outcome)
	require.Equal(t, "405 Method Not Allowed: servers of 2009 have no delete; leave it out of ops, or load a server of 2011", string(r.Message))
}

func TestConfig(t *testing.T) {
	require.ErrorContains(t, (&Config{Points: 2}).Validate(), "points = 2: write 1")
	require.ErrorContains(t, (&Config{Points: 1, Ready: time.Minute}).Validate(), "write a duration from 0s to 25s")
	require.NoError(t, Driver{}.CheckAddress("127.0.0.1:8080"))
	require.ErrorContains(t, Driver{}.CheckAddress("localhost:8080"), "write IP:PORT")
	require.ErrorContains(t, Driver{}.CheckAddress("127.0.0.1:40000"), "on a port below 32768")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n"+frameStart+string(make([]byte, 14))+"x"), uint8(driver.Get))
	f.Add([]byte("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad"), uint8(driver.Put))
	f.Fuzz(func(t *testing.T, b []byte, verb uint8) {
		c := &conn{known: versions{}}
		var whole, cut driver.Reply
		n, err := c.Parse(b, driver.Verb(verb%3), &whole)
		require.True(t, err == nil || n == 0)
		require.LessOrEqual(t, n, len(b))
		if n > 0 {
			again, err := c.Parse(b[:n:n], driver.Verb(verb%3), &cut)
			require.NoError(t, err)
			require.Equal(t, n, again)
			require.Equal(t, whole, cut)
		}
	})
}
