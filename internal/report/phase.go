package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// maxEndpoints bounds the lines on requests.
const maxEndpoints = 8

func (p *page) phase(name string, ph *run.Phase) {
	word := string(ph.Validity)
	if ph.Validity != run.Valid {
		word = strings.ToUpper(word)
	}
	p.rule(name, word)
	overloaded := len(ph.Reasons) > 0 && strings.HasPrefix(ph.Reasons[0].Text, "offered ") // and says so itself
	if ph.OfferedRate != nil && ph.AchievedRate != nil && !overloaded {
		p.item("rate", "offered "+arriving(ph, *ph.OfferedRate)+", sustained "+arriving(ph, *ph.AchievedRate)+mark(ph, "achieved_rate"))
	}
	label := word
	for _, why := range ph.Reasons {
		p.point(label, marks[why.Validity], why.Text)
		label = ""
	}
	p.item("load", loadOf(ph)+"; took "+quantity.Duration(ph.Seconds))
	p.items("trace", "; ", traceOf(ph)...)
	p.item("target", targetOf(ph))
	p.item("dataset", datasetOf(ph))
	if ph.Setup != nil {
		for _, verb := range verbs(ph.Setup.Op) {
			p.item("setup", verb+": "+ledger(&ph.Setup.Op[verb].Ledger)+", untimed")
		}
	}
	p.log(ph)
	p.items("steady", ", ", steadyOf(ph)...)
	p.levels(ph)
	for _, d := range doneIn(ph) {
		p.op(ph, d)
	}
	p.line("")
	if note := noteOn(ph); note != "" {
		p.item("note", note)
	}
	p.requests(ph)
	p.generator(ph)
	p.observed(ph)
	for _, e := range ph.Errors {
		p.item("error", "“"+e.Text+"” × "+count(e.Count))
	}
}

// marks stand behind figures, and before the reasons that touch them.
var marks = map[run.Validity]string{run.Valid: "", run.Suspect: "?", run.Invalid: "!"}

// mark says how far the figure at a path below the phase may be believed.
func mark(ph *run.Phase, path string) string { return marks[ph.ValidityOf(path)] }

// steadyOf says what rates and latencies leave out, and how even the rest was.
func steadyOf(ph *run.Phase) []string {
	var parts []string
	if w := ph.WarmUp; w.Seconds > 0 {
		parts = append(parts, "rates and latencies leave out the first "+quantity.Duration(w.Seconds)+" ("+w.Reason+")")
	}
	if t := ph.Steady.Rate; t.CI95 != nil {
		parts = append(parts, "rate ± "+quantity.Percent(rounded(*t.CI95))+" over "+count(ph.Steady.Seconds)+" s, which are worth "+
			quantity.Digits(*t.Effective)+" independent ones")
		if ph.Steady.Rate.Drift != nil {
			parts = append(parts, "drift "+quantity.Percent(rounded(*t.Drift)))
		}
	}
	return parts
}

// rounded cuts a share to a tenth of a per cent.
func rounded(share float64) float64 { return math.Round(share*1000) / 1000 }

// verbs lists the ops in the order of every table.
func verbs(ops map[string]*run.Op) []string {
	order := func(op string) driver.Verb {
		v, _ := driver.ParseVerb(op)
		return v
	}
	return slices.SortedFunc(maps.Keys(ops), func(a, b string) int { return int(order(a)) - int(order(b)) })
}

// traceOf is the trace that was replayed, and what of it was not; nil when there was none.
func traceOf(ph *run.Phase) []string {
	t := ph.Trace
	if t == nil {
		return nil
	}
	pace := "at its own times"
	switch {
	case ph.Model == "closed":
		pace = "as fast as its sessions can"
	case t.Speed == 0:
		pace = "at even distances"
	case t.Speed != 1:
		pace = strconv.FormatFloat(t.Speed, 'f', -1, 64) + " times as fast as it was"
	}
	list := func(of []plan.TraceCount) string {
		var parts []string
		for _, c := range of {
			parts = append(parts, count(c.Lines)+" "+c.Op)
		}
		return strings.Join(parts, ", ")
	}
	parts := []string{t.File + ", " + pace, count(t.Lines) + " ops: " + list(t.Ops)}
	if len(t.LeftOut) > 0 {
		parts = append(parts, "left out: "+list(t.LeftOut))
	}
	return append(parts, "SHA-256 "+t.SHA256)
}

// loadOf is the load that was asked for.
func loadOf(ph *run.Phase) string {
	s := ph.Load
	sessions := plural(s.Sessions, "session")
	if s.Pipeline > 1 {
		sessions += " × " + count(s.Pipeline) + " in flight"
	}
	var parts []string
	switch {
	case ph.Kind != string(run.Load):
		parts = []string{ph.Kind, sessions}
	case ph.Model != "closed":
		parts = append(scheduleOf(ph), sessions,
			"at most "+count(s.InFlight)+" in flight, more "+map[string]string{"wait": "wait", "shed": "are shed"}[s.OnFull])
	case s.Iterations > 0:
		parts = []string{"closed", sessions, count(s.Iterations) + " " + arrivals(ph) + " each"}
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
		parts = append(parts, count(s.Batch)+" keys an op")
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
	case ph.Model == "stages":
		return []string{plural(len(ph.Levels), "stage") + " of " + s.Arrivals + " arrivals", quantity.Duration(s.DurationSeconds)}
	case ph.Search != nil:
		f, to := ph.Search, ""
		if f.To < 1e9 { // which is as good as none
			to = " to " + whole(f.To) + "/s"
		}
		return []string{"search of " + s.Arrivals + " arrivals from " + whole(f.From) + "/s" + to, "steps of " + quantity.Duration(f.StepSeconds)}
	case ph.Model == "search":
		return []string{"search"}
	}
	if asRecorded(ph) {
		return []string{"open", whole(s.Rate) + "/s on average", quantity.Duration(s.DurationSeconds)}
	}
	return []string{"open", arriving(ph, s.Rate) + " " + s.Arrivals, quantity.Duration(s.DurationSeconds)}
}

// asRecorded says whether a trace was replayed at its own times.
func asRecorded(ph *run.Phase) bool { return ph.Trace != nil && ph.Trace.Speed > 0 }

// arrivals is what a load counts: scenarios where the phase has some.
func arrivals(ph *run.Phase) string {
	if len(ph.Scenario) > 0 {
		return "scenarios"
	}
	return "ops"
}

// arriving is a rate of arrivals.
func arriving(ph *run.Phase, rate float64) string {
	if len(ph.Scenario) > 0 {
		return whole(rate) + " " + arrivals(ph) + "/s"
	}
	return whole(rate) + "/s"
}

func targetOf(ph *run.Phase) string {
	t := ph.Target
	nodes := plural(len(t.Endpoints), "endpoint")
	if inCluster(ph) {
		nodes = "a cluster of " + plural(len(t.Endpoints), "node")
	}
	if t.Builtin {
		nodes = plural(len(t.Endpoints), "built-in node")
	}
	text := t.Name + ": " + t.Driver
	if ph.Log == nil {
		text += ", " + nodes
	}
	if t.TLS {
		text += ", TLS"
	}
	if t.Placement == "rendezvous" {
		text += ", " + t.Placement
	}
	if n := t.Replication; n != nil {
		text += ", N=" + count(n.N) + " W=" + count(n.W) + " R=" + count(n.R) + " by the " + n.Coordinate
		switch _, gets := ph.Op["get"]; {
		case !gets:
		case n.ReadFanout == "r" && n.ReadFrom == "random":
			text += ", a get asks " + plural(n.R, "node") + " at random"
		case n.ReadFanout == "r":
			text += ", a get asks " + plural(n.R, "node")
		default:
			text += ", a get asks " + plural(n.N, "node")
		}
	}
	return text
}

func datasetOf(ph *run.Phase) string {
	d := ph.Dataset
	pool := "shared"
	if d.Scope == "session" {
		pool = "for each session"
	}
	if ph.Trace != nil {
		return d.Name + ": keys of the trace, values of its sizes, or of " + blocks(d.ValueBytes) + " where it has none"
	}
	values := ", values of " + blocks(d.ValueBytes)
	if d.Values != "" {
		values = ", values of up to " + blocks(d.ValueBytes) + ": " + d.Values
	}
	if f := d.ValuesFile; f != nil {
		values += ", " + blocks(int(math.Round(f.MeanBytes))) + " on average"
	}
	keys := plural(d.Keys, "key")
	switch {
	case ph.Log == nil:
	case ph.Log.Layout == "array":
		keys = plural(d.Keys, "slot")
	default: // the other layouts have no use for keys
		return d.Name + ": " + strings.TrimPrefix(values, ", ")
	}
	if d.File != nil {
		keys += " of " + d.File.Path
	}
	return d.Name + ": " + keys + " " + pool + ", " + d.Pick + values
}

// noteOn says what a reader should know of a load's figures; "" for nothing.
func noteOn(ph *run.Phase) string {
	var notes []string
	if ph.Kind != string(run.Load) {
		return ""
	}
	if ph.Model == "closed" {
		notes = append(notes, "response excludes the waiting an open load would see")
		for _, o := range ph.Op {
			if len(o.Acks) > 1 {
				notes = append(notes, "acks do not predict other W and R in a closed load")
				break
			}
		}
	}
	if get := ph.Op["get"]; get != nil && get.OK == 0 && get.Miss > 0 {
		notes = append(notes, "no get found its key: have a phase with populate {} before, or a setup, if the keys were to be there")
	}
	return strings.Join(notes, "; ")
}

// inCluster says whether the target was one.
func inCluster(ph *run.Phase) bool { return ph.Target.Placement == "slots" }

// unused lists the nodes of a cluster that nothing was for: replicas, as a rule.
func unused(ph *run.Phase) (idle []string) {
	if !inCluster(ph) {
		return nil
	}
	used := map[string]bool{}
	for _, r := range ph.Requests {
		used[r.Endpoint] = used[r.Endpoint] || r.Sent+r.Refused > 0
	}
	for _, e := range ph.Target.Endpoints {
		if !used[e] {
			idle = append(idle, e)
		}
	}
	return idle
}

// requests lists what was sent to each endpoint, by verb.
func (p *page) requests(ph *run.Phase) {
	var endpoints []string
	lines := map[string][]string{}
	idle := unused(ph)
	for _, r := range ph.Requests {
		if slices.Contains(idle, r.Endpoint) {
			continue
		}
		if _, there := lines[r.Endpoint]; !there {
			endpoints = append(endpoints, r.Endpoint)
		}
		text := r.Verb + " " + count(r.Sent) + " sent"
		for _, n := range []struct {
			name string
			n    uint64
		}{{"moved", r.Moved}, {"ask", r.Ask}, {"timeout", r.Timeout}, {"error", r.Error}, {"refused", r.Refused}, {"in flight", uint64(r.InFlight)}} {
			if n.n > 0 {
				text += ", " + count(n.n) + " " + n.name
			}
		}
		lines[r.Endpoint] = append(lines[r.Endpoint], text)
	}
	wide := 0
	for _, e := range endpoints {
		wide = max(wide, columns(e))
	}
	for i, e := range endpoints {
		label := "requests"
		if i > 0 {
			label = ""
		}
		if i == maxEndpoints {
			p.item(label, "and "+plural(len(endpoints)-i, "other endpoint"))
			break
		}
		p.line("  %s%s  %s", left(label, labelWidth), left(e, wide), strings.Join(lines[e], "; "))
	}
	if len(idle) > 0 {
		p.item("", "none to "+plural(len(idle), "other node"))
	}
}

func (p *page) generator(ph *run.Phase) {
	if ph.Generator.Executor == "" {
		return
	}
	p.items("generator", ", ", generatorOf(ph)...)
	p.items("", ", ", oddOf(ph)...)
}

// generatorOf says what the generator spent, and what kept it from running.
func generatorOf(ph *run.Phase) []string {
	g := ph.Generator
	parts := []string{g.Executor + " × " + count(g.Loops), "busy " + quantity.Percent(g.Busy)}
	if w := g.RunQueueWait; w != nil && *w >= 0.001 {
		parts = append(parts, "waited "+quantity.Percent(*w)+" for a processor")
	}
	if i := g.Interrupted; i != nil && i.Seconds >= 0.0005*ph.Load.DurationSeconds && i.Times > 0 {
		parts = append(parts, "kept from it "+plural(i.Times, "time")+" for "+quantity.Duration(i.Seconds)+", at most "+quantity.Duration(i.MaxSeconds))
	}
	if ph.OpCostSeconds != nil {
		parts = append(parts, quantity.Duration(*ph.OpCostSeconds)+" an op")
	}
	parts = append(parts, quantity.Duration(g.CPUSeconds)+" CPU", plural(g.GCCycles, "GC"), plural(g.Mallocs, "malloc"), size(g.MaxRSSBytes)+" resident")
	if t := g.Throttled; t != nil && t.Periods > 0 {
		parts = append(parts, "throttled "+plural(t.Periods, "time"))
	}
	if t := g.TCP; t != nil && t.Retransmits > 0 {
		parts = append(parts, plural(t.Retransmits, "TCP retransmit"))
	}
	return parts
}

// oddOf counts what does not happen as a rule.
func oddOf(ph *run.Phase) []string {
	var odd []string
	for _, n := range []struct {
		n    uint64
		noun string
	}{{ph.Reconnects, "reconnect"}, {ph.LateReplies, "late answer"}, {ph.Foreign, "foreign value"}, {ph.Stalls, "stall"}} {
		if n.n > 0 {
			odd = append(odd, plural(n.n, n.noun))
		}
	}
	if ph.Stalls > 0 {
		odd[len(odd)-1] += " of at most " + quantity.Duration(ph.MaxStallSeconds)
	}
	return odd
}
