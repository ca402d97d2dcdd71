package memcached

import "github.com/loadgen/loadgen/pkg/driver"

var _ driver.BatchCodec = codec{}

// AppendBatch appends an mg or ms for each item.
func (c codec) AppendBatch(dst []byte, req *driver.Request) []byte {
	for i := range req.Batch {
		one := driver.Request{Verb: req.Verb, Key: req.Batch[i].Key, Value: &req.Batch[i].Value}
		dst = c.AppendRequest(dst, &one)
	}
	return dst
}

// ParseBatch reads a reply for each item.
func (c codec) ParseBatch(b []byte, v driver.Verb, replies []driver.Reply) (int, error) {
	return parseEach(c, b, v, replies)
}

// parseEach reads one reply per key.
func parseEach(c driver.Codec, b []byte, v driver.Verb, replies []driver.Reply) (int, error) {
	n := 0
	for i := range replies {
		size, err := c.Parse(b[n:], v, &replies[i])
		if size == 0 || err != nil {
			return 0, err
		}
		n += size
	}
	return n, nil
}
