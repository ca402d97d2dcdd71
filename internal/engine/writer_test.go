package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/drivers/memcached"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
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
						Key:  bytes.Repeat([]byte{byte(rapid.IntRange('a', 'z').Draw(t, "key"))}, rapid.SampledFrom([]int{1, 9, 10, 15, 16, 17, 100}).Draw(t, "length")),
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
		{"put = 1", "size = \"uniform(24B, 200B)\"", 1, false},
		{"get = 1, put = 1", "size = 100", 1, false},
		{"get = 1", "size = 100", 2, false},
	} {
		b := newBench(t, redisPlanOf(t, tt.endpoints, tt.values, "", "ops = { "+tt.ops+" }\nclosed {\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		require.Equal(t, tt.fits, b.l.tr.(*wire).writer.sheet.fits, "%+v", tt)
		b.g.close()
	}
}
