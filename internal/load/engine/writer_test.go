package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
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

// A codec makes a request only if it is not like the last one that it made for the verb in the step, but for the bytes of key and value. Puts of large
// values that are plain text leave with their values lent. Ops of one verb on one endpoint are copied from a sheet, but for those.
func TestWhichRequestsTheCodecMakes(t *testing.T) {
	const each = 150
	for _, c := range []struct {
		ops, values string
		endpoints   int
		made        int // of 200, by one step
		lent, sheet bool
	}{
		{"get = 1", "size = 100000", 1, 1, false, true},
		{"put = 1", "size = 100", 1, 1, false, true},
		{"put = 1", "size = 100", 2, 1, false, false},
		{"put = 1", fmt.Sprintf("size = %d", leastLent-1), 1, 1, false, true},
		{"put = 1", fmt.Sprintf("size = %d", leastLent), 1, 1, true, false},
		{"put = 1", fmt.Sprintf("size = %d", leastLent), 2, 1, true, false},
		{"put = 1", "size = 100\n checked = true", 1, 1, false, true},
		{"put = 1", fmt.Sprintf("size = %d\n checked = true", leastLent), 1, 1, false, false},
		{"put = 1", "size = 100\n compressibility = 0.3", 1, 1, false, false},
		{"put = 1", "size = \"uniform(24B, 200B)\"", 1, each, false, false},
		{"get = 1, put = 1, delete = 1", "size = 100", 1, 3, false, false},
	} {
		b := newBench(t, redisPlanOf(t, c.endpoints, c.values, "", "ops = { "+c.ops+" }\nmax_bad = 1\nclosed {\n sessions = 2\n iterations = 100\n pipeline = 5\n}"), "load", time.Millisecond)
		w := b.l.tr.(*wire)
		codec := &tally{Codec: w.codec.codec}
		*w.codec = *newGuarded(codec, w.codec.hold)
		for step := range 2 {
			codec.made, b.snaps, b.net.lists = 0, nil, 0
			got := b.run(worker.Load)
			require.EqualValues(t, 200, dueIn(&got))
			if c.made == each {
				require.Greater(t, codec.made, each, "%+v, step %d", c, step)
			} else {
				require.Equal(t, c.made, codec.made, "%+v, step %d", c, step)
			}
			require.Equal(t, [2]bool{c.lent, c.sheet}, [2]bool{b.net.lists > 0, w.writer.sheet.requests != nil}, "%+v, step %d", c, step)
		}
		b.g.close()
	}
}
