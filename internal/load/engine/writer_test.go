package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/target/drivers/memcached"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// opaque hides what a codec offers besides its methods.
type opaque struct{ driver.Codec }

// unlike is a codec whose requests with a verb differ in more than key and value: they are numbered.
type unlike struct {
	driver.Codec
	made *int
}

func (c unlike) Offsets(*driver.Request) (int, int) { return -1, 0 }

func (c unlike) AppendRequest(dst []byte, req *driver.Request) []byte {
	*c.made++
	return c.Codec.AppendRequest(dst, req)
}

// TestRequestsThatAreUnlike are all made by the codec: there is no form of them, whichever way is taken.
func TestRequestsThatAreUnlike(t *testing.T) {
	for _, target := range []string{"", "replication {\n coordinate = \"client\"\n n = 2\n w = 2\n r = 1\n}"} {
		for _, size := range []int{100, 2 * leastLent} {
			b := newBench(t, redisPlanOf(t, 2, fmt.Sprintf("size = %d", size), target, "ops = { put = 1 }\nclosed {\n sessions = 2\n iterations = 100\n pipeline = 4\n}"), "load", time.Millisecond)
			made := 0
			w := b.l.tr.(*wire)
			*w.codec = *newGuarded(unlike{w.codec.codec, &made}, w.codec.hold)
			totals := b.run(worker.Load)
			require.EqualValues(t, 200, totals.Ops[driver.Put].Outcomes[driver.OK])
			sent := totals.Request(0, driver.Put).Sent + totals.Request(1, driver.Put).Sent
			require.GreaterOrEqual(t, made, 200) // copies to several servers are made once
			require.Equal(t, int(sent), *b.server(0).got["SET"]+*b.server(1).got["SET"])
		}
	}
}

// TestWriterIsTheCodec encodes ops of any verb, key and size, one after another, with and without the codec's layout.
func TestWriterIsTheCodec(t *testing.T) {
	for _, d := range []driver.Wire{redis.Driver{}, memcached.Driver{}} {
		codec, err := d.NewCodec(driver.Link{Config: d.NewConfig()})
		require.NoError(t, err)
		require.Implements(t, (*driver.Layout)(nil), codec)
		for _, c := range []driver.Codec{codec, opaque{codec}, unlike{codec, new(int)}} {
			rapid.Check(t, func(t *rapid.T) {
				w := newWriter(newGuarded(c, new(hold)), false)
				var got, want []byte
				for range rapid.IntRange(1, 30).Draw(t, "ops") {
					o := op.Op{
						Verb: driver.Verb(rapid.IntRange(0, int(driver.Delete)).Draw(t, "verb")),
						Key:  bytes.Repeat([]byte{byte(rapid.IntRange('a', 'z').Draw(t, "key"))}, rapid.SampledFrom([]int{0, 1, 9, 10, 15, 16, 17, 100}).Draw(t, "length")),
					}
					req := driver.Request{Verb: o.Verb, Key: o.Key}
					if o.Verb == driver.Put {
						o.Value = driver.Value{Size: rapid.SampledFrom([]int{0, 1, 10, 32}).Draw(t, "size"), Seed: rapid.Uint64().Draw(t, "seed")}
						req.Value = &o.Value
					}
					got = w.append(got, &o)
					want = codec.AppendRequest(want, &req)
					asked := req
					switch rapid.IntRange(0, 3).Draw(t, "asked") {
					case 0: // of another key than the op's
						asked.Key = []byte("other")
					case 1: // of another verb
						asked.Verb, asked.Value = driver.Get, nil
					}
					got = w.request(got, &asked, &o)
					want = codec.AppendRequest(want, &asked)
				}
				require.Equal(t, string(want), string(got))
			})
		}
	}
}

// A value is lent if it is large and plain text, the poller takes bytes from several places, and the request is like earlier ones. Otherwise lend
// leaves it to be encoded, and writes nothing.
func TestWhatIsLent(t *testing.T) {
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		codec  driver.Codec
		lends  bool
		change func(o *op.Op)
		before bool // a request of another size was made
		want   bool
	}{
		"as it is":           {codec, true, func(*op.Op) {}, false, true},
		"a get":              {codec, true, func(o *op.Op) { o.Verb = driver.Get }, false, false},
		"too small":          {codec, true, func(o *op.Op) { o.Value.Size = leastLent - 1 }, false, false},
		"large":              {codec, true, func(o *op.Op) { o.Value.Size = 1 << 20 }, false, true},
		"checked":            {codec, true, func(o *op.Op) { o.Value.Checked = true }, false, false},
		"made":               {codec, true, func(o *op.Op) { o.Value.Maker = new(op.Verbatim) }, false, false},
		"to one place":       {codec, false, func(*op.Op) {}, false, false},
		"without a layout":   {opaque{codec}, true, func(*op.Op) {}, false, false},
		"unlike others":      {unlike{codec, new(int)}, true, func(*op.Op) {}, false, false},
		"a panic":            {&brittle{Codec: codec, in: "request", left: 1}, true, func(*op.Op) {}, false, false},
		"as the one before":  {codec, true, func(*op.Op) {}, true, true},
		"another key":        {codec, true, func(o *op.Op) { o.Key = []byte("another key") }, true, true},
		"a longer key":       {codec, true, func(o *op.Op) { o.Key = []byte("a longer key") }, true, false},
		"another value":      {codec, true, func(o *op.Op) { o.Value.Seed = 3 }, true, true},
		"a value of a more":  {codec, true, func(o *op.Op) { o.Value.Size++ }, true, false},
		"a get and no value": {codec, true, func(o *op.Op) { o.Verb, o.Value.Size = driver.Get, 0 }, true, false},
	} {
		w := newWriter(newGuarded(tt.codec, new(hold)), tt.lends)
		c := &wireConn{out: []byte("before")}
		o := op.Op{Verb: driver.Put, Key: []byte("eleven keys"), Value: driver.Value{Size: leastLent, Seed: 7}}
		begun := 0
		if tt.before {
			first := o
			begun = w.lend(c, &first)
			require.Positive(t, begun, name)
		}
		out, parts := string(c.out), len(c.lent)
		tt.change(&o)
		n := w.lend(c, &o)
		require.Equal(t, name == "a panic", w.codec.took() != nil, name)
		if !tt.want {
			require.Zero(t, n, name)
			require.Equal(t, out, string(c.out), name)
			require.Len(t, c.lent, parts, name)
			continue
		}
		var got []byte
		at := 0
		for _, l := range c.lent {
			got = append(append(got, c.out[at:l.at]...), l.text...)
			at = l.at
		}
		got = append(got, c.out[at:]...)[len("before")+begun:]
		want := codec.AppendRequest(nil, &driver.Request{Verb: o.Verb, Key: o.Key, Value: &o.Value})
		require.Equal(t, string(want), string(got), name)
		require.Equal(t, len(want), n, name)
	}
}

// Only the very same memory is the same: equal bytes elsewhere may change by themselves.
func TestSameBytes(t *testing.T) {
	a := []byte("abcd")
	require.True(t, sameBytes(a, a))
	require.False(t, sameBytes(a, bytes.Clone(a)))
	require.False(t, sameBytes(a, a[:3]))
	require.False(t, sameBytes(a[:3], a[1:]))
	require.False(t, sameBytes(nil, nil))
	require.False(t, sameBytes(nil, a))
}

// Ops that are alike but for their keys and values are made many at a time: reads, and puts of small values that are text.
func TestOpsThatFitASheet(t *testing.T) {
	for _, tt := range []struct {
		ops, values string
		endpoints   int
		fits        bool
	}{
		{"get = 1", "size = 100", 1, true},
		{"get = 1", "size = 100000", 1, true},
		{"put = 1", "size = 100", 1, true},
		{"put = 1", fmt.Sprintf("size = %d", leastLent-1), 1, true},
		{"put = 1", fmt.Sprintf("size = %d", leastLent), 1, false},
		{"put = 1", "size = 100\n checked = true", 1, true},
		{"put = 1", "size = 100\n compressibility = 0.3", 1, false},
		{"put = 1", "size = \"uniform(24B, 200B)\"", 1, false},
		{"get = 1, put = 1", "size = 100", 1, false},
		{"get = 1", "size = 100", 2, false},
	} {
		b := newBench(t, redisPlanOf(t, tt.endpoints, tt.values, "", "ops = { "+tt.ops+" }\nclosed {\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		w := b.l.tr.(*wire)
		require.Equal(t, tt.fits, w.writer.sheet.fits, "%+v", tt)
		source, err := workload.New(b.g.plan, b.g.phase, workload.Step{Kind: workload.Load})
		require.NoError(t, err)
		require.False(t, alike(source, newGuarded(opaque{w.codec.codec}, w.codec.hold), leastLent), "the codec does not say where keys and values are")
		b.g.close()
	}
}

// tally is a codec that counts the requests that it makes.
type tally struct {
	driver.Codec
	made int
}

func (c *tally) Offsets(req *driver.Request) (int, int) { return c.Codec.(driver.Layout).Offsets(req) }

func (c *tally) AppendRequest(dst []byte, req *driver.Request) []byte {
	c.made++
	return c.Codec.AppendRequest(dst, req)
}

// keyFirst is a codec whose requests begin with the key.
type keyFirst struct{ driver.Codec }

func (keyFirst) Offsets(req *driver.Request) (int, int) { return 0, len(req.Key) }

func (keyFirst) AppendRequest(dst []byte, req *driver.Request) []byte {
	dst = append(dst, req.Key...)
	if req.Value != nil {
		dst = req.Value.AppendTo(dst)
	}
	return append(dst, '\n')
}

// A codec makes a request only if it is not like the last one that it made for the verb, but for the bytes of the key and the value. If values have
// many sizes, it makes those of other sizes than the first's.
func TestHowManyRequestsACodecMakes(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	type like struct{ key, value, made int }
	for name, tt := range map[string]struct {
		codec driver.Codec
		verb  driver.Verb
		ops   []like
	}{
		"puts": {plain, driver.Put, []like{
			{10, 30, 1}, {10, 30, 0}, {16, 30, 1}, {16, 30, 0}, {10, 20, 1}, {10, 20, 1}, {16, 30, 0}, {10, 30, 1},
		}},
		"gets":        {plain, driver.Get, []like{{10, 0, 1}, {10, 0, 0}, {17, 0, 1}, {17, 0, 0}, {0, 0, 1}, {0, 0, 0}, {10, 0, 1}}},
		"key first":   {keyFirst{plain}, driver.Put, []like{{10, 30, 1}, {10, 30, 0}}},
		"numbered":    {unlike{plain, new(int)}, driver.Get, []like{{10, 0, 2}, {10, 0, 1}, {10, 0, 1}, {16, 0, 1}}},
		"no key once": {plain, driver.Delete, []like{{0, 0, 1}, {0, 0, 0}}},
	} {
		c := &tally{Codec: tt.codec}
		w := newWriter(newGuarded(c, new(hold)), false)
		for i, as := range tt.ops {
			o := op.Op{Verb: tt.verb, Key: bytes.Repeat([]byte{byte('a' + i)}, as.key), Value: driver.Value{Size: as.value, Seed: uint64(i)}}
			req := driver.Request{Verb: o.Verb, Key: o.Key}
			if o.Verb.Stores() {
				req.Value = &o.Value
			}
			before := c.made
			require.Equal(t, "-"+string(tt.codec.AppendRequest(nil, &req)), string(w.append([]byte("-"), &o)), "%s: %d", name, i)
			require.Equal(t, as.made, c.made-before, "%s: %d", name, i)
		}
	}
}

// A request that the codec fails to make is none. The next one is as if nothing had happened.
func TestARequestAfterOneThatPanicked(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	o := &op.Op{Verb: driver.Put, Key: []byte("key"), Value: driver.Value{Size: 30}}
	want := string(plain.AppendRequest(nil, &driver.Request{Verb: o.Verb, Key: o.Key, Value: &o.Value}))
	for _, in := range []string{"request", "offsets"} {
		w := newWriter(newGuarded(&brittle{Codec: plain, in: in, left: 1}, new(hold)), false)
		require.Equal(t, "-", string(w.append([]byte("-"), o)), in)
		require.Error(t, w.codec.took(), in)
		require.Equal(t, "-"+want+want, string(w.append(w.append([]byte("-"), o), o)), in)
		require.NoError(t, w.codec.took(), in)
	}
}

// Programs' requests are made as in the other ways if they are their op's own, and in a step in which all that may differ is keys and values.
func TestWhichRequestsOfProgramsTheCodecMakes(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	for _, tt := range []struct {
		exact, asking, other bool
		made                 int
	}{{made: 1}, {exact: true, made: 3}, {asking: true, made: 3}, {other: true, made: 3}, {exact: true, asking: true, made: 3}} {
		c := &tally{Codec: plain}
		w := newWriter(newGuarded(c, new(hold)), false)
		w.begin(tt.exact)
		o := &op.Op{Verb: driver.Get, Key: []byte("key")}
		req := &driver.Request{Verb: o.Verb, Key: o.Key, Asking: tt.asking}
		if tt.other {
			req.Key = []byte("key")
		}
		want := plain.AppendRequest(nil, req)
		for range 3 {
			require.Equal(t, string(want), string(w.request(nil, req, o)), "%+v", tt)
		}
		require.Equal(t, tt.made, c.made, "%+v", tt)
	}
}

// A request is its op's own if it has the op's verb, key and, if it stores one, value.
func TestWhichRequestsAreTheirOps(t *testing.T) {
	get, put := &op.Op{Verb: driver.Get, Key: []byte("key")}, &op.Op{Verb: driver.Put, Key: []byte("key")}
	for _, tt := range []struct {
		name string
		op   *op.Op
		req  driver.Request
		want bool
	}{
		{"a get", get, driver.Request{Verb: driver.Get, Key: get.Key}, true},
		{"a get of another key", get, driver.Request{Verb: driver.Get, Key: put.Key}, false},
		{"a get with a value", get, driver.Request{Verb: driver.Get, Key: get.Key, Value: &get.Value}, false},
		{"a delete for a get", get, driver.Request{Verb: driver.Delete, Key: get.Key}, false},
		{"a put for a get", get, driver.Request{Verb: driver.Put, Key: get.Key, Value: &get.Value}, false},
		{"a put", put, driver.Request{Verb: driver.Put, Key: put.Key, Value: &put.Value}, true},
		{"a put of another key", put, driver.Request{Verb: driver.Put, Key: get.Key, Value: &put.Value}, false},
		{"a put of another value", put, driver.Request{Verb: driver.Put, Key: put.Key, Value: &get.Value}, false},
		{"a get for a put", put, driver.Request{Verb: driver.Get, Key: put.Key}, false},
	} {
		require.Equal(t, tt.want, own(&tt.req, tt.op), tt.name)
	}
}

// What requests of a step have in common, such as a TTL, is nothing to those of the next.
func TestRequestsOfTheNextStep(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	w := newWriter(newGuarded(plain, new(hold)), false)
	for _, ttl := range []uint32{0, 5000, 7000} {
		w.begin(false)
		require.Equal(t, sheet{}, w.sheet)
		o := &op.Op{Verb: driver.Put, Key: []byte("key"), Value: driver.Value{Size: 30, TTL: ttl}}
		want := plain.AppendRequest(nil, &driver.Request{Verb: o.Verb, Key: o.Key, Value: &o.Value})
		require.Equal(t, string(want), string(w.append(nil, o)))
		w.sheet.fits = true
	}
}

// A sheet is laid out once, of many requests unless their values are long, and makes those of the stream's ops until it ends.
func TestSheetsAreTheCodec(t *testing.T) {
	for _, tt := range []struct {
		verb   driver.Verb
		values string
		copies int
	}{
		{driver.Get, "size = 1000", sheetSize},
		{driver.Put, "size = 100", sheetSize},
		{driver.Put, fmt.Sprintf("size = %d\n checked = true", mostStamped), sheetSize},
		{driver.Put, fmt.Sprintf("size = %d", mostStamped+1), 1},
		{driver.Put, "size = 1000\n checked = true", 1},
	} {
		p := redisPlanOf(t, 1, tt.values, "", fmt.Sprintf("ops = { %v = 1 }\nclosed {\n sessions = 1\n iterations = 70\n}", tt.verb))
		b := newBench(t, p, "load", 0)
		b.equip(worker.Load)
		w, stream := b.l.tr.(*wire), b.l.sessions[0].stream
		c, same, sh := w.conns[0], stream, &w.writer.sheet
		require.True(t, w.writer.laidOut(stream))
		require.Len(t, sh.requests, tt.copies*sh.size, "%+v", tt)
		first := &sh.requests[0]
		require.True(t, w.writer.laidOut(stream))
		require.Same(t, first, &sh.requests[0])
		require.True(t, sh.fits)
		c.out = []byte("-")
		for left := 70; left > 0; {
			for _, n := range []int{1, 2, sheetSize, 5, 5} {
				before := len(c.out)
				got, size := w.stamp(c, &stream, n, 1)
				require.Equal(t, min(n, left), got)
				require.Equal(t, len(c.out)-before, size)
				left -= got
			}
		}
		require.Equal(t, []*wireConn{c}, w.dirty)
		want := []byte("-")
		b.l.version = 0
		for o := new(op.Op); same.Next(o); {
			b.l.sign(o, 1)
			want = w.writer.encode(want, o)
		}
		require.Equal(t, string(want), string(c.out), "%+v", tt)
		w.writer.begin(false)
		require.False(t, w.writer.laidOut(same), "nothing is left to lay out")
	}
}

// If a request cannot be made, or is unlike others, there is no sheet of it: for now, or for this step.
func TestSheetsThatCannotBeLaidOut(t *testing.T) {
	for name, tt := range map[string]struct {
		codec func(c driver.Codec) driver.Codec
		fits  bool
	}{
		"panics": {func(c driver.Codec) driver.Codec { return &brittle{Codec: c, in: "request", left: 1} }, true},
		"unlike": {func(c driver.Codec) driver.Codec { return unlike{c, new(int)} }, false},
	} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		w := b.l.tr.(*wire)
		*w.codec = *newGuarded(tt.codec(w.codec.codec), w.codec.hold)
		require.False(t, w.writer.laidOut(b.l.sessions[0].stream), name)
		require.Equal(t, tt.fits, w.writer.sheet.fits, name)
	}
}
