package ignite

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

func dial(t testing.TB, s *servertest.Ignite) net.Conn {
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// recorded returns the exchanges of a file: what was sent, and what came back; "" for the end of the connection.
func recorded(t testing.TB, file string) (all [][2]string) {
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "> "):
			all = append(all, [2]string{unhex(t, line[2:])})
		case line == "< closed":
		case strings.HasPrefix(line, "< "):
			all[len(all)-1][1] = unhex(t, line[2:])
		}
	}
	require.NotEmpty(t, all)
	return all
}

func unhex(t testing.TB, text string) string {
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	return string(b)
}

const hello = "\x08\x00\x00\x00\x01\x01\x00\x02\x00\x00\x00\x02"

// TestTheStandInAnswersAsRecorded replays what was recorded of a real node, byte for byte.
func TestTheStandInAnswersAsRecorded(t *testing.T) {
	s := servertest.StartIgnite(t)
	exchange := func(conn net.Conn, sent, want string) {
		_, err := io.WriteString(conn, sent)
		require.NoError(t, err)
		got := make([]byte, len(want))
		if want == "" {
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "%x", sent)
			return
		}
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err, "%x", sent)
		require.Equal(t, hex.EncodeToString([]byte(want)), hex.EncodeToString(got), "%x", sent)
	}
	one := dial(t, s)
	exchange(one, hello, "\x01\x00\x00\x00\x01")
	for _, e := range recorded(t, "caches.txt") {
		exchange(one, e[0], e[1])
	}
	for _, e := range append(recorded(t, "handshakes.txt"), recorded(t, "refusals.txt")...) {
		conn := dial(t, s)
		if e[0][4] != 1 || len(e[0]) == 16 { // no handshake
			exchange(conn, hello, "\x01\x00\x00\x00\x01")
		}
		exchange(conn, e[0], e[1])
	}
}

func TestConformance(t *testing.T) {
	s := servertest.StartIgnite(t)
	s.Shuffle = true
	drivertest.Run(t, drivertest.Suite{
		Driver: Driver{}, Dial: func() (net.Conn, error) { return net.Dial("tcp", s.Addr) }, Note: "does not tell the server's version",
	})
}

func made(t testing.TB, cfg *Config) *codec {
	c, err := newCodec(driver.Link{Config: cfg, Secrets: func(string) (string, error) { return "p", nil }})
	require.NoError(t, err)
	return c
}

// TestRequestsAreThoseRecorded makes requests that a real node has answered, and reads its answers.
func TestRequestsAreThoseRecorded(t *testing.T) {
	known := map[string]string{}
	for _, file := range []string{"caches.txt", "handshakes.txt"} {
		for _, e := range recorded(t, file) {
			known[e[0]] = e[1]
		}
	}
	c := made(t, &Config{CacheName: "items"})
	greeting, n := made(t, &Config{CacheName: "items", User: "u", Password: &driver.Secret{Name: "P"}}).Greet(nil)
	require.Equal(t, 1, n)
	require.NotEmpty(t, known[string(greeting)])
	for _, one := range []struct {
		id   uint32
		verb driver.Verb
		key  string
		want driver.Reply
	}{
		{4, driver.Get, "k1", driver.Reply{Value: []byte("hello")}},
		{5, driver.Get, "none", driver.Reply{Outcome: driver.Miss}},
		{13, driver.Delete, "a", driver.Reply{}},
		{14, driver.Delete, "a", driver.Reply{Outcome: driver.Miss}},
	} {
		reply := known[string(c.AppendRequest(nil, &driver.Request{ID: one.id, Verb: one.verb, Key: []byte(one.key)}))]
		id, ok := c.Tag([]byte(reply))
		require.True(t, ok)
		require.Equal(t, one.id, id)
		var got driver.Reply
		_, err := c.Parse([]byte(reply), one.verb, &got)
		require.NoError(t, err)
		require.Equal(t, one.want, got)
	}
	var keys []driver.Item
	for _, key := range []string{"a", "b", "none", "c"} {
		keys = append(keys, driver.Item{Key: []byte(key)})
	}
	reply := known[string(c.AppendBatch(nil, &driver.Request{ID: 7, Verb: driver.Get, Batch: keys}))]
	replies := make([]driver.Reply, 4)
	for cut := range reply {
		n, err := c.ParseBatch([]byte(reply[:cut]), driver.Get, replies)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	_, err := c.ParseBatch([]byte(reply), driver.Get, replies)
	require.NoError(t, err)
	require.Equal(t, []driver.Reply{{Value: []byte("1")}, {Value: []byte("2")}, {Value: []byte("3")}, {Outcome: driver.Miss}}, replies)
	_, err = c.ParseBatch([]byte(reply), driver.Get, replies[:2])
	require.ErrorIs(t, err, errObjects, "more values than were asked for")
}

// TestRepeatedKeys: a node answers a key once, and it counts as often as it was asked for.
func TestRepeatedKeys(t *testing.T) {
	s := servertest.StartIgnite(t)
	c := made(t, &Config{CacheName: "items"})
	conn := dial(t, s)
	x := drivertest.OverConn(t, c, conn)
	for _, key := range []string{"a", "b"} {
		x.Do(t, driver.Request{Verb: driver.Put, Key: []byte(key), Value: &driver.Value{Size: 3}})
	}
	for i, keys := range []string{"aaba", "nana", "nbn", "ab", "aabba"} {
		var items []driver.Item
		there := 0
		for _, key := range strings.Split(keys, "") {
			items = append(items, driver.Item{Key: []byte(key)})
			if key != "n" {
				there++
			}
		}
		_, err := conn.Write(c.AppendBatch(nil, &driver.Request{ID: uint32(100 + i), Verb: driver.Get, Batch: items}))
		require.NoError(t, err)
		replies, ok := make([]driver.Reply, len(items)), 0
		in := driver.Asker{Conn: conn, Most: mostAnswer}
		require.NoError(t, in.Next(func(b []byte) (int, error) {
			n, err := c.ParseBatch(b, driver.Get, replies)
			if n > 0 {
				id, _ := c.Tag(b)
				require.EqualValues(t, 100+i, id)
			}
			return n, err
		}))
		for _, r := range replies {
			if r.Outcome == driver.OK {
				ok++
				require.Len(t, r.Value, 3)
			}
		}
		require.Equal(t, there, ok, keys)
		require.Empty(t, c.repeats)
	}
}

// TestCachesAndValuesOfOthers are errors in words, and the connection lives.
func TestCachesAndValuesOfOthers(t *testing.T) {
	s := servertest.StartIgnite(t)
	x := drivertest.OverConn(t, made(t, &Config{CacheName: "none"}), dial(t, s))
	for range 2 {
		r := x.Do(t, driver.Request{Verb: driver.Get, Key: []byte("k")})[0]
		require.Equal(t, driver.Error, r.Outcome)
		require.Contains(t, string(r.Message), "Cache does not exist")
		require.EqualValues(t, 1000, r.Code)
	}
	var r driver.Reply
	_, err := made(t, &Config{CacheName: "items"}).Parse([]byte("\x11\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x01\x00\x00\x00"), driver.Get, &r)
	require.NoError(t, err)
	require.Equal(t, driver.Error, r.Outcome)
	require.Contains(t, string(r.Message), "a value of another type than loadgen puts")
	replies := make([]driver.Reply, 2)
	const strings = "\x23\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09\x02\x00\x00\x00sk\x09\x05\x00\x00\x00hello\x00\x00"
	n, err := made(t, &Config{CacheName: "items"}).ParseBatch([]byte(strings), driver.Get, replies)
	require.NoError(t, err, "the connection lives")
	require.Len(t, strings, n)
	require.Contains(t, string(replies[0].Message), "a value of another type than loadgen puts")
	require.Equal(t, driver.Error, replies[1].Outcome)
	status := recorded(t, "caches.txt")[16][1]
	_, err = made(t, &Config{CacheName: "items"}).ParseBatch([]byte(status), driver.Put, replies)
	require.NoError(t, err)
	require.Contains(t, string(replies[0].Message), "Cache does not exist")
	require.Equal(t, driver.Error, replies[1].Outcome)
}

// TestPrepareMakesTheCache that Identify has not found.
func TestPrepareMakesTheCache(t *testing.T) {
	s := servertest.StartIgnite(t)
	link := driver.Link{Config: &Config{CacheName: "mine"}}
	id, err := Driver{}.Identify(t.Context(), dial(t, s), link)
	require.NoError(t, err)
	require.NotContains(t, id, "mode")
	for range 2 {
		require.NoError(t, Driver{}.Prepare(t.Context(), dial(t, s), link))
	}
	there := driver.Link{Config: &Config{CacheName: "other", Region: "large"}}
	require.NoError(t, Driver{}.Prepare(t.Context(), dial(t, s), there))
	_, err = Driver{}.Identify(t.Context(), dial(t, s), there)
	require.ErrorContains(t, err, `cache "other" is in another data region, ""`)
	id, err = Driver{}.Identify(t.Context(), dial(t, s), link)
	require.NoError(t, err)
	delete(id, driver.Note)
	require.Equal(t, map[string]string{"server": "ignite", "cache": "mine", "mode": "partitioned", "atomicity": "atomic", "backups": "0"}, id)
}

// TestFiguresWithoutSQL: the size of the cache is known, and of the rest why not. A cache that is not there has no items.
func TestFiguresWithoutSQL(t *testing.T) {
	s := servertest.StartIgnite(t)
	x := drivertest.OverConn(t, made(t, &Config{CacheName: "items"}), dial(t, s))
	x.Do(t, driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 3}})
	for cache, want := range map[string]string{"items": "1", "none": "0"} {
		link := driver.Link{Config: &Config{CacheName: cache, Region: "it's"}}
		in, err := made(t, link.Config.(*Config)).shake(dial(t, s))
		require.NoError(t, err)
		question, err := Driver{}.AppendQuestion(nil, link)
		require.NoError(t, err)
		require.Contains(t, string(question), "'io.dataregion.it''s.'")
		in.Say(question)
		var told map[string]string
		require.NoError(t, in.Next(func(b []byte) (n int, err error) {
			told, n, err = Driver{}.ParseFigures(b)
			return n, err
		}))
		require.Equal(t, want, told["items"])
		require.Equal(t, "unknown without ignite-indexing", told["TotalUsedPages"])
	}
}

// reply returns what answers a request.
func reply(id uint64, status uint32, objects string) string {
	b := binary.LittleEndian.AppendUint32(nil, uint32(replyHead+len(objects)))
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, id), status)
	return string(b) + objects
}

func text(s string) string { return string(appendObject(nil, typeString, s)) }

// table returns the rows of an answer to SQL.
func table(columns int, rows ...[]string) string {
	b := binary.LittleEndian.AppendUint32(make([]byte, 8), uint32(columns))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rows)))
	for _, row := range rows {
		for _, cell := range row {
			if cell == "" {
				b = append(b, typeNull)
				continue
			}
			b = appendObject(b, typeString, cell)
		}
	}
	return string(append(b, 0))
}

// answering returns a connection whose far end greets, answers one request after another, and then closes it.
func answering(t *testing.T, answers ...string) net.Conn {
	near, far := net.Pipe()
	require.NoError(t, near.SetDeadline(time.Now().Add(10*time.Second)))
	go func() {
		defer far.Close()
		for _, answer := range append([]string{"\x01\x00\x00\x00\x01"}, answers...) {
			if _, err := far.Read(make([]byte, 4096)); err != nil {
				return
			}
			if _, err := io.WriteString(far, answer); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = near.Close() })
	return near
}

// Identify names the version and the nodes where they can be asked for, and says what it was told otherwise.
func TestWhatServersSayOfThemselves(t *testing.T) {
	configuration := func(words ...uint32) string {
		var b []byte
		for _, w := range append([]uint32{0}, words...) {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return string(append(b, 0)) + text("large")
	}
	link := driver.Link{Config: &Config{CacheName: "items"}}
	id, err := Driver{}.Identify(t.Context(), answering(t, reply(1, 0, configuration(0, 2, 9)), reply(2, 0, table(1, []string{"2.17.0#2025"}, []string{"2.17.0#2025"}))), link)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"server": "ignite", "cache": "items", "mode": "9", "atomicity": "transactional", "backups": "2", "region": "large", "version": "2.17.0", "nodes": "2",
	}, id)
	for says, answers := range map[string][]string{
		"server closed the connection: is it the port of clientConnectorConfiguration": nil,
		"status 5: not now":                 {reply(1, 5, text("not now"))},
		"a reply with other objects":        {reply(1, 0, "short")},
		"ignite: a reply of 4 bytes":        {"\x04\x00\x00\x00"},
		"reply goes on beyond 1048576 byte": {reply(1, 0, strings.Repeat("x", mostAnswer+9))[:mostAnswer+1]},
		"closed the connection":             {reply(1, 0, configuration(0, 2, 9))},
	} {
		_, err := Driver{}.Identify(t.Context(), answering(t, answers...), link)
		require.ErrorContains(t, err, "ask ignite what it is: ")
		require.ErrorContains(t, err, says)
	}
	near, far := net.Pipe()
	require.NoError(t, far.Close())
	require.ErrorContains(t, Driver{}.Prepare(t.Context(), near, link), `make cache "items": handshake: `)
	require.EqualError(t, Driver{}.Prepare(t.Context(), answering(t, reply(1, 1, text("no"))), link), `make cache "items": status 1: no`)
	link.Config = &Config{CacheName: "items", Region: "large"}
	require.EqualError(t, Driver{}.Prepare(t.Context(), answering(t, reply(1, 1, text("no"))), link),
		`make cache "items" in data region "large", which each node must have: status 1: no`)
}

// Figures are the last words of their names, whatever the order of the answers.
func TestFiguresBySQL(t *testing.T) {
	size := reply(askSize, 0, "\x07\x00\x00\x00\x00\x00\x00\x00")
	metrics := reply(askMetrics, 0, table(2, []string{"cache.items.CacheGets", "12"}, []string{"io.dataregion.default.TotalUsedPages", ""}))
	for _, both := range []string{size + metrics, metrics + size} {
		told, n, err := Driver{}.ParseFigures([]byte(both))
		require.NoError(t, err)
		require.Len(t, both, n)
		require.Equal(t, map[string]string{"items": "7", "CacheGets": "12", "TotalUsedPages": ""}, told)
	}
	for _, c := range []struct{ answer, says string }{
		{reply(askSize, 7, text("not now")), "size of the cache: status 7: not now"},
		{reply(askSize, 0, "short"), errObjects.Error()},
		{reply(askMetrics, 0, table(3)), errObjects.Error()},
		{reply(askMetrics, 0, table(2, []string{"one"})), errObjects.Error()},
		{reply(askMetrics, 0, "short"), errObjects.Error()},
	} {
		_, _, err := Driver{}.ParseFigures([]byte(c.answer))
		require.EqualError(t, err, c.says)
	}
	for name, want := range map[string]driver.Figure{
		"CacheGets": {Counter: true}, "CacheTxCommits": {Counter: true}, "CacheSize": {}, "OffHeapSize": {Unit: "bytes"}, "SizeUsedByData": {Unit: "bytes"},
	} {
		want.Name = name
		require.Equal(t, want, Driver{}.Describe(name))
	}
}

// A reply that does not have what its request asked for ends the connection; words of a node that lacks memory say what helps.
func TestRepliesThatDoNotFit(t *testing.T) {
	c := made(t, &Config{CacheName: "items"})
	value := string(appendObject(nil, typeBytes, "v"))
	for name, one := range map[string]struct {
		verb    driver.Verb
		objects string
	}{
		"two values": {driver.Get, value + "x"}, "half a value": {driver.Get, value[:len(value)-1]}, "null and more": {driver.Get, "\x65\x65"}, "nothing": {driver.Get, ""},
		"an answer to a put": {driver.Put, "x"}, "none to a delete": {driver.Delete, ""},
	} {
		_, err := c.Parse([]byte(reply(1, 0, one.objects)), one.verb, new(driver.Reply))
		require.ErrorIs(t, err, errObjects, name)
	}
	one := "\x01\x00\x00\x00"
	for name, many := range map[string]struct {
		verb    driver.Verb
		objects string
	}{
		"no count": {driver.Get, "x"}, "no key": {driver.Get, one + value}, "no value": {driver.Get, one + text("k")}, "half a value": {driver.Get, one + text("k") + value[:3]},
		"more": {driver.Get, one + text("k") + value + "x"}, "an answer to puts": {driver.Put, "x"},
	} {
		_, err := c.ParseBatch([]byte(reply(1, 0, many.objects)), many.verb, make([]driver.Reply, 2))
		require.ErrorIs(t, err, errObjects, name)
	}
	for _, b := range []string{"\xff\xff\xff\xff", "\x00\x00\x00\x00"} {
		_, err := c.Parse([]byte(b), driver.Get, new(driver.Reply))
		require.ErrorContains(t, err, "ignite: a reply of")
		_, err = c.ParseBatch([]byte(b), driver.Get, make([]driver.Reply, 2))
		require.ErrorContains(t, err, "ignite: a reply of")
	}
	var r driver.Reply
	_, err := c.Parse([]byte(reply(1, 1<<20, text("Failed to update keys (retry …): [k]"))), driver.Put, &r)
	require.NoError(t, err)
	require.Contains(t, string(r.Message), "make the data region larger")
	require.EqualValues(t, 65535, r.Code)
}

func TestHandshakesThatFail(t *testing.T) {
	c := made(t, &Config{CacheName: "items"})
	for _, e := range recorded(t, "refusals.txt")[:2] {
		_, err := c.ParseGreeting([]byte(e[1]), 0)
		require.ErrorContains(t, err, "which speaks version 1.7.0")
		require.ErrorContains(t, err, "Unsupported version")
	}
	for _, other := range []string{"\x00\x00\x00\x00", "\x02\x00\x00\x00\x00x", "-ERR unknown command\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		_, err := c.ParseGreeting([]byte(other), 0)
		require.ErrorIs(t, err, errNoIgnite)
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, Driver{}.NewConfig().(*Config).Validate())
	require.ErrorContains(t, (&Config{}).Validate(), `cache_name = "": write the name of a cache, or leave it out for "loadgen"`)
	require.ErrorContains(t, (&Config{CacheName: "c", Region: "a\nb"}).Validate(), `region = "a\nb": write the name of a data region`)
	for _, config := range []any{nil, &Config{}} {
		link := driver.Link{Config: config}
		_, made := Driver{}.NewCodec(link)
		_, told := Driver{}.Identify(t.Context(), nil, link)
		_, asked := Driver{}.AppendQuestion(nil, link)
		for _, err := range []error{made, told, asked, Driver{}.Prepare(t.Context(), nil, link)} {
			require.ErrorContains(t, err, "ignite: ")
		}
	}
	require.ErrorContains(t, (&Config{CacheName: "c", User: "u"}).Validate(), "user and password belong together")
	_, err := newCodec(driver.Link{Config: &Config{CacheName: "c", User: "u", Password: &driver.Secret{Name: "P"}}, Secrets: func(string) (string, error) { return "", errors.New("not set") }})
	require.EqualError(t, err, "password of ignite: not set")
}

func FuzzParseFigures(f *testing.F) {
	for _, e := range recorded(f, "caches.txt") {
		f.Add([]byte(e[1]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, n, err := Driver{}.ParseFigures(b)
		require.True(t, n >= 0 && n <= len(b) && (err == nil || n == 0))
	})
}

func FuzzParse(f *testing.F) {
	for _, e := range recorded(f, "caches.txt") {
		f.Add([]byte(e[1]), uint8(driver.Get))
	}
	c := made(f, &Config{CacheName: "items"})
	f.Fuzz(func(t *testing.T, b []byte, verb uint8) {
		v := driver.Verb(verb % 3)
		var one, again driver.Reply
		n, err := c.Parse(b, v, &one)
		require.True(t, n >= 0 && n <= len(b) && (err == nil || n == 0))
		if n > 0 {
			taken, err := c.Parse(bytes.Clone(b[:n]), v, &again)
			require.NoError(t, err)
			require.Equal(t, n, taken)
			require.Equal(t, one, again)
		}
		many := make([]driver.Reply, 2)
		n, err = c.ParseBatch(b, v%2, many)
		require.True(t, n >= 0 && n <= len(b) && (err == nil || n == 0))
	})
}
