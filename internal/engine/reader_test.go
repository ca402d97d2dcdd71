package engine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// terse is a codec of replies that end in a semicolon: any that ends in "ok;", and ";" alone. Other lines are no replies. "!" is a message that answers
// nothing, and "?" the beginning of one.
type terse struct {
	driver.Codec
	parsed, resumed int   // calls
	from            []int // where each call of Resume went on
}

var errTerse = errors.New("not terse")

// line takes a line that ends in a word. With an error it returns a length that means nothing.
func line(b []byte, word string) (int, error) {
	n := bytes.IndexByte(b, ';') + 1
	if n > 1 && !bytes.HasSuffix(b[:n-1], []byte(word)) {
		return 1, errTerse
	}
	return n, nil
}

func (*terse) ParseGreeting(b []byte, i int) (int, error) { return line(b, fmt.Sprintf("hello %d", i)) }

func (*terse) ParseAsking(b []byte) (int, error) { return line(b, "go on") }

func (*terse) Redirect([]byte) (addr []byte, ask, ok bool) { return nil, false, false }

func (c *terse) Parse(b []byte, _ driver.Verb, reply *driver.Reply) (int, error) {
	c.parsed++
	*reply = driver.Reply{}
	return line(b, "ok")
}

func (*terse) AppendBatch(dst []byte, _ driver.Verb, _ []driver.Item) []byte { return dst }

func (*terse) ParseBatch(b []byte, _ driver.Verb, replies []driver.Reply) (int, error) {
	return line(b, fmt.Sprintf("%d ok", len(replies)))
}

func (*terse) Aside(b []byte) (int, error) {
	switch b[0] {
	case '!':
		return 1, nil
	case '?':
		return 0, nil
	}
	return 1, errTerse
}

func (c *terse) Resume(b []byte, p *driver.Progress) (bool, error) {
	c.resumed++
	c.from = append(c.from, p.At)
	p.At = len(b)
	if bytes.HasSuffix(b, []byte("broken")) {
		return true, errTerse
	}
	return bytes.HasSuffix(b, []byte(";")), nil
}

// numbered is terse with ids: replies begin with the one of their request, as in "7=ok;". Messages have the id 0, which no request has.
type numbered struct{ *terse }

func (numbered) Tag(b []byte) (id uint32, ok bool) {
	head, _, ok := strings.Cut(string(b), "=")
	if n, _ := strconv.Atoi(head); ok {
		id = uint32(n)
	}
	return id, ok || b[0] == '!' || b[0] == '?'
}

// taking is a way that takes one reply for each entry of a queue. It notes whose replies came, and which requests timed out.
type taking struct {
	wireWay  // nil: it starts nothing
	w        *wire
	took     []uint32
	timedOut []uint32
}

func (x *taking) answered(c *wireConn, b []byte, _ int64) (took int, whole bool, err error) {
	id := c.queue.at(0).id
	if took, err = x.w.parseOne(c, b); err != nil || took == 0 {
		return 0, false, err
	}
	c.queue.take(1)
	x.took = append(x.took, id)
	return took, true, nil
}

func (x *taking) failed(_ *wireConn, p *pending, kind op.EventKind, _ int64) {
	if kind == op.RequestTimeout {
		x.timedOut = append(x.timedOut, p.id)
	}
}

// terseWire is a wire with a connection on which gets with the ids 1 to n await their replies.
func terseWire(codec driver.Codec, n int) (*wire, *wireConn, *taking) {
	w := newWire(&lane{l: &loop{clock: new(virtualClock), rec: measure.NewTotals(0, 1)}, side: new(side)}, nil, codec)
	way := &taking{w: w}
	w.way = way
	c := &wireConn{state: isUp, codec: w.codec}
	for id := range n {
		c.queue.push(pending{id: uint32(id + 1), n: 1, verb: driver.Get})
	}
	return w, c, way
}

// ids lists the entries of a queue.
func (q *queue) ids() (list []uint32) {
	for i := range q.len() {
		list = append(list, q.at(i).id)
	}
	return list
}

// Greetings are read one after another, in whatever pieces they come; then the connection is up.
func TestGreetingsInPieces(t *testing.T) {
	const said = "hello 0;hello 1;"
	for _, piece := range []int{1, 3, 8, len(said)} {
		w, c, _ := terseWire(new(terse), 0)
		c.state, c.greets, c.greetAll, w.inMaking = isGreeting, 2, 2, 1
		var rest []byte
		for part := range slices.Chunk([]byte(said), piece) {
			require.Equal(t, isGreeting, c.state)
			var err error
			rest, err = w.parse(c, append(rest, part...), 0)
			require.NoError(t, err)
		}
		require.Empty(t, rest)
		require.Equal(t, isUp, c.state)
		require.Equal(t, [2]int{0, 1}, [2]int{w.inMaking, w.up})
	}
	w, c, _ := terseWire(new(terse), 0)
	c.state, c.greets, c.greetAll = isGreeting, 2, 2
	_, err := w.parse(c, []byte("hello 0;hello 0;"), 0)
	require.ErrorIs(t, err, errTerse, "which is not the second")
	require.Equal(t, isGreeting, c.state)
}

// Replies are taken in the order of their requests, or by their ids. What is incomplete is left; what is no reply, or answers nothing, is an error.
func TestWhatIsTakenOfABuffer(t *testing.T) {
	long := strings.Repeat("x", mostMoved+1)
	for _, tt := range []struct {
		owed int
		said string
		took []uint32
		left string
		err  string
	}{
		{owed: 2, said: "ok;ok;", took: []uint32{1, 2}},
		{owed: 2, said: "ok;o", took: []uint32{1}, left: "o"},
		{owed: 1, said: ";", took: []uint32{1}},
		{owed: 1, said: "ok;!!", took: []uint32{1}},
		{owed: 0, said: "!?", left: "?"},
		{owed: 1, said: "no;", err: errTerse.Error()},
		{owed: 2, said: "ok;no;" + long + ";", took: []uint32{1}, err: errTerse.Error()},
		{owed: 0, said: "ok;", err: `a reply to nothing that was asked: "ok;"`},
		{owed: 1, said: "ok;no " + long, took: []uint32{1}, err: `a reply to nothing that was asked: "no ` + long[:37] + `"`},
	} {
		w, c, way := terseWire(new(terse), tt.owed)
		rest, err := w.parse(c, []byte(tt.said), 0)
		require.Equal(t, tt.took, way.took, "%.20q", tt.said)
		if tt.err != "" {
			require.EqualError(t, err, tt.err)
			continue
		}
		require.NoError(t, err, "%.20q", tt.said)
		require.Equal(t, tt.left, string(rest))
	}
	w, c, way := terseWire(numbered{new(terse)}, 4)
	rest, err := w.parse(c, []byte("3=ok;1=ok;!4=ok;2"), 0)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, 1, 4}, way.took)
	require.Equal(t, "2", string(rest))

	n, err := w.unasked(c, []byte("what"))
	require.ErrorIs(t, err, errUnasked)
	require.Zero(t, n)
}

// The beginning of a long reply is scanned once, as it comes. Short ones, and what is complete, are only parsed.
func TestWhatIsScannedOfALongReply(t *testing.T) {
	codec := new(terse)
	w, c, way := terseWire(codec, 1000)
	read := func(b []byte) []byte {
		rest, err := w.parse(c, b, 0)
		require.NoError(t, err)
		return rest
	}
	require.Len(t, read([]byte("short")), 5)
	require.Empty(t, read(bytes.Repeat([]byte("many of them are ok;"), 900)))
	require.Zero(t, codec.resumed)

	for range 2 {
		codec.parsed, codec.from, way.took = 0, nil, nil
		b := read(bytes.Repeat([]byte("x"), mostMoved+1))
		b = read(append(b, "yz"...))
		require.Len(t, b, mostMoved+3)
		require.Equal(t, 1, codec.parsed, "it is not complete")
		require.Empty(t, read(append(b, "ok;"...)))
		require.Equal(t, []int{0, mostMoved + 1, mostMoved + 3}, codec.from)
		require.Len(t, way.took, 1)
	}

	for at, parsed := range map[int]int{0: 1, 1: 0, 7: 0} { // at the beginning of a reply, and where the scan goes on
		codec.parsed, c.progress.At = 0, at
		_, err := w.parse(c, append(bytes.Repeat([]byte("x"), mostMoved+1), "broken"...), 0)
		require.ErrorIs(t, err, errTerse)
		require.Equal(t, parsed, codec.parsed)
	}

	w, c, _ = terseWire(struct{ driver.Codec }{codec}, 1) // which cannot resume
	require.Len(t, read(bytes.Repeat([]byte("x"), mostMoved+1)), mostMoved+1)
}

// A reply with an id is one to the request with that id, if it has left. The other requests keep their order, and what has timed out stays in front.
func TestRepliesWithIDs(t *testing.T) {
	const none = "a reply to nothing that was asked: "
	long := strings.Repeat("x", 50)
	for _, tt := range []struct {
		said string
		dead int // of the requests 1 to 5, the first ones, which have timed out; the last has not left
		n    int
		err  string
		took []uint32
		ids  []uint32 // what is left
		late int
	}{
		{said: "4=ok;", n: 5, took: []uint32{4}, ids: []uint32{1, 2, 3, 5}},
		{said: "4=ok;1=ok;", dead: 1, n: 5, took: []uint32{4}, ids: []uint32{1, 2, 3, 5}},
		{said: "3=ok;", dead: 2, n: 5, took: []uint32{3}, ids: []uint32{1, 2, 4, 5}},
		{said: "2=ok;", dead: 2, n: 5, late: 1, ids: []uint32{1, 3, 4, 5}},
		{said: "1=ok;", dead: 1, n: 5, late: 1, ids: []uint32{2, 3, 4, 5}},
		{said: "3", dead: 2},
		{said: "3=o", dead: 2},
		{said: "2=o", dead: 2},
		{said: "3=no;", dead: 2, err: errTerse.Error()},
		{said: "1=no;", dead: 2, err: errTerse.Error()},
		{said: "!", dead: 2, n: 1},
		{said: "?", dead: 2},
		{said: "5=ok;", dead: 2, err: none + `id 5: "5=ok;"`},
		{said: "9=" + long, dead: 2, err: none + `id 9: "9=` + long[:38] + `"`},
	} {
		w, c, way := terseWire(numbered{new(terse)}, 6)
		c.queue.take(1)
		for i := range uint32(5) {
			c.queue.at(int(i)).id, c.queue.at(int(i)).dead = i+1, int(i) < tt.dead
		}
		c.queue.dead, c.fresh = tt.dead, 1
		n, whole, err := w.tagged(c, []byte(tt.said), 0)
		if tt.err == "" {
			require.NoError(t, err, tt.said)
		} else {
			require.EqualError(t, err, tt.err)
		}
		require.Equal(t, tt.n, n, tt.said)
		require.Equal(t, tt.n > 0, whole, tt.said)
		require.Equal(t, tt.took, way.took, tt.said)
		require.EqualValues(t, tt.late, w.l.rec.LateReplies, tt.said)
		if tt.ids == nil {
			tt.ids = []uint32{1, 2, 3, 4, 5}
		}
		require.Equal(t, tt.ids, c.queue.ids(), tt.said)
		require.Equal(t, tt.dead-tt.late, c.queue.dead, tt.said)
	}
}

// The replies to requests with several keys share their room, which grows with the number of keys.
func TestRoomForTheRepliesOfABatch(t *testing.T) {
	w, c, _ := terseWire(new(terse), 1)
	for _, tt := range []struct {
		keys  int16
		room  int
		grows bool
	}{{2, 2, true}, {3, 3, true}, {3, 3, false}, {2, 3, false}} {
		was := w.replies
		c.queue.at(0).keys = tt.keys
		n, err := w.parseOne(c, fmt.Appendf(nil, "%d ok;", tt.keys))
		require.NoError(t, err)
		require.Equal(t, 5, n)
		require.Len(t, w.replies, tt.room)
		require.Equal(t, tt.grows, len(was) == 0 || &was[0] != &w.replies[0], "%+v", tt)
	}
}

// The reply to a request that has timed out is taken, and counted as late. If the request was announced, the reply to the announcement comes first.
func TestRepliesToWhatHasTimedOut(t *testing.T) {
	for said, want := range map[string]struct {
		asking [2]bool
		n      int
		err    error
		late   uint64
		in     uint64 // bytes
	}{
		"ok;":     {n: 3, late: 1},
		"too ok;": {asking: [2]bool{false, true}, n: 7, late: 1},
		"o":       {},
		"no;":     {err: errTerse},
		"go on;":  {asking: [2]bool{true, false}, n: 6, in: 6},
		"go":      {asking: [2]bool{true, false}},
		"on;":     {asking: [2]bool{true, false}, err: errTerse},
	} {
		w, c, way := terseWire(new(terse), 2)
		for i, asking := range want.asking {
			c.queue.at(i).asking = asking
		}
		c.queue.at(0).dead, c.queue.dead = true, 1
		c.queue.at(1).verb, c.queue.at(1).keys = driver.Put, 2
		n, whole, err := w.late(c, []byte(said))
		require.Equal(t, want.err, err, said)
		require.Equal(t, want.n, n, said)
		require.Equal(t, want.n > 0, whole, said)
		require.Equal(t, want.late, w.l.rec.LateReplies, said)
		require.Equal(t, [2]int{2 - int(want.late), 2 - int(want.late)}, [2]int{c.queue.len(), c.queue.owed}, said)
		require.Empty(t, way.took, said)
		if want.in > 0 {
			require.Equal(t, [2]uint64{want.in, 0}, [2]uint64{w.l.rec.Ops[driver.Get].In, w.l.rec.Ops[driver.Get].Out}, said)
		}
		if want.in > 0 || want.late > 0 {
			require.Equal(t, want.in == 0 && want.asking[1], c.queue.at(0).asking, said)
		}
	}
	w, c, way := terseWire(new(terse), 2)
	c.queue.at(0).dead, c.queue.at(0).asking, c.queue.dead = true, true, 1
	rest, err := w.parse(c, []byte("go on;ok;ok;"), 0)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, []uint32{2}, way.took)
	require.EqualValues(t, 1, w.l.rec.LateReplies)
}

// giving is a network whose sockets have what a test says.
type giving struct {
	*virtualNet
	give func(p []byte) (int, error)
}

func (n giving) Read(_ int, p []byte) (int, error) { return n.give(p) }

// says gives a text and nothing else.
func says(text string) func([]byte) (int, error) {
	return func(p []byte) (int, error) { return copy(p, text), nil }
}

// slotCounter is a feed that counts how often it is told of slots, and that starts nothing in them.
type slotCounter struct {
	feed
	told int
}

func (f *slotCounter) freed(*session, int, int64, bool) { f.told++ }

// asked is a bench that awaits the reply to one get, the connection of it, and the parts that it seals.
func asked(t *testing.T) (b *bench, c *wireConn, parts <-chan part) {
	b = newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nmax_bad = 1\nclosed {\n sessions = 1\n iterations = 5\n}"), "load", time.Millisecond)
	b.indirect = true // a way that skips no replies
	b.server(0).latency = func(int) time.Duration { return -1 }
	parts = b.equip(worker.Load)
	b.l.enter()
	require.True(t, b.l.cycle())
	c = b.l.tr.(*wire).conns[0]
	require.Equal(t, 1, c.queue.len())
	b.net.clock.tick = 0
	return b, c, parts
}

// A read takes what there is, together with what was kept. There may be more if it filled the buffer, or if the server has ended the connection.
func TestWhatAReadFinds(t *testing.T) {
	const begun, from = "$9999999\r\nab", "n0 (127.0.0.1:7001): "
	fails := func(n int, err error) func([]byte) (int, error) { return func([]byte) (int, error) { return n, err } }
	for name, tt := range map[string]struct {
		kept  string
		give  func(p []byte) (int, error)
		ended bool
		more  bool
		left  int // bytes of an incomplete reply
		lost  string
	}{
		"nothing yet":        {"$3\r\na", fails(-1, sockets.ErrAgain), true, false, 5, ""},
		"an error":           {"", fails(-1, errors.New("no route")), true, false, 0, from + "read: no route"},
		"the end":            {"$3\r\nab", says(""), true, false, 0, from + "EOF"},
		"a part":             {"", says("$3\r\nab"), false, false, 6, ""},
		"a byte":             {"", says("$"), false, false, 1, ""},
		"behind a byte":      {"$", says("3"), false, false, 2, ""},
		"a part and the end": {"", says("$3\r\nab"), true, true, 6, ""},
		"the rest":           {"$3\r\nab", says("c\r\n"), false, false, 0, ""},
		"the rest, the end":  {"$3\r\nab", says("c\r\n"), true, true, 0, ""},
		"as much as fits":    {"", func(p []byte) (int, error) { copy(p, begun); return len(p), nil }, false, true, readSize, ""},
		"no more than fits":  {begun, func(p []byte) (int, error) { return len(p), nil }, false, true, readSize, ""},
		"a byte less":        {begun, func(p []byte) (int, error) { return len(p) - 1, nil }, false, false, readSize - 1, ""},
		"no reply":           {"", says("HTTP/1.1 400\r\n"), true, false, 0, "HTTP/1.1 400"},
	} {
		b, c, _ := asked(t)
		w := b.l.tr.(*wire)
		w.poll = giving{b.net, tt.give}
		if tt.kept != "" {
			c.in = append(w.buffer(), tt.kept...)
		}
		copy(w.rbuf, "???????")
		heard, f := c.heard, &slotCounter{feed: b.l.feed}
		b.l.feed = f
		b.net.clock.t += int64(time.Millisecond)
		require.Equal(t, tt.more, w.read(c, tt.ended), name)
		require.Len(t, c.in, tt.left, name)
		require.True(t, strings.HasPrefix(string(c.in), tt.kept) || tt.left < len(tt.kept), name)
		if tt.lost != "" {
			require.Equal(t, isDown, c.state, name)
			texts := slices.Collect(maps.Keys(maps.Collect(b.l.rec.Errors.All())))
			require.Len(t, texts, 1, name)
			require.Contains(t, texts[0], tt.lost, name)
			continue
		}
		require.Equal(t, isUp, c.state, name)
		require.Equal(t, 1-c.queue.len(), f.told, "%s: slots are freed with a reply", name)
		require.Equal(t, name != "nothing yet", c.heard == b.net.clock.t && c.heard != heard, name)
		b.g.close()
	}
}

// A reply counts in the interval in which it comes. Once the lease is over, the interval is not sealed before what has not left is taken back.
func TestRepliesCountInTheirInterval(t *testing.T) {
	for at, sealed := range map[int64]bool{-1: false, 0: true, 1: true} {
		for _, lapsed := range []bool{false, true} {
			b, c, parts := asked(t)
			w := b.l.tr.(*wire)
			w.poll = giving{b.net, says("$-1\r\n")}
			b.net.clock.t = b.l.sealAt + at
			b.l.lapsed = lapsed
			w.read(c, false)
			require.EqualValues(t, 1, b.l.rec.Ops[driver.Get].Outcomes[driver.Miss])
			require.Equal(t, sealed && !lapsed, len(parts) > 0, "%d", at)
			if len(parts) > 0 {
				require.Zero(t, (<-parts).totals.Ops[driver.Get].Outcomes[driver.Miss])
			}
		}
	}
}

// The beginning of a reply is kept in a buffer of the connection, which it leaves when the reply is complete.
func TestTheBeginningOfAReplyIsKept(t *testing.T) {
	w, c := &wire{l: new(loop), partials: new(partials)}, new(wireConn)
	w.keep(c, nil)
	require.Empty(t, w.bufs)
	read := []byte("abc")
	w.keep(c, read)
	copy(read, "xyz")
	require.Equal(t, "abc", string(c.in))
	buffer := c.in[:cap(c.in)]
	for _, rest := range [][]byte{[]byte("defgh"), append(c.in[:0:0], "ij"...), append(buffer[:5], "klm"...), buffer[2:7], []byte("n")} {
		want := string(rest)
		w.keep(c, rest)
		require.Equal(t, want, string(c.in))
		require.Same(t, &buffer[0], &c.in[0])
	}
	for range 2 {
		w.keep(c, buffer[:0])
		require.Nil(t, c.in)
		require.Len(t, w.bufs, 1)
	}
}
