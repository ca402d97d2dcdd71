package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Everything from the other end is checked here, so that the code behind it never sees impossible numbers.

const (
	maxWorkers  = 10_000
	maxSessions = 1 << 24
	maxRunTime  = 10 * 365 * 24 * time.Hour
	maxRate     = 1e9 // per second
	maxLevels   = 1 << 20
	maxServers  = 4096 // of a target
	maxFacts    = 256  // of a server
)

func encodeAssignment(a worker.Assignment, zero time.Duration) *pb.Envelope {
	m := &pb.Assignment{
		Run: a.RunID, Plan: a.Plan, Digest: a.Digest, Nodes: map[string]*pb.Endpoints{},
		WallNs: a.WallNS, ZeroNs: int64(zero), Index: uint32(a.Index), Workers: uint32(a.Workers),
		DrawsAs: uint32(a.DrawsAs),
	}
	for target, endpoints := range a.Nodes {
		m.Nodes[target] = &pb.Endpoints{Endpoint: endpoints}
	}
	return &pb.Envelope{Content: &pb.Envelope_Assignment{Assignment: m}}
}

// decodeAssignment leaves Zero to the caller, who knows this process's clock.
func decodeAssignment(m *pb.Assignment) (worker.Assignment, error) {
	if m.GetWorkers() > maxWorkers || m.GetIndex() >= m.GetWorkers() {
		return worker.Assignment{}, fmt.Errorf("assignment to worker %d of %d", m.GetIndex(), m.GetWorkers())
	}
	if !isLine(m.GetRun()) || !isLine(m.GetDigest()) || len(m.GetNodes()) > maxServers {
		return worker.Assignment{}, fmt.Errorf("assignment with %d targets, or with a name that is not a line of up to %d bytes", len(m.GetNodes()), maxLine)
	}
	a := worker.Assignment{
		RunID: m.GetRun(), Plan: m.GetPlan(), Digest: m.GetDigest(), Nodes: map[string][]string{},
		WallNS: m.GetWallNs(), Index: int(m.GetIndex()), Workers: int(m.GetWorkers()),
		DrawsAs: int(m.GetDrawsAs()),
	}
	for target, endpoints := range m.GetNodes() {
		nodes := endpoints.GetEndpoint()
		if len(nodes) > maxServers || !isLine(target) || slices.ContainsFunc(nodes, func(n string) bool { return !isLine(n) }) {
			return worker.Assignment{}, fmt.Errorf("assignment with %d nodes of a target, or with a node that is not a line of up to %d bytes", len(nodes), maxLine)
		}
		a.Nodes[target] = nodes
	}
	return a, nil
}

func encodeStep(s worker.Step) *pb.Envelope {
	return &pb.Envelope{Content: &pb.Envelope_Prepare{Prepare: &pb.Step{
		Seq: uint32(s.Seq), Phase: s.Phase, Kind: string(s.Kind), Last: s.Last, From: uint32(s.From), To: uint32(s.To),
		Level: uint32(s.Level), Rate: s.Shape.Rate, RateFrom: s.Shape.From, RampNs: int64(s.Shape.Ramp), DurationNs: int64(s.Shape.Duration),
	}}}
}

func decodeStep(m *pb.Step) (worker.Step, error) {
	s := worker.Step{
		Seq: int(m.GetSeq()), Phase: m.GetPhase(), Kind: worker.StepKind(m.GetKind()), Last: m.GetLast(),
		From: int(m.GetFrom()), To: int(m.GetTo()), Level: int(m.GetLevel()),
	}
	s.Shape.Rate, s.Shape.From = m.GetRate(), m.GetRateFrom()
	s.Shape.Ramp, s.Shape.Duration = time.Duration(m.GetRampNs()), time.Duration(m.GetDurationNs())
	if !slices.Contains([]worker.StepKind{worker.Setup, worker.Populate, worker.Clear, worker.Verify, worker.Load}, s.Kind) {
		return worker.Step{}, fmt.Errorf("step %d is of the unknown kind %q", s.Seq, s.Kind)
	}
	if s.From > s.To || s.To > maxSessions {
		return worker.Step{}, fmt.Errorf("step %d is for sessions %d to %d", s.Seq, s.From, s.To)
	}
	r := s.Shape
	if !possible(r.Rate, maxRate) || !possible(r.From, maxRate) || r.Ramp < 0 || r.Ramp > r.Duration || r.Duration > maxRunTime || s.Level > maxLevels {
		return worker.Step{}, fmt.Errorf("step %d has an impossible schedule", s.Seq)
	}
	return s, nil
}

// possible says whether 0 ≤ f ≤ most; false for NaN.
func possible(f, most float64) bool { return f >= 0 && f <= most }

func encodeReady(r worker.Ready, e exchange, err error) *pb.Envelope {
	m := &pb.Ready{
		Step: uint32(r.Step), Error: textOf(err), Sessions: uint32(r.Sessions), Connections: uint32(r.Connections), Ops: r.Ops,
		Executor: r.Executor, Loops: uint32(r.Loops), Targets: map[string]*pb.Reached{},
		OffsetNs: int64(e.offset), UncertaintyNs: int64(e.rtt / 2), RttNs: int64(e.rtt),
	}
	of := func(target string) *pb.Reached {
		if m.Targets[target] == nil {
			m.Targets[target] = &pb.Reached{Servers: map[string]*pb.Facts{}}
		}
		return m.Targets[target]
	}
	for target, servers := range r.Servers {
		for endpoint, facts := range servers {
			of(target).Servers[endpoint] = &pb.Facts{Fact: plainFacts(facts)}
		}
	}
	for target, nodes := range r.Nodes {
		of(target).Node = nodes
	}
	return &pb.Envelope{Content: &pb.Envelope_Ready{Ready: m}}
}

func decodeReady(m *pb.Ready) (worker.Ready, error) {
	servers, nodes := 0, 0
	for _, reached := range m.GetTargets() {
		servers, nodes = servers+len(reached.GetServers()), nodes+len(reached.GetNode())
		for _, facts := range reached.GetServers() {
			if len(facts.GetFact()) > maxFacts {
				return worker.Ready{}, fmt.Errorf("it is ready with %d facts of a server, and %d are the most", len(facts.GetFact()), maxFacts)
			}
		}
	}
	if servers > maxServers || nodes > maxServers || len(m.GetTargets()) > maxServers {
		return worker.Ready{}, fmt.Errorf("it is ready with %d servers and %d nodes of %d targets, and %d are the most", servers, nodes, len(m.GetTargets()), maxServers)
	}
	r := worker.Ready{
		Step: int(m.GetStep()), Sessions: int(m.GetSessions()), Connections: int(m.GetConnections()), Ops: m.GetOps(),
		Executor: plain(m.GetExecutor()), Loops: int(m.GetLoops()), Servers: map[string]map[string]map[string]string{}, Nodes: map[string][]string{},
		Remote: true, Offset: time.Duration(m.GetOffsetNs()), Uncertainty: time.Duration(m.GetUncertaintyNs()), RTT: time.Duration(m.GetRttNs()),
	}
	for target, reached := range m.GetTargets() {
		target = line(target)
		for _, node := range reached.GetNode() {
			r.Nodes[target] = append(r.Nodes[target], line(node))
		}
		for endpoint, facts := range reached.GetServers() {
			if r.Servers[target] == nil {
				r.Servers[target] = map[string]map[string]string{}
			}
			r.Servers[target][line(endpoint)] = plainFacts(facts.GetFact())
		}
	}
	if r.Uncertainty < 0 || r.RTT < 0 || r.Uncertainty > time.Minute || r.RTT > time.Minute || r.Sessions > maxSessions {
		return worker.Ready{}, errors.New("it is ready with impossible figures")
	}
	return r, nil
}

func plainFacts(facts map[string]string) map[string]string {
	all := map[string]string{}
	for name, fact := range facts {
		all[line(name)] = line(fact)
	}
	return all
}

func encodeSnapshot(s *measure.Snapshot) (*pb.Envelope, error) {
	b, err := s.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return &pb.Envelope{Content: &pb.Envelope_Snapshot{Snapshot: b}}, nil
}

// decodeSnapshot decodes into s, replacing what it holds.
func decodeSnapshot(s *measure.Snapshot, b []byte) error {
	rest, err := s.Decode(b)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("snapshot %d: %d bytes after it", s.SeqFirst, len(rest))
	}
	return s.CheckValid()
}

func encodeFinal(f *worker.Final, cause error) (*pb.Envelope, error) {
	counted := f.Totals
	if counted == nil {
		counted = new(measure.Totals)
	}
	totals, err := counted.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	generator, err := json.Marshal(f.Generator.Whole())
	if err != nil {
		return nil, err
	}
	var log []byte
	if f.Log != nil {
		if log, err = json.Marshal(f.Log); err != nil {
			return nil, err
		}
	}
	return &pb.Envelope{Content: &pb.Envelope_Final{Final: &pb.Final{
		Step: uint32(f.Step), Error: textOf(cause), Totals: totals, Stopped: f.Stopped, Expired: f.Expired,
		Generator: generator, Log: log,
	}}}, nil
}

// decodeLog reads a worker's report on its log files; nil if there is none. Like all decoders here, it ignores fields that other builds add.
func decodeLog(b []byte) (*worker.Log, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var l worker.Log
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("log files: %w", err)
	}
	return &l, l.CheckValid()
}

// decodeGenerator reads what a worker's process used, and refuses impossible figures.
func decodeGenerator(b []byte) (g measure.Generator, err error) {
	var whole measure.WholeGenerator
	if len(b) > 0 {
		err = json.Unmarshal(b, &whole)
	}
	g = whole.Restored()
	g.Executor, g.MachineUnknown = plain(g.Executor), plain(g.MachineUnknown)
	times := []float64{g.CPUSeconds, g.CPUUserSeconds, g.CPUSystemSeconds, g.ElapsedSeconds, g.ProductiveSeconds, g.GCPauseMaxSeconds, g.SchedLatencyP99Seconds}
	shares := []float64{g.Busy, g.RateWait, g.BytesWait}
	if w := g.RunQueueWait; w != nil {
		shares = append(shares, *w)
	}
	if t := g.Throttled; t != nil {
		times = append(times, t.Seconds)
	}
	if i := g.Interrupted; i != nil {
		times = append(times, i.Seconds, i.MaxSeconds, i.OthersSeconds)
	}
	if at := g.Machine; at != nil {
		const rounding = 1e-9
		at.Host = plain(at.Host)
		times, shares = append(times, at.Seconds), append(shares, at.OthersShare, at.IdleShare, max(0, at.OthersShare+at.IdleShare-rounding))
	}
	impossible := func(most float64) func(float64) bool { return func(f float64) bool { return !possible(f, most) } }
	if err == nil && (min(int64(g.Loops), g.MaxRSSBytes) < 0 || slices.ContainsFunc(times, impossible(float64(maxRunTime/time.Second)*1024)) || slices.ContainsFunc(shares, impossible(1))) {
		err = errors.New("it ends with impossible figures")
	}
	return g, err
}

// decodeFinal reads a worker's final report on a step. It decodes the totals into scratch: those of a thousand workers come at the same time, and only
// their accounts are needed.
func decodeFinal(m *pb.Final, scratch *measure.Totals) (worker.Final, error) {
	f := worker.Final{Step: int(m.GetStep()), Account: new(measure.Account), Stopped: m.GetStopped(), Expired: m.GetExpired()}
	var err error
	if f.Generator, err = decodeGenerator(m.GetGenerator()); err != nil {
		return worker.Final{}, fmt.Errorf("step %d: what its process used: %w", f.Step, err)
	}
	rest, err := scratch.Decode(m.GetTotals())
	switch {
	case err != nil:
		return worker.Final{}, err
	case len(rest) > 0:
		return worker.Final{}, fmt.Errorf("step %d: %d bytes after its totals", f.Step, len(rest))
	}
	if f.Log, err = decodeLog(m.GetLog()); err != nil {
		return worker.Final{}, fmt.Errorf("step %d: %w", f.Step, err)
	}
	if err := scratch.CheckValid(); err != nil {
		return worker.Final{}, err
	}
	f.Account.Add(scratch)
	return f, nil
}

// decodeTime checks that a time can be added to others without overflow.
func decodeTime(ns int64) (time.Duration, error) {
	if d := time.Duration(ns); d > -maxRunTime && d < maxRunTime {
		return d, nil
	}
	return 0, fmt.Errorf("a time of %d ns", ns)
}

// textOf is an error's text as sent over the wire; "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if text == "" {
		text = "unknown error"
	}
	return plain(text)
}

// plain removes control characters, which a terminal might obey, from a text. It is applied both before sending and before showing, since neither
// servers nor the other end can be trusted.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxText)], string(utf8.RuneError)))
}

// line is plain for text that must fit in one line.
func line(text string) string {
	return strings.NewReplacer("\n", string(utf8.RuneError), "\t", string(utf8.RuneError)).Replace(plain(text))
}

// isLine says whether a text is short and may be shown in one line as it is.
func isLine(text string) bool { return len(text) <= maxLine && line(text) == text }

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(plain(text))
}
