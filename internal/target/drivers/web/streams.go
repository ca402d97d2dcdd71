package web

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/net/http2"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	frameHead    = 9             // bytes of a frame before its payload
	mostFrame    = 16 << 10      // bytes of a payload; more have to be allowed by a setting
	streamWindow = 4 << 20       // bytes that a server may send on a stream, and
	connWindow   = 1 << 30       // on a connection, before more is allowed: what Go's own client allows
	usualWindow  = 1<<16 - 1     // until a setting or an update says otherwise (RFC 9113, section 6.9.2)
	mostNumber   = math.MaxInt32 // of a stream, and bytes of a window
	mostIdle     = 10_000        // frames in a row that carry no body and end no stream
	mostEnded    = 16            // streams that are kept after their end: what ended one reads the same again
	mostHeld     = 256 << 20     // bytes of bodies that the connections of an event loop hold
	keptHeld     = 1 << 20       // bytes of a buffer that is kept for further bodies
)

// stream is a request and what has come of its response. Its buffers are used again.
type stream struct {
	id     uint32 // the request's
	number uint32 // the stream's; 0 until the request is sent
	ended  bool   // nobody waits for it
	w      *wording

	head   []byte // the request's header block
	body   []byte // its body
	sent   int    // bytes of the body that have been sent
	window int    // bytes that may be sent for now

	in     int            // bytes of its frames
	status int            // 0 until the response's head has come
	length int            // of the body, as the head says; -1 if it does not
	fields []byte         // the response's header block
	got    int            // bytes of its body
	credit int            // bytes received for which the window was not opened again
	held   []byte         // the body, if it is looked at and did not come in one frame
	req    driver.Request // if the response is looked at
}

// hub is what the connections of an event loop share.
type hub struct {
	link   driver.Link
	worded map[string]*client // by endpoint: the words for it, as a client without a connection has them
	newest map[place]*conn
	reader *fields
	held   int // bytes of bodies
}

type place struct {
	endpoint string
	session  int
}

// conn is the codec of a connection. It counts streams from the first request on: number 2n-1 is the n-th.
//
// Each frame is read for itself: Parse takes the one that ends a stream, Aside takes all others. Reading that one again gives the same reply. Requests
// are kept until they are answered: those that the server has not taken when it says GOAWAY are sent again by the connection's successor.
type conn struct {
	*hub
	words   *client
	streams map[uint32]*stream // by id
	ended   []*stream          // of these, the earliest first
	before  uint32             // the id before the first request's
	highest uint32             // number of the newest stream
	open    int                // streams that the server knows
	waiting []*stream          // those that are not sent yet, in order
	unsent  []*stream          // those whose bodies have been sent in part

	most    int // streams that the server allows; none before its settings
	initial int // window of a new stream
	window  int // bytes of bodies that may be sent for now
	credit  int // bytes received for which the window was not opened again
	owed    []byte

	block   []byte // a header block that goes on
	blockOf uint32 // its stream; 0 if there is none
	ends    bool   // it ends the stream

	idle   int    // frames in a row that carry no body and end no stream
	final  uint32 // number of the last stream that the server takes
	leaves bool   // no more requests are sent
	left   bool
}

// Connection implements driver.Stateful.
func (c *conn) Connection(endpoint string, session int) (driver.Codec, error) {
	words, err := c.word(endpoint)
	if err != nil {
		return nil, err
	}
	own := &conn{hub: c.hub, words: words, streams: map[uint32]*stream{}, initial: usualWindow, window: usualWindow, final: mostNumber}
	at := place{endpoint, session}
	if old := c.newest[at]; old != nil {
		own.succeed(old)
	}
	c.newest[at] = own
	return own, nil
}

// word returns the words for an endpoint.
func (h *hub) word(endpoint string) (words *client, err error) {
	if words = h.worded[endpoint]; words == nil {
		if words, err = newClient(h.link, endpoint); err == nil {
			h.worded[endpoint] = words
		}
	}
	return words, err
}

// succeed takes the place of an earlier connection: of one that was left, it takes over the requests that have no answer.
func (c *conn) succeed(old *conn) {
	for _, s := range old.streams {
		if s.ended {
			continue
		}
		if c.hub.held -= len(s.held); old.left {
			own := c.place(s.id)
			own.w, own.head, own.body, own.req = s.w, s.head, s.body, s.req
			c.waiting = append(c.waiting, own)
		}
	}
	slices.SortFunc(c.waiting, func(a, b *stream) int { return int(a.id-old.before) - int(b.id-old.before) })
	if len(c.waiting) > 0 {
		c.before = c.waiting[0].id - 1
	}
}

// stream returns the stream with a number; nil if there is none.
func (c *conn) stream(number uint32) *stream {
	if s := c.streams[c.before+(number+1)/2]; s != nil && s.number == number {
		return s
	}
	return nil
}

// place makes room for the stream of a request.
func (c *conn) place(id uint32) *stream {
	s := c.streams[id]
	switch {
	case s != nil && s.number > 0: // the same request, which must be the same bytes
		c.open--
	case s == nil && len(c.ended) > mostEnded:
		s = c.ended[0]
		c.ended = slices.Delete(c.ended, 0, 1)
		delete(c.streams, s.id)
	case s == nil:
		s = new(stream)
	}
	*s = stream{id: id, length: -1, head: s.head[:0], body: s.body[:0], fields: s.fields[:0], held: s.held[:0]}
	c.streams[id] = s
	return s
}

// appendFrame appends a frame.
func appendFrame(dst []byte, kind http2.FrameType, flags http2.Flags, number uint32, payload []byte) []byte {
	size := len(payload)
	dst = append(dst, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return append(binary.BigEndian.AppendUint32(dst, number), payload...)
}

// appendValue appends a frame whose payload is a number.
func appendValue(dst []byte, kind http2.FrameType, number uint32, value int) []byte {
	var payload [4]byte
	binary.BigEndian.PutUint32(payload[:], uint32(value))
	return appendFrame(dst, kind, 0, number, payload[:])
}

// Greet implements driver.Codec.
func (*conn) Greet(dst []byte) ([]byte, int) {
	var settings []byte
	for _, s := range [...]http2.Setting{
		{ID: http2.SettingHeaderTableSize}, {ID: http2.SettingEnablePush}, {ID: http2.SettingInitialWindowSize, Val: streamWindow}, {ID: http2.SettingMaxHeaderListSize, Val: mostHead},
	} {
		settings = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(settings, uint16(s.ID)), s.Val)
	}
	dst = appendFrame(append(dst, http2.ClientPreface...), http2.FrameSettings, 0, 0, settings)
	return appendValue(dst, http2.FrameWindowUpdate, 0, connWindow-usualWindow), 1
}

// ParseGreeting implements driver.Codec: a server's first frame is its settings.
func (c *conn) ParseGreeting(b []byte, _ int) (n int, err error) {
	const other, alert = "HTTP/", "\x15\x03" // of HTTP/1.1, and of TLS
	switch {
	case strings.HasPrefix(string(b), other), strings.HasPrefix(string(b), alert):
		return 0, errors.New("the server speaks HTTP/1.1 at this port, or TLS: write driver = \"web\", or tls {} in the target")
	case strings.HasPrefix(other, string(b)), strings.HasPrefix(alert, string(b)):
		return 0, nil
	}
	f, err := c.next(b)
	switch {
	case err != nil || f.size == 0:
		return 0, err
	case f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck):
		return 0, fmt.Errorf("not HTTP/2: it begins with %v, not SETTINGS", f.kind)
	}
	c.most = math.MaxInt
	return f.size, c.settle(&f)
}

// AppendRequest implements driver.Codec. What the server cannot take yet is owed.
func (c *conn) AppendRequest(dst []byte, req *driver.Request) []byte {
	if len(c.streams) == 0 {
		c.before = req.ID - 1
	}
	s := c.place(req.ID)
	if s.w = c.words.words[req.Verb]; s.w.keeps || s.w.led {
		s.req = *req
		c.words.fill(req)
	}
	rest, err := c.words.encode(s.w, req)
	if err != nil {
		panic(err) // plans with such keys are refused
	}
	head, body, _ := bytes.Cut(c.words.out, []byte("\r\n\r\n"))
	s.head, s.body = appendFields(s.head, head, c.link.TLS), append(append(s.body, body...), rest...)
	c.idle = 0
	before := len(dst)
	if c.waiting = append(c.waiting, s); len(c.waiting) == 1 {
		dst = c.begin(dst)
	}
	req.Owed = max(0, len(s.head)+len(s.body)+frameHead-(len(dst)-before))
	return dst
}

// begin appends the requests that wait, as far as the server takes them now.
func (c *conn) begin(dst []byte) []byte {
	for len(c.waiting) > 0 && c.open < c.most {
		s := c.waiting[0]
		n := s.id - c.before
		if c.leaves = c.leaves || n > mostNumber/2; c.leaves {
			break
		}
		c.waiting = slices.Delete(c.waiting, 0, 1)
		s.number, s.window = 2*n-1, c.initial
		c.highest = s.number
		c.open++
		dst = appendBlock(dst, s)
		if dst = c.more(dst, s); s.sent < len(s.body) {
			c.unsent = append(c.unsent, s)
		}
	}
	return dst
}

// appendBlock appends the frames of a request's header block.
func appendBlock(dst []byte, s *stream) []byte {
	kind, flags := http2.FrameHeaders, http2.Flags(0)
	if len(s.body) == 0 {
		flags = http2.FlagHeadersEndStream
	}
	rest := s.head
	for ; len(rest) > mostFrame; rest = rest[mostFrame:] {
		dst = appendFrame(dst, kind, flags, s.number, rest[:mostFrame])
		kind, flags = http2.FrameContinuation, 0
	}
	return appendFrame(dst, kind, flags|http2.FlagHeadersEndHeaders, s.number, rest)
}

// more appends what the windows allow of a request's body.
func (c *conn) more(dst []byte, s *stream) []byte {
	for s.sent < len(s.body) {
		n := min(len(s.body)-s.sent, mostFrame, s.window, c.window)
		if n <= 0 {
			break
		}
		piece, flags := s.body[s.sent:s.sent+n], http2.Flags(0)
		if s.sent += n; s.sent == len(s.body) {
			flags = http2.FlagDataEndStream
		}
		dst = appendFrame(dst, http2.FrameData, flags, s.number, piece)
		s.window -= n
		c.window -= n
	}
	return dst
}

// AppendOwed implements driver.Owing.
func (c *conn) AppendOwed(dst []byte) []byte {
	dst, c.owed = append(dst, c.owed...), c.owed[:0]
	c.unsent = slices.DeleteFunc(c.unsent, func(s *stream) bool {
		dst = c.more(dst, s)
		return s.sent == len(s.body)
	})
	return c.begin(dst)
}

// Left implements driver.Leaver.
func (c *conn) Left() bool {
	if !c.leaves {
		return false
	}
	for _, s := range c.streams {
		if !s.ended && s.number > 0 && s.number <= c.final {
			return false
		}
	}
	c.left = true
	return true
}

// frame is a frame of a connection.
type frame struct {
	size    int // with its head; 0 if it is incomplete
	kind    http2.FrameType
	flags   http2.Flags
	number  uint32
	payload []byte // without padding and priority
}

// next reads the frame that b begins with, and refuses one of the wrong size or of a stream that cannot be.
func (c *conn) next(b []byte) (f frame, err error) {
	if len(b) < frameHead {
		return f, nil
	}
	n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if n > mostFrame {
		return f, fmt.Errorf("not HTTP/2, or a frame of %d bytes: at most %d are allowed", n, mostFrame)
	}
	if len(b) < frameHead+n {
		return f, nil
	}
	f = frame{frameHead + n, http2.FrameType(b[3]), http2.Flags(b[4]), binary.BigEndian.Uint32(b[5:]) & mostNumber, b[frameHead : frameHead+n]}
	begin, pad, odd := 0, 0, f.number%2 == 0 || f.number > c.highest
	switch f.kind {
	case http2.FrameHeaders, http2.FrameData:
		if f.flags.Has(http2.FlagDataPadded) && n > 0 {
			begin, pad = 1, int(f.payload[0])
		}
		if f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersPriority) {
			begin += 5
		}
	case http2.FrameRSTStream:
		odd = odd || n != 4
	case http2.FrameWindowUpdate:
		odd = f.number > 0 && odd || n != 4
	case http2.FrameSettings:
		odd = n%6 != 0
	case http2.FramePing:
		odd = n != 8
	case http2.FrameGoAway:
		odd = n < 8
	default:
		odd = odd && f.kind == http2.FrameContinuation
	}
	switch {
	case odd:
		return frame{}, fmt.Errorf("%v of %d bytes, of stream %d", f.kind, n, f.number)
	case begin+pad > n:
		return frame{}, fmt.Errorf("%v with more padding than payload", f.kind)
	}
	f.payload = f.payload[begin : n-pad]
	return f, nil
}

// whole reports whether a frame has all of a stream's body.
func (f *frame) whole(s *stream) bool {
	return f.kind == http2.FrameData && f.flags.Has(http2.FlagDataEndStream) && s.got == len(f.payload)
}

// concludes reports whether a frame ends a stream, or exceeds what its body may have.
func (c *conn) concludes(f *frame, s *stream) bool {
	switch {
	case f.kind == http2.FrameContinuation:
		return c.ends && f.number == c.blockOf && f.flags.Has(http2.FlagContinuationEndHeaders)
	case c.blockOf > 0:
		return false
	case f.kind == http2.FrameHeaders:
		return f.flags.Has(http2.FlagHeadersEndStream | http2.FlagHeadersEndHeaders)
	case f.kind == http2.FrameData:
		return f.flags.Has(http2.FlagDataEndStream) || s.got+len(f.payload) > c.words.most
	}
	return f.kind == http2.FrameRSTStream
}

// Tag implements driver.Tagged. A frame that ends no stream has the id 0, as no request has.
func (c *conn) Tag(b []byte) (id uint32, ok bool) {
	f, err := c.next(b)
	if err != nil || f.size == 0 {
		return 0, err != nil
	}
	if s := c.stream(f.number); s != nil && c.concludes(&f, s) {
		return s.id, true
	}
	return 0, true
}

// Parse implements driver.Codec.
func (c *conn) Parse(b []byte, _ driver.Verb, reply *driver.Reply) (n int, err error) {
	*reply = driver.Reply{}
	f, err := c.next(b)
	if err != nil || f.size == 0 {
		return 0, err
	}
	s := c.stream(f.number)
	if s == nil || !c.concludes(&f, s) {
		return 0, fmt.Errorf("%v of stream %d, which ends no response", f.kind, f.number)
	}
	again := s.ended
	if !again {
		if err := c.take(s, &f); err != nil {
			return 0, err
		}
	}
	reply.Aside, reply.Code = s.in-f.size, uint16(s.status)
	switch {
	case !s.w.leads(&s.req): // it was sent escaped
		c.words.refuse(reply, noPath, s.w.op, s.w.path)
	case f.kind == http2.FrameRSTStream:
		c.words.refuse(reply, "the server has reset the stream: %v", http2.ErrCode(binary.BigEndian.Uint32(f.payload)))
	case s.got > c.words.most:
		c.words.refuse(reply, "%v", c.words.ended(nil))
	case s.w.holds > 0 && s.got > s.w.holds:
		c.words.refuse(reply, "%v", errTooLong)
	case s.status == 0:
		return 0, errors.New("a stream that ends without a response")
	case s.length >= 0 && s.got != s.length && s.status != 204 && s.status != 304 && s.w.method != "HEAD" && !s.w.whole:
		c.words.refuse(reply, "a body of %d bytes, of which %d came", s.length, s.got)
	default:
		if c.words.value = s.held; f.whole(s) {
			c.words.value = f.payload
		}
		err = c.answer(s, reply)
	}
	if err != nil {
		return 0, err
	}
	if !again {
		c.end(s, &f)
	}
	return f.size, nil
}

// answer turns a response into a reply.
func (c *conn) answer(s *stream, reply *driver.Reply) error {
	head := &c.words.response.Header
	head.Reset()
	head.SetStatusCode(s.status)
	looks := s.w.keeps || s.w.outcome(s.status) == driver.Error
	for c.reader.begin(s.fields); looks && c.reader.next(); {
		if name := c.reader.name; len(name) > 0 && name[0] != ':' {
			head.AddBytesKV(name, c.reader.said(&c.reader.values))
		}
	}
	if c.reader.err != nil {
		return c.reader.err
	}
	words := c.words
	if words.found = (driver.Findings{Bag: words.found.Bag[:0]}); s.w.keeps {
		reply.Found = &words.found
	}
	if words.cookies {
		if err := words.remember(s.req.Target); err != nil {
			words.refuse(reply, "%s: %v", s.w.op, err)
			return nil
		}
	}
	words.judge(s.w, &s.req, reply)
	return nil
}

// end notes that a frame has ended a stream.
func (c *conn) end(s *stream, f *frame) {
	s.ended = true
	c.ended = append(c.ended, s)
	c.open--
	c.idle = 0
	if c.hub.held -= len(s.held); cap(s.held) > keptHeld {
		s.held = nil
	}
	if s.sent < len(s.body) {
		c.unsent = slices.DeleteFunc(c.unsent, func(other *stream) bool { return other == s })
	}
	if f.kind != http2.FrameRSTStream && (s.sent < len(s.body) || s.got > c.words.most) { // nobody wants the rest
		c.owed = appendValue(c.owed, http2.FrameRSTStream, s.number, int(http2.ErrCodeCancel))
	}
}

// received opens a window of so many bytes again, of the connection or a stream, for a frame whose bytes need no memory any more.
func (c *conn) received(f *frame, credit *int, number uint32, window int) {
	if *credit += f.size - frameHead; *credit >= window/2 {
		c.owed, *credit = appendValue(c.owed, http2.FrameWindowUpdate, number, *credit), 0
	}
}

// take adds to a stream what a frame of it holds. Nobody wants what comes for one that has ended.
func (c *conn) take(s *stream, f *frame) error {
	lives := s != nil && !s.ended
	if lives {
		s.in += f.size
	}
	switch f.kind {
	case http2.FrameRSTStream:
		return nil
	case http2.FrameData:
		if c.received(f, &c.credit, 0, connWindow); lives {
			return c.hold(s, f)
		}
		return nil
	case http2.FrameHeaders:
		c.block, c.blockOf, c.ends = c.block[:0], f.number, f.flags.Has(http2.FlagHeadersEndStream)
	case http2.FrameContinuation:
		if c.blockOf == 0 {
			return errors.New("CONTINUATION of no header block")
		}
	}
	if c.block = append(c.block, f.payload...); len(c.block) > mostHead {
		return fmt.Errorf("a response with a head of more than %v", driver.Size(mostHead))
	}
	if !f.flags.Has(http2.FlagHeadersEndHeaders) {
		return nil
	}
	if c.blockOf = 0; !lives || s.status > 0 { // trailers
		return nil
	}
	status, length, err := c.reader.sum(c.block)
	if err != nil || status < 200 { // an interim response
		return err
	}
	s.status, s.length, s.fields = status, length, append(s.fields[:0], c.block...)
	return nil
}

// hold adds what a frame has of a body.
func (c *conn) hold(s *stream, f *frame) error {
	if s.status == 0 {
		return errors.New("DATA before HEADERS")
	}
	if len(f.payload) > 0 {
		c.idle = 0
	}
	c.received(f, &s.credit, s.number, streamWindow)
	kept := f.payload
	if s.got += len(kept); s.w.holds == 0 {
		kept = kept[:min(len(kept), driver.MarkSize-len(s.held))]
	}
	if s.w.holds > 0 && s.got > s.w.holds || f.whole(s) {
		return nil
	}
	s.held = append(s.held, kept...)
	if c.hub.held += len(kept); c.hub.held > mostHeld {
		return fmt.Errorf("the bodies that are looked at take more than %v: use fewer sessions, or a lower max_body", driver.Size(mostHeld))
	}
	return nil
}

// Aside implements driver.Aside.
func (c *conn) Aside(b []byte) (n int, err error) {
	f, err := c.next(b)
	if err != nil || f.size == 0 {
		return 0, err
	}
	if c.idle++; c.idle > mostIdle {
		return 0, fmt.Errorf("more than %d frames in a row that carry no body and end no stream, the last one %v", mostIdle, f.kind)
	}
	if c.blockOf > 0 && (f.kind != http2.FrameContinuation || f.number != c.blockOf) {
		return 0, fmt.Errorf("%v within a header block", f.kind)
	}
	switch f.kind {
	case http2.FrameData, http2.FrameHeaders, http2.FrameContinuation, http2.FrameRSTStream:
		err = c.take(c.stream(f.number), &f)
	case http2.FrameSettings:
		err = c.settle(&f)
	case http2.FramePing:
		if !f.flags.Has(http2.FlagPingAck) {
			c.owed = appendFrame(c.owed, http2.FramePing, http2.FlagPingAck, 0, f.payload)
		}
	case http2.FrameGoAway:
		err = c.leave(&f)
	case http2.FrameWindowUpdate:
		err = c.update(&f)
	case http2.FramePushPromise:
		err = errors.New("PUSH_PROMISE, although the settings refuse pushes")
	}
	if err != nil {
		return 0, err
	}
	return f.size, nil
}

// settle takes the server's settings.
func (c *conn) settle(f *frame) error {
	if f.flags.Has(http2.FlagSettingsAck) {
		return nil
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		is := http2.Setting{ID: http2.SettingID(binary.BigEndian.Uint16(p)), Val: binary.BigEndian.Uint32(p[2:])}
		if err := is.Valid(); err != nil {
			return fmt.Errorf("SETTINGS with %v", is)
		}
		switch is.ID {
		case http2.SettingInitialWindowSize:
			for _, s := range c.streams {
				s.window += int(is.Val) - c.initial
			}
			c.initial = int(is.Val)
		case http2.SettingMaxConcurrentStreams:
			c.most = int(is.Val)
		}
	}
	c.owed = appendFrame(c.owed, http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	return nil
}

// update opens a window for the bodies of requests.
func (c *conn) update(f *frame) error {
	window, by := &c.window, int(binary.BigEndian.Uint32(f.payload)&mostNumber)
	if f.number > 0 {
		s := c.stream(f.number)
		if s == nil || s.ended {
			return nil
		}
		window = &s.window
	}
	if *window += by; by == 0 || *window > mostNumber {
		return fmt.Errorf("WINDOW_UPDATE by %d to %d", by, *window)
	}
	if len(c.unsent) > 0 {
		c.idle = 0
	}
	return nil
}

// leave takes GOAWAY: the server takes no streams beyond the last.
func (c *conn) leave(f *frame) error {
	last, code := binary.BigEndian.Uint32(f.payload)&mostNumber, http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:]))
	if code != http2.ErrCodeNo || last == 0 && c.highest > 0 {
		return fmt.Errorf("the server ends the connection after stream %d: GOAWAY, %v %.100q", last, code, f.payload[8:])
	}
	c.leaves, c.final = true, min(c.final, last)
	return nil
}

// refuse makes an error of a reply.
func (c *client) refuse(reply *driver.Reply, format string, args ...any) {
	c.message = fmt.Appendf(c.message[:0], format, args...)
	reply.Outcome, reply.Value, reply.Message = driver.Error, nil, c.message
}
