package engine

import "github.com/loadgen/loadgen/pkg/driver"

// twin appends requests, of which those to the replicas of a key have the same bytes: the second is a copy of the first.
type twin struct {
	codec *guarded
	same  bool           // requests with the same key and value have the same bytes
	last  driver.Request // a request, and
	bytes []byte         // where its bytes still lie; none: nowhere
}

func newTwin(c *guarded) twin {
	return twin{codec: c, same: c.layout != nil}
}

func (t *twin) append(dst []byte, req *driver.Request) []byte {
	if t.bytes != nil && t.is(req) {
		return append(dst, t.bytes...)
	}
	at := len(dst)
	dst = t.codec.request(dst, req)
	if t.same && t.codec.fault == nil {
		t.last, t.bytes = *req, dst[at:]
	}
	return dst
}

// is says whether a request is the last one to another endpoint: key and value are the op's own.
func (t *twin) is(req *driver.Request) bool {
	l := &t.last
	return l.Stream == req.Stream && l.N == req.N && l.Verb == req.Verb && l.Asking == req.Asking && l.Value == req.Value &&
		len(l.Key) == len(req.Key) && len(l.Key) > 0 && &l.Key[0] == &req.Key[0]
}

// forget is called when bytes that were appended may be gone.
func (t *twin) forget() { t.bytes = nil }
