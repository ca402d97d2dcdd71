package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestOffset compares clocks that are 7 s apart, over paths of different delays.
func TestOffset(t *testing.T) {
	const ahead = 7 * time.Second
	var o offsets
	exchange := func(sent, there, held, back time.Duration) {
		o.add(sent, sent+there-ahead, sent+there-ahead+held, sent+there+held+back)
	}
	exchange(time.Second, 40*time.Millisecond, time.Millisecond, 2*time.Millisecond)
	require.Equal(t, 42*time.Millisecond, o.best().rtt)
	require.InDelta(t, ahead, o.best().offset, float64(o.best().rtt/2))
	exchange(2*time.Second, time.Millisecond, 50*time.Millisecond, time.Millisecond)
	require.Equal(t, ahead, o.best().offset, "the shortest round trip counts, whatever the coordinator took")
	for i := range kept {
		exchange(time.Duration(3+i)*time.Second, 3*time.Millisecond, 0, 5*time.Millisecond)
	}
	require.Equal(t, 8*time.Millisecond, o.best().rtt, "old measurements are forgotten")
	before := o
	o.add(5, 0, 0, 4)   // back before it was sent
	o.add(0, 9, 8, 100) // echoed before it was received
	o.add(0, 0, 50, 10) // held for longer than it was away
	require.Equal(t, before, o)
	require.Equal(t, 1600*time.Microsecond, kept*time.Second*100/1e6, "as far as clocks drift in that time, at 100 ppm")
}

// interval is a snapshot of one second with some puts in it.
func interval(seq uint64, running *measure.Totals) *measure.Snapshot {
	delta := measure.NewTotals(1, 1)
	for range 10 {
		delta.AddDue(driver.Put)
		delta.Record(&measure.Sample{Verb: driver.Put, Due: 5, Start: 6, End: int64(seq) * 1e9})
	}
	*delta.Request(0, driver.Put) = measure.Requests{Sent: 10, Answered: 10}
	running.Merge(delta)
	return &measure.Snapshot{
		SeqFirst: seq, SeqLast: seq, From: int64(seq) * 1e9, To: int64(seq+1) * 1e9, Delta: *delta, Running: running.Counters(),
	}
}

// TestSpoolIsBounded keeps snapshots while there is no stream: beyond the limit they are merged, so that none of their counts is lost, and what was
// sent once stays unchanged.
func TestSpoolIsBounded(t *testing.T) {
	s := newSession(JoinConfig{New: func() Local { return idle{} }, Logger: slog.New(slog.DiscardHandler), Spool: 1000}, nil)
	defer s.end()
	var running measure.Totals
	require.NoError(t, s.keep(interval(1, &running)))
	first := s.link.pop()
	sent := string(first.GetContent())
	for seq := uint64(2); seq <= 100; seq++ {
		require.NoError(t, s.keep(interval(seq, &running)))
		require.Less(t, s.link.held, 2000)
	}
	require.NoError(t, s.link.attach(0))
	var sum measure.Totals
	next := uint64(1)
	for e := s.link.pop(); e != nil; e = s.link.pop() {
		var snap measure.Snapshot
		require.NoError(t, decodeSnapshot(&snap, e.GetContent()))
		require.Equal(t, next, snap.SeqFirst)
		next = snap.SeqLast + 1
		sum.Merge(&snap.Delta)
		counters := sum.Counters()
		require.True(t, counters.Equal(&snap.Running))
	}
	require.EqualValues(t, 101, next)
	require.Equal(t, sent, string(first.GetContent()))
}

// TestClocksThatDrift: a run keeps the offset measured for it, and says in the end how far the clocks have drifted from it.
func TestClocksThatDrift(t *testing.T) {
	m := &member{clock: health{offset: time.Second, uncertainty: time.Millisecond}}
	require.Equal(t, time.Millisecond, m.uncertainty(), "no heartbeat has said more")
	m.health = health{offset: time.Second + 40*time.Millisecond, uncertainty: 2 * time.Millisecond}
	require.Equal(t, 42*time.Millisecond, m.uncertainty())
	m.clock.uncertainty = 100 * time.Millisecond
	require.Equal(t, 42*time.Millisecond, m.uncertainty(), "what is known now is better")
}

// What the other end says is shown to people: a terminal must not obey it, and what is stored must be text.
func TestTextsArePlain(t *testing.T) {
	require.EqualError(t, errorOf("no \x1b[2Jroom\x00\nat \xffall\u009b"), "no \uFFFD[2Jroom\uFFFD\nat \uFFFDall\uFFFD")
	require.Len(t, errorOf(strings.Repeat("x", 1<<20)).Error(), maxText)
	ready, err := decodeReady(envelope(t, kindReady, worker.Ready{
		Executor: "\x1b", Nodes: map[string][]string{"t\x07": {"a\n\u202e:1"}},
		Servers: map[string]map[string]map[string]string{"t\x07": {"a\x07:1": {"version": "1\x1b[0m"}}},
	}))
	require.NoError(t, err)
	require.Equal(t, "\uFFFD", ready.Executor)
	require.Equal(t, map[string][]string{"t\uFFFD": {"a\uFFFD\uFFFD:1"}}, ready.Nodes)
	require.Equal(t, map[string]map[string]map[string]string{"t\uFFFD": {"a\uFFFD:1": {"version": "1\uFFFD[0m"}}}, ready.Servers)
}

// A shown text keeps its lines and tabs; one that must fit in a line has neither. Anything else that moves a cursor or changes the text direction is
// gone.
func TestWhatIsPlain(t *testing.T) {
	const no = "\uFFFD"
	for text, want := range map[string][2]string{
		"":            {"", ""},
		"as it is é":  {"as it is é", "as it is é"},
		"a\nb":        {"a\nb", "a" + no + "b"},
		"a\tb":        {"a\tb", "a" + no + "b"},
		"a\rb":        {"a" + no + "b", "a" + no + "b"},
		"a\x7fb":      {"a" + no + "b", "a" + no + "b"},
		"a\u009bb":    {"a" + no + "b", "a" + no + "b"},
		"a\u202eb":    {"a" + no + "b", "a" + no + "b"},
		"a\u2028b":    {"a" + no + "b", "a" + no + "b"},
		"a\u2029b":    {"a" + no + "b", "a" + no + "b"},
		"a\xffb":      {"a" + no + "b", "a" + no + "b"},
		"cut\xe2\x80": {"cut" + no, "cut" + no},
	} {
		require.Equal(t, want[0], plain(text), "%q", text)
		require.Equal(t, want[1], line(text), "%q", text)
		require.Equal(t, want[1] == text, isLine(text), "%q", text)
	}
	require.True(t, isLine(strings.Repeat("x", maxLine)))
	require.False(t, isLine(strings.Repeat("x", maxLine+1)))
}

// TestLogOfAnotherBuild: a worker of the same protocol may say more of its log files than this program knows.
func TestLogOfAnotherBuild(t *testing.T) {
	e, err := encodeFinal(&worker.Final{})
	require.NoError(t, err)
	e.Facts = []byte(`{"Log": {"files": 2, "phase_of_the_moon": "full"}}`)
	f, err := decodeFinal(e, new(measure.Totals))
	require.NoError(t, err)
	require.Equal(t, 2, f.Log.Files)
	e.Facts = append(e.Facts, " {}"...)
	_, err = decodeFinal(e, new(measure.Totals))
	require.ErrorContains(t, err, "decode final: ")
}

// anotherProtocol is what to do if facts have another form.
const anotherProtocol = "a build that writes other names speaks another protocol: if you change one, change the protocol's number, too"

func TestRoundTrips(t *testing.T) {
	step := worker.Step{
		Seq: 3, Phase: "p", Kind: worker.Setup, Last: true, From: 2, To: 9,
		Level: 4, Shape: pace.Shape{Rate: 1e3, From: 0.5, Ramp: 2, Duration: 3},
	}
	e := envelope(t, kindPrepare, step)
	gotStep, err := decodeStep(e)
	require.NoError(t, err)
	require.Equal(t, step, gotStep)
	const asStep = `{"Seq": 3, "Phase": "p", "Kind": "setup", "Last": true, "From": 2, "To": 9, "Level": 4, "Shape": {"Rate": 1000, "From": 0.5, "Ramp": 2, "Duration": 3}}`
	require.JSONEq(t, asStep, string(e.GetFacts()), anotherProtocol)

	a := worker.Assignment{RunID: "r", Plan: []byte("{}"), Digest: "d", Nodes: map[string][]string{"t": {"a", "b"}}, WallNS: 8, Index: 1, Workers: 3}
	e, err = sealed(kindAssign, assignment{a, int64(time.Second)}, a.Plan)
	require.NoError(t, err)
	const asAssigned = `{"RunID": "r", "Digest": "d", "Nodes": {"t": ["a", "b"]}, "WallNS": 8, "Index": 1, "Workers": 3, "DrawsAs": 0, "ZeroNS": 1000000000}`
	require.JSONEq(t, asAssigned, string(e.GetFacts()), anotherProtocol)
	gotA, zero, err := decodeAssignment(e)
	require.NoError(t, err)
	require.Equal(t, a, gotA)
	require.Equal(t, time.Second, zero)

	ready := worker.Ready{
		Step: 3, Sessions: 7, Connections: 14, Ops: 100, Executor: "event loop", Loops: 2, Servers: map[string]map[string]map[string]string{"t": {"a": {"version": "7"}}}, Nodes: map[string][]string{"u": {"b"}},
		Remote: true, Offset: -5, Uncertainty: 2, RTT: 4,
	}
	e = envelope(t, kindReady, ready)
	gotReady, err := decodeReady(e)
	require.NoError(t, err)
	require.Equal(t, ready, gotReady)
	const asReady = `{"Step": 3, "Sessions": 7, "Connections": 14, "Ops": 100, "Nodes": {"u": ["b"]}, "Servers": {"t": {"a": {"version": "7"}}},
		"Executor": "event loop", "Loops": 2, "Remote": true, "Offset": -5, "Uncertainty": 2, "RTT": 4}`
	require.JSONEq(t, asReady, string(e.GetFacts()), anotherProtocol)

	waited := 0.25
	for _, g := range []measure.Generator{
		{},
		{
			Executor: "blocking", Loops: 2, CPUSeconds: 1.5, GCCycles: 3,
			Spent:       measure.Spent{CPUUserSeconds: 1.25, CPUSystemSeconds: 0.25, MinorFaults: 12, MajorFaults: 13, BlocksRead: 14, BlocksWritten: 15, ElapsedSeconds: 30},
			MaxRSSBytes: 4, Mallocs: 5, Busy: 0.5, ProductiveSeconds: 1.25,
			RunQueueWait: &waited, GCPauseMaxSeconds: 0.5, SchedLatencyP99Seconds: 0.75,
			Throttled: &measure.Throttled{Periods: 7, Seconds: 0.125}, TCP: &measure.TCP{BytesSent: 8, BytesRetransmitted: 9, Retransmits: 10},
			Interrupted: &measure.Interrupted{Times: 11, Seconds: 0.5, MaxSeconds: 0.25, OthersSeconds: 0.375},
			Machine:     &measure.Machine{OthersShare: 0.25, IdleShare: 0.125, Seconds: 20, Host: "b007"}, MachineUnknown: "why",
		},
	} {
		counted := measure.NewTotals(0, 1)
		*counted.Request(0, driver.Get) = measure.Requests{Sent: 1, Answered: 1}
		final := worker.Final{Step: 3, Stopped: true, Expired: true, Generator: g, Totals: counted}
		e, err := encodeFinal(&final)
		require.NoError(t, err)
		gotFinal, err := decodeFinal(e, new(measure.Totals))
		require.NoError(t, err)
		var own measure.Account
		own.Add(counted)
		require.True(t, own.Equal(gotFinal.Account))
		gotFinal.Account, final.Totals = nil, nil
		require.Equal(t, final, gotFinal)
	}
	require.Equal(t, "a\uFFFDb", textOf(fmt.Errorf("a\xffb")), "whatever a server says can be passed on")
}

// TestGeneratedCodeIsThatOfTheProto compares the messages in the generated code with the text that they are generated from.
func TestGeneratedCodeIsThatOfTheProto(t *testing.T) {
	text, err := os.ReadFile("loadgenpb/control.proto")
	require.NoError(t, err)
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:repeated |optional )?(?:map<[^>]+>|\w+) (\w+) = (\d+);`).FindAllSubmatch(text, -1) {
		want = append(want, string(m[1])+" = "+string(m[2]))
	}
	var got []string
	messages := pb.File_control_proto.Messages()
	for i := range messages.Len() {
		got = append(got, fields(messages.Get(i))...)
	}
	require.ElementsMatch(t, want, got, "go generate ./internal/fleet/rpc/loadgenpb")
}

func fields(m protoreflect.MessageDescriptor) (list []string) {
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		list = append(list, fmt.Sprintf("%s = %d", f.Name(), f.Number()))
	}
	return list
}

// TestAcknowledgedOnceKept checks what a worker is told about a snapshot while it is being kept, afterwards, and if keeping it failed.
func TestAcknowledgedOnceKept(t *testing.T) {
	s := newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.DiscardHandler)})
	m := newMember(s, &pb.Hello{Name: "w"})
	c := &conn{}
	require.Nil(t, m.attach(0, c))
	var running measure.Totals
	for seq := uint64(1); seq <= 2; seq++ {
		snap := interval(seq, &running)
		e, err := encodeSnapshot(snap)
		require.NoError(t, err)
		e.Number = seq
		require.NoError(t, m.accept(e))
	}
	full := errors.New("no space left on device")
	calls := 0
	_, err := m.Run(context.Background(), 0, func(*measure.Snapshot) (func() error, error) {
		require.EqualValues(t, calls, c.stored)
		return func() error {
			require.EqualValues(t, calls, c.stored)
			if calls++; calls == 2 {
				return full
			}
			return nil
		}, nil
	})
	require.Equal(t, full, err)
	require.EqualValues(t, 1, c.stored)
	require.EqualValues(t, 1, m.welcome().GetStored(), "nor is it told so when it comes back")
	m.dismiss("")
}
