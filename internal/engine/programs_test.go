package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// noting is a program that notes what it is told, and does nothing.
type noting struct {
	told  []op.Event
	reply driver.Reply // the latest
}

func (n *noting) Start(dst []driver.Request, _ *op.Op) []driver.Request { return dst }

func (n *noting) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	n.told = append(n.told, ev)
	if ev.Reply != nil {
		n.reply = *ev.Reply
	}
	return dst, op.Step{}
}

// note has the loop's programs note what they are told.
func (b *bench) note() (*programs, *noting) {
	b.indirect = true
	b.equip(worker.Load)
	n := new(noting)
	b.l.programs.Program = n
	return b.l.programs, n
}

// under is an op that is under way since a time, with several keys or, if keys is 0, one.
func (p *programs) under(verb driver.Verb, keys int, since int64) *opState {
	st := p.l.take()
	st.by, st.session, st.Verb, st.keys, st.begun, st.done = p, p.l.sessions[0], verb, keys, since, false
	return st
}

// An op has timed out when its deadline has come, unless it is done. The next look is at the next deadline.
func TestWhichOpsAreOverdue(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"), "load", 0)
	p, n := b.note()
	require.EqualValues(t, never, p.sweep(1000), "without a deadline")
	p.lane.opTimeout = 100
	require.EqualValues(t, 1100, p.sweep(1000), "an op that begins now")
	late, next := p.under(driver.Get, 0, 900), p.under(driver.Get, 0, 903)
	p.under(driver.Get, 0, 950)
	p.under(driver.Get, 0, 902).by = newPrograms(p.lane)
	p.under(driver.Get, 0, 901).done = true
	p.l.release(p.under(driver.Get, 0, 899))
	require.EqualValues(t, 1003, p.sweep(1000))
	require.Equal(t, []op.Event{{Kind: op.OpTimeout, Op: &late.Op}}, n.told)
	late.done = true
	require.EqualValues(t, 1050, p.sweep(1003))
	require.Equal(t, op.Event{Kind: op.OpTimeout, Op: &next.Op}, n.told[1])
}

// A request for several keys ends as the worst of them, and is a miss if none was there. Each key ends as it did itself.
func TestRepliesToSeveralKeys(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"), "load", 0)
	p, n := b.note()
	kinds := map[rune]driver.Reply{
		'o': {Value: (&driver.Value{Size: driver.HeaderSize, Checked: true}).AppendTo(nil)},
		'f': {Value: []byte("foreign")},
		'm': {Outcome: driver.Miss},
		'c': {Outcome: driver.Conflict},
		'e': {Outcome: driver.Error, Message: []byte("no room")},
	}
	for _, tt := range []struct {
		replies string
		want    driver.Outcome
	}{
		{"m", driver.Miss},
		{"o", driver.OK},
		{"f", driver.OK},
		{"mm", driver.Miss},
		{"mo", driver.OK},
		{"fm", driver.OK},
		{"off", driver.OK},
		{"e", driver.Error},
		{"mm", driver.Miss},
		{"eo", driver.Error},
		{"ce", driver.Error},
		{"c", driver.Conflict},
		{"oc", driver.Conflict},
		{"cm", driver.Conflict},
	} {
		for _, checked := range []bool{false, true} {
			for _, verb := range []driver.Verb{driver.Get, driver.Put} {
				b.l.rec, p.lane.checked = measure.NewTotals(0, 1), checked
				var replies []driver.Reply
				var ended [driver.NumOutcomes]uint64
				for _, kind := range tt.replies {
					replies = append(replies, kinds[kind])
					ended[kinds[kind].Outcome]++
				}
				st := p.under(verb, len(replies)+1, 0)
				p.repliedBatch(request{st: st, verb: verb, tag: 9, keys: len(replies)}, replies, 50, 7)
				require.Equal(t, driver.Reply{Outcome: tt.want}, n.reply, tt.replies)
				require.Equal(t, op.Event{Kind: op.Replied, Op: &st.Op, Verb: verb, Tag: 9, Reply: &p.whole}, n.told[len(n.told)-1])
				failed := uint64(0)
				if tt.want == driver.Error {
					failed = 1
				}
				require.Equal(t, measure.Requests{Answered: 1 - failed, Error: failed}, *b.l.rec.Request(0, verb), tt.replies)
				require.Equal(t, ended, b.l.rec.Ops[verb].Keys.Outcomes, tt.replies)
				require.Equal(t, 1, st.keys, "the one of another request")
				strange := 0
				if checked && verb == driver.Get {
					strange = strings.Count(tt.replies, "f")
				}
				require.EqualValues(t, strange, b.l.rec.Foreign, "%s, checked=%t", tt.replies, checked)
				require.EqualValues(t, ended[driver.Error], b.l.rec.Errors.Total(), tt.replies)
				require.Equal(t, [2]uint64{50, 0}, [2]uint64{b.l.rec.Ops[verb].In, b.l.rec.Ops[verb].Out})
				require.EqualValues(t, 50, st.in)
				require.EqualValues(t, 7, b.l.answers, "it is a sign of life")
			}
		}
	}
}

// A reply with an error, or one that is not all there, ends nothing, whatever length the codec says it has.
func TestRepliesThatEndNothing(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"), "load", 0)
	p, n := b.note()
	b.look()
	c := p.w.conns[0]
	c.queue.push(pending{st: p.under(driver.Get, 0, 0), n: 1, verb: driver.Get})
	for reply, fails := range map[string]bool{"!": true, "HTTP/1.1 400\r\n": true, "$5\r\nhel": false} {
		took, whole, err := p.answered(c, []byte(reply), 7)
		require.Equal(t, fails, err != nil, reply)
		require.Zero(t, took, reply)
		require.False(t, whole, reply)
	}
	require.Empty(t, n.told)
	require.Equal(t, 1, c.queue.len())
	took, whole, err := p.answered(c, []byte("$-1\r\n$-1\r\n"), 7)
	require.NoError(t, err)
	require.True(t, whole)
	require.Equal(t, len("$-1\r\n"), took)
	require.Equal(t, driver.Miss, n.reply.Outcome)
	require.EqualValues(t, 7, b.l.answers, "it is a sign of life")
}

// The program hears which request was refused or lost. One that is refused casts doubt on what is known of a cluster. Only the keys of an op of
// several are counted.
func TestRequestsThatAreNotAnswered(t *testing.T) {
	b := newBench(t, redisPlan(t, 3, "cluster = true", "ops = { get = 1 }\nclosed { iterations = 1 }"), "load", 0)
	p, n := b.note()
	st := p.under(driver.Get, 0, 0)
	p.lost(request{st: st, endpoint: 2, verb: driver.Get, tag: 8}, op.Lost, 5)
	require.Empty(t, b.g.cluster.doubt)
	p.w.limit = 0
	p.issue(st, &driver.Request{Endpoint: 1, Verb: driver.Get, Key: []byte("key"), Tag: 9}, 6)
	require.Len(t, b.g.cluster.doubt, 1)
	require.Equal(t, []op.Event{
		{Kind: op.Lost, Op: &st.Op, Endpoint: 2, Verb: driver.Get, Tag: 8},
		{Kind: op.Refused, Op: &st.Op, Endpoint: 1, Verb: driver.Get, Tag: 9},
	}, n.told)
	require.Equal(t, measure.Requests{Error: 1}, *b.l.rec.Request(2, driver.Get))
	require.Equal(t, measure.Requests{Refused: 1}, *b.l.rec.Request(1, driver.Get))
	require.Nil(t, b.l.rec.Ops[driver.Get])

	several := p.under(driver.Get, 4, 0)
	p.issue(several, &driver.Request{Endpoint: 1, Verb: driver.Get, Batch: make([]driver.Item, 2)}, 7)
	newPrograms(p.lane).lost(request{st: several, endpoint: 2, verb: driver.Get, keys: 1}, op.RequestTimeout, 8) // in another target's lane
	require.Equal(t, [2]op.EventKind{op.Refused, op.RequestTimeout}, [2]op.EventKind{n.told[2].Kind, n.told[3].Kind})
	require.Equal(t, [driver.NumOutcomes]uint64{driver.Error: 2, driver.Timeout: 1}, b.l.rec.Ops[driver.Get].Keys.Outcomes)
	require.Equal(t, 1, several.keys)
}

// The bytes of ops that have a state are each one's own: they add up to those of their verb.
func TestBytesOfSampledOps(t *testing.T) {
	const closed = "closed {\n sessions = 2\n pipeline = 3\n iterations = 100\n}"
	for name, ops := range map[string]string{
		"plain":     "ops = { get = 1, put = 1, delete = 1 }\n",
		"batches":   "ops = { get = 1, put = 1 }\nbatch = 4\n",
		"scenarios": "scenario \"s\" {\n step \"put\" {}\n step \"get\" { key = \"same\" }\n}\n",
	} {
		totals, drawn := sampled(t, redisPlan(t, 2, "", "samples = 1000\nmax_bad = 1\nexpect_hits = 0\n"+ops+closed), func(b *bench) {
			b.indirect = true
			b.server(1).piece = 30
			b.server(0).latency = every(7, 3*time.Millisecond)
		})
		var got, want [driver.NumVerbs][2]int64
		for _, o := range drawn {
			got[o.Verb][0] += o.In
			got[o.Verb][1] += o.Out
		}
		for v, o := range totals.Ops {
			if o != nil {
				want[v] = [2]int64{int64(o.In), int64(o.Out)}
			}
		}
		require.Equal(t, want, got, name)
	}
}
