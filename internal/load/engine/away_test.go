package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// kill ends the connections of the first n sessions, and has the servers refuse others.
func (b *bench) kill(n int) {
	for i := range b.g.endpoints {
		b.server(i).down = true
	}
	w := b.l.tr.(*wire)
	for _, c := range w.conns[:n*w.places] {
		if c.fd >= 0 {
			b.net.socks[c.fd].ended = true
			b.net.wake(c.fd)
		}
	}
}

// revive has the servers take connections again.
func (b *bench) revive() {
	for i := range b.g.endpoints {
		b.server(i).down = false
	}
}

// after calls f once a time has passed.
func (b *bench) after(d time.Duration, f func()) { b.net.at(time.Duration(b.net.clock.t)+d, f) }

// runJudged carries the load out and judges it.
func (b *bench) runJudged() (*run.Phase, *measure.Totals) {
	m := judge.Measured{}
	for _, end := range b.g.endpoints {
		m.Endpoints = append(m.Endpoints, end.Text)
	}
	totals := b.run(worker.Load)
	m.Load = &totals
	return judge.NewPhase(b.g.plan, b.g.phase, m), &totals
}

// lostTime returns the reason that says how much time sessions lost; nil if there is none.
func lostTime(p *run.Phase) *run.Reason {
	for i := range p.Reasons {
		if p.Reasons[i].Code == reason.LostTime {
			return &p.Reasons[i]
		}
	}
	return nil
}

// badOps counts the ops that went wrong.
func badOps(t *measure.Totals) (n uint64) {
	_, n, _ = t.Ended()
	return n
}

// Eight sessions are no longer eight once six were killed and are refused, however few ops fail by it: each of their slots loses an op with each
// connection at most, and has one that is refused. Their connections' time away is known to the millisecond.
func TestSessionsThatAreLost(t *testing.T) {
	const gets = "ops = { get = 1 }"
	for name, c := range map[string]struct {
		endpoints     int
		target, phase string
		pipeline      int
		slow          bool // ops are left to their program
	}{
		"runs":           {endpoints: 1, phase: gets, pipeline: 1},
		"pipelined":      {endpoints: 1, phase: gets, pipeline: 16},
		"programs":       {endpoints: 1, phase: gets, pipeline: 4, slow: true},
		"four endpoints": {endpoints: 4, phase: gets, pipeline: 1},
		"batches":        {endpoints: 4, phase: gets + "\n batch = 8", pipeline: 1},
		"scenarios":      {endpoints: 1, phase: "scenario \"s\" {\n step \"get\" {}\n step \"put\" {}\n}", pipeline: 1},
		"quorums":        {endpoints: 3, target: nwr321, phase: gets, pipeline: 2},
		"think time":     {endpoints: 1, phase: gets, pipeline: 1},
	} {
		t.Run(name, func(t *testing.T) {
			think := ""
			if name == "think time" {
				think = `think = "5ms"`
			}
			p := redisPlan(t, c.endpoints, c.target, fmt.Sprintf("%s\n max_bad = 0.05\n closed {\n sessions = 8\n pipeline = %d\n duration = \"6s\"\n %s\n}", c.phase, c.pipeline, think))
			b := newBench(t, p, "load", time.Millisecond)
			b.indirect = c.slow
			b.after(1200*time.Millisecond, func() { b.kill(6) })
			phase, totals := b.runJudged()
			lost := lostTime(phase)
			require.NotNil(t, lost, "%v", phase.Reasons)
			require.Equal(t, run.Invalid, phase.Validity)
			require.Regexp(t, `^60(\.\d)? % of the sessions' time was lost, by 6 of 8 sessions from 1.20 s on: .*"n0 \(127.0.0.1:7001\): connection refused"`, lost.Text)
			require.LessOrEqual(t, badOps(totals), uint64((c.endpoints+1)*6*c.pipeline))
			for i := range c.endpoints {
				require.InDelta(t, 6*4.8e9, totals.Away[i], 1e7)
			}
			require.EqualValues(t, 8, totals.Span.Sessions)
		})
	}
}

// While one endpoint of several is away, sessions go on with the others. The time for which their slots pause after each op that is refused is lost.
func TestAnEndpointOfSeveralIsLost(t *testing.T) {
	p := redisPlan(t, 4, "", "ops = { get = 1 }\n expect_hits = 0\n max_bad = 1\n closed {\n sessions = 8\n duration = \"2s\"\n}")
	b := newBench(t, p, "load", time.Millisecond)
	b.after(time.Second, func() {
		b.server(3).down = true
		b.server(3).sever()
	})
	phase, totals := b.runJudged()
	require.Zero(t, totals.Away[2])
	require.InDelta(t, 8e9, totals.Away[3], 1e7)
	require.Regexp(t, "by 8 of 8 sessions from (999 ms|1.00 s) on", lostTime(phase).Text)
	require.Equal(t, run.Suspect, phase.Validity, "max_bad is 1")
	reached := totals.Request(0, driver.Get).Answered + totals.Request(1, driver.Get).Answered + totals.Request(2, driver.Get).Answered
	require.Greater(t, reached, uint64(6000+1500), "they go on")
}

// After 1.5 s of refusals, 128 sessions load again within 100 ms. Meanwhile a single connection tried, every 50 ms.
func TestSessionsComeBack(t *testing.T) {
	p := redisPlan(t, 1, "", "ops = { get = 1 }\n closed {\n sessions = 128\n duration = \"4s\"\n}")
	b := newBench(t, p, "load", time.Millisecond)
	tried, inTime := 0, 0
	b.after(time.Second, func() {
		b.kill(128)
		tried = len(b.net.socks)
	})
	b.after(2500*time.Millisecond, func() {
		tried = len(b.net.socks) - tried
		b.revive()
	})
	b.after(2600*time.Millisecond, func() {
		for _, c := range b.l.tr.(*wire).conns {
			if c.state == isUp && c.queue.len() > 0 {
				inTime++
			}
		}
	})
	phase, totals := b.runJudged()
	require.Equal(t, 128, inTime)
	require.LessOrEqual(t, tried, 128+30, "each once, then one every 50 ms")
	require.EqualValues(t, 128, totals.Reconnects)
	require.LessOrEqual(t, badOps(totals), uint64(2*128))
	require.InDelta(t, 128*1.5e9, totals.Away[0], 128*0.1e9)
	require.Regexp(t, "^37.* % .* by 128 of 128 sessions from (999 ms|1.00 s) on", lostTime(phase).Text)
}

// A load that ends with its ops does not wait for ever: after half a minute its ops are refused, one after another.
func TestALoadThatEndsWithItsOpsEnds(t *testing.T) {
	p := redisPlan(t, 1, "", "ops = { get = 1 }\n max_bad = 1\n closed {\n sessions = 4\n iterations = 100\n}")
	b := newBench(t, p, "load", time.Millisecond)
	b.after(50*time.Millisecond, func() { b.kill(4) })
	_, totals := b.runJudged()
	get := totals.Ops[driver.Get]
	require.EqualValues(t, 400, get.Due)
	require.EqualValues(t, 4, get.Causes[op.Lost])
	require.Equal(t, get.Due, get.Outcomes[driver.Miss]+get.Causes[op.Lost]+get.Causes[op.Refused])
	require.InDelta(t, 31e9, b.net.clock.t, 1e9)
}

// An open load has no slots to lose, but connections.
func TestConnectionsOfAnOpenLoadAreLost(t *testing.T) {
	p := redisPlan(t, 1, "", "ops = { get = 1 }\n max_bad = 1\n open {\n rate = 1000\n sessions = 8\n duration = \"2s\"\n}")
	b := newBench(t, p, "load", time.Millisecond)
	b.after(time.Second, func() { b.kill(6) })
	phase, totals := b.runJudged()
	require.InDelta(t, 6e9, totals.Away[0], 1e8)
	require.Nil(t, lostTime(phase))
	require.EqualValues(t, 2000, totals.Ops[driver.Get].Due)
	require.InDelta(t, 750, badOps(totals), 10)
}

// Clients that block are away alike, over pipes and their own: what they said when they tried again is said.
func TestBlockingClientsAreLost(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		zero := time.Now() // the clients are made at once
		var made, tried atomic.Int64
		dial := func(context.Context, string) (driver.Session, error) {
			if made.Load() < 8 {
				made.Add(1)
			} else if tried.Add(1); time.Since(zero) < 4200*time.Millisecond {
				return nil, errors.New("FATAL: the server is starting up")
			}
			n := made.Load()
			return doing(func(_ context.Context, _ *driver.Request, reply *driver.Reply) error {
				if time.Sleep(time.Millisecond); n <= 6 && time.Since(zero) > 1200*time.Millisecond && time.Since(zero) < 4200*time.Millisecond {
					return errors.New("gone")
				}
				reply.Outcome = driver.OK
				return nil
			}), nil
		}
		final, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 8\n duration = \"6s\"\n}")
		require.NoError(t, err)
		totals := final.Totals
		require.EqualValues(t, 2*6, badOps(totals), "each slot's lost one, and one that is refused")
		require.InDelta(t, 6*3e9, totals.Away[0], 6*0.1e9)
		require.EqualValues(t, 6, totals.Span.Losers)
		require.InDelta(t, 6*3e9, totals.Lost.Total(), 6*0.1e9)
		require.InDelta(t, 6+60+6, tried.Load(), 7, "one of them tries every 50 ms")
		said := map[string]uint64{}
		for text, n := range totals.Errors.All() {
			said[text] = n
		}
		require.Positive(t, said["n0 (10.0.0.1:1): FATAL: the server is starting up"], "%v", said)
	})
}

// Over pipes, connections that are refused are counted as over epoll.
func TestPipedSessionsAreLost(t *testing.T) {
	inBubble(t, 1, "", "ops = { get = 1 }\n max_bad = 1\n closed {\n sessions = 8\n duration = \"3s\"\n}", func(b *bench) {
		go func() { // ends with the load
			time.Sleep(time.Second)
			b.server(0).far.Lock()
			b.server(0).down = true
			b.server(0).far.Unlock()
			b.server(0).cut()
			time.Sleep(time.Second)
			b.server(0).far.Lock()
			b.server(0).down = false
			b.server(0).far.Unlock()
		}()
		got := b.run(worker.Load)
		require.InDelta(t, 8e9, got.Away[0], 1e9)
		require.EqualValues(t, 8, got.Span.Losers)
		require.LessOrEqual(t, badOps(&got), uint64(16))
		require.InDelta(t, got.Away[0], got.Lost.Total(), 1e8)
	})
}
