package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

// Values that no coordinator sends.
var (
	hostileTexts   = []string{"", "\x00", "a\nb\r", "\u202egnp", "\x1b]0;x\a", "../../etc/passwd", strings.Repeat("x", 1<<20), "none"}
	hostileNumbers = []int64{0, 1, -1, math.MinInt64, math.MaxInt64, math.MaxInt32 + 1, math.MaxUint32}
	hostileFloats  = []float64{0, -1, 0.5, 1e20, -math.MaxFloat64, math.MaxFloat64, math.SmallestNonzeroFloat64}
)

// many is how many elements a hostile list or map has.
const many = 10_000

// corrupt puts such values into some fields of an envelope and of its facts.
func (p *pen) corrupt(e *pb.Envelope) {
	var facts any
	if json.Unmarshal(e.GetFacts(), &facts) == nil {
		var err error
		if e.Facts, err = json.Marshal(p.corrupted(facts)); err != nil {
			panic(err)
		}
	}
	for _, change := range []func(){
		func() { e.Kind = p.text() },
		func() { e.Error = p.text() },
		func() { e.Facts = []byte(p.text()) },
		func() { e.Facts = bytes.Replace(e.GetFacts(), []byte(":0"), []byte(":NaN"), 1) },
		func() { e.Content = []byte(p.text()) },
	} {
		if p.draw(8) == 0 {
			change()
		}
	}
}

// corrupted returns facts with such values in them.
func (p *pen) corrupted(facts any) any {
	all, ok := facts.(map[string]any)
	switch {
	case ok && p.draw(16) == 0:
		for n := range many {
			all[fmt.Sprint(n)] = nil
		}
	case ok:
		for _, name := range slices.Sorted(maps.Keys(all)) {
			all[name] = p.corrupted(all[name])
		}
		all[p.text()] = p.text()
	case p.draw(3) > 0:
		return facts
	default:
		return p.hostile(facts)
	}
	return all
}

func (p *pen) text() string { return pick(p, hostileTexts...) }

// hostile returns a value in place of a fact, mostly one of its type.
func (p *pen) hostile(fact any) any {
	switch _, text := fact.(string); {
	case p.draw(8) == 0:
		list := slices.Repeat([]string{hostileTexts[p.draw(6)]}, pick(p, 1, 1, 1, many)) // of short ones: long ones would only hold up the sender
		return pick[any](p, list, map[string][]string{p.text(): list}, map[string]map[string]string{"t": {p.text(): p.text()}})
	case text:
		return p.text()
	case p.draw(2) == 0:
		return pick(p, hostileFloats...)
	}
	return pick(p, hostileNumbers...)
}

// hostileCoordinator sends impossible orders, one after another, until a worker hangs up or has had its share.
type hostileCoordinator struct {
	pb.UnimplementedControlServer
	pen   *pen
	began time.Time

	mu    sync.Mutex // a worker comes again before its last stream has ended
	sent  int
	come  string   // the worker that came last
	heard []string // texts that workers have answered
}

// share is how many orders a worker gets on one stream.
const share = 8

func (h *hostileCoordinator) Join(stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := stream.Context().Err(); err != nil {
		return err
	}
	hello, err := stream.Recv()
	if err != nil {
		return err
	}
	bye := &pb.FromCoordinator{Goodbye: &pb.Goodbye{Reason: "a\nb\u202e"}}
	if hello.GetHello().GetIncarnation() == h.come {
		return stream.Send(bye) // it has hung up, and would come again for as long as it remembers
	}
	h.come = hello.GetHello().GetIncarnation()
	welcome := &pb.Welcome{Protocol: protocol, Run: "r", HeartbeatNs: int64(20 * time.Millisecond), LeaseNs: int64(time.Second)}
	if err := stream.Send(&pb.FromCoordinator{Welcome: welcome}); err != nil {
		return err
	}
	for n := uint64(1); n <= share; n++ {
		e := h.pen.order(time.Since(h.began))
		if h.pen.draw(3) > 0 {
			h.pen.corrupt(e)
		}
		if e.Number = n; h.pen.draw(50) == 0 {
			e.Number = pick(h.pen, 0, n+1, uint64(math.MaxUint64))
		}
		h.sent++
		if err := stream.Send(&pb.FromCoordinator{Envelope: e}); err != nil {
			return err
		}
		if err := h.answered(stream, e); err != nil {
			return err
		}
	}
	return stream.Send(bye)
}

// answered echoes heartbeats until an order is answered, or taken if it is one that has no answer.
func (h *hostileCoordinator) answered(stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator], order *pb.Envelope) error {
	var parts conn
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		e := m.GetEnvelope()
		switch {
		case m.GetPart() != nil:
			e, err = parts.join(m)
		case m.GetHeartbeat() != nil:
			now := int64(time.Since(h.began))
			err = stream.Send(&pb.FromCoordinator{Echo: &pb.Echo{SentNs: m.GetHeartbeat().GetSentNs(), ReceivedNs: now, EchoedNs: now}})
		case m.GetReceived() > 0:
			if order.GetKind() == kindDrain && m.GetReceived() >= order.GetNumber() {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if e != nil && e.GetKind() != kindSnapshot {
			h.heard = append(h.heard, e.GetError())
			return nil
		}
	}
}

// TestHostileOrdersOverTheWire sends a worker with a real engine a hundred orders with impossible values, from a coordinator that has proved to be
// its own. The worker answers or hangs up, comes back, and repeats nothing it was told that is not plain text.
func TestHostileOrdersOverTheWire(t *testing.T) {
	const orders = 100
	h := &hostileCoordinator{pen: newPen(t), began: time.Now()}
	dice := rand.New(rand.NewPCG(7, 18))
	h.pen.dice = make([]byte, 1<<20)
	for i := 0; i < len(h.pen.dice); i += 8 {
		binary.LittleEndian.PutUint64(h.pen.dice[i:], dice.Uint64())
	}
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	pb.RegisterControlServer(server, h)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	root := t.TempDir()
	for ctx.Err() == nil {
		err := Join(ctx, JoinConfig{
			Place: Trusting("bufconn", lis, func(ctx context.Context) (net.Conn, error) { return lis.DialContext(ctx) }),
			Name:  "w", Once: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Spool: 1 << 20,
			Random: func(int64) int64 { return 0 },
			New: func() Local {
				return engine.New(engine.Config{
					Drivers: drivers.All(), Loops: 1, Logger: slog.New(slog.DiscardHandler),
					LogRoot: func() (string, error) { return root, nil },
					Secrets: func(string) (string, error) { return "", errors.New("no secret is here") },
				})
			},
		})
		var refused *RefusedError
		require.False(t, errors.As(err, &refused), err)
		h.mu.Lock()
		enough := h.sent >= orders
		h.mu.Unlock()
		if enough {
			break
		}
	}
	require.NoError(t, ctx.Err())
	server.Stop()
	require.NoError(t, <-served)
	require.Greater(t, len(h.heard), orders/4, "most are answered")
	for _, text := range h.heard {
		require.Equal(t, plain(text), text)
		require.LessOrEqual(t, len(text), maxText+3*len("\ufffd"))
	}
}
