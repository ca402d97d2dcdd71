package engine

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/drivers/memcached"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// opaque hides what a codec offers beside its methods.
type opaque struct{ driver.Codec }

// TestWriterIsTheCodec encodes ops of any verb, key and size one after the other, with and without the codec's layout.
func TestWriterIsTheCodec(t *testing.T) {
	for _, d := range []driver.Wire{redis.Driver{}, memcached.Driver{}} {
		codec, err := d.NewCodec(driver.Link{Config: d.NewConfig()})
		require.NoError(t, err)
		require.Implements(t, (*driver.Layout)(nil), codec)
		for _, c := range []driver.Codec{codec, opaque{codec}} {
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
