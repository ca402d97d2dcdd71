package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Consecutive answers with the same outcome are counted together.
func TestAnswersThatAreAlike(t *testing.T) {
	var a answers
	for _, x := range []answerRun{{driver.Miss, 2}, {driver.Miss, 1}, {driver.OK, 1}, {driver.OK, 3}, {driver.Miss, 1}, {driver.Error, 5}} {
		a.add(x.outcome, x.n)
	}
	require.Equal(t, answers{n: 13, runs: []answerRun{{driver.Miss, 3}, {driver.OK, 4}, {driver.Miss, 1}, {driver.Error, 5}}}, a)
}

// Only a get can be answered with a value that loadgen did not write.
func TestWhatIsForeign(t *testing.T) {
	own := (&driver.Value{Size: driver.HeaderSize, Checked: true}).AppendTo(nil)
	for _, tt := range []struct {
		verb    driver.Verb
		outcome driver.Outcome
		value   []byte
		want    bool
	}{
		{driver.Get, driver.OK, own, false},
		{driver.Get, driver.OK, own[1:], true},
		{driver.Get, driver.OK, nil, true},
		{driver.Get, driver.Miss, nil, false},
		{driver.Get, driver.Error, nil, false},
		{driver.Put, driver.OK, nil, false},
		{driver.Put, driver.Miss, nil, false},
		{driver.Delete, driver.OK, nil, false},
	} {
		require.Equal(t, tt.want, foreign(tt.verb, &driver.Reply{Outcome: tt.outcome, Value: tt.value}), "%+v", tt)
	}
}

// looked is a codec that counts the replies that it looks into. It is not asked about nothing. To "!" it returns a length with an error.
type looked struct {
	driver.Codec
	t    testing.TB
	into int
}

func (c *looked) Parse(b []byte, v driver.Verb, reply *driver.Reply) (int, error) {
	require.NotEmpty(c.t, b)
	if c.into++; b[0] == '!' {
		return 1, errors.New("no reply")
	}
	return c.Codec.Parse(b, v, reply)
}

func (c *looked) Skim(b []byte, v driver.Verb, most int) (int, int) {
	require.NotEmpty(c.t, b)
	return c.Codec.(driver.Skimmer).Skim(b, v, most)
}

func (c *looked) Outline(b []byte, v driver.Verb) int {
	require.NotEmpty(c.t, b)
	return c.Codec.(driver.Skimmer).Outline(b, v)
}

// look has the loop's codec count what it looks into.
func (b *bench) look() *looked {
	w := b.l.tr.(*wire)
	c := &looked{Codec: w.codec.codec, t: b.t}
	*w.codec = *newGuarded(c, w.codec.hold)
	return c
}

// Replies are read as far as they are there and belong to the first entry of the queue. They are looked into if they must be: values of gets that are
// checked, and all that is no success. Nothing is kept of a value that nobody looks at; only its end is awaited.
func TestRepliesToOneEntry(t *testing.T) {
	const (
		get, put = driver.Get, driver.Put
		hello    = "$5\r\nhello\r\n"
		none     = "$-1\r\n"
		sorry    = "-ERR no room\r\n"
		stored   = "+OK\r\n"
	)
	own := string((&driver.Value{Size: driver.HeaderSize, Checked: true}).AppendTo([]byte("$24\r\n"))) + "\r\n"
	for name, tt := range map[string]struct {
		verb          driver.Verb
		checked       bool
		owed          int
		replies       string
		took          int
		fails         bool
		ok, miss, bad int // answers
		foreign       int
		into          int // replies that are looked into
		left          int // bytes to come of a value that nobody looks at
	}{
		"hits":                              {get, false, 2, hello + hello, 22, false, 2, 0, 0, 0, 0, 0},
		"puts":                              {put, false, 2, stored + stored, 10, false, 2, 0, 0, 0, 0, 0},
		"a hit and a miss":                  {get, false, 2, hello + none, 16, false, 1, 1, 0, 0, 1, 0},
		"a miss and a hit":                  {get, false, 2, none + hello, 16, false, 1, 1, 0, 0, 2, 0},
		"an error":                          {get, false, 1, sorry, 14, false, 0, 0, 1, 0, 1, 0},
		"one of two":                        {get, false, 2, hello, 11, false, 1, 0, 0, 0, 0, 0},
		"more than are owed":                {get, false, 2, hello + hello + hello, 22, false, 2, 0, 0, 0, 0, 0},
		"more than are owed, with a miss":   {get, false, 2, none + hello + none, 16, false, 1, 1, 0, 0, 2, 0},
		"half of one":                       {get, false, 2, hello[:7], 7, false, 0, 0, 0, 0, 1, 2},
		"one and a half":                    {get, false, 2, hello + hello[:7], 18, false, 1, 0, 0, 0, 1, 2},
		"all but the end":                   {get, false, 1, hello[:10], 9, false, 0, 0, 0, 0, 1, 0},
		"whose length is not known":         {get, false, 1, hello[:2], 0, false, 0, 0, 0, 0, 1, 0},
		"half of a put's":                   {put, false, 1, stored[:2], 0, false, 0, 0, 0, 0, 1, 0},
		"another protocol":                  {get, false, 1, "HTTP/1.1 400\r\n", 0, true, 0, 0, 0, 0, 1, 0},
		"another protocol, after a hit":     {get, false, 2, hello + "HTTP/1.1 400\r\n", 11, true, 1, 0, 0, 0, 1, 0},
		"an error of the codec":             {get, false, 1, "!", 0, true, 0, 0, 0, 0, 1, 0},
		"checked":                           {get, true, 2, own + own, 2 * len(own), false, 2, 0, 0, 0, 2, 0},
		"checked and not loadgen's":         {get, true, 3, own + hello + none, len(own) + 16, false, 2, 1, 0, 1, 3, 0},
		"checked and an error":              {get, true, 1, sorry, 14, false, 0, 0, 1, 0, 1, 0},
		"half of one that is to be checked": {get, true, 2, hello + own[:20], 11, false, 1, 0, 0, 1, 2, 0},
		"puts of checked values":            {put, true, 2, stored + stored, 10, false, 2, 0, 0, 0, 0, 0},
	} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1, put = 1 }\nclosed { iterations = 1 }"), "load", 0)
		b.equip(worker.Load)
		codec, w, s := b.look(), b.l.tr.(*wire), b.l.sessions[0]
		c := w.conn(s, 0)
		for _, n := range []int{tt.owed, 100} {
			c.queue.push(pending{n: int32(n), verb: tt.verb, due: 2, sent: 3})
			b.l.occupy(s, n, 3)
		}
		took, whole, err := w.readAnswers(c, []byte(tt.replies), tt.checked, 7)
		answered := tt.ok + tt.miss + tt.bad
		require.Equal(t, tt.fails, err != nil, "%s: %v", name, err)
		require.Equal(t, tt.took, took, name)
		require.Equal(t, answered == tt.owed, whole, name)
		ended := b.l.rec.Ops[tt.verb].Ledger().Outcomes
		require.Equal(t, [3]int{tt.ok, tt.miss, tt.bad}, [3]int{int(ended[driver.OK]), int(ended[driver.Miss]), int(ended[driver.Error])}, name)
		require.EqualValues(t, tt.foreign, b.l.rec.Foreign, name)
		require.EqualValues(t, tt.bad, b.l.rec.Errors.Total(), name)
		require.Equal(t, measure.Requests{Answered: uint64(answered - tt.bad), Error: uint64(tt.bad)}, *b.l.rec.Request(0, tt.verb), name)
		require.Equal(t, [2]int{tt.into, tt.left}, [2]int{codec.into, c.skipped.left}, name)
		require.Equal(t, [3]int{answered, tt.owed + 100 - answered, tt.owed + 100 - answered}, [3]int{c.freed, c.queue.owed, b.l.running}, name)
		require.Equal(t, [2]bool{answered > 0, answered > 0}, [2]bool{b.l.answers == 7, s.last == 7}, "%s: only an answer is a sign of life", name)
		for i, run := range w.answers.runs {
			require.Positive(t, run.n, "%s: run %d", name, i)
		}
	}
}

// What is known of a reply is known of its ops alone. An op that times out later has no bytes and no error of an earlier one's.
func TestSamplesKnowNothingOfEarlierReplies(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		p := redisPlan(t, 1, `timeout = "20ms"`, "samples = 100\nops = { get = 1 }\nmax_bad = 1\nclosed { iterations = 2 }")
		_, ops := sampled(t, p, func(b *bench) {
			b.indirect = indirect
			b.server(0).words = []byte("-ERR no room\r\n")
			b.server(0).latency = every(2, -1)
		})
		require.Len(t, ops, 2)
		require.Equal(t, "ERR no room", ops[0].Error)
		require.EqualValues(t, len("-ERR no room\r\n"), ops[0].In)
		require.Equal(t, driver.Timeout, ops[1].Outcome)
		require.Empty(t, ops[1].Error)
		require.EqualValues(t, map[bool]int{false: measure.Unknown, true: 0}[indirect], ops[1].In, "indirect=%t", indirect)
	}
}
