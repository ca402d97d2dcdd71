package hydra

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
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

// TestServersThatSendNoVersionBack has the codec put what was put to servers of 3 April 2009 and read what these replied: it then knows the version that
// the next get at that server was told. A get of the same key ahead of the put, whose reply says another version, makes no difference.
func TestServersThatSendNoVersionBack(t *testing.T) {
	text, err := os.ReadFile("../../cachenode/testdata/hydra/2009-04-03.txt")
	require.NoError(t, err)
	exchange := regexp.MustCompile(`(?m)^(\d+) > ("(PUT|GET) /([^ ]*) .*")\n<~? (".*")$`)
	puts := map[string]*conn{} // by server and key: the connection that stored it last
	checked := 0
	for _, x := range exchange.FindAllStringSubmatch(string(text), -1) {
		request, err := strconv.Unquote(x[2])
		require.NoError(t, err)
		reply, err := strconv.Unquote(x[5])
		require.NoError(t, err)
		_, body, _ := strings.Cut(request, "\r\n\r\n")
		at, key := x[1]+x[4], []byte(x[4])
		var r driver.Reply
		switch c := puts[at]; {
		case x[3] == "PUT" && strings.HasPrefix(body, frameStart) && len(key) > 0:
			own, err := (&codec{sessions: map[int]versions{}}).Connection("127.0.0.1:"+x[1], 1)
			require.NoError(t, err)
			c = own.(*conn)
			c.known[string(key)] = (*version)([]byte(body[len(frameStart):frameSize]))
			c.AppendRequest(nil, &driver.Request{Verb: driver.Get, Key: key})
			sent := c.AppendRequest(nil, &driver.Request{Verb: driver.Put, Key: key, Value: &driver.Value{}})
			require.Contains(t, string(sent), body[:frameSize])
			_, err = c.Parse([]byte(ok(frameStart+strings.Repeat("x", len(null)))), driver.Get, &r)
			require.NoError(t, err)
			n, err := c.Parse([]byte(reply), driver.Put, &r)
			require.NoError(t, err)
			require.Equal(t, len(reply), n)
			if r.Outcome == driver.OK {
				puts[at] = c
			}
		case x[3] == "GET" && c != nil && strings.Contains(reply, frameStart):
			require.Contains(t, reply, frameStart+string(c.known[string(key)][:]), "%s at %s", key, x[1])
			delete(puts, at)
			checked++
		}
	}
	require.Equal(t, 14, checked)
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

	n.Join([]string{serve(t, cachenode.Space{N: 3, W: 2, R: 1}).Addr().String()})
	link := driver.Link{Config: &Config{Points: 1}, Endpoint: at, Others: []string{at}}
	_, listed, err := registry(dial(t, n), at)
	for ; err == nil && len(listed) < 2; _, listed, err = registry(dial(t, n), at) {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, err)
	other := without(listed, []string{at})[0]
	id, err = Driver{}.Identify(t.Context(), dial(t, n), link)
	require.NoError(t, err)
	require.Equal(t, "its space has servers that are no endpoints, and copy values: "+other, id[driver.Note])
	link.Ring = true
	_, err = Driver{}.Identify(t.Context(), dial(t, n), link)
	require.ErrorContains(t, err, "/registry also lists "+other)

	early := serve(t, cachenode.Space{N: 3, W: 2, R: 1, Build: "2009-04-08"})
	id, err = Driver{}.Identify(t.Context(), dial(t, early), driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	require.Equal(t, "2009", id["state"])
	require.Equal(t, "the server does not say which N, W and R it has", id[driver.Note])
	require.NotContains(t, id, "n")
}

// answering returns a connection whose far end answers one request after another, and then closes it.
func answering(t *testing.T, answers ...string) net.Conn {
	near, far := net.Pipe()
	require.NoError(t, near.SetDeadline(time.Now().Add(10*time.Second)))
	go func() {
		defer far.Close()
		for _, answer := range answers {
			if _, err := far.Read(make([]byte, 4096)); err != nil {
				return
			}
			if _, err := far.Write([]byte(answer)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = near.Close() })
	return near
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: hydra/1.0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// What answers otherwise than Hydra Cache is named by its answer.
func TestServersThatAreNoHydra(t *testing.T) {
	for answer, says := range map[string]string{
		"":                                       "/registry: server closed the connection: is it Hydra Cache?",
		"-ERR unknown command\r\n":               "/registry: hydra: not an HTTP response",
		"HTTP/1.1 OK\r\n\r\n":                    "not an HTTP response",
		"HTTP/1.1 2x0 OK\r\n\r\n":                "not an HTTP response",
		"HTTP/1." + strings.Repeat("x", maxHead): "not an HTTP response",
		"HTTP/1.1 200 OK\r\n\r\n":                "a response without a Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n":           "a response without a Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":        "a response without a Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 536870913\r\n\r\n": "a response of more than 512 MiB",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n":  "/registry: the server answers 404 Not Found: is it Hydra Cache?",
		ok("<html>"): `/registry: no list of nodes, but "<html>": is it Hydra Cache?`,
		ok(strings.Repeat(" ", maxAnswer+1))[:maxAnswer+8]: "/registry: reply goes on beyond 1048576 bytes",
	} {
		var answers []string
		if answer != "" {
			answers = []string{answer}
		}
		_, err := Driver{}.Identify(t.Context(), answering(t, answers...), driver.Link{Config: Driver{}.NewConfig()})
		require.ErrorContains(t, err, "ask Hydra Cache what it is: ")
		require.ErrorContains(t, err, says)
	}
	_, err := Driver{}.Identify(t.Context(), answering(t, ok("[]"), ok("<html>")), driver.Link{Config: Driver{}.NewConfig()})
	require.ErrorContains(t, err, `/storage: no figures, but "<html>": is it Hydra Cache?`)
	id, err := Driver{}.Identify(t.Context(), answering(t, ok("[]"), ok(`{"maxMemory": 5e9}`)), driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	require.Equal(t, "5000000000", id["max_memory"], "a number is as good as a text")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Driver{}.Identify(ctx, answering(t, ok("[]")), driver.Link{Config: Driver{}.NewConfig(), Others: []string{"127.0.0.1:1"}})
	require.ErrorIs(t, err, context.Canceled)
}

// Statuses and bodies that no server of Hydra's should send are errors of their op, in words, or of the connection if the reply cannot be read.
func TestRepliesThatAreNoSuccess(t *testing.T) {
	for _, c := range []struct {
		verb   driver.Verb
		reply  string
		want   driver.Outcome
		says   string
		broken error
	}{
		{driver.Get, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 3\r\n\r\nbad", driver.Error, "bad", nil},
		{driver.Get, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", driver.Error, "503 Service Unavailable", nil},
		{driver.Put, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", driver.Error, "404 Not Found", nil},
		{driver.Put, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 47\r\n\r\nNot enough members participated - received[9999", driver.QuorumFailed, "received[9999", nil},
		{driver.Get, ok("short"), driver.OK, "", errNoFrame},
		{driver.Get, ok(strings.Repeat("x", frameSize)), driver.OK, "", errNoFrame},
		{driver.Get, "ftp", driver.OK, "", errNoHTTP},
	} {
		shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
		require.NoError(t, err)
		own, err := shared.(driver.Stateful).Connection("127.0.0.1:1", 1)
		require.NoError(t, err)
		var reply driver.Reply
		n, err := own.Parse([]byte(c.reply), c.verb, &reply)
		require.Equal(t, c.broken, err)
		if c.broken == nil {
			require.Equal(t, len(c.reply), n)
			require.Equal(t, c.want, reply.Outcome, c.reply)
			require.Contains(t, string(reply.Message), c.says)
		}
	}
}

// TestDeletesOfEarlyServers: servers of 2009 know none, and the error says what to do.
func TestDeletesOfEarlyServers(t *testing.T) {
	n := serve(t, cachenode.Space{N: 1, W: 1, R: 1, Build: "2009-04-08"})
	shared, err := Driver{}.NewCodec(driver.Link{Config: Driver{}.NewConfig()})
	require.NoError(t, err)
	own, err := shared.(driver.Stateful).Connection(n.Addr().String(), 1)
	require.NoError(t, err)
	r := drivertest.OverConn(t, own, dial(t, n)).Do(t, driver.Request{Verb: driver.Delete, Key: []byte("k")})[0]
	require.Equal(t, driver.Error, r.Outcome)
	require.Equal(t, "405 Method Not Allowed: servers of 2009 have no delete; leave it out of ops, or load a server of 2011", string(r.Message))
}

func TestConfig(t *testing.T) {
	for _, config := range []any{nil, &Config{Points: 2}} {
		_, err := Driver{}.NewCodec(driver.Link{Config: config})
		require.ErrorContains(t, err, "hydra: ")
		_, err = Driver{}.Identify(t.Context(), answering(t), driver.Link{Config: config})
		require.ErrorContains(t, err, "hydra: ")
	}
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
