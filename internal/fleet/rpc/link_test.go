package rpc

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
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
	return &pb.Envelope{Content: binary.AppendUvarint(nil, n)}
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
		n, _ := binary.Uvarint(m.GetContent())
		e.got = append(e.got, n)
	}
}

func (e *ends) take() {
	if len(e.taken) < len(e.got) {
		e.b.take()
		e.taken = append(e.taken, e.got[len(e.taken)])
		e.acks = append(e.acks, e.b.taken)
	}
}

// TestLinkForgetsNothing: what the other end has taken before, it has taken.
func TestLinkForgetsNothing(t *testing.T) {
	var l link
	l.push(payload(1))
	require.ErrorContains(t, l.attach(1), "0 is the last that was sent")
	require.NotNil(t, l.pop())
	require.NoError(t, l.attach(1))
	require.ErrorContains(t, l.attach(0), "has taken envelope 0, but said before that it had taken 1")
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
	l.tail().Content = make([]byte, 1000)
	l.amend()
	require.Greater(t, l.held, 1000)
}

// TestLinkHoldsBack keeps to the window, but lets a single envelope of any size pass.
func TestLinkHoldsBack(t *testing.T) {
	var l link
	for range 3 {
		l.push(&pb.Envelope{Content: make([]byte, 2*windowBytes)})
	}
	require.NotNil(t, l.pop())
	require.Nil(t, l.pop())
	require.NoError(t, l.ack(1))
	require.NotNil(t, l.pop())
	require.Nil(t, l.pop())
}
