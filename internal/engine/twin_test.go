package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestTwinIsTheCodec appends requests of which some are to several endpoints, while buffers are given back now and then.
func TestTwinIsTheCodec(t *testing.T) {
	codec, err := redis.Driver{}.NewCodec(redis.Driver{}.NewConfig(), nil)
	require.NoError(t, err)
	for _, c := range []driver.Codec{codec, opaque{codec}} {
		rapid.Check(t, func(t *rapid.T) {
			tw := newTwin(newGuarded(c, new(hold)))
			var got [3][]byte
			key, value := []byte("key:000000000000"), driver.Value{Size: 40, Checked: true}
			for n := range rapid.IntRange(1, 20).Draw(t, "ops") {
				key[15], value.Version = byte('a'+n), uint64(n)
				req := driver.Request{Verb: rapid.SampledFrom([]driver.Verb{driver.Get, driver.Put, driver.Delete}).Draw(t, "verb"), N: uint64(n), Key: key}
				if req.Verb == driver.Put {
					req.Value = &value
				}
				want := codec.AppendRequest(nil, &req)
				for e := range rapid.IntRange(1, 3).Draw(t, "endpoints") {
					if rapid.IntRange(0, 3).Draw(t, "written") == 0 {
						tw.forget()
						for i := range got {
							clear(got[i])
							got[i] = got[i][:0]
						}
					}
					at := len(got[e])
					req.Endpoint = e
					got[e] = tw.append(got[e], &req)
					require.Equal(t, string(want), string(got[e][at:]))
				}
			}
		})
	}
}
