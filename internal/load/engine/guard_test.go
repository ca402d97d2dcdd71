package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/panics"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// brittle is a codec that panics in one of its methods, on its first calls.
type brittle struct {
	driver.Codec
	in    string
	left  int
	each  int // each so manieth call panics, too; 0: none
	calls int
}

func (c *brittle) panics(in string) {
	if c.in != in {
		return
	}
	if c.calls++; c.left > 0 || c.each > 0 && c.calls%c.each == 0 {
		c.left--
		var none []int
		_ = none[len(in)]
	}
}

func (c *brittle) Greet(dst []byte) ([]byte, int) {
	c.panics("greet")
	return c.Codec.Greet(dst)
}

func (c *brittle) ParseGreeting(b []byte, i int) (int, error) {
	c.panics("parse greeting")
	return c.Codec.ParseGreeting(b, i)
}

func (c *brittle) AppendRequest(dst []byte, req *driver.Request) []byte {
	c.panics("request")
	return c.Codec.AppendRequest(append(dst, "half"...)[:len(dst)], req)
}

func (c *brittle) Parse(b []byte, v driver.Verb, reply *driver.Reply) (int, error) {
	c.panics("parse")
	return c.Codec.Parse(b, v, reply)
}

func (c *brittle) Offsets(req *driver.Request) (int, int) {
	c.panics("offsets")
	return c.Codec.(driver.Layout).Offsets(req)
}

func (c *brittle) Skim(b []byte, v driver.Verb, most int) (int, int) {
	c.panics("skim")
	return c.Codec.(driver.Skimmer).Skim(b, v, most)
}

func (c *brittle) Outline(b []byte, v driver.Verb) int {
	c.panics("outline")
	return c.Codec.(driver.Skimmer).Outline(b, v)
}

func (c *brittle) Aside(b []byte) (int, error) { return c.Codec.(driver.Aside).Aside(b) }

func (c *brittle) ParseAsking(b []byte) (int, error) {
	return c.Codec.(driver.Redirector).ParseAsking(b)
}

func (c *brittle) Redirect(message []byte) ([]byte, bool, bool) {
	c.panics("redirect")
	return c.Codec.(driver.Redirector).Redirect(message)
}

// breakCodec has the codec of a bench panic from now on.
func (b *bench) breakCodec(in string, times int) {
	w := b.l.tr.(*wire)
	*w.codec = *newGuarded(&brittle{Codec: w.codec.codec, in: in, left: times}, w.codec.hold)
}

// panicsOf sums the errors whose texts are of panics.
func panicsOf(t *measure.Totals) (n uint64, text string) {
	for words, count := range t.Errors.All() {
		if strings.Contains(words, "driver panicked at ") {
			n, text = n+count, words
		}
	}
	return n, text
}

// A panic of a driver is an error of the current connection, whichever method panics and however ops are carried out. All ops are accounted for, and
// the session goes on.
func TestPanicOfACodec(t *testing.T) {
	const load = `
		ops = { get = 1, put = 1 }
		closed {
			sessions   = 2
			iterations = 500
			pipeline   = 4
		}`
	shapes := map[string]struct {
		endpoints int
		target    string
		values    string
		in        []string
	}{
		"plain":   {1, "", "size = 100", []string{"request", "offsets", "parse", "skim", "greet", "parse greeting"}},
		"large":   {1, "", "size = 10000", []string{"request", "offsets", "skim", "outline"}},
		"alike":   {1, "", "size = 100", []string{"request", "offsets"}},
		"several": {4, "", "size = 100", []string{"request", "offsets", "parse", "skim"}},
		"quorum":  {3, nwr321, "size = 100\n checked = true", []string{"request", "offsets", "parse"}},
	}
	for name, shape := range shapes {
		for _, in := range shape.in {
			for _, indirect := range []bool{false, true} {
				if indirect && (in == "offsets" || in == "skim" || in == "outline") {
					continue // only the direct way has them
				}
				t.Run(fmt.Sprintf("%s/%s/indirect=%v", name, in, indirect), func(t *testing.T) {
					text := load
					if name == "alike" {
						text = strings.Replace(load, "get = 1, ", "", 1)
					}
					b := newBench(t, redisPlanOf(t, shape.endpoints, shape.values, shape.target, text), "load", 100*time.Microsecond)
					b.indirect = indirect
					if in == "outline" { // of replies of which only the beginning is there
						b.server(0).piece = 3000
					}
					if strings.Contains(in, "greet") {
						b.after(5*time.Millisecond, b.server(0).sever)
					}
					b.breakCodec(in, 2)
					totals := b.run(worker.Load)
					require.EqualValues(t, 1000, dueIn(&totals))
					require.NoError(t, b.l.fault)
					n, text := panicsOf(&totals)
					require.Positive(t, n)
					require.Contains(t, text, "guard_test.go:")
					require.Positive(t, totals.Reconnects)
					for _, o := range totals.Ops {
						if o != nil && in == "request" {
							require.Zero(t, o.Outcomes[driver.Timeout], "nobody waits for replies to requests that were not made")
						}
					}
				})
			}
		}
	}
}

// A driver that keeps panicking fails the step, which says where.
func TestPanicOfACodecAgainAndAgain(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"1h\"\n}"), "load", 100*time.Microsecond)
	b.breakCodec("parse", 1000)
	b.l.tr.(*wire).codec.skimmer = nil // there is no other way than to parse
	totals := b.run(worker.Load)
	n, _ := panicsOf(&totals)
	require.EqualValues(t, mostPanics+1, n)
	require.ErrorContains(t, b.l.fault, "session 0: 4 panics within a minute: driver panicked at guard_test.go:")
	require.ErrorContains(t, b.l.fault, "index out of range [5] with length 0")
	require.Less(t, b.net.clock.t-b.l.origin, int64(time.Minute))
}

// A driver that seldom panics does not: three times within a minute are not too many. The first three panics are logged.
func TestPanicOfACodecNowAndThen(t *testing.T) {
	for each, often := range map[int]bool{20: false, 19: true} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nmax_bad = 1\nclosed {\n sessions = 1\n think = \"1s\"\n iterations = 600\n}"), "load", time.Millisecond)
		var logged strings.Builder
		b.l.log = slog.New(slog.NewTextHandler(&logged, nil))
		w := b.l.tr.(*wire)
		*w.codec = *newGuarded(&brittle{Codec: w.codec.codec, in: "parse", each: each}, w.codec.hold)
		w.codec.skimmer = nil
		totals := b.run(worker.Load)
		n, _ := panicsOf(&totals)
		require.Equal(t, 3, strings.Count(logged.String(), `msg="driver panicked" session=0 value="runtime error: index out of range`), logged.String())
		if often {
			require.EqualValues(t, mostPanics+1, n)
			require.Error(t, b.l.fault)
			continue
		}
		require.EqualValues(t, 600/each, n)
		require.NoError(t, b.l.fault)
		require.Len(t, b.l.panics[b.l.sessions[0]], mostPanics)
	}
}

// bustling is a codec with everything that a codec may have. Each of its methods waits, which nothing may do while held, and panics if told to.
type bustling struct{ breaks bool }

var errBustling = errors.New("the bustling codec's own")

func (c *bustling) work() {
	time.Sleep(time.Microsecond)
	if c.breaks {
		panic("bustling")
	}
}

func (c *bustling) Greet(dst []byte) ([]byte, int) { c.work(); return append(dst, "hi"...), 2 }

func (c *bustling) ParseGreeting(b []byte, i int) (int, error) { c.work(); return i, errBustling }

func (c *bustling) AppendRequest(dst []byte, _ *driver.Request) []byte {
	c.work()
	return append(dst, "get"...)
}

func (c *bustling) Parse([]byte, driver.Verb, *driver.Reply) (int, error) {
	c.work()
	return 3, errBustling
}

func (c *bustling) Offsets(*driver.Request) (int, int) { c.work(); return 4, 5 }

func (c *bustling) Skim([]byte, driver.Verb, int) (int, int) { c.work(); return 6, 7 }

func (c *bustling) Outline([]byte, driver.Verb) int { c.work(); return 8 }

func (c *bustling) Aside([]byte) (int, error) { c.work(); return 9, errBustling }

func (c *bustling) AppendBatch(dst []byte, _ *driver.Request) []byte {
	c.work()
	return append(dst, "mget"...)
}

func (c *bustling) ParseBatch([]byte, driver.Verb, []driver.Reply) (int, error) {
	c.work()
	return 10, errBustling
}

func (c *bustling) ParseAsking([]byte) (int, error) { c.work(); return 11, errBustling }

func (c *bustling) Redirect([]byte) ([]byte, bool, bool) {
	c.work()
	return []byte("there"), true, true
}

func (c *bustling) Tag([]byte) (uint32, bool) { c.work(); return 12, true }

func (c *bustling) Resume([]byte, *driver.Progress) (bool, error) { c.work(); return true, errBustling }

func (c *bustling) Connection(endpoint string, _ int) (driver.Codec, error) {
	c.work()
	if endpoint == "" {
		return nil, errBustling
	}
	return c, nil
}

// During any call of a codec, a held loop is let go, and it is held again afterwards. A panic becomes an error, or the fault if the call returns no
// error, and the loop then stays let go.
func TestEachCallOfACodecIsGuarded(t *testing.T) {
	own := func(n int, err error) ([]any, error) { return []any{n}, err }
	for name, tt := range map[string]struct {
		call func(g *guarded) ([]any, error) // what comes of it
		want []any
		err  error // that the codec returns
	}{
		"greet":          {func(g *guarded) ([]any, error) { b, n, err := g.greet([]byte("-")); return []any{string(b), n}, err }, []any{"-hi", 2}, nil},
		"parse greeting": {func(g *guarded) ([]any, error) { return own(g.parseGreeting(nil, 1)) }, []any{1}, errBustling},
		"request":        {func(g *guarded) ([]any, error) { return []any{string(g.request([]byte("-"), nil))}, nil }, []any{"-get"}, nil},
		"batch":          {func(g *guarded) ([]any, error) { return []any{string(g.batch([]byte("-"), new(driver.Request)))}, nil }, []any{"-mget"}, nil},
		"offsets":        {func(g *guarded) ([]any, error) { k, v := g.offsets(nil); return []any{k, v}, nil }, []any{4, 5}, nil},
		"parse":          {func(g *guarded) ([]any, error) { return own(g.parse(nil, 0, nil)) }, []any{3}, errBustling},
		"parse batch":    {func(g *guarded) ([]any, error) { return own(g.parseBatch(nil, 0, nil)) }, []any{10}, errBustling},
		"resume":         {func(g *guarded) ([]any, error) { whole, err := g.resume(nil, nil); return []any{whole}, err }, []any{true}, errBustling},
		"parse asking":   {func(g *guarded) ([]any, error) { return own(g.parseAsking(nil)) }, []any{11}, errBustling},
		"aside":          {func(g *guarded) ([]any, error) { return own(g.aside(nil)) }, []any{9}, errBustling},
		"skim":           {func(g *guarded) ([]any, error) { n, took, err := g.skim(nil, 0, 0); return []any{n, took}, err }, []any{6, 7}, nil},
		"outline":        {func(g *guarded) ([]any, error) { return own(g.outline(nil, 0)) }, []any{8}, nil},
		"tag":            {func(g *guarded) ([]any, error) { id, ok, err := g.tag(nil); return []any{int(id), ok}, err }, []any{12, true}, nil},
		"redirect": {func(g *guarded) ([]any, error) {
			to, ask, ok, err := g.redirect(nil)
			return []any{string(to), ask, ok}, err
		}, []any{"there", true, true}, nil},
		"connection": {func(g *guarded) ([]any, error) {
			c, err := g.connection("a:1", 0)
			return []any{c != nil && c.codec == g.codec && c.hold == g.hold}, err
		}, []any{true}, nil},
		"no connection": {func(g *guarded) ([]any, error) { c, err := g.connection("", 0); return []any{c == nil}, err }, []any{true}, errBustling},
	} {
		for _, may := range []bool{true, false} {
			h := hold{may: may}
			g := newGuarded(new(bustling), &h)
			h.before(0, 0)
			got, err := tt.call(g)
			held := h.held
			h.release()
			require.Equal(t, may, held, name)
			require.Equal(t, tt.want, got, name)
			require.Equal(t, tt.err, err, name)
			require.NoError(t, g.took(), name)

			g.codec.(*bustling).breaks = true
			h.before(0, 0)
			_, err = tt.call(g)
			held = h.held
			h.release()
			require.False(t, held, name)
			fault := g.took()
			require.NoError(t, g.took(), "%s: a fault is taken once", name)
			require.True(t, (err == nil) != (fault == nil), "%s: %v, %v", name, err, fault)
			require.ErrorContains(t, errors.Join(err, fault), "driver panicked at guard_test.go:", name)
		}
	}
}

// telltale is an error that notes, when it is formatted, whether the loop is held, which it must not be.
type telltale struct {
	h    *hold
	held *[]bool
}

func (e telltale) Error() string {
	*e.held = append(*e.held, e.h.held)
	return "telltale"
}

// Is has the error of an endpoint in the file system be explained, and so formatted.
func (e telltale) Is(err error) bool { return err == unix.ENOENT }

// refusingNet is a network in which everything fails. It notes whether the loop is held during calls that may block.
type refusingNet struct {
	*virtualNet
	telltale
}

func (n refusingNet) Read(int, []byte) (int, error)  { return 0, n.telltale }
func (n refusingNet) Write(int, []byte) (int, error) { return 0, n.telltale }
func (n refusingNet) Connected(int) error            { return n.telltale }
func (n refusingNet) Close(int)                      { _ = n.Error() }

func (n refusingNet) Connect(*sockets.Endpoint, int32) (int, error) {
	_ = n.Error()
	return -1, n.telltale
}

// A loop is let go before rare things that may block: before errors are formatted, and before connections are made and closed.
func TestALoopIsLetGoBeforeWhatIsRare(t *testing.T) {
	for name, rare := range map[string]func(w *wire, c *wireConn){
		"dial":      func(w *wire, c *wireConn) { w.dial(c) },
		"connected": func(w *wire, c *wireConn) { w.connected(c) },
		"lose":      func(w *wire, c *wireConn) { w.lose(c, io.EOF) },
		"read":      func(w *wire, c *wireConn) { w.read(c, false) },
		"write":     func(w *wire, c *wireConn) { c.out = append(w.buffer(), "get"...); w.write(c) },
		"make room": func(w *wire, c *wireConn) { c.in = make([]byte, mostMoved+1); _ = w.makeRoom(c) },
		"unasked":   func(w *wire, c *wireConn) { _, _ = w.unasked(c, []byte("what")) },
		"panicked":  func(w *wire, c *wireConn) { w.l.panicked(w.session(c), &panics.Error{}, 1) },
		"odd end":   func(w *wire, c *wireConn) { c.outline(20, 18); _, _, _ = w.skip(c, []byte("what"), 1) },
		"give back": func(w *wire, c *wireConn) {
			c.in = make([]byte, keptBuffer)
			_ = w.makeRoom(c)
			w.l.hold.before(0, 0)
			w.letGo(c)
		},
		"redirected": func(w *wire, c *wireConn) { _, _ = w.lane.routes.redirect(0, []byte("MOVED 1 :7009")) },
	} {
		b := newBench(t, redisPlan(t, 1, "cluster = true", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.run(worker.Load)
		w := b.l.tr.(*wire)
		b.g.endpoints[0].Path = "/run/redis.sock"
		var held []bool
		w.poll = refusingNet{b.net, telltale{&b.l.hold, &held}}
		b.l.rec = measure.NewTotals(0, len(b.l.reqNow)/driver.NumVerbs)
		b.l.hold = hold{may: true}
		b.l.hold.before(0, 0)
		rare(w, w.conns[0])
		still := b.l.hold.held
		b.l.hold.release()
		require.False(t, still, name)
		require.NotContains(t, held, true, name)
		w.unmapAll()
	}
}

// The buffer of a batch grows once for all of its values, and not at all for gets or if it has the room.
func TestBatchesGrowTheirBufferOnce(t *testing.T) {
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	g := newGuarded(codec, new(hold))
	items := make([]driver.Item, 8)
	for i := range items {
		items[i] = driver.Item{Key: []byte("key:0001"), Value: driver.Value{Size: 4 << 10, Seed: uint64(i)}}
	}
	room := g.batch(nil, &driver.Request{Verb: driver.Put, Batch: items})
	once := testing.AllocsPerRun(10, func() { room = slices.Grow(room[:0:0], cap(room)) }) // more than 1 under the race detector
	for _, c := range []struct {
		name   string
		verb   driver.Verb
		dst    []byte
		allocs float64
	}{
		{"nothing there", driver.Put, nil, once},
		{"room for some", driver.Put, make([]byte, 0, 5000), once},
		{"room for all", driver.Put, room[:0], 0},
		{"keys alone", driver.Get, make([]byte, 0, 8*(len(items[0].Key)+aroundItem)), 0},
	} {
		req := &driver.Request{Verb: c.verb, Batch: items}
		require.Equal(t, c.allocs, testing.AllocsPerRun(10, func() { g.batch(c.dst, req) }), c.name)
	}
	long := []driver.Item{{Key: bytes.Repeat([]byte("key"), 4<<10)}, {Key: bytes.Repeat([]byte("key"), 4<<10)}}
	keys := &driver.Request{Verb: driver.Get, Batch: long}
	require.Equal(t, once, testing.AllocsPerRun(10, func() { g.batch(nil, keys) }), "keys that take more than what is around them")
}
