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

func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer takes all
	}
	return b.Bytes()
}

// answer has the server answer a stream.
func (s *streams) answer(number uint32, body string, fields ...string) {
	_ = s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: number, BlockFragment: block(append([]string{":status", "200"}, fields...)...), EndHeaders: true})
	_ = s.framer.WriteData(number, true, []byte(body))
}

// TestFramesOfNginx reads what nginx has sent.
func TestFramesOfNginx(t *testing.T) {
	text, err := os.ReadFile("testdata/nginx-h2.txt")
	require.NoError(t, err)
	s := newStreams(t, &Config{MaxBody: 1000})
	s.get(1, 2)
	for line := range strings.Lines(string(text)) {
		if line[0] != '#' {
			frame, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "", "\n", "").Replace(line))
			require.NoError(t, err)
			for _, c := range frame { // byte by byte
				s.says.WriteByte(c)
				s.hear()
			}
		}
	}
	require.NoError(t, s.err)
	for id := range uint32(2) {
		require.Equal(t, `{"id":"42","state":"draft","token":"t-123"}`, string(s.ended[id+1].Value))
		require.EqualValues(t, 200, s.ended[id+1].Code)
		require.Equal(t, 9+0x35, s.ended[id+1].Aside)
	}
	require.Equal(t, []string{"HEADERS 1", "HEADERS 3", "SETTINGS 0", "SETTINGS 0"}, s.said(t))
}

// TestStreamsInOddWays has a server do what it may: each request gets its reply, and the connection stays.
func TestStreamsInOddWays(t *testing.T) {
	s := newStreams(t, &Config{MaxBody: 1000}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 6}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	s.get(1, 7)
	s.hear()
	require.Equal(t, []string{"HEADERS 1", "HEADERS 3", "HEADERS 5", "HEADERS 7", "HEADERS 9", "HEADERS 11", "SETTINGS 0"}, s.said(t), "six requests; one waits")
	s.owed = nil
	require.NoError(t, s.framer.WriteRSTStream(11, http2.ErrCodeRefusedStream))
	require.NoError(t, s.framer.WritePing(false, [8]byte{1}))
	long := block(":status", "200", "x", strings.Repeat("x", 30_000))
	require.NoError(t, s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 9, BlockFragment: block(":status", "103"), EndHeaders: true}))
	require.NoError(t, s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 9, BlockFragment: long[:10_000], PadLength: 9}))
	require.NoError(t, s.framer.WriteContinuation(9, false, long[10_000:20_000]))
	require.NoError(t, s.framer.WriteContinuation(9, true, long[20_000:]))
	require.NoError(t, s.framer.WriteDataPadded(9, false, []byte("ni"), make([]byte, 5)))
	s.answer(7, strings.Repeat("x", 1001))
	require.NoError(t, s.framer.WriteData(7, true, []byte("more")))
	s.answer(5, "five", "content-length", "5")
	require.NoError(t, s.framer.WriteDataPadded(9, false, []byte("ne"), nil))
	require.NoError(t, s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 9, BlockFragment: block("grpc-status", "0"), EndHeaders: true, EndStream: true}))
	require.NoError(t, s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(":status", "404"), EndHeaders: true, EndStream: true}))
	require.NoError(t, s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":status", "302", "location", "/x"), EndHeaders: true, EndStream: true}))
	require.NoError(t, s.framer.WriteRawFrame(99, 0, 0, []byte("unknown")))
	s.hear()
	require.NoError(t, s.err)
	for id, says := range map[uint32]string{6: "the server has reset the stream: REFUSED_STREAM", 4: "a response of more than max_body = 1000 bytes", 3: "a body of 5 bytes, of which 4 came", 1: "status 302 Found to /x, which"} {
		require.Equal(t, driver.Error, s.ended[id].Outcome)
		require.Contains(t, string(s.ended[id].Message), says)
	}
	require.Equal(t, driver.Miss, s.ended[2].Outcome)
	require.Equal(t, "nine", string(s.ended[5].Value))
	require.Equal(t, []string{"PING 0", "RST_STREAM 7", "HEADERS 13"}, s.said(t))

	put := &driver.Request{Verb: driver.Put, Key: []byte("k"), Value: &driver.Value{Size: 100}, ID: 8}
	s.owed = s.AppendRequest(nil, put)
	require.Equal(t, []string{"HEADERS 15", "DATA 15"}, s.said(t))
	require.Equal(t, 90-9, put.Owed, "the window takes 10 bytes")
	s.get(9, 1)
	require.NoError(t, s.framer.WriteWindowUpdate(15, 40))
	require.NoError(t, s.framer.WriteGoAway(15, http2.ErrCodeNo, nil))
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
	head := func(s *streams, end bool, fields ...string) {
		_ = s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields...), EndHeaders: end})
	}
	flood := func(one func(s *streams)) func(s *streams) {
		return func(s *streams) {
			for range mostIdle + 1 {
				one(s)
			}
		}
	}
	for says, does := range map[string]func(s *streams){
		"the last one PING":          flood(func(s *streams) { _ = s.framer.WritePing(false, [8]byte{}) }),
		"the last one SETTINGS":      flood(func(s *streams) { _ = s.framer.WriteSettings() }),
		"the last one RST_STREAM":    func(s *streams) { s.answer(1, ""); flood(func(s *streams) { _ = s.framer.WriteRSTStream(1, 0) })(s) },
		"the last one WINDOW_UPDATE": flood(func(s *streams) { _ = s.framer.WriteWindowUpdate(3, 1) }),
		"the last one DATA": func(s *streams) {
			head(s, true, ":status", "200")
			flood(func(s *streams) { _ = s.framer.WriteData(1, false, nil) })(s)
		},
		"the last one CONTINUATION": func(s *streams) {
			head(s, false, ":status", "200")
			flood(func(s *streams) { _ = s.framer.WriteContinuation(1, false, nil) })(s)
		},
		"a head of more than 256 KiB": func(s *streams) {
			head(s, false, ":status", "200")
			for range 1 << 30 / mostFrame / 1000 {
				_ = s.framer.WriteContinuation(1, false, make([]byte, mostFrame))
			}
		},
		"PING within a header block":  func(s *streams) { head(s, false, ":status", "200"); _ = s.framer.WritePing(false, [8]byte{}) },
		"CONTINUATION of no header":   func(s *streams) { _ = s.framer.WriteContinuation(1, true, nil) },
		"WINDOW_UPDATE by 0":          func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)) },
		"WINDOW_UPDATE by 2147483647": func(s *streams) { _ = s.framer.WriteWindowUpdate(0, 1<<31-1) },
		"INITIAL_WINDOW_SIZE = 21474": func(s *streams) {
			_ = s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		},
		"SETTINGS of 5 bytes":          func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) },
		"of stream 99":                 func(s *streams) { s.answer(99, "never asked for") },
		"HEADERS of 1 bytes, of str":   func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameHeaders, 4, 2, []byte{0x88}) },
		"DATA of 1 bytes, of stream 0": func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameData, 1, 0, []byte("x")) },
		"DATA before HEADERS":          func(s *streams) { _ = s.framer.WriteData(1, true, []byte("x")) },
		"more padding than payload":    func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameData, 9, 1, []byte{200, 1}) },
		"PUSH_PROMISE": func(s *streams) {
			_ = s.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		},
		"at most 16384 are allowed": func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, mostFrame+1)) },
		"without a status":          func(s *streams) { head(s, true, "x", "y") },
		"that is no number":         func(s *streams) { head(s, true, ":status", "2xx") },
		"that is no HPACK": func(s *streams) {
			_ = s.framer.WriteRawFrame(http2.FrameHeaders, 4, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		},
		"ENHANCE_YOUR_CALM \"too much": func(s *streams) { _ = s.framer.WriteGoAway(1, http2.ErrCodeEnhanceYourCalm, []byte("too much")) },
		"after stream 0: GOAWAY, NO":   func(s *streams) { _ = s.framer.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"ends without a response":      func(s *streams) { _ = s.framer.WriteRawFrame(http2.FrameHeaders, 5, 1, block(":status", "103")) },
	} {
		s := newStreams(t, &Config{MaxBody: 1000})
		s.get(1, 2)
		does(s)
		s.hear()
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

// TestBodiesAreDropped: windows open for what has come, and nothing of it is kept.
func TestBodiesAreDropped(t *testing.T) {
	s := newStreams(t, &Config{MaxBody: mostBody})
	s.words.words[driver.Get].holds = 0
	s.get(1, 1)
	_ = s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":status", "200"), EndHeaders: true})
	s.hear()
	s.owed = nil
	for sent, piece := 0, make([]byte, mostFrame); sent < 60<<20; sent += len(piece) {
		_ = s.framer.WriteData(1, false, piece)
		s.hear()
	}
	require.NoError(t, s.err)
	require.Len(t, s.said(t), 60<<20/(streamWindow/2), "updates of the stream's window")
	require.Zero(t, s.hub.held+cap(s.stream(1).held))
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
