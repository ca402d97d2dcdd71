package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/panics"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// brittle is a codec that panics in one of its methods, at so many of the calls that come first.
type brittle struct {
	driver.Codec
	in   string
	left int
}

func (c *brittle) panics(in string) {
	if c.in == in && c.left > 0 {
		c.left--
		var none []int
		_ = none[len(in)]
	}
}

func (c *brittle) Greet(dst []byte) ([]byte, int) {
	c.panics("greet")
	return c.Codec.Greet(dst)
}

func (c *brittle) ParseGreeting(b []byte, i int) (int, error) {
	c.panics("parse greeting")
	return c.Codec.ParseGreeting(b, i)
}

func (c *brittle) AppendRequest(dst []byte, req *driver.Request) []byte {
	c.panics("request")
	return c.Codec.AppendRequest(append(dst, "half"...)[:len(dst)], req)
}

func (c *brittle) Parse(b []byte, v driver.Verb, reply *driver.Reply) (int, error) {
	c.panics("parse")
	return c.Codec.Parse(b, v, reply)
}

func (c *brittle) Offsets(req *driver.Request) (int, int) {
	c.panics("offsets")
	return c.Codec.(driver.Layout).Offsets(req)
}

func (c *brittle) Skim(b []byte, v driver.Verb, most int) (int, int) {
	c.panics("skim")
	return c.Codec.(driver.Skimmer).Skim(b, v, most)
}

func (c *brittle) Outline(b []byte, v driver.Verb) int {
	c.panics("outline")
	return c.Codec.(driver.Skimmer).Outline(b, v)
}

func (c *brittle) Aside(b []byte) (int, error) { return c.Codec.(driver.Aside).Aside(b) }

func (c *brittle) ParseAsking(b []byte) (int, error) {
	return c.Codec.(driver.Redirector).ParseAsking(b)
}

func (c *brittle) Redirect(message []byte) ([]byte, bool, bool) {
	c.panics("redirect")
	return c.Codec.(driver.Redirector).Redirect(message)
}

// breakCodec has the codec of a bench panic from now on.
func (b *bench) breakCodec(in string, times int) {
	w := b.l.tr.(*wire)
	*w.codec = *newGuarded(&brittle{Codec: w.codec.codec, in: in, left: times}, w.codec.hold)
}

// panicsOf sums the errors whose texts are of panics.
func panicsOf(t *measure.Totals) (n uint64, text string) {
	for words, count := range t.Errors.All() {
		if strings.Contains(words, "driver panicked at ") {
			n, text = n+count, words
		}
	}
	return n, text
}

// A panic of a driver is an error of the connection at hand, whatever it was called for and however ops are carried out. All ops are accounted for, and
// the session goes on.
func TestPanicOfACodec(t *testing.T) {
	const load = `
		ops = { get = 1, put = 1 }
		closed {
			sessions   = 2
			iterations = 500
			pipeline   = 4
		}`
	shapes := map[string]struct {
		endpoints int
		target    string
		values    string
		in        []string
	}{
		"plain":   {1, "", "size = 100", []string{"request", "offsets", "parse", "skim"}},
		"large":   {1, "", "size = 10000", []string{"request", "offsets", "skim", "outline"}},
		"several": {4, "", "size = 100", []string{"request", "offsets", "parse", "skim"}},
		"quorum":  {3, nwr321, "size = 100\n checked = true", []string{"request", "offsets", "parse"}},
	}
	for name, shape := range shapes {
		for _, in := range shape.in {
			for _, indirect := range []bool{false, true} {
				if indirect && (in == "offsets" || in == "skim" || in == "outline") {
					continue // only the direct way has them
				}
				t.Run(fmt.Sprintf("%s/%s/indirect=%v", name, in, indirect), func(t *testing.T) {
					b := newBench(t, redisPlanOf(t, shape.endpoints, shape.values, shape.target, load), "load", 100*time.Microsecond)
					b.indirect = indirect
					if in == "outline" { // of replies of which only the beginning is there
						b.server(0).piece = 3000
					}
					b.breakCodec(in, 2)
					totals := b.run(worker.Load)
					require.EqualValues(t, 1000, dueIn(&totals))
					require.NoError(t, b.l.fault)
					n, text := panicsOf(&totals)
					require.Positive(t, n)
					require.Contains(t, text, "guard_test.go:")
					require.Positive(t, totals.Reconnects)
				})
			}
		}
	}
}

// A driver that goes on panicking fails the step, and says where.
func TestPanicOfACodecAgainAndAgain(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"1h\"\n}"), "load", 100*time.Microsecond)
	b.breakCodec("parse", 1000)
	b.l.tr.(*wire).codec.skimmer = nil // there is no other way than to parse
	totals := b.run(worker.Load)
	n, _ := panicsOf(&totals)
	require.EqualValues(t, mostPanics+1, n)
	require.ErrorContains(t, b.l.fault, "session 0: 4 panics within a minute: driver panicked at guard_test.go:")
	require.ErrorContains(t, b.l.fault, "index out of range [5] with length 0")
	require.Less(t, b.net.clock.t-b.l.origin, int64(time.Minute))
}

// One that seldom panics does not.
func TestPanicOfACodecNowAndThen(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"1h\"\n}"), "load", 100*time.Microsecond)
	b.l.panics = map[*session][]int64{}
	for i := range int64(100) {
		b.l.panicked(b.l.sessions[0], &panics.Error{}, i*panicWindow/mostPanics)
	}
	require.NoError(t, b.l.fault)
	require.Len(t, b.l.panics[b.l.sessions[0]], mostPanics)
}

// A loop that is held when the driver panics is let go: the runtime ends a process that panics while it is held.
func TestPanicWhileTheLoopIsHeld(t *testing.T) {
	h := hold{may: true}
	h.before(0, 0)
	require.True(t, h.held)
	g := newGuarded(&brittle{in: "parse", left: 1}, &h)
	_, err := g.parse(nil, driver.Get, nil)
	require.ErrorContains(t, err, "driver panicked at guard_test.go:")
	require.False(t, h.held)
	time.Sleep(time.Millisecond) // which a held one must not do
	h.before(0, 0)
	require.True(t, h.held)
	h.release()
}
