package words

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Mark says how far the figure at a path relative to the phase can be trusted.
func Mark(ph *run.Phase, path string) string { return ph.ValidityOf(path).Mark() }

// Steady says which part of the load rates and latencies leave out, and how steady the rest was.
func Steady(ph *run.Phase) []string {
	var parts []string
	if w := ph.WarmUp; w.Seconds > 0 {
		parts = append(parts, "rates and latencies leave out the first "+quantity.Duration(w.Seconds)+" ("+w.Reason+")")
	}
	if t := ph.Steady.Rate; t.CI95 != nil {
		parts = append(parts, "rate ± "+quantity.Percent(rounded(*t.CI95))+" over "+quantity.Thousands(ph.Steady.Seconds)+" s, which are worth "+
			quantity.Digits(*t.Effective)+" independent ones")
	}
	if t := ph.Steady.Rate; t.Drift != nil {
		parts = append(parts, "drift "+quantity.Percent(rounded(*t.Drift)))
	}
	return parts
}

// rounded rounds a share to a tenth of a per cent.
func rounded(share float64) float64 { return math.Round(share*1000) / 1000 }

// Trace describes the trace that was replayed, and what was left out of it; nil if there was none.
func Trace(ph *run.Phase) []string {
	t := ph.Trace
	if t == nil {
		return nil
	}
	pace := "at its own times"
	switch {
	case ph.Closed():
		pace = "as fast as its sessions can"
	case t.Speed == 0:
		pace = "at even distances"
	case t.Speed != 1:
		pace = strconv.FormatFloat(t.Speed, 'f', -1, 64) + " times as fast as it was"
	}
	var replayed, out []string
	for _, c := range t.Ops {
		replayed = append(replayed, quantity.Thousands(c.Lines)+" "+c.Op)
	}
	for _, c := range t.LeftOut {
		out = append(out, quantity.Thousands(c.Lines)+" "+c.Op)
	}
	parts := []string{t.File + ", " + pace, quantity.Thousands(t.Lines) + " ops: " + strings.Join(replayed, ", ")}
	if len(out) > 0 {
		parts = append(parts, "left out: "+strings.Join(out, ", "))
	}
	return append(parts, "SHA-256 "+t.SHA256)
}

// Load describes the load that was asked for.
func Load(ph *run.Phase) string {
	s := ph.Load
	sessions := quantity.Count(s.Sessions, "session")
	if s.Pipeline > 1 {
		sessions += " × " + quantity.Thousands(s.Pipeline) + " in flight"
	}
	var parts []string
	switch {
	case !ph.Kind.Timed():
		parts = []string{string(ph.Kind), sessions}
	case !ph.Closed():
		parts = append(scheduleOf(ph), sessions,
			"at most "+quantity.Thousands(s.InFlight)+" in flight, more "+map[string]string{"wait": "wait", "shed": "are shed"}[s.OnFull])
	case s.Iterations > 0:
		parts = []string{"closed", sessions, quantity.Thousands(s.Iterations) + " " + Arrivals(ph) + " each"}
		if s.DurationSeconds > 0 {
			parts = append(parts, "at most "+quantity.Duration(s.DurationSeconds))
		}
	case s.DurationSeconds > 0:
		parts = []string{"closed", sessions, quantity.Duration(s.DurationSeconds)}
	case ph.Trace != nil:
		parts = []string{"closed", sessions, "every line of the trace once"}
	default:
		parts = []string{"closed", sessions, "every key once"}
	}
	if s.Batch > 1 {
		parts = append(parts, quantity.Thousands(s.Batch)+" keys an op")
	}
	if s.RampSeconds > 0 {
		parts = append(parts, "ramp "+quantity.Duration(s.RampSeconds))
	}
	if s.ThinkSeconds > 0 {
		parts = append(parts, "think "+quantity.Duration(s.ThinkSeconds))
	}
	return strings.Join(parts, ", ")
}

// scheduleOf says at which rates ops were due, and for how long.
func scheduleOf(ph *run.Phase) []string {
	s := ph.Load
	switch {
	case ph.Model == run.ModelStages:
		return []string{quantity.Count(len(ph.Levels), "stage") + " of " + s.Arrivals + " arrivals", quantity.Duration(s.DurationSeconds)}
	case ph.Search != nil:
		f, to := ph.Search, ""
		if f.To < 1e9 { // a higher bound is no bound
			to = " to " + quantity.Whole(f.To) + "/s"
		}
		return []string{"search of " + s.Arrivals + " arrivals from " + quantity.Whole(f.From) + "/s" + to, "steps of " + quantity.Duration(f.StepSeconds)}
	case ph.Model == run.ModelSearch:
		return []string{"search"}
	}
	if AsRecorded(ph) {
		return []string{"open", quantity.Whole(s.Rate) + "/s on average", quantity.Duration(s.DurationSeconds)}
	}
	return []string{"open", Arriving(ph, s.Rate) + " " + s.Arrivals, quantity.Duration(s.DurationSeconds)}
}

// AsRecorded says whether a trace was replayed with its recorded timing.
func AsRecorded(ph *run.Phase) bool { return ph.Trace != nil && ph.Trace.Speed > 0 }

// Arrivals returns what a load counts: scenarios if the phase has any, otherwise ops.
func Arrivals(ph *run.Phase) string {
	if len(ph.Scenario) > 0 {
		return "scenarios"
	}
	return "ops"
}

// Arriving formats a rate of arrivals.
func Arriving(ph *run.Phase, rate float64) string {
	if len(ph.Scenario) > 0 {
		return quantity.Whole(rate) + " " + Arrivals(ph) + "/s"
	}
	return quantity.Whole(rate) + "/s"
}

// Target says where the load went, and how its ops were replicated.
func Target(ph *run.Phase) string {
	text := targetOf(ph, &ph.Target)
	for i := range ph.Others {
		text += "; " + targetOf(ph, &ph.Others[i])
	}
	return text
}

func targetOf(ph *run.Phase, t *run.Target) string {
	nodes := quantity.Count(len(t.Endpoints), "endpoint")
	if t.InCluster() {
		nodes = "a cluster of " + quantity.Count(len(t.Endpoints), "node")
	}
	if t.Builtin {
		nodes = quantity.Count(len(t.Endpoints), "built-in node")
	}
	text := t.Name + ": " + t.Driver
	if ph.Log == nil {
		text += ", " + nodes
	}
	if t.TLS {
		text += ", TLS"
	}
	if t.Ranked() {
		text += ", " + t.Placement
	}
	if n := t.Replication; n != nil {
		text += ", N=" + quantity.Thousands(n.N) + " W=" + quantity.Thousands(n.W) + " R=" + quantity.Thousands(n.R) + " by the " + n.Coordinate
		switch _, gets := ph.Op["get"]; {
		case !gets || !n.ByClient():
		case !n.AsksAll() && n.AtRandom():
			text += ", a get asks " + quantity.Count(n.R, "node") + " at random"
		case !n.AsksAll():
			text += ", a get asks " + quantity.Count(n.R, "node")
		default:
			text += ", a get asks " + quantity.Count(n.N, "node")
		}
	}
	return text
}

// Dataset describes the keys and values of the load.
func Dataset(ph *run.Phase) string {
	d := ph.Dataset
	pool := "shared"
	if d.PerSession() {
		pool = "for each session"
	}
	if ph.Trace != nil && ph.Op["chain"] == nil {
		return d.Name + ": keys of the trace, values of its sizes, or of " + quantity.Blocks(d.ValueBytes) + " where it has none"
	}
	values := ", values of " + quantity.Blocks(d.ValueBytes)
	if d.Values != "" {
		values = ", values of up to " + quantity.Blocks(d.ValueBytes) + ": " + d.Values
	}
	if f := d.ValuesFile; f != nil {
		values += ", " + quantity.Blocks(int(math.Round(f.MeanBytes))) + " on average"
	}
	keys := quantity.Count(d.Keys, "key")
	switch {
	case ph.Log == nil:
	case ph.Log.Layout == "array":
		keys = quantity.Count(d.Keys, "slot")
	default: // the other layouts do not use keys
		return d.Name + ": " + strings.TrimPrefix(values, ", ")
	}
	if d.File != nil {
		keys += " of " + d.File.Path
	}
	pick := d.Pick
	if ph.Trace != nil {
		pick = "as the trace numbers them"
	}
	return d.Name + ": " + keys + " " + pool + ", " + pick + values
}

// Untimed sums up a populate or a clear in a line; "" for a load, and if anything went wrong.
func Untimed(ph *run.Phase) string {
	if ph.Kind.Timed() || len(ph.Reasons)+len(ph.Errors)+len(ph.Away) > 0 || ph.Log != nil || ph.Verify != nil && ph.Verify.Lost > 0 {
		return ""
	}
	parts := []string{string(ph.Kind)}
	for _, verb := range ph.Verbs() {
		o := ph.Op[verb]
		done := verb + " " + Ledger(&o.Ledger)
		if o.OK == o.Due {
			done = quantity.Thousands(o.OK) + " " + verb + " ok"
		}
		parts = append(parts, done)
	}
	if ph.Verify != nil {
		parts = []string{string(ph.Kind), verified(ph.Verify)}
	}
	return strings.Join(append(parts, Took(ph)), ", ")
}

// Note returns a remark on a load's figures; "" if there is none.
func Note(ph *run.Phase) string {
	if !ph.Kind.Timed() {
		return ""
	}
	notes := slices.Clone(ph.Notes)
	if ph.Closed() {
		notes = append(notes, "response excludes the waiting an open load would see")
		for _, o := range ph.Op {
			if o != nil && len(o.Acks) > 1 {
				notes = append(notes, "acks do not predict other W and R in a closed load")
				break
			}
		}
	}
	return strings.Join(notes, "; ")
}

// Generator says what the generator used, and what kept it from running.
func Generator(ph *run.Phase) []string {
	g := ph.Generator
	parts := []string{g.Executor + " × " + quantity.Thousands(g.Loops), "busy " + quantity.Percent(g.Busy)}
	if w := g.RunQueueWait; w != nil && *w >= 0.001 {
		parts = append(parts, "waited "+quantity.Percent(*w)+" for a processor")
	}
	if i := g.Interrupted; i != nil && i.Seconds >= 0.0005*ph.Load.DurationSeconds && i.Times > 0 {
		parts = append(parts, "kept from it "+quantity.Count(i.Times, "time")+" for "+quantity.Duration(i.Seconds)+", at most "+quantity.Duration(i.MaxSeconds))
	}
	if ph.OpCostSeconds != nil {
		parts = append(parts, quantity.Duration(*ph.OpCostSeconds)+" an op")
	}
	parts = append(parts, processorTime(ph), quantity.Count(g.GCCycles, "GC"), quantity.Count(g.Mallocs, "malloc"), quantity.Bytes(g.MaxRSSBytes)+" resident")
	if t := g.Throttled; t != nil && t.Periods > 0 {
		parts = append(parts, "throttled "+quantity.Count(t.Periods, "time"))
	}
	if t := g.TCP; t != nil && t.Retransmits > 0 {
		parts = append(parts, quantity.Count(t.Retransmits, "TCP retransmit"))
	}
	return parts
}

// processorTime returns the CPU time of the clients' processes, and the user time in it if known.
func processorTime(ph *run.Phase) string {
	g := &ph.Generator
	text := quantity.Duration(g.CPUSeconds) + " CPU"
	if g.CPUUserSeconds+g.CPUSystemSeconds > 0 {
		text += " (" + quantity.Duration(g.CPUUserSeconds) + " user)"
	}
	return text
}

// Odd counts unusual events.
func Odd(ph *run.Phase) []string {
	var odd []string
	for _, n := range []struct {
		n    uint64
		noun string
	}{{ph.Reconnects, "reconnect"}, {ph.LateReplies, "late answer"}, {ph.Foreign, "foreign value"}, {ph.Misplaced, "value of another key"}, {ph.AnotherRun, "value of another run"}, {ph.Generator.Unasked.Alone + ph.Generator.Unasked.Behind, "unasked answer"}, {ph.Stalls, "stall"}} {
		if n.n > 0 {
			odd = append(odd, quantity.Count(n.n, n.noun))
		}
	}
	if ph.Stalls > 0 {
		odd[len(odd)-1] += " of at most " + quantity.Duration(ph.MaxStallSeconds)
	}
	return odd
}

// Away says for how long connections to which endpoints were away, at most so many endpoints.
func Away(ph *run.Phase, most int) (list []string) {
	for i, a := range ph.Away {
		if i == most {
			return append(list, "and to "+quantity.Count(len(ph.Away)-i, "other endpoint"))
		}
		at := a.Endpoint
		if len(ph.Others) > 0 {
			at = a.Target + " at " + at
		}
		list = append(list, "connections to "+at+" for "+quantity.Duration(a.Seconds)+" in all")
	}
	return list
}
