package web

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/loadgen/loadgen/pkg/driver"
)

// streams is a connection whose server a test plays.
type streams struct {
	*conn
	framer *http2.Framer
	says   bytes.Buffer // of the server
	owed   []byte       // what the client has said
	ended  map[uint32]driver.Reply
	err    error
}

// newStreams makes a connection whose server has sent its settings.
func newStreams(t testing.TB, cfg *Config, settings ...http2.Setting) *streams {
	t.Helper()
	codec, err := HTTP2{}.NewCodec(driver.Link{Config: cfg, Values: true, Endpoint: "h:80"})
	require.NoError(t, err)
	s := &streams{ended: map[uint32]driver.Reply{}}
	s.succeed(t, codec.(*conn), settings...)
	return s
}

// succeed connects again.
func (s *streams) succeed(t testing.TB, shared *conn, settings ...http2.Setting) {
	t.Helper()
	own, err := shared.Connection("h:80", 7)
	require.NoError(t, err)
	s.conn, s.framer = own.(*conn), http2.NewFramer(&s.says, nil)
	s.framer.AllowIllegalWrites, s.owed = true, nil
	require.NoError(t, s.framer.WriteSettings(settings...))
	n, err := s.ParseGreeting(s.says.Bytes(), 0)
	require.NoError(t, err)
	s.says.Next(n)
}

// get asks for n keys, by ids from first on.
func (s *streams) get(first, n uint32) {
	for id := first; id < first+n; id++ {
		s.owed = s.AppendRequest(s.owed, &driver.Request{Verb: driver.Get, Key: []byte("k"), ID: id})
	}
}

// hear has the client read what the server has said, as the engine does.
func (s *streams) hear() {
	for b := s.says.Bytes(); len(b) > 0 && s.err == nil; {
		id, ok := s.Tag(b)
		var n int
		if _, again := s.ended[id]; ok && id > 0 && !again {
			var reply driver.Reply
			if n, s.err = s.Parse(b, driver.Get, &reply); n > 0 {
				reply.Value, reply.Message = bytes.Clone(reply.Value), bytes.Clone(reply.Message)
				s.ended[id] = reply
			}
		} else if ok {
			n, s.err = s.Aside(b)
		}
		if n == 0 {
			break
		}
		b = b[n:]
		s.says.Next(n)
	}
	s.owed = s.AppendOwed(s.owed)
}

// said returns the client's frames, by kind and stream.
func (s *streams) said(t testing.TB) (list []string) {
	t.Helper()
	r := http2.NewFramer(nil, bytes.NewReader(s.owed))
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return list
		}
		list = append(list, fmt.Sprintf("%v %d", f.Header().Type, f.Header().StreamID))
	}
}

func block(fields ...string) string {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer takes all
	}
	return b.String()
}

// send has the server send a frame.
func (s *streams) send(kind http2.FrameType, flags http2.Flags, number uint32, payload string) {
	_ = s.framer.WriteRawFrame(kind, flags, number, []byte(payload)) // a buffer takes all
}

const (
	ends  = http2.FlagDataEndStream
	whole = http2.FlagHeadersEndHeaders
)

// answer has the server answer a stream.
func (s *streams) answer(number uint32, body string, fields ...string) {
	s.send(http2.FrameHeaders, whole, number, block(append([]string{":status", "200"}, fields...)...))
	s.send(http2.FrameData, ends, number, body)
}

// TestStreamsInOddWays has a server do what it may: each request gets its reply, and the connection stays.
func TestStreamsInOddWays(t *testing.T) {
	s := newStreams(t, &Config{MaxBody: 1000}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 6}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	s.get(1, 7)
	s.hear()
	require.Equal(t, []string{"HEADERS 1", "HEADERS 3", "HEADERS 5", "HEADERS 7", "HEADERS 9", "HEADERS 11", "SETTINGS 0"}, s.said(t), "six requests; one waits")
	s.owed = nil
	s.send(http2.FrameRSTStream, 0, 11, "\x00\x00\x00\x07")
	s.send(http2.FramePing, 0, 0, "12345678")
	long := block(":status", "200", "x", strings.Repeat("x", 30_000))
	s.send(http2.FrameHeaders, whole, 9, block(":status", "103"))
	s.send(http2.FrameHeaders, http2.FlagHeadersPadded, 9, "\x09"+long[:10_000]+strings.Repeat("\x00", 9))
	s.send(http2.FrameContinuation, 0, 9, long[10_000:20_000])
	s.send(http2.FrameContinuation, whole, 9, long[20_000:])
	s.send(http2.FrameData, http2.FlagDataPadded, 9, "\x05ni\x00\x00\x00\x00\x00")
	s.answer(7, strings.Repeat("x", 1001))
	s.send(http2.FrameData, ends, 7, "more")
	s.answer(5, "five", "content-length", "5")
	s.send(http2.FrameData, 0, 9, "ne")
	s.send(http2.FrameHeaders, whole|ends, 9, block("grpc-status", "0"))
	s.send(http2.FrameHeaders, whole|ends, 3, block(":status", "404"))
	s.send(http2.FrameHeaders, whole|ends, 1, block(":status", "302", "location", "/x"))
	s.send(99, 0, 0, "unknown")
	s.hear()
	require.NoError(t, s.err)
	for id, says := range map[uint32]string{6: "the server has reset the stream: REFUSED_STREAM", 4: "a response of more than max_body = 1000 bytes", 3: "a body of 5 bytes, of which 4 came", 1: "status 302 Found to /x, which"} {
		require.Equal(t, driver.Error, s.ended[id].Outcome)
		require.Contains(t, string(s.ended[id].Message), says)
	}
	require.Equal(t, driver.Miss, s.ended[2].Outcome)
	require.Equal(t, "nine", string(s.ended[5].Value))
	require.Equal(t, frameHead+len(block(":status", "200", "content-length", "5")), s.ended[3].Aside, "bytes of its head")
	require.Equal(t, []string{"PING 0", "RST_STREAM 7", "HEADERS 13"}, s.said(t))

	put := &driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 100}, ID: 8}
	s.owed = s.AppendRequest(nil, put)
	require.Equal(t, []string{"HEADERS 15", "DATA 15"}, s.said(t))
	require.Equal(t, 90-9, put.Owed, "the window takes 10 bytes")
	s.get(9, 1)
	s.send(http2.FrameWindowUpdate, 0, 15, "\x00\x00\x00\x28")
	s.send(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x0f\x00\x00\x00\x00")
	s.answer(13, "seven")
	s.hear()
	s.get(10, 1)
	require.False(t, s.Left(), "it owes an answer")
	s.answer(15, "")
	s.hear()
	require.Equal(t, []string{"HEADERS 15", "DATA 15", "HEADERS 17", "DATA 15", "RST_STREAM 15"}, s.said(t), "the rest of the body is not wanted any more")
	require.True(t, s.Left())
	require.NoError(t, s.err)
	s.succeed(t, s.conn)
	s.hear()
	require.Equal(t, []string{"SETTINGS 0", "HEADERS 1", "HEADERS 3"}, s.said(t), "what was not taken, and what waited")
	s.answer(3, "ten")
	s.answer(1, "nine again")
	s.hear()
	require.NoError(t, s.err)
	require.Equal(t, "nine again ten", string(s.ended[9].Value)+" "+string(s.ended[10].Value))
	require.Zero(t, len(s.conn.streams)-len(s.conn.ended)+s.open+s.hub.held)
}

// TestHostileStreams bounds and names what no server should do.
func TestHostileStreams(t *testing.T) {
	ok, page, zero := block(":status", "200"), strings.Repeat("\x00", mostFrame), "\x00\x00\x00\x00"
	type sent struct {
		kind    http2.FrameType
		flags   http2.Flags
		number  uint32
		payload string
	}
	head := sent{http2.FrameHeaders, whole, 1, ok}
	for says, frames := range map[string][]sent{ // the last one is sent again and again
		"the last one PING":            {{http2.FramePing, 0, 0, zero + zero}},
		"the last one SETTINGS":        {{http2.FrameSettings, 0, 0, ""}},
		"the last one RST_STREAM":      {head, {http2.FrameRSTStream, 0, 1, zero}},
		"the last one WINDOW_UPDATE":   {{http2.FrameWindowUpdate, 0, 3, "\x00\x00\x00\x01"}},
		"the last one DATA":            {head, {http2.FrameData, 0, 1, ""}},
		"the last one HEADERS":         {{http2.FrameHeaders, whole, 1, block(":status", "103")}},
		"the last one CONTINUATION":    {{http2.FrameHeaders, 0, 1, ok}, {http2.FrameContinuation, 0, 1, ""}},
		"a head of more than 256 KiB":  {{http2.FrameHeaders, 0, 1, ok}, {http2.FrameContinuation, 0, 1, page}},
		"PING within a header block":   {{http2.FrameHeaders, 0, 1, ok}, {http2.FramePing, 0, 0, zero + zero}},
		"CONTINUATION of no header":    {{http2.FrameContinuation, whole, 1, ""}},
		"WINDOW_UPDATE by 0":           {{http2.FrameWindowUpdate, 0, 0, zero}},
		"WINDOW_UPDATE by 2147483647":  {{http2.FrameWindowUpdate, 0, 0, "\x7f\xff\xff\xff"}},
		"INITIAL_WINDOW_SIZE = 21474":  {{http2.FrameSettings, 0, 0, "\x00\x04\x80\x00\x00\x00"}},
		"SETTINGS of 5 bytes":          {{http2.FrameSettings, 0, 0, "12345"}},
		"of stream 99":                 {{http2.FrameHeaders, whole, 99, ok}},
		"HEADERS of 2 bytes, of str":   {{http2.FrameHeaders, whole, 2, ok}},
		"DATA of 1 bytes, of stream 0": {{http2.FrameData, ends, 0, "x"}},
		"DATA before HEADERS":          {{http2.FrameData, ends, 1, "x"}},
		"more padding than payload":    {{http2.FrameData, http2.FlagDataPadded | ends, 1, "\xc8\x01"}},
		"PUSH_PROMISE":                 {{http2.FramePushPromise, whole, 1, "\x00\x00\x00\x02"}},
		"at most 16384 are allowed":    {{http2.FrameData, 0, 1, page + "x"}},
		"without a status":             {{http2.FrameHeaders, whole, 1, block("x", "y")}},
		"that is no number":            {{http2.FrameHeaders, whole, 1, block(":status", "2xx")}},
		"that is no HPACK":             {{http2.FrameHeaders, whole, 1, "\xff\xff\xff\xff\xff\xff"}},
		"ENHANCE_YOUR_CALM \"too much": {{http2.FrameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x0btoo much"}},
		"after stream 0: GOAWAY, NO":   {{http2.FrameGoAway, 0, 0, zero + zero}},
		"ends without a response":      {{http2.FrameHeaders, whole | ends, 1, block(":status", "103")}},
	} {
		s := newStreams(t, &Config{MaxBody: 1000})
		s.get(1, 2)
		for at := 0; s.err == nil && at <= mostIdle+len(frames); at++ {
			f := frames[min(at, len(frames)-1)]
			s.send(f.kind, f.flags, f.number, f.payload)
			s.hear()
		}
		require.ErrorContains(t, s.err, says)
		require.Less(t, len(s.owed)+cap(s.block), 1<<20, says)
	}
	for begins, says := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n\r\n":     "the server speaks HTTP/1.1 at this port",
		"\x15\x03\x03\x00\x02\x02\x0a":         "or tls {}",
		"+PONG\r\n------":                      "not HTTP/2",
		"\x00\x00\x00\x02\x00\x00\x00\x00\x00": "it begins with PRIORITY, not SETTINGS",
	} {
		_, err := newStreams(t, &Config{MaxBody: 1000}).ParseGreeting([]byte(begins), 0)
		require.ErrorContains(t, err, says)
	}
}

// TestBodiesAreDropped: windows open for what has come, and only its beginning is kept, which may be a mark.
func TestBodiesAreDropped(t *testing.T) {
	s := newStreams(t, &Config{MaxBody: mostBody})
	s.words.words[driver.Get].holds = 0
	s.get(1, 1)
	s.send(http2.FrameHeaders, whole, 1, block(":status", "200"))
	s.hear()
	s.owed = nil
	for sent, piece := 0, strings.Repeat("x", mostFrame); sent < 60<<20; sent += len(piece) {
		s.send(http2.FrameData, 0, 1, piece)
		s.hear()
	}
	require.NoError(t, s.err)
	require.Len(t, s.said(t), 60<<20/(streamWindow/2), "updates of the stream's window")
	require.Equal(t, driver.MarkSize, s.hub.held)
	require.Equal(t, driver.MarkSize, cap(s.stream(1).held))
}

// FuzzParse reads anything, whole and in two parts. A header block is read as x/net reads it.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/nginx-h2.txt")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		frame, _ := hex.DecodeString(strings.NewReplacer(" ", "", "|", "", "\n", "").Replace(line))
		f.Add(frame, uint16(7))
	}
	f.Add(append([]byte{0, 0, 8, 7, 0, 0, 0, 0, 0}, make([]byte, 8)...), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		whole, parts := newStreams(t, &Config{MaxBody: 1000}), newStreams(t, &Config{MaxBody: 1000})
		for _, s := range []*streams{whole, parts} {
			s.get(1, 3)
			if s == parts {
				s.says.Write(b[:min(int(at), len(b))])
				s.hear()
				s.says.Write(b[min(int(at), len(b)):])
			} else {
				s.says.Write(b)
			}
			s.hear()
			require.LessOrEqual(t, len(s.owed)+cap(s.block)+s.hub.held, 1<<20+2*len(b))
		}
		require.Equal(t, whole.err, parts.err)
		require.Equal(t, whole.ended, parts.ended)
		ours, theirs := map[string]string{}, map[string]string{}
		all, err := hpack.NewDecoder(0, nil).DecodeFull(b)
		for _, field := range all {
			if field.Name != "" {
				theirs[field.Name] = field.Value
			}
		}
		if r := whole.reader; err == nil {
			for r.begin(b); r.next(); {
				if len(r.name) > 0 {
					ours[string(r.name)] = string(r.said(&r.values))
				}
			}
			require.NoError(t, r.err)
			require.Equal(t, theirs, ours)
		}
	})
}
