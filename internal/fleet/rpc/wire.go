package rpc

import (
	"cmp"
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

// Kinds of envelopes: the coordinator's orders, and what a worker sends.
const (
	kindAssign   = "assign"   // facts: an assignment; content: its plan
	kindPrepare  = "prepare"  // facts: a worker.Step
	kindStart    = "start"    // facts: when to start, on the run clock
	kindDrain    = "drain"    // end this step and all later ones early
	kindAbandon  = "abandon"  // stop at once
	kindAssigned = "assigned" // answer to an assignment
	kindReady    = "ready"    // answer to a step; facts: a worker.Ready
	kindSnapshot = "snapshot" // content: a measure.Snapshot
	kindFinal    = "final"    // answer to a start; facts: a report; content: a measure.Totals
)

// assignment is a worker's assignment on its way.
type assignment struct {
	worker.Assignment
	ZeroNS int64 // coordinator's clock at the run clock's zero
}

// report is a worker's final report on its way.
type report struct {
	worker.Final
	Process measure.WholeGenerator // Final's Generator
}

// sealed returns an envelope with facts in it.
func sealed(kind string, facts any, content []byte) (*pb.Envelope, error) {
	b, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return &pb.Envelope{Kind: kind, Facts: b, Content: content}, nil
}

// opened decodes an envelope's facts. Like all decoders here, it ignores fields that other builds add.
func opened[T any](e *pb.Envelope) (facts T, err error) {
	if err := json.Unmarshal(e.GetFacts(), &facts); err != nil {
		return facts, fmt.Errorf("decode %s: %w", e.GetKind(), err)
	}
	return facts, nil
}

// decodeAssignment leaves Zero to the caller, who knows this process's clock. zero is the run clock's zero on the coordinator's.
func decodeAssignment(e *pb.Envelope) (a worker.Assignment, zero time.Duration, err error) {
	m, err := opened[assignment](e)
	if err != nil {
		return a, 0, err
	}
	if m.Workers > maxWorkers || m.Index < 0 || m.Index >= m.Workers || m.DrawsAs < 0 {
		return a, 0, fmt.Errorf("assignment to worker %d of %d, of repetition %d", m.Index, m.Workers, m.DrawsAs)
	}
	if !isLine(m.RunID) || !isLine(m.Digest) || len(m.Nodes) > maxServers {
		return a, 0, fmt.Errorf("assignment with %d targets, or with a name that is not a line of up to %d bytes", len(m.Nodes), maxLine)
	}
	for target, nodes := range m.Nodes {
		if len(nodes) > maxServers || !isLine(target) || slices.ContainsFunc(nodes, func(n string) bool { return !isLine(n) }) {
			return a, 0, fmt.Errorf("assignment with %d nodes of a target, or with a node that is not a line of up to %d bytes", len(nodes), maxLine)
		}
	}
	m.Plan = e.GetContent()
	zero, err = decodeTime(m.ZeroNS)
	return m.Assignment, zero, err
}

func decodeStep(e *pb.Envelope) (worker.Step, error) {
	s, err := opened[worker.Step](e)
	if err != nil {
		return worker.Step{}, err
	}
	if !slices.Contains([]worker.StepKind{worker.Setup, worker.Populate, worker.Clear, worker.Verify, worker.Load}, s.Kind) {
		return worker.Step{}, fmt.Errorf("step %d is of the unknown kind %q", s.Seq, s.Kind)
	}
	if s.Seq < 0 || s.From < 0 || s.From > s.To || s.To > maxSessions {
		return worker.Step{}, fmt.Errorf("step %d is for sessions %d to %d", s.Seq, s.From, s.To)
	}
	r := s.Shape
	if !possible(r.Rate, maxRate) || !possible(r.From, maxRate) || r.Ramp < 0 || r.Ramp > r.Duration || r.Duration > maxRunTime || s.Level < 0 || s.Level > maxLevels {
		return worker.Step{}, fmt.Errorf("step %d has an impossible schedule", s.Seq)
	}
	return s, nil
}

// possible says whether 0 ≤ f ≤ most; false for NaN.
func possible(f, most float64) bool { return f >= 0 && f <= most }

func decodeReady(e *pb.Envelope) (worker.Ready, error) {
	r, err := opened[worker.Ready](e)
	if err != nil {
		return worker.Ready{}, err
	}
	servers, nodes := 0, 0
	for _, endpoints := range r.Servers {
		servers += len(endpoints)
		for _, facts := range endpoints {
			if len(facts) > maxFacts {
				return worker.Ready{}, fmt.Errorf("it is ready with %d facts of a server, and %d are the most", len(facts), maxFacts)
			}
		}
	}
	for _, found := range r.Nodes {
		nodes += len(found)
	}
	if targets := max(len(r.Servers), len(r.Nodes)); max(servers, nodes, targets) > maxServers {
		return worker.Ready{}, fmt.Errorf("it is ready with %d servers and %d nodes of %d targets, and %d are the most", servers, nodes, targets, maxServers)
	}
	if r.Uncertainty < 0 || r.RTT < 0 || r.Uncertainty > time.Minute || r.RTT > time.Minute || r.Sessions > maxSessions || min(r.Sessions, r.Connections, r.Loops) < 0 {
		return worker.Ready{}, errors.New("it is ready with impossible figures")
	}
	r.Remote = true
	return plainReady(r), nil
}

// plainReady returns r with plain texts.
func plainReady(r worker.Ready) worker.Ready {
	servers, nodes := map[string]map[string]map[string]string{}, map[string][]string{}
	for target, endpoints := range r.Servers {
		all := map[string]map[string]string{}
		for endpoint, facts := range endpoints {
			all[line(endpoint)] = plainFacts(facts)
		}
		servers[line(target)] = all
	}
	for target, found := range r.Nodes {
		for _, node := range found {
			nodes[line(target)] = append(nodes[line(target)], line(node))
		}
	}
	r.Executor, r.Servers, r.Nodes = plain(r.Executor), servers, nodes
	return r
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
	return &pb.Envelope{Kind: kindSnapshot, Content: b}, nil
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

func encodeFinal(f *worker.Final) (*pb.Envelope, error) {
	counted := f.Totals
	if counted == nil {
		counted = new(measure.Totals)
	}
	totals, err := counted.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return sealed(kindFinal, report{*f, f.Generator.Whole()}, totals)
}

// decodeGenerator restores what a worker's process used, and refuses impossible figures.
func decodeGenerator(whole *measure.WholeGenerator) (g measure.Generator, err error) {
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
	if min(int64(g.Loops), g.MaxRSSBytes) < 0 || slices.ContainsFunc(times, impossible(float64(maxRunTime/time.Second)*1024)) || slices.ContainsFunc(shares, impossible(1)) {
		err = errors.New("it ends with impossible figures")
	}
	return g, err
}

// decodeFinal reads a worker's final report on a step. It decodes the totals into scratch: those of a thousand workers come at the same time, and only
// their accounts are needed.
func decodeFinal(e *pb.Envelope, scratch *measure.Totals) (worker.Final, error) {
	r, err := opened[report](e)
	if err != nil {
		return worker.Final{}, err
	}
	f := r.Final
	f.Account = new(measure.Account)
	if f.Generator, err = decodeGenerator(&r.Process); err != nil {
		return worker.Final{}, fmt.Errorf("step %d: what its process used: %w", f.Step, err)
	}
	rest, err := scratch.Decode(e.GetContent())
	switch {
	case err != nil:
		return worker.Final{}, err
	case len(rest) > 0:
		return worker.Final{}, fmt.Errorf("step %d: %d bytes after its totals", f.Step, len(rest))
	}
	if f.Log != nil {
		if err := f.Log.CheckValid(); err != nil {
			return worker.Final{}, fmt.Errorf("step %d: %w", f.Step, err)
		}
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

// textOf is an error's text as sent over the wire.
func textOf(err error) string { return plain(cmp.Or(err.Error(), "unknown error")) }

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
