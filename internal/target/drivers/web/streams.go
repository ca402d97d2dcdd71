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
	frameHead    = 9         // bytes of a frame before its payload
	mostFrame    = 16 << 10  // bytes of a payload; more have to be allowed by a setting
	streamWindow = 4 << 20   // bytes that a server may send on a stream, and
	connWindow   = 1 << 30   // on a connection, before more is allowed: what Go's own client allows
	usualWindow  = 1<<16 - 1 // until a setting or an update says otherwise (RFC 9113, section 6.9.2)
	mostWindow   = math.MaxInt32
	mostIdle     = 10_000        // frames in a row that carry no body and end no stream
	mostNumber   = math.MaxInt32 // of a stream
	leastStreams = 16            // room of a connection at its beginning
	mostHeld     = 256 << 20     // bytes of bodies that the connections of an event loop hold
	keptHeld     = 1 << 20       // bytes of a buffer that is kept for further bodies
)

// stream is a request and what has come of its response. Its buffers are used again.
type stream struct {
	id     uint32 // the request's
	number uint32 // the stream's; 0 until the request is sent
	ended  bool   // nobody waits for it. It stays until its place is needed
	w      *wording

	head   []byte // the request's header block
	body   []byte // its body
	sent   int    // bytes of the body that have been sent
	window int    // bytes that may be sent for now

	in      int            // bytes of frames so far
	interim int            // responses before the response
	status  int            // 0 until the response's head has come
	length  int            // of the body, as the head says; -1 if it does not
	fields  []byte         // the response's header block
	got     int            // bytes of its body
	credit  int            // bytes received for which the window was not opened again
	held    []byte         // the body, if it is looked at
	req     driver.Request // if the response is looked at
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
	table   []stream // by id, with linear probing; its length is a power of two
	live    int      // streams that have not ended
	before  uint32   // the id before the first request's
	highest uint32   // number of the newest stream
	open    int      // streams that the server knows
	waiting []uint32 // ids of requests that are not sent yet, in order
	unsent  []uint32 // ids of requests whose bodies have been sent in part

	greeted bool
	most    int // streams that the server allows
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
	last   stream // the one that has just ended
}

// Connection implements driver.Stateful.
func (c *conn) Connection(endpoint string, session int) (driver.Codec, error) {
	words, err := c.word(endpoint)
	if err != nil {
		return nil, err
	}
	own := &conn{hub: c.hub, words: words, table: make([]stream, leastStreams), most: math.MaxInt, initial: usualWindow, window: usualWindow, final: mostNumber}
	at := place{endpoint, session}
	if old := c.newest[at]; old != nil {
		own.succeed(old)
	}
	c.newest[at] = own
	return own, nil
}

// word returns the words for an endpoint.
func (h *hub) word(endpoint string) (*client, error) {
	if words := h.worded[endpoint]; words != nil {
		return words, nil
	}
	cfg, authorization, err := settings(h.link)
	if err != nil {
		return nil, err
	}
	words := &client{run: h.link.Run, host: host(cfg, endpoint), authorization: authorization, most: int(cfg.MaxBody), values: h.link.Values, cookies: cfg.Cookies}
	if authorization != "" {
		words.secrets = []string{authorization}
	}
	if err := words.word(h.link.Forms, h.link.Secrets); err != nil {
		return nil, err
	}
	h.worded[endpoint] = words
	return words, nil
}

// succeed takes the place of an earlier connection: of one that was left, it takes over the requests that have no answer.
func (c *conn) succeed(old *conn) {
	for i := range old.table {
		s := &old.table[i]
		if s.w == nil || s.ended {
			continue
		}
		if c.hub.held -= len(s.held); old.left {
			c.waiting = append(c.waiting, s.id)
		}
	}
	slices.SortFunc(c.waiting, func(a, b uint32) int { return int(a-old.before) - int(b-old.before) })
	for i, id := range c.waiting {
		if i == 0 {
			c.before = id - 1
		}
		s, was := c.place(id), old.find(id)
		s.w, s.head, s.body, s.req = was.w, was.head, was.body, was.req
	}
}

// find returns the stream of a request; nil if there is none.
func (c *conn) find(id uint32) *stream {
	for i := range c.table {
		if s := &c.table[int(id+uint32(i))&(len(c.table)-1)]; s.id == id && s.w != nil {
			return s
		}
	}
	return nil
}

// stream returns the stream with a number; nil if there is none.
func (c *conn) stream(number uint32) *stream {
	if s := c.find(c.before + (number+1)/2); s != nil && s.number == number {
		return s
	}
	return nil
}

// place makes room for the stream of a request.
func (c *conn) place(id uint32) *stream {
	if 2*c.live >= len(c.table) {
		old := c.table
		c.table = make([]stream, 2*len(old))
		for i := range old {
			if !old[i].ended && old[i].w != nil {
				*c.free(old[i].id) = old[i]
			}
		}
	}
	s := c.free(id)
	switch {
	case s.w == nil || s.ended:
		c.live++
	case s.number > 0: // in place of a request with the same id
		c.open--
	}
	*s = stream{id: id, length: -1, head: s.head[:0], body: s.body[:0], fields: s.fields[:0], held: s.held[:0]}
	return s
}

// free returns the place of a request that is there, or one that is free.
func (c *conn) free(id uint32) *stream {
	if s := c.find(id); s != nil {
		return s
	}
	for i := 0; ; i++ {
		if s := &c.table[int(id+uint32(i))&(len(c.table)-1)]; s.w == nil || s.ended {
			return s
		}
	}
}

// appendFrame appends the head of a frame.
func appendFrame(dst []byte, size int, kind http2.FrameType, flags http2.Flags, number uint32) []byte {
	dst = append(dst, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(dst, number)
}

// Greet implements driver.Codec.
func (*conn) Greet(dst []byte) ([]byte, int) {
	dst = append(dst, http2.ClientPreface...)
	settings := [...]http2.Setting{
		{ID: http2.SettingHeaderTableSize}, {ID: http2.SettingEnablePush}, {ID: http2.SettingInitialWindowSize, Val: streamWindow}, {ID: http2.SettingMaxHeaderListSize, Val: mostHead},
	}
	dst = appendFrame(dst, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, uint16(s.ID)), s.Val)
	}
	return appendUpdate(dst, 0, connWindow-usualWindow), 1
}

// appendUpdate appends a frame that opens a window.
func appendUpdate(dst []byte, number uint32, by int) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(dst, 4, http2.FrameWindowUpdate, 0, number), uint32(by))
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
	f, err := next(b)
	switch {
	case err != nil || f.size == 0:
		return 0, err
	case f.kind != http2.FrameSettings || f.flags.Has(http2.FlagSettingsAck):
		return 0, fmt.Errorf("not HTTP/2: it begins with %v, not SETTINGS", f.kind)
	}
	c.greeted = true
	return f.size, c.settle(&f)
}

// AppendRequest implements driver.Codec. What the server cannot take yet is owed.
func (c *conn) AppendRequest(dst []byte, req *driver.Request) []byte {
	if c.live == 0 && c.highest == 0 {
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
	if c.waiting = append(c.waiting, req.ID); len(c.waiting) == 1 {
		dst = c.begin(dst)
	}
	req.Owed = max(0, len(s.head)+len(s.body)+frameHead-(len(dst)-before))
	return dst
}

// begin appends the requests that wait, as far as the server takes them now.
func (c *conn) begin(dst []byte) []byte {
	for c.greeted && len(c.waiting) > 0 && c.open < c.most {
		s := c.find(c.waiting[0])
		n := s.id - c.before
		if c.leaves = c.leaves || n > mostNumber/2; c.leaves {
			return dst
		}
		c.waiting = c.waiting[:copy(c.waiting, c.waiting[1:])]
		s.number, s.window = 2*n-1, c.initial
		c.highest = s.number
		c.open++
		dst = appendBlock(dst, s)
		if dst = c.more(dst, s); s.sent < len(s.body) {
			c.unsent = append(c.unsent, s.id)
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
	for rest := s.head; kind == http2.FrameHeaders || len(rest) > 0; kind, flags = http2.FrameContinuation, 0 {
		n := min(len(rest), mostFrame)
		if n == len(rest) {
			flags |= http2.FlagHeadersEndHeaders
		}
		dst = append(appendFrame(dst, n, kind, flags, s.number), rest[:n]...)
		rest = rest[n:]
	}
	return dst
}

// more appends what the windows allow of a request's body.
func (c *conn) more(dst []byte, s *stream) []byte {
	for s.sent < len(s.body) {
		n := min(len(s.body)-s.sent, mostFrame, s.window, c.window)
		if n <= 0 {
			break
		}
		flags := http2.Flags(0)
		if s.sent+n == len(s.body) {
			flags = http2.FlagDataEndStream
		}
		dst = append(appendFrame(dst, n, http2.FrameData, flags, s.number), s.body[s.sent:s.sent+n]...)
		s.sent += n
		s.window -= n
		c.window -= n
	}
	return dst
}

// AppendOwed implements driver.Owing.
func (c *conn) AppendOwed(dst []byte) []byte {
	dst, c.owed = append(dst, c.owed...), c.owed[:0]
	c.unsent = slices.DeleteFunc(c.unsent, func(id uint32) bool {
		s := c.find(id)
		if s != nil && !s.ended {
			dst = c.more(dst, s)
		}
		return s == nil || s.ended || s.sent == len(s.body)
	})
	return c.begin(dst)
}

// Left implements driver.Leaver.
func (c *conn) Left() bool {
	if !c.leaves {
		return false
	}
	for i := range c.table {
		if s := &c.table[i]; s.w != nil && !s.ended && s.number > 0 && s.number <= c.final {
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
	payload []byte
}

// next reads the frame that b begins with.
func next(b []byte) (f frame, err error) {
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
	number := binary.BigEndian.Uint32(b[5:]) & math.MaxInt32
	return frame{frameHead + n, http2.FrameType(b[3]), http2.Flags(b[4]), number, b[frameHead : frameHead+n]}, nil
}

// content returns the payload of a frame of a stream without padding and priority.
func (f *frame) content() ([]byte, error) {
	p, pad := f.payload, 0
	if f.kind != http2.FrameContinuation && f.flags.Has(http2.FlagDataPadded) && len(p) > 0 {
		pad, p = int(p[0]), p[1:]
	}
	if f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersPriority) {
		pad += 5
	}
	if pad > len(p) {
		return nil, fmt.Errorf("%v with more padding than payload", f.kind)
	}
	if f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersPriority) {
		p, pad = p[5:], pad-5
	}
	return p[:len(p)-pad], nil
}

// of returns an error unless the frame has that many bytes and, if it is one of a stream, the stream was opened.
func (c *conn) of(f *frame, size int) error {
	if len(f.payload) != size || f.number > c.highest || f.number > 0 && f.number%2 == 0 {
		return fmt.Errorf("%v of %d bytes, of stream %d", f.kind, len(f.payload), f.number)
	}
	return nil
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
	f, err := next(b)
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
	f, err := next(b)
	if err != nil || f.size == 0 {
		return 0, err
	}
	s := c.stream(f.number)
	if s == nil || !c.concludes(&f, s) {
		return 0, fmt.Errorf("%v of stream %d, which ends no response", f.kind, f.number)
	}
	t := &c.last
	*t = *s
	if err := c.take(t, &f); err != nil {
		return 0, err
	}
	reply.Aside, reply.Code = s.in, uint16(t.status)
	switch {
	case !t.w.leads(&t.req): // it was sent escaped
		c.words.refuse(reply, noPath, t.w.op, t.w.path)
	case f.kind == http2.FrameRSTStream:
		c.words.refuse(reply, "the server has reset the stream: %v", http2.ErrCode(binary.BigEndian.Uint32(f.payload)))
	case t.got > c.words.most:
		c.words.refuse(reply, "%v", c.words.ended(nil))
	case t.w.holds > 0 && t.got > t.w.holds:
		c.words.refuse(reply, "%v", errTooLong)
	case t.status == 0:
		return 0, errors.New("a stream that ends without a response")
	case t.length >= 0 && t.got != t.length && t.status != 204 && t.status != 304 && t.w.method != "HEAD" && !t.w.whole:
		c.words.refuse(reply, "a body of %d bytes, of which %d came", t.length, t.got)
	default:
		err = c.answer(t, reply)
	}
	if err != nil {
		return 0, err
	}
	if !s.ended {
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
	for b := s.fields; len(b) > 0 && looks; {
		rest, err := c.reader.next(b)
		if err != nil {
			return err
		}
		value, err := c.reader.said()
		if err != nil {
			return err
		}
		if b = rest; len(c.reader.name) > 0 && c.reader.name[0] != ':' {
			head.AddBytesKV(c.reader.name, value)
		}
	}
	words := c.words
	words.value, words.found = s.held, driver.Findings{Bag: words.found.Bag[:0]}
	if s.w.keeps {
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
	c.live--
	c.open--
	c.idle, c.blockOf, c.ends = 0, 0, false
	c.hub.held -= len(s.held)
	if own := c.last.held; len(s.held) > 0 { // not a part of the frame
		s.held = own[:len(s.held)]
	}
	if s.fields = c.last.fields[:len(s.fields)]; cap(s.held) > keptHeld {
		s.held = nil
	}
	whole := f.kind == http2.FrameRSTStream
	if f.kind == http2.FrameData {
		c.received(len(f.payload))
	}
	if !whole && (s.sent < len(s.body) || c.last.got > c.words.most) { // nobody wants the rest
		c.owed = binary.BigEndian.AppendUint32(appendFrame(c.owed, 4, http2.FrameRSTStream, 0, s.number), uint32(http2.ErrCodeCancel))
	}
}

// received opens the connection's window again for bytes that need no memory any more.
func (c *conn) received(n int) {
	if c.credit += n; c.credit >= connWindow/2 {
		c.owed, c.credit = appendUpdate(c.owed, 0, c.credit), 0
	}
}

// take adds what a frame holds to a stream.
func (c *conn) take(s *stream, f *frame) error {
	p, err := f.content()
	switch {
	case err != nil:
		return err
	case f.kind == http2.FrameRSTStream:
		return c.of(f, 4)
	case f.kind == http2.FrameData && s.status == 0:
		return errors.New("DATA before HEADERS")
	case f.kind == http2.FrameData:
		switch s.got += len(p); {
		case s.got > s.w.holds:
		case len(s.held) == 0 && f.flags.Has(http2.FlagDataEndStream):
			s.held = p
		default:
			s.held = append(s.held, p...)
		}
		return nil
	case s.status > 0: // trailers
		return nil
	case f.kind == http2.FrameContinuation:
		c.block = append(c.block, p...)
		p = c.block
	}
	status, length, err := c.reader.sum(p)
	if err != nil {
		return err
	}
	if status < 200 {
		if s.interim++; s.interim > interim {
			return fmt.Errorf("more than %d interim responses", interim)
		}
		return nil
	}
	s.status, s.length, s.fields = status, length, append(s.fields[:0], p...)
	return nil
}

// Aside implements driver.Aside.
func (c *conn) Aside(b []byte) (n int, err error) {
	f, err := next(b)
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
		err = c.partly(&f)
	case http2.FrameSettings:
		err = c.settle(&f)
	case http2.FramePing:
		if err = c.of(&f, 8); !f.flags.Has(http2.FlagPingAck) {
			c.owed = append(appendFrame(c.owed, 8, http2.FramePing, http2.FlagPingAck, 0), f.payload...)
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

// partly takes a frame of a stream that does not end there, or of one that has ended, of which nobody wants the rest.
func (c *conn) partly(f *frame) error {
	if f.number == 0 {
		return fmt.Errorf("%v of no stream", f.kind)
	}
	if err := c.of(f, len(f.payload)); err != nil {
		return err
	}
	s := c.stream(f.number)
	closed := s == nil || s.ended
	if !closed {
		s.in += f.size
	}
	switch {
	case f.kind == http2.FrameHeaders && !f.flags.Has(http2.FlagHeadersEndHeaders):
		p, err := f.content()
		c.block, c.blockOf, c.ends = append(c.block[:0], p...), f.number, f.flags.Has(http2.FlagHeadersEndStream)
		return err
	case f.kind == http2.FrameContinuation && c.blockOf == 0:
		return errors.New("CONTINUATION of no header block")
	case f.kind == http2.FrameContinuation && len(c.block)+len(f.payload) > mostHead:
		return fmt.Errorf("a response with a head of more than %v", driver.Size(mostHead))
	case f.kind == http2.FrameContinuation && !f.flags.Has(http2.FlagContinuationEndHeaders):
		c.block = append(c.block, f.payload...)
		return nil
	}
	c.blockOf = 0
	if f.kind == http2.FrameData {
		c.received(len(f.payload))
	}
	if closed {
		return nil
	}
	if f.kind == http2.FrameData {
		if len(f.payload) > 0 {
			c.idle = 0
		}
		if s.credit += len(f.payload); s.credit >= streamWindow/2 {
			c.owed, s.credit = appendUpdate(c.owed, s.number, s.credit), 0
		}
	}
	before := len(s.held)
	err := c.take(s, f)
	if c.hub.held += len(s.held) - before; c.hub.held > mostHeld && err == nil {
		err = fmt.Errorf("the bodies that are looked at take more than %v: use fewer sessions, or a lower max_body", driver.Size(mostHeld))
	}
	return err
}

// settle takes the server's settings.
func (c *conn) settle(f *frame) error {
	if f.flags.Has(http2.FlagSettingsAck) {
		return c.of(f, 0)
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		if len(p) < 6 {
			return fmt.Errorf("SETTINGS of %d bytes", len(f.payload))
		}
		value := int(binary.BigEndian.Uint32(p[2:]))
		switch id := http2.SettingID(binary.BigEndian.Uint16(p)); {
		case id == http2.SettingInitialWindowSize && value > mostWindow, id == http2.SettingMaxFrameSize && (value < mostFrame || value >= 1<<24):
			return fmt.Errorf("SETTINGS with %v = %d", id, value)
		case id == http2.SettingInitialWindowSize:
			for i := range c.table {
				c.table[i].window += value - c.initial
			}
			c.initial = value
		case id == http2.SettingMaxConcurrentStreams:
			c.most = value
		}
	}
	c.owed = appendFrame(c.owed, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	return nil
}

// update opens a window for the bodies of requests.
func (c *conn) update(f *frame) error {
	if err := c.of(f, 4); err != nil {
		return err
	}
	window, by := &c.window, int(binary.BigEndian.Uint32(f.payload)&math.MaxInt32)
	if f.number > 0 {
		s := c.stream(f.number)
		if s == nil || s.ended {
			return nil
		}
		window = &s.window
	}
	if *window += by; by == 0 || *window > mostWindow {
		return fmt.Errorf("WINDOW_UPDATE by %d to %d", by, *window)
	}
	if len(c.unsent) > 0 {
		c.idle = 0
	}
	return nil
}

// leave takes GOAWAY: the server takes no streams beyond the last.
func (c *conn) leave(f *frame) error {
	if len(f.payload) < 8 {
		return fmt.Errorf("GOAWAY of %d bytes", len(f.payload))
	}
	last, code := binary.BigEndian.Uint32(f.payload)&math.MaxInt32, http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:]))
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
