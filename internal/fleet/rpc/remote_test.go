package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/servertest"
)

// far is a remote worker that says what a test tells it to.
type far struct {
	*member
	said uint64
}

// atFar tests a remote worker in a synctest bubble.
func atFar(t *testing.T, test func(t *testing.T, w *far)) {
	servertest.Bubble(t, func(t *testing.T) {
		timing := DefaultTiming()
		timing.Lost = time.Hour // but for what a test is about
		s := newServer(Config{Timing: timing, Logger: slog.New(slog.DiscardHandler)})
		w := &far{member: newMember(s, &pb.Hello{Name: "w"})}
		require.Nil(t, w.attach(0, &conn{}))
		defer w.dismiss("the test is over")
		test(t, w)
	})
}

// say has the worker say something.
func (w *far) say(t *testing.T, e *pb.Envelope) {
	w.said++
	e.Number = w.said
	require.NoError(t, w.accept(e))
}

// told lists what the worker was told.
func (w *far) told() (kinds []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.link.queue {
		kinds = append(kinds, fmt.Sprintf("%T", o.GetContent())[len("*loadgenpb.Envelope_"):])
	}
	return kinds
}

// answers is how a worker elsewhere answers an order.
type answers map[string]struct {
	says  *pb.Envelope // nil: nothing
	err   string       // "": none
	loses bool         // it is given up for that
	taken uint64       // envelopes that are acknowledged
	told  []string     // beside the order
}

var errRefused = errors.New("why not")

// check compares the outcome of an order with what is expected.
func (all answers) check(t *testing.T, order func(ctx context.Context, w *far) error) {
	for name, c := range all {
		atFar(t, func(t *testing.T, w *far) {
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.says != nil {
				w.say(t, c.says)
			} else {
				time.AfterFunc(time.Second, func() { cancel(errRefused) })
			}
			err := order(ctx, w)
			if c.err == "" {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, c.err, name)
			}
			require.Equal(t, c.loses, w.isLost(), name)
			var lost *worker.Loss
			require.Equal(t, c.loses, errors.As(err, &lost), name)
			require.Equal(t, c.taken, w.link.taken, name)
			require.Equal(t, c.taken, w.conn.stored, name)
			require.Equal(t, c.told, w.told()[1:], name)
			cancel(nil)
		})
	}
}

func TestAnswersToAnAssignment(t *testing.T) {
	assigned := func(text string) *pb.Envelope {
		return &pb.Envelope{Content: &pb.Envelope_Assigned{Assigned: &pb.Answer{Error: text}}}
	}
	answers{
		"yes":            {says: assigned(""), taken: 1, told: []string{}},
		"no":             {says: assigned("no room"), err: "no room", taken: 1, told: []string{}},
		"something else": {says: payload(7), err: "it broke the protocol: its answer to an assignment is a *loadgenpb.Envelope_Ready", loses: true, told: []string{}},
		"nothing":        {err: "why not", told: []string{}},
	}.check(t, func(ctx context.Context, w *far) error {
		time.Sleep(3 * time.Second)
		err := w.Assign(ctx, worker.Assignment{Zero: time.Now().Add(-2 * time.Second), Workers: 1})
		require.Equal(t, time.Second, w.zero, "of the run, on the coordinator's clock")
		require.EqualValues(t, time.Second, w.link.queue[0].GetAssignment().GetZeroNs())
		return err
	})
}

func TestAnswersToAnOrderToPrepare(t *testing.T) {
	ready := func(r *pb.Ready) *pb.Envelope { return &pb.Envelope{Content: &pb.Envelope_Ready{Ready: r}} }
	answers{
		"yes":                 {says: ready(&pb.Ready{Step: 4, OffsetNs: 7, UncertaintyNs: 3}), taken: 1, told: []string{}},
		"no":                  {says: ready(&pb.Ready{Step: 4, Error: "no room"}), err: "no room", taken: 1, told: []string{}},
		"another step":        {says: ready(&pb.Ready{Step: 5}), err: "it broke the protocol: its answer to step 4 is a *loadgenpb.Envelope_Ready", loses: true, told: []string{}},
		"something else":      {says: &pb.Envelope{}, err: "it broke the protocol: its answer to step 4 is a <nil>", loses: true, told: []string{}},
		"what cannot be":      {says: ready(&pb.Ready{Step: 4, RttNs: -1}), err: "it broke the protocol: it is ready with figures that cannot be", loses: true, taken: 1, told: []string{}},
		"nothing in its time": {err: "why not", told: []string{"Abandon"}},
	}.check(t, func(ctx context.Context, w *far) error {
		w.health = health{offset: 9, uncertainty: 1, progress: 5}
		require.EqualValues(t, 5, w.Progress())
		r, err := w.Prepare(ctx, worker.Step{Seq: 4, Kind: worker.Load})
		if err != nil {
			require.Zero(t, r)
			return err
		}
		require.Equal(t, 4, r.Step)
		require.Equal(t, health{offset: 7, uncertainty: 3}, w.clock)
		require.EqualValues(t, 2+1, r.Uncertainty, "what is known of the clock by now")
		return nil
	})
}

func TestAnswersToAnOrderToRun(t *testing.T) {
	final := func(change func(*pb.Final)) *pb.Envelope {
		e, err := encodeFinal(&worker.Final{Step: 4}, nil)
		require.NoError(t, err)
		change(e.GetFinal())
		return e
	}
	answers{
		"its last word":  {says: final(func(*pb.Final) {}), taken: 1, told: []string{}},
		"no":             {says: final(func(f *pb.Final) { f.Error = "no room" }), err: "no room", taken: 1, told: []string{}},
		"what cannot be": {says: final(func(f *pb.Final) { f.Generator.Busy = 2 }), err: "it broke the protocol: step 4 ends with figures that cannot be", loses: true, taken: 1, told: []string{}},
		"no snapshot":    {says: &pb.Envelope{Content: &pb.Envelope_Snapshot{Snapshot: []byte("x")}}, err: "it broke the protocol: ", loses: true, told: []string{}},
		"something else": {says: payload(7), err: "it broke the protocol: a step was running, and a *loadgenpb.Envelope_Ready came", loses: true, told: []string{}},
		"nothing":        {err: "context canceled", told: []string{"Abandon"}},
	}.check(t, func(ctx context.Context, w *far) error {
		w.health, w.clock = health{offset: 9, uncertainty: 1}, health{offset: 7, uncertainty: 3}
		began := time.Now()
		f, err := w.Run(ctx, 5*time.Second, nil)
		require.EqualValues(t, 5*time.Second, w.link.queue[0].GetStart().GetAtNs())
		if err != nil {
			require.Zero(t, f)
			if len(w.told()) > 1 {
				require.Equal(t, time.Second+w.server.cfg.Timing.Farewell, time.Since(began), "it had the farewell to answer")
			}
			return err
		}
		require.Equal(t, 4, f.Step)
		require.EqualValues(t, 2+1, f.Uncertainty, "what is known of the clock by now")
		time.Sleep(time.Hour / 2)
		require.False(t, w.isLost(), "nothing is expected of it any more")
		return nil
	})
}

// A worker that is told to stop sends its final report within Farewell.
func TestLastWordsOfAStoppedStep(t *testing.T) {
	atFar(t, func(t *testing.T, w *far) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		time.AfterFunc(time.Second+w.server.cfg.Timing.Farewell-1, func() {
			e, err := encodeFinal(&worker.Final{Step: 4, Stopped: true}, nil)
			require.NoError(t, err)
			w.say(t, e)
		})
		f, err := w.Run(ctx, 0, nil)
		require.NoError(t, err)
		require.True(t, f.Stopped)
		require.Equal(t, []string{"Start", "Abandon"}, w.told())
	})
}

// A worker that counts nothing for too long is lost, each time from its last snapshot on.
func TestAWorkerThatCountsNothing(t *testing.T) {
	atFar(t, func(t *testing.T, w *far) {
		idle := w.server.cfg.Timing.Idle
		var running measure.Totals
		time.AfterFunc(idle-time.Second, func() {
			e, err := encodeSnapshot(interval(1, &running))
			require.NoError(t, err)
			w.say(t, e)
		})
		began, passed := time.Now(), 0
		beats := time.NewTicker(time.Second)
		defer beats.Stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for time.Since(began) < 3*idle {
				<-beats.C
				w.server.awake.read() // as the server does
			}
		}()
		_, err := w.Run(t.Context(), 0, func(*measure.Snapshot) (func() error, error) {
			passed++
			return func() error { return nil }, nil
		})
		require.EqualError(t, err, (&worker.Loss{Worker: "w", Why: "it is alive, but has counted nothing for 30s"}).Error())
		require.InDelta(t, (2*idle - time.Second).Seconds(), time.Since(began).Seconds(), 1)
		require.Equal(t, 1, passed)
		<-done
	})
}

// A snapshot that is refused, or cannot be kept, ends the step and is not acknowledged.
func TestSnapshotsThatAreNotKept(t *testing.T) {
	for name, sink := range map[string]worker.Sink{
		"refused":  func(*measure.Snapshot) (func() error, error) { return nil, errRefused },
		"not kept": func(*measure.Snapshot) (func() error, error) { return func() error { return errRefused }, nil },
	} {
		atFar(t, func(t *testing.T, w *far) {
			var running measure.Totals
			e, err := encodeSnapshot(interval(1, &running))
			require.NoError(t, err)
			w.say(t, e)
			f, err := w.Run(t.Context(), 0, sink)
			require.Equal(t, errRefused, err, name)
			require.Zero(t, f, name)
			require.Equal(t, []string{"Start", "Abandon"}, w.told(), name)
			require.Zero(t, w.link.taken, name)
			require.False(t, w.isLost(), name)
			require.Len(t, w.server.scratch, cap(w.server.scratch), name)
		})
	}
}

// What a worker said before it was lost is delivered in order, and then the loss.
func TestWhatALostWorkerHasSaid(t *testing.T) {
	atFar(t, func(t *testing.T, w *far) {
		w.say(t, payload(7))
		w.say(t, payload(8))
		w.lose("it is gone")
		for _, want := range []uint64{7, 8} {
			e, err := w.next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, e.GetReady().GetOps())
			w.taken()
		}
		_, err := w.next(t.Context())
		require.Equal(t, error(w.lost), err)
		require.Same(t, w.lost, w.attend(t.Context()))
		require.EqualValues(t, 2, w.conn.stored)
		w.detach(w.conn)
		w.say(t, payload(9))
		w.taken() // there is nobody to tell
		require.EqualValues(t, 3, w.link.taken)
	})
	atFar(t, func(t *testing.T, w *far) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.Nil(t, w.attend(ctx))
		time.AfterFunc(time.Second, func() { w.lose("it is gone") })
		require.Equal(t, "it is gone", w.attend(t.Context()).Why)
		time.AfterFunc(time.Second, func() { w.say(t, payload(7)) })
		w.member.lost = nil
		w.member.gone = make(chan struct{})
		e, err := w.next(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 7, e.GetReady().GetOps())
	})
}
