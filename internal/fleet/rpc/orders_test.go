package rpc

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// ordersPlan has phases of each kind, on a target that is there, on one that refuses, and on files that a worker does not open.
const ordersPlan = `
plan "orders" {}
target "there" {
	driver    = "null"
	endpoints = ["a"]
}
target "away" {
	driver    = "redis"
	endpoints = ["127.0.0.1:1"]
	timeout   = "10ms"
	password  = secret("CACHE")
}
target "wal" {
	driver = "log"
}
dataset "d" {
	keys { count = 10 }
	values { size = 100 }
}
dataset "pools" {
	keys {
		count = 10
		scope = "session"
	}
	values { size = 100 }
}
phase "fill" {
	target  = target.there
	dataset = dataset.d
	populate {}
}
phase "closed" {
	target  = target.there
	dataset = dataset.pools
	ops     = { get = 1, put = 1 }
	expect_hits = 0
	setup { ops = { put = 1 } }
	closed {
		sessions   = 3
		iterations = 5
	}
}
phase "open" {
	target  = target.there
	dataset = dataset.d
	ops     = { put = 1 }
	open {
		sessions = 2
		rate     = 1000
		duration = "10ms"
	}
}
phase "away" {
	target  = target.away
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions   = 2
		iterations = 1
	}
}
phase "append" {
	target  = target.wal
	dataset = dataset.d
	ops     = { append = 1 }
	closed {
		sessions   = 1
		iterations = 1
	}
}
`

// pen writes random orders, or a fuzzer's.
type pen struct {
	plan   *plan.Plan
	bytes  []byte
	digest string
	dice   []byte
}

func newPen(t testing.TB) *pen {
	file, diags := plan.Parse([]byte(ordersPlan), "orders.hcl", drivers.All())
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	canonical, err := p.Canonical()
	require.NoError(t, err)
	return &pen{plan: p, bytes: canonical, digest: plan.Digest(canonical)}
}

// draw returns a number below n; 0 once the dice are used up.
func (p *pen) draw(n int) int {
	if len(p.dice) == 0 {
		return 0
	}
	b := p.dice[0]
	p.dice = p.dice[1:]
	return int(b) % n
}

func pick[T any](p *pen, all ...T) T { return all[p.draw(len(all))] }

// order writes the next one.
func (p *pen) order(now time.Duration) *pb.Envelope {
	switch p.draw(8) {
	case 0:
		m := assignment{worker.Assignment{RunID: "r", Plan: p.bytes, Digest: p.digest, Workers: pick(p, 1, 1, 1, 0, 2, 1<<31)}, int64(now)}
		switch p.draw(6) {
		case 0:
			m.Digest = "another"
		case 1:
			m.Plan = m.Plan[:len(m.Plan)-1]
		case 2:
			m.ZeroNS = pick(p, int64(math.MaxInt64), math.MinInt64, -1)
		}
		return encoded(kindAssign, m, m.Plan)
	case 1, 2, 3:
		ph := pick(p, p.plan.Phases...)
		m := worker.Step{Seq: p.draw(5), Phase: ph.Name, Kind: pick(p, worker.Setup, worker.Populate, worker.Clear, worker.Load, worker.Load, worker.Load), Last: p.draw(2) > 0, To: ph.Sessions()}
		if o := ph.Open; o != nil {
			m.Shape.Rate, m.Shape.Duration = o.Rate, 10*time.Millisecond
		}
		if ph.Populate != nil {
			m.Kind = worker.Populate
		}
		switch p.draw(8) {
		case 0:
			m.Phase = "none"
		case 1:
			m.From, m.To = p.draw(5), p.draw(7)
		case 2:
			m.To = pick(p, maxSessions, math.MaxUint32)
		case 3:
			m.Shape.Rate, m.Shape.From = pick(p, 0, 1e9, 1e300, -1), pick(p, 0, 1e9, -1)
			m.Shape.Ramp, m.Shape.Duration = pick(p, 0, -1, time.Duration(math.MaxInt64)), pick(p, 0, -1, time.Millisecond, math.MaxInt64)
		case 4:
			m.Level = pick(p, 7, math.MaxUint32)
		}
		return encoded(kindPrepare, m, nil)
	case 4, 5:
		return encoded(kindStart, pick(p, 0, time.Millisecond, -time.Hour, maxRunTime-1, math.MaxInt64), nil)
	case 6:
		if p.draw(4) > 0 {
			return &pb.Envelope{}
		}
		return &pb.Envelope{Kind: kindDrain}
	}
	return &pb.Envelope{Kind: kindFinal}
}

// encoded is an order that JSON can hold.
func encoded(kind string, facts any, content []byte) *pb.Envelope {
	e, err := sealed(kind, facts, content)
	if err != nil {
		panic(err)
	}
	return e
}

// obey gives a worker with a real engine the orders that the dice write, and returns how many it took. It must answer all of them.
func (p *pen) obey(t testing.TB, dice []byte, root string) (orders int) {
	p.dice = dice
	s := newSession(JoinConfig{
		Name: "w", Logger: slog.New(slog.DiscardHandler), Spool: 1 << 20,
		New: func() Local {
			return engine.New(engine.Config{
				Drivers: drivers.All(), Loops: 1, Logger: slog.New(slog.DiscardHandler),
				LogRoot: func() (string, error) { return root, nil },
				Secrets: func(string) (string, error) { return "", errors.New("no secret is here") },
			})
		},
	}, nil)
	defer s.end()
	const lease = 20 * time.Millisecond
	s.epoch = time.Now().Add(-time.Second)
	for len(p.dice) > 0 {
		now := s.now()
		require.NoError(t, s.echoed(&pb.Echo{SentNs: int64(now), ReceivedNs: int64(now), EchoedNs: int64(now)}, s.now(), lease))
		e := p.order(s.now())
		e.Number = uint64(orders + 1)
		orders++
		if e.GetKind() == kindDrain {
			if s.accept(e) != nil {
				return orders // it hangs up
			}
			continue
		}
		require.NotEmpty(t, s.do(e).GetKind())
	}
	return orders
}

// TestOrdersOutOfTurn gives a worker orders that a coordinator never sends, or not in that sequence.
func TestOrdersOutOfTurn(t *testing.T) {
	p := newPen(t)
	assigning := func(digest string) *pb.Envelope {
		return encoded(kindAssign, worker.Assignment{RunID: "r", Digest: digest, Workers: 1}, p.bytes)
	}
	step := func(s worker.Step) *pb.Envelope { return encoded(kindPrepare, s, nil) }
	assign, wrong := assigning(p.digest), assigning("another")
	start, drain := encoded(kindStart, 0, nil), &pb.Envelope{Kind: kindDrain, Number: 1}
	closed := step(worker.Step{Phase: "closed", Kind: worker.Load, Last: true, To: 3})
	away := step(worker.Step{Phase: "away", Kind: worker.Load, Last: true, To: 2})
	for name, orders := range map[string][]any{
		"prepare before an assignment":               {closed, "an order before an assignment"},
		"start before an assignment":                 {start, "an order before an assignment"},
		"prepare after an assignment that failed":    {wrong, "digest is ", closed, "no plan has been assigned"},
		"start after an assignment that failed":      {wrong, "digest is ", start, "no step is prepared"},
		"a second assignment":                        {assign, "", assign, "a second assignment"},
		"start before a step is prepared":            {assign, "", start, "no step is prepared"},
		"start after a step could not be prepared":   {assign, "", away, "away", start, "no step is prepared"},
		"prepare after a step could not be prepared": {assign, "", away, "away", closed, "a step could not be prepared"},
		"start twice":                                         {assign, "", closed, "", start, "", start, "no step is prepared"},
		"a phase that is none":                                {assign, "", step(worker.Step{Phase: "none", Kind: "load"}), `the plan has no phase "none"`},
		"more sessions than the phase has":                    {assign, "", step(worker.Step{Phase: "closed", Kind: "load", To: 1 << 24}), "has 3 sessions"},
		"other sessions in the same phase":                    {assign, "", step(worker.Step{Phase: "closed", Kind: "setup", To: 3}), "", start, "", step(worker.Step{Phase: "closed", Kind: "load", To: 2}), "the same in all its steps"},
		"a schedule without a rate":                           {assign, "", step(worker.Step{Phase: "open", Kind: "load", To: 2, Shape: pace.Shape{Duration: time.Millisecond}}), "without a rate"},
		"a step of a kind that the phase does not have":       {assign, "", step(worker.Step{Phase: "fill", Kind: "load", To: 1}), "has no load step"},
		"prepare and start after a drain that came too early": {assign, "", drain, "", closed, "", start, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(JoinConfig{
				Name: "w", Logger: slog.New(slog.DiscardHandler), Spool: 1 << 20,
				New: func() Local {
					return engine.New(engine.Config{
						Drivers: drivers.All(), Loops: 1, Logger: slog.New(slog.DiscardHandler),
						Secrets: func(string) (string, error) { return "", errors.New("no secret is here") },
					})
				},
			}, nil)
			defer s.end()
			require.NoError(t, s.echoed(&pb.Echo{}, s.now(), time.Minute))
			for i := 0; i < len(orders); i += 2 {
				want := orders[i+1].(string)
				order := orders[i].(*pb.Envelope)
				var text string
				if order == drain {
					require.NoError(t, s.accept(order))
				} else {
					text = s.do(order).GetError()
				}
				require.Equal(t, want == "", text == "", text)
				require.Contains(t, text, want)
			}
		})
	}
}

// TestRandomOrders gives workers with real engines 1,500 orders in any order.
func TestRandomOrders(t *testing.T) {
	p, root := newPen(t), t.TempDir()
	dice := rand.New(rand.NewPCG(18, 7))
	for orders := 0; orders < 1500; {
		b := make([]byte, 200)
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], dice.Uint64())
		}
		orders += p.obey(t, b, root)
	}
}

// FuzzOrders is the same with a fuzzer's dice.
func FuzzOrders(f *testing.F) {
	f.Add([]byte{0, 0, 9, 1, 1, 0, 3, 1, 9, 4, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 4, 0, 6, 0})
	p, root := newPen(f), f.TempDir()
	f.Fuzz(func(t *testing.T, dice []byte) { p.obey(t, dice[:min(len(dice), 200)], root) })
}
