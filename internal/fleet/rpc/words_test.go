package rpc_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// speaker is a coordinator that says the same words to each worker.
type speaker struct {
	pb.UnimplementedControlServer
	words []*pb.FromCoordinator
}

func (s speaker) Join(stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]) error {
	for _, m := range s.words {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// TestWorkersHangUpOnACoordinatorThatBreaksTheProtocol, say why, and try again, unless that is pointless.
func TestWorkersHangUpOnACoordinatorThatBreaksTheProtocol(t *testing.T) {
	const ages = 10 * 365 * 24 * time.Hour
	welcome := func(w *pb.Welcome) *pb.FromCoordinator {
		return &pb.FromCoordinator{Welcome: w}
	}
	timed := func(heartbeat, lease time.Duration) *pb.FromCoordinator {
		return welcome(&pb.Welcome{Protocol: 6, HeartbeatNs: int64(heartbeat), LeaseNs: int64(lease)})
	}
	good := timed(time.Second, 10*time.Second)
	echo := func(sent, received, echoed time.Duration) []*pb.FromCoordinator {
		return []*pb.FromCoordinator{good, {Echo: &pb.Echo{SentNs: int64(sent), ReceivedNs: int64(received), EchoedNs: int64(echoed)}}}
	}
	envelopes := func(all ...*pb.Envelope) []*pb.FromCoordinator {
		words := []*pb.FromCoordinator{good}
		for _, e := range all {
			words = append(words, &pb.FromCoordinator{Envelope: e})
		}
		return words
	}
	const broke = "the coordinator broke the protocol: "
	for name, c := range map[string]struct {
		words []*pb.FromCoordinator
		want  string
	}{
		"no welcome":                 {[]*pb.FromCoordinator{{}}, "the coordinator's first message is not a welcome"},
		"another protocol":           {[]*pb.FromCoordinator{welcome(&pb.Welcome{Protocol: 4})}, "it speaks protocol 4, this worker protocol 6"},
		"heartbeats too often":       {[]*pb.FromCoordinator{timed(time.Millisecond-1, time.Second)}, "wants heartbeats every 999.999µs"},
		"heartbeats too seldom":      {[]*pb.FromCoordinator{timed(time.Minute+1, time.Hour)}, "wants heartbeats every 1m0.000000001s"},
		"a lease below a heartbeat":  {[]*pb.FromCoordinator{timed(time.Second, time.Second-1)}, "grants leases of 999.999999ms"},
		"a lease too long":           {[]*pb.FromCoordinator{timed(time.Second, time.Hour+1)}, "grants leases of 1h0m0.000000001s"},
		"stored what was never sent": {[]*pb.FromCoordinator{welcome(&pb.Welcome{Protocol: 6, HeartbeatNs: 1e9, LeaseNs: 1e10, Stored: 5})}, "it has taken envelope 5, but 0 is the last that was sent"},
		"nothing":                    {[]*pb.FromCoordinator{good, {}}, broke + "a message that has no place there"},
		"a second welcome":           {[]*pb.FromCoordinator{good, good}, broke + "a message that has no place there"},
		"took what was never sent":   {[]*pb.FromCoordinator{good, {Stored: 5}}, broke + "it has taken envelope 5"},
		"an echo of no heartbeat":    {echo(-1, 5, 5), broke + "an echo of a heartbeat from -1ns"},
		"an echo of one to come":     {echo(time.Hour, 5, 5), broke + "an echo of a heartbeat from 1h0m0s"},
		"received ages ago":          {echo(0, -ages, 5), broke + "a time of -"},
		"received in ages":           {echo(0, ages, 5), broke + "a time of "},
		"echoed ages ago":            {echo(0, 5, -ages), broke + "a time of -"},
		"echoed in ages":             {echo(0, 5, ages), broke + "a time of "},
		"an envelope out of order":   {envelopes(&pb.Envelope{Number: 7}), broke + "envelope 7 came after 0"},
		"one without a number":       {envelopes(&pb.Envelope{}), broke + "an envelope without a number"},
		"a drain of no run":          {envelopes(&pb.Envelope{Number: 1, Kind: "drain"}), broke + "a drain before an assignment"},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				f := &fleet{t: t, lis: bufconn.Listen(1 << 20), said: &said{began: time.Now()}}
				server := grpc.NewServer()
				pb.RegisterControlServer(server, speaker{words: c.words})
				served := make(chan error, 1)
				go func() { served <- server.Serve(f.lis) }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				node := &cable{lis: f.lis}
				err := rpc.Join(ctx, rpc.JoinConfig{
					Place: rpc.Trusting("coordinator", nil, node.dial), Name: "w1", Version: "v1", Logger: slog.New(f.said),
					New: func() rpc.Local { return newEngine(newMill(), nil) },
				})
				if name == "another protocol" {
					require.ErrorContains(t, err, c.want)
				} else {
					require.NoError(t, err)
					require.NotEmpty(t, f.said.with(c.want), f.said.lines)
				}
				server.Stop()
				require.NoError(t, <-served)
			})
		})
	}
}

// counts are totals and a snapshot of a step that begins at 0, in binary.
func counts(t *testing.T) (totals, snapshot []byte) {
	t.Helper()
	all := measure.NewTotals(0, 1)
	totals, err := all.AppendBinary(nil)
	require.NoError(t, err)
	snapshot, err = (&measure.Snapshot{SeqFirst: 1, SeqLast: 1, Delta: *all, Running: all.Counters()}).AppendBinary(nil)
	require.NoError(t, err)
	return totals, snapshot
}

// TestAWorkerThatBreaksTheProtocolIsLost whatever it was asked: to take the plan, to make a step ready, or to carry it out.
func TestAWorkerThatBreaksTheProtocolIsLost(t *testing.T) {
	totals, snapshot := counts(t)
	invalid := measure.NewTotals(0, 1)
	invalid.AddDue(driver.Put)
	invalid.Ops[driver.Put].Due-- // it has been counted as in flight
	invalid.Ops[driver.Put].InFlight++
	contradicts, err := invalid.AppendBinary(nil)
	require.NoError(t, err)
	envelope := func(number uint64, e *pb.Envelope) *pb.FromWorker {
		e.Number = number
		return &pb.FromWorker{Envelope: e}
	}
	one := func(e *pb.Envelope) []*pb.FromWorker { return []*pb.FromWorker{envelope(1, e)} }
	ready := func(facts string) []*pb.FromWorker {
		return one(&pb.Envelope{Kind: "ready", Facts: []byte(facts)})
	}
	final := func(facts string, totals []byte) []*pb.FromWorker {
		return one(&pb.Envelope{Kind: "final", Facts: []byte(facts), Content: totals})
	}
	snapshots := func(b []byte) []*pb.FromWorker { return one(&pb.Envelope{Kind: "snapshot", Content: b}) }
	beat := func(h *pb.Heartbeat) []*pb.FromWorker {
		return []*pb.FromWorker{{Heartbeat: h}}
	}
	var tooLong []*pb.FromWorker
	for range 17 {
		tooLong = append(tooLong, &pb.FromWorker{Part: make([]byte, 1<<20)})
	}
	var tooMany []*pb.FromWorker
	for n := range uint64(257) {
		tooMany = append(tooMany, envelope(n+1, &pb.Envelope{Kind: "assigned"}))
	}
	assign := func(ctx context.Context, w worker.Worker) error {
		return w.Assign(ctx, worker.Assignment{Workers: 1, Zero: time.Now()})
	}
	prepare := func(ctx context.Context, w worker.Worker) error {
		_, err := w.Prepare(ctx, worker.Step{Seq: 7})
		return err
	}
	carryOut := func(ctx context.Context, w worker.Worker) error {
		_, err := w.Run(ctx, 0, func(*measure.Snapshot) (func() error, error) { return func() error { return nil }, nil })
		return err
	}
	later := func(ctx context.Context, w worker.Worker) error {
		time.Sleep(time.Second)
		return carryOut(ctx, w)
	}
	for name, c := range map[string]struct {
		asked func(ctx context.Context, w worker.Worker) error
		words []*pb.FromWorker
		want  string
	}{
		"another answer":               {assign, ready(`{"Step": 7}`), `its answer to an assignment is "ready"`},
		"another step":                 {prepare, ready(`{"Step": 6}`), "its answer to step 7 is of step 6"},
		"no step":                      {prepare, one(&pb.Envelope{Kind: "assigned"}), `its answer to step 7 is "assigned"`},
		"ready with impossible clocks": {prepare, ready(`{"Step": 7, "RTT": -1}`), "it is ready with impossible figures"},
		"ready with no facts":          {prepare, ready(""), "decode ready: "},
		"an answer in a step":          {carryOut, one(&pb.Envelope{Kind: "assigned"}), `a step was running, and "assigned" came`},
		"bytes behind a snapshot":      {carryOut, snapshots(append(snapshot, 0)), "1 bytes after it"},
		"a snapshot cut short":         {carryOut, snapshots(snapshot[:1]), ""},
		"bytes behind totals":          {carryOut, final("{}", append(totals, 0)), "1 bytes after its totals"},
		"totals cut short":             {carryOut, final("{}", totals[:1]), ""},
		"totals that contradict":       {carryOut, final("{}", contradicts), "put"},
		"busier than all the time":     {carryOut, final(`{"Process": {"generator": {"busy": 2}}}`, totals), "ends with impossible figures"},
		"a log that is none":           {carryOut, final(`{"Log": 7}`, totals), "decode final: "},
		"nothing":                      {assign, []*pb.FromWorker{{}}, "a message that has no place there"},
		"a second hello":               {assign, []*pb.FromWorker{{Hello: &pb.Hello{}}}, "a message that has no place there"},
		"took what was never sent":     {assign, []*pb.FromWorker{{Received: 9}}, "it has taken envelope 9, but "},
		"an envelope out of order":     {assign, []*pb.FromWorker{envelope(2, &pb.Envelope{})}, "envelope 2 came after 0"},
		"more than may be on the way":  {later, tooMany, "more are on the way than the window allows"},
		"an envelope without an end":   {assign, tooLong, "an envelope of more than 16777216 bytes"},
		"parts of no envelope":         {assign, []*pb.FromWorker{{Part: []byte("\xff"), Last: true}}, ""},
		"negative processor time":      {assign, beat(&pb.Heartbeat{CpuNs: -1}), "a heartbeat with an uncertainty of 0s, a processor time of -1ns and a progress of 0"},
		"negative progress":            {assign, beat(&pb.Heartbeat{Progress: math.MinInt64}), "a progress of -"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 0, func(t *testing.T, f *fleet) {
				stream := f.dial(t)
				require.NoError(t, stream.Send(&pb.FromWorker{Hello: &pb.Hello{Protocol: 6, Name: "w", Incarnation: "x"}}))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				members, err := f.server.Wait(ctx, 1)
				require.NoError(t, err)
				go func() {
					for _, m := range c.words {
						if stream.Send(m) != nil {
							return // it has been hung up on
						}
					}
				}()
				var lost *worker.Loss
				require.ErrorAs(t, c.asked(ctx, members[0].Worker), &lost)
				require.True(t, strings.HasPrefix(lost.Why, "it broke the protocol: "), lost.Why)
				require.Contains(t, lost.Why, c.want)
				require.Equal(t, *lost, *members[0].Attend(ctx))
			})
		})
	}
}
