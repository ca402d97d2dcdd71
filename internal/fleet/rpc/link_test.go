package rpc

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// ends are two links and the streams between them: what was sent on the present stream and has not arrived.
type ends struct {
	a, b  link
	wires []*pb.Envelope // a to b
	acks  []uint64       // b to a

	pushed, got, taken []uint64 // payloads
}

func payload(n uint64) *pb.Envelope {
	return &pb.Envelope{Content: &pb.Envelope_Ready{Ready: &pb.Ready{Ops: n}}}
}

// TestLinkDeliversOnceInOrder pushes, sends, delivers, takes, acknowledges, and breaks streams in random order. Whatever was pushed must arrive once
// and in order, and nothing may be acknowledged before it is taken.
func TestLinkDeliversOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &ends{}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				n := uint64(len(e.pushed) + 1)
				e.pushed = append(e.pushed, n)
				e.a.push(payload(n))
			},
			"send": func(*rapid.T) { e.send() },
			"deliver": func(t *rapid.T) {
				if len(e.wires) > 0 {
					e.deliver(t)
				}
			},
			"take": func(*rapid.T) { e.take() },
			"acknowledge": func(t *rapid.T) {
				if len(e.acks) > 0 {
					require.NoError(t, e.a.ack(e.acks[0]))
					e.acks = e.acks[1:]
				}
			},
			"break": func(t *rapid.T) {
				e.wires, e.acks = nil, nil
				require.NoError(t, e.a.attach(e.b.taken))
			},
			"": func(t *rapid.T) {
				require.LessOrEqual(t, e.a.acked, uint64(len(e.taken)))
				require.True(t, slices.Equal(e.pushed[:len(e.got)], e.got), e.got)
				held := 0
				for _, o := range e.a.queue {
					held += o.size
				}
				require.Equal(t, held, e.a.held)
				onTheWay := 0
				for _, o := range e.a.queue[:e.a.next] {
					onTheWay += o.size
				}
				require.Equal(t, onTheWay, e.a.onTheWay)
				backlog := 0
				for _, size := range e.b.untaken {
					backlog += size
				}
				require.Equal(t, backlog, e.b.backlog)
				require.Len(t, e.b.untaken, int(e.b.received-e.b.taken))
			},
		})
		for len(e.taken) < len(e.pushed) || e.a.acked < uint64(len(e.pushed)) { // a stream that holds
			e.send()
			for len(e.wires) > 0 {
				e.deliver(t)
			}
			e.take()
			require.NoError(t, e.a.ack(e.b.taken))
		}
		require.True(t, slices.Equal(e.pushed, e.taken), e.taken)
		require.Empty(t, e.a.queue)
		require.Zero(t, e.a.held)
		require.Zero(t, e.a.onTheWay)
		require.Zero(t, e.b.backlog)
	})
}

func (e *ends) send() {
	if m := e.a.pop(); m != nil {
		e.wires = append(e.wires, m)
	}
}

func (e *ends) deliver(t *rapid.T) {
	m := e.wires[0]
	e.wires = e.wires[1:]
	fresh, err := e.b.accept(m)
	require.NoError(t, err)
	if fresh {
		e.got = append(e.got, m.GetReady().GetOps())
	}
}

func (e *ends) take() {
	if len(e.taken) < len(e.got) {
		e.b.take()
		e.taken = append(e.taken, e.got[len(e.taken)])
		e.acks = append(e.acks, e.b.taken)
	}
}

func TestLinkRefuses(t *testing.T) {
	var l link
	accept := func(n uint64) error {
		fresh, err := l.accept(&pb.Envelope{Number: n})
		require.Equal(t, err == nil, fresh, "%d: what is refused is not new", n)
		return err
	}
	require.NoError(t, accept(1))
	require.ErrorContains(t, accept(3), "envelope 3 came after 1")
	require.ErrorContains(t, accept(0), "without a number")
	require.ErrorContains(t, l.ack(1), "it has taken envelope 1, and 0 is the last that was sent")
	l.push(payload(1))
	require.ErrorContains(t, l.attach(1), "0 is the last that was sent")
	require.NotNil(t, l.pop())
	require.NoError(t, l.attach(1))
	require.ErrorContains(t, l.attach(0), "has taken envelope 0, and said before that it has taken 1")
	for n := uint64(2); n <= windowCount; n++ {
		require.NoError(t, accept(n))
	}
	require.ErrorContains(t, accept(windowCount+1), "more than may be on the way")
}

// TestLinkChangesOnlyWhatWasNeverSent is the rule that lets snapshots be joined.
func TestLinkChangesOnlyWhatWasNeverSent(t *testing.T) {
	var l link
	require.Nil(t, l.tail())
	l.push(payload(1))
	require.NotNil(t, l.tail())
	l.pop()
	require.Nil(t, l.tail())
	require.NoError(t, l.attach(0))
	require.Nil(t, l.tail(), "it was sent on an earlier stream")
	l.push(payload(2))
	l.tail().Content = &pb.Envelope_Snapshot{Snapshot: make([]byte, 1000)}
	l.amend()
	require.Greater(t, l.held, 1000)
}

// TestLinkHoldsBack keeps to the window, but lets a single envelope of any size pass.
func TestLinkHoldsBack(t *testing.T) {
	var l link
	for range 3 {
		l.push(&pb.Envelope{Content: &pb.Envelope_Snapshot{Snapshot: make([]byte, 2*windowBytes)}})
	}
	require.NotNil(t, l.pop())
	require.Nil(t, l.pop())
	require.NoError(t, l.ack(1))
	require.NotNil(t, l.pop())
	require.Nil(t, l.pop())
}

// TestLinkFillsItsWindow sends as much as the window holds, to the byte.
func TestLinkFillsItsWindow(t *testing.T) {
	for _, beyond := range []int{0, 1} {
		var l link
		for range 2 {
			l.push(&pb.Envelope{Content: &pb.Envelope_Snapshot{Snapshot: make([]byte, 100)}})
		}
		require.NotNil(t, l.pop())
		l.queue[1].size = windowBytes - l.queue[0].size + beyond
		require.Equal(t, beyond == 0, l.more())
	}
}

// TestLinkSendsWithinItsWindow clause by clause: the first envelope whatever its size, then only as many envelopes and bytes as the window holds.
func TestLinkSendsWithinItsWindow(t *testing.T) {
	for name, c := range map[string]struct {
		queue, next, onTheWay, size int
		more                        bool
	}{
		"nothing":               {0, 0, 0, 0, false},
		"all is sent":           {3, 3, 30, 10, false},
		"the first, of any":     {1, 0, 0, windowBytes + 1, true},
		"another, to the byte":  {3, 1, windowBytes - 10, 10, true},
		"another, a byte more":  {3, 1, windowBytes - 10, 11, false},
		"the last of them":      {windowCount + 1, windowCount - 1, 0, 10, true},
		"one more than may be":  {windowCount + 1, windowCount, 0, 10, false},
		"again, from the first": {windowCount + 1, 0, windowBytes, 10, true},
	} {
		l := link{queue: make([]outgoing, c.queue), next: c.next, onTheWay: c.onTheWay}
		for i := range l.queue {
			l.queue[i] = outgoing{&pb.Envelope{}, c.size}
		}
		require.Equal(t, c.more, l.more(), name)
		require.Equal(t, c.more, l.pop() != nil, name)
	}
}

// TestLinkTakesWithinItsWindow clause by clause: an envelope of any size if nothing waits, then only as many envelopes and bytes as the window holds.
func TestLinkTakesWithinItsWindow(t *testing.T) {
	e := &pb.Envelope{Number: 7, Content: &pb.Envelope_Snapshot{Snapshot: make([]byte, 100)}}
	size := proto.Size(e)
	for name, c := range map[string]struct {
		received       uint64
		waits, backlog int
		fresh          bool
		want           string
	}{
		"nothing waits":         {6, 0, 0, true, ""},
		"it came before":        {7, 0, 0, false, ""},
		"long before":           {9, 0, 0, false, ""},
		"too early":             {5, 0, 0, false, "envelope 7 came after 5"},
		"to the byte":           {6, 1, windowBytes - size, true, ""},
		"a byte more":           {6, 1, windowBytes - size + 1, false, "envelope 7 is more than may be on the way"},
		"the last of them":      {6, windowCount - 1, 0, true, ""},
		"one more than may be":  {6, windowCount, 0, false, "envelope 7 is more than may be on the way"},
		"both, and it has come": {7, windowCount, windowBytes, false, ""},
	} {
		l := link{received: c.received, untaken: make([]int, c.waits), backlog: c.backlog}
		fresh, err := l.accept(e)
		require.Equal(t, c.fresh, fresh, name)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, c.want, name)
		}
		if !fresh {
			require.Equal(t, link{received: c.received, untaken: make([]int, c.waits), backlog: c.backlog}, l, name)
			continue
		}
		require.Equal(t, []any{uint64(7), c.waits + 1, c.backlog + size}, []any{l.received, len(l.untaken), l.backlog}, name)
	}
	var big link
	_, err := big.accept(&pb.Envelope{Number: 1, Content: &pb.Envelope_Snapshot{Snapshot: make([]byte, 2*windowBytes)}})
	require.NoError(t, err, "one alone may be of any size")
}

// TestLinkLetsGoOfWhatWasTaken at once, even if other envelopes that came with it still wait.
func TestLinkLetsGoOfWhatWasTaken(t *testing.T) {
	var l link
	sent := func() weak.Pointer[pb.Envelope] {
		l.push(payload(uint64(len(l.queue))))
		return weak.Make(l.pop())
	}
	first, second, third := sent(), sent(), sent()
	require.NoError(t, l.ack(2))
	runtime.GC()
	require.Nil(t, first.Value())
	require.Nil(t, second.Value())
	require.NotNil(t, third.Value())
	require.Len(t, l.queue, 1)
}
