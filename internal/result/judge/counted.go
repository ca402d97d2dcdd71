package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// lookWithin is how long a server may take to say what it has counted.
const lookWithin = time.Second

// Look is what a run asks an endpoint before and after each phase, without being told to: what its server has counted.
type Look struct {
	*plan.Observe
	Endpoint string
}

// Looks lists the looks at a plan's targets.
func Looks(p *plan.Plan, endpoints func(t *plan.Target) []string) (all []Look) {
	for _, t := range p.Targets {
		c := servers.Of(t.Driver).Counts
		if c == nil || c.Verbs == nil || c.Own == "" && t.Ops != nil {
			continue
		}
		names := slices.Concat([]string{c.All, c.Misses, c.Copies}, c.Steady, c.Resets, c.Ages)
		for _, command := range slices.Concat(slices.Collect(maps.Values(c.Verbs)), slices.Collect(maps.Values(c.Batches))) {
			names = append(names, command.Counters...)
		}
		for _, own := range slices.AppendSeq(slices.Clone(c.Several), maps.Values(ownCommands(t))) {
			if command, ok := c.Of("", own, false); ok {
				names = append(names, command.Counters...)
			}
		}
		slices.Sort(names)
		var fields []plan.Field
		for _, name := range slices.Compact(names) {
			if name != "" {
				fields = append(fields, plan.Field{Name: name})
			}
		}
		for _, e := range endpoints(t) {
			all = append(all, Look{&plan.Observe{Name: lookName(t.Name, e), Kind: plan.ObserveCounts, Target: t.Name, Combine: "sum", Fields: fields, Timeout: lookWithin}, e})
		}
	}
	return all
}

// lookName returns the name of a look's observation, which no plan can give.
func lookName(target, endpoint string) string { return "counts of " + target + " at " + endpoint }

// ownCommands lists the commands of the ops that the plan words, by op.
func ownCommands(t *plan.Target) map[string]string {
	all := map[string]string{}
	for _, o := range t.Ops {
		all[o.Name] = o.Command
	}
	return all
}

// recount holds what a target's servers counted beside what loadgen did.
type recount struct {
	driver   string
	why      string // why nothing can be said; "" if something can
	calls    []run.Commanded
	late     uint64 // requests of before that servers may have carried out since
	lost     bool   // connections were lost, so that nobody knows what was carried out
	misses   uint64 // reads of absent keys, as loadgen knows them
	absent   uint64 // the same, as the servers know them; 0 if they do not say
	reads    uint64
	readers  []string // the commands that read, and the paths of their figures
	touches  []string
	silent   bool    // nobody counted connections
	dialed   uint64  // connections with which the servers were asked, after the first
	together uint64  // commands of all clients that are none of loadgen's ops
	items    float64 // how many keys they held at the end
}

// recount compares what a phase's servers counted with load, what loadgen did in all steps together.
func (p *phase) recount(whole *plan.Plan, ph *plan.Phase, m *Measured, load *measure.Totals) {
	if len(m.Levels) > 0 { // p has the counts of one level, or none
		p.counts = &counts{Measured: *m, plan: whole, phase: ph}
	}
	if m.GoesOn {
		return
	}
	for _, t := range p.targets() {
		r := p.recountOf(whole.Target(t.Name), &t, load)
		if r == nil {
			continue
		}
		p.recounts = append(p.recounts, r)
		p.Counted = append(p.Counted, run.Counted{Target: t.Name, Said: r.said(), Calls: append([]run.Commanded{}, r.calls...)})
	}
}

// recountOf returns the recount of one target; nil if nobody asked its servers.
func (p *phase) recountOf(t *plan.Target, at *run.Target, load *measure.Totals) *recount {
	c := servers.Of(t.Driver).Counts
	if c == nil {
		return nil
	}
	r := &recount{driver: t.Driver, lost: p.AwaySeconds > 0}
	risen, looks := map[string]uint64{}, uint64(0)
	if c.Verbs == nil { // the plan observes it; each observation is a request, too
		i := slices.IndexFunc(p.counts.plan.Observes, func(o *plan.Observe) bool { return o.Kind == plan.ObserveServer && o.Target == t.Name })
		if i < 0 {
			return nil
		}
		seen := p.counts.Observed[p.counts.plan.Observes[i].Name]
		if r.why = r.look(c, seen, risen); r.why == "" {
			looks = uint64((seen.taken - 1) * len(t.Endpoints))
		}
		if risen[c.All] >= looks {
			risen[c.All] -= looks
		}
	} else if !p.looks(r, c, t, at, risen) {
		return nil
	}
	for _, before := range p.counts.Earlier {
		r.late += before.Unanswered
	}
	if p.Setup != nil {
		r.late += (&run.Phase{Requests: p.Setup.Requests}).Unanswered()
	}
	switch {
	case r.why != "":
	case len(p.counts.Losses) > 0:
		r.why = "a worker was lost"
	case len(p.oneServer()) > 0:
		r.why = "endpoints lead to one server"
	case slices.ContainsFunc(t.Ops, func(o *plan.Op) bool { return slices.Contains(c.Several, strings.ToLower(o.Command)) }):
		r.why = "an op may carry out several commands"
	}
	if r.why == "" {
		p.enter(r, c, t, risen, load)
		p.aged(r, c, t, risen)
	}
	return r
}

// coarse is the age in seconds below which an LRU whose clock counts seconds is far from one: it evicts nearly at random.
const coarse = 10

// aged notes that a server has evicted keys that were too young for its clock. Built-in nodes have none: their order is exact.
func (p *phase) aged(r *recount, c *servers.Counts, t *plan.Target, risen map[string]uint64) {
	if c.Ages == nil || t.Builtin != nil || risen[c.Ages[0]] == 0 || r.items == 0 {
		return
	}
	evicted := risen[c.Ages[0]]
	if age := r.items * p.Seconds / float64(evicted); age < coarse {
		p.Notes = append(p.Notes, fmt.Sprintf("%s evicted %s, on average %s after they came: its LRU clock counts seconds, so that below %d s it chooses nearly at random, and hits are fewer than an LRU's",
			r.driver, quantity.Count(evicted, "key"), quantity.Duration(age), coarse))
	}
}

// oneServer lists endpoints of all targets that lead to one server.
func (p *phase) oneServer() [][]string {
	var endpoints []string
	facts := map[string]map[string]string{}
	for _, t := range p.targets() {
		for _, e := range t.Endpoints {
			name := lookName(t.Name, e)
			endpoints, facts[name] = append(endpoints, name), p.counts.Servers[t.Name][e]
		}
	}
	return worker.OneServer(endpoints, facts)
}

// looks adds the looks at a target's endpoints. It returns false if there were none.
func (p *phase) looks(r *recount, c *servers.Counts, t *plan.Target, at *run.Target, risen map[string]uint64) (any bool) {
	asked := map[string]bool{}
	for _, e := range at.Endpoints {
		seen := p.counts.Observed[lookName(t.Name, e)]
		if seen == nil || seen.first == nil {
			continue
		}
		asked[e] = true
		if why := r.look(c, seen, risen); why != "" {
			r.why = why
			continue
		}
		facts := map[string]map[string]string{}
		if is := p.counts.Servers[t.Name][e]; is != nil { // the workers know who it is
			facts[e] = maps.Clone(is)
		}
		for _, probe := range []*run.Probe{seen.first, seen.last} {
			worker.MergeServers(facts, map[string]map[string]string{e: probe.Is}, "")
		}
		if facts[e][worker.Elsewhere] != "" {
			r.why = "it was restarted, or the coordinator reached another server than the workers"
		}
	}
	for _, q := range p.Requests {
		if q.Target == t.Name && q.Sent > 0 && !asked[q.Endpoint] && r.why == "" {
			r.why = "not all its servers were asked"
		}
	}
	return len(asked) > 0
}

// look adds what counters rose by, or says why that is not known.
func (r *recount) look(c *servers.Counts, seen *Observation, risen map[string]uint64) (why string) {
	switch {
	case seen == nil || seen.first == nil || seen.last == nil:
		return "the run had ended"
	case seen.first.Missing[""] != "":
		return seen.first.Missing[""]
	case seen.last.Missing[""] != "":
		return seen.last.Missing[""]
	case seen.failed > 0:
		return "some observations failed"
	}
	if seen.sums[c.Copies] != nil {
		return "it copies what another server is asked"
	}
	for name, before := range seen.first.Value {
		now, there := seen.last.Value[name]
		switch {
		case !there, now < before && (c.Verbs != nil || name == c.All), now != before && slices.Contains(c.Resets, name):
			return "its counters began anew"
		}
		risen[name] += uint64(max(now-before, 0))
	}
	r.dialed += seen.last.Dialed - min(seen.last.Dialed, seen.first.Dialed)
	for _, name := range c.Ages[min(1, len(c.Ages)):] {
		r.items += seen.last.Value[name]
	}
	return ""
}

// connections compares how many were opened.
func (r *recount) connections(links *measure.Connections, name string, risen map[string]uint64) {
	all, told := risen[name]
	if r.silent = links != nil && name != "" && !told; links == nil || all == 0 {
		return
	}
	n := all - min(all, r.dialed) + links.Before // the servers were asked when these were open
	r.calls = append(r.calls, run.Commanded{Command: "connect", Sent: links.Opened, Answered: links.Opened, Counted: n, Own: r.dialed})
}

// enter compares command by command.
func (p *phase) enter(r *recount, c *servers.Counts, t *plan.Target, risen map[string]uint64, load *measure.Totals) {
	at, read, own, ours, batch := map[string]int{}, map[string]bool{}, ownCommands(t), uint64(0), p.counts.phase.Batch > 1
	for _, q := range p.Requests {
		if q.Target != t.Name {
			continue
		}
		ours += q.Sent
		command, known := c.Of(q.Verb, own[q.Verb], batch)
		if c.Verbs == nil {
			command, known = servers.Command{Name: "requests", Counters: []string{c.All}}, true
		}
		n := uint64(0)
		for _, counter := range command.Counters {
			n += risen[counter]
		}
		if !known || n == 0 { // a server that counts nothing of a command does not count it
			continue
		}
		i, there := at[command.Name]
		if !there {
			i, at[command.Name] = len(r.calls), len(r.calls)
			r.calls = append(r.calls, run.Commanded{Command: command.Name, Counted: n})
		}
		r.calls[i].Sent += q.Sent
		r.calls[i].Answered += q.Answered
		v, _ := p.words.Verb(q.Verb)
		if chain, _ := p.words.Verb(plan.ChainOp); v == driver.Get && p.counts.phase.Chain() != nil && load.Ops[chain] != nil {
			r.chain(&q, &load.Ops[chain].Keys, command.Name)
			continue
		}
		o := load.Ops[v]
		if o == nil || read[q.Verb] || len(p.Others) > 0 || t.Replication != nil || v != driver.Get && (own[q.Verb] == "" || !t.Op(q.Verb).Reads) {
			continue
		}
		ended := o.Outcomes
		if batch {
			ended = o.Keys.Outcomes
		}
		read[q.Verb] = true
		r.misses, r.reads = r.misses+ended[driver.Miss], r.reads+ended[driver.OK]+ended[driver.Miss]
		r.readers, r.touches = append(r.readers, command.Name), append(r.touches, "op."+q.Verb)
	}
	defer r.connections(load.Links, c.Dials, risen)
	for _, several := range c.Several {
		if command, ok := c.Of("", several, false); ok && risen[command.Counters[0]] > 0 && !batch {
			return // who knows how many keys they read
		}
	}
	if r.absent = risen[c.Misses]; risen[c.All] > ours {
		r.together = risen[c.All] - ours
	}
	for _, command := range r.calls {
		r.together = max(r.together, command.Counted-min(command.Counted, command.Sent))
	}
}

// chain enters the gets of chains: those that found their keys are counted by keys.
func (r *recount) chain(q *run.Requests, keys *measure.Keys, command string) {
	if r.readers == nil {
		r.readers, r.touches = []string{command}, []string{"op." + plan.ChainOp}
		r.misses = -(keys.Outcomes[driver.OK] + keys.Wasted)
	}
	r.misses, r.reads = r.misses+q.Answered, r.reads+q.Answered
}

// said says what the recount shows, in words.
func (r *recount) said() string {
	if r.why != "" {
		return "once: " + r.why
	}
	var same, other []string
	for _, c := range r.calls {
		if c.Counted == c.Sent || c.Counted == c.Answered {
			text := quantity.Thousands(c.Counted) + " " + c.Command
			if c.Own > 0 {
				text += " (and " + quantity.Thousands(c.Own) + " of loadgen's own)"
			}
			same = append(same, text)
			continue
		}
		other = append(other, fmt.Sprintf("%s counted %s %s, loadgen sent %s, of which %s were answered",
			r.driver, quantity.Thousands(c.Counted), c.Command, quantity.Thousands(c.Sent), quantity.Thousands(c.Answered)))
	}
	if r.lost && len(other) > 0 {
		other = append(other, "connections were lost")
	}
	if len(same) > 0 {
		other = slices.Insert(other, 0, r.driver+" counted the same "+strings.Join(same, ", "))
	}
	if len(other) == 0 {
		return "once: " + r.driver + " counts none of these requests"
	}
	if r.silent {
		other = append(other, "nobody else counted connections")
	}
	return "twice: " + strings.Join(other, "; ")
}
