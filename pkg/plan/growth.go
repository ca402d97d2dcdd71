package plan

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Growth records the latency of a closed load by ordinal: the position, from 1, in which an op or a scenario is due in its phase. It shows how
// an op's cost grows with the number of ops.
type Growth struct {
	To int64 `json:"to"` // number of ops to predict the time of; 0 for no more than were run
}

// growth reads the phase's growth block; nil if it has none.
func (b *block) growth() *Growth {
	in := b.inner("growth")
	if in == nil {
		return nil
	}
	g := new(Growth)
	in.Expect([]string{"to"}, nil)
	dialect.Integer(in.Block, "to", &g.To)
	if g.To == 0 {
		in.notZero("to", "0 ops take no time", "Write how many ops to say the time of, such as 100000, or leave it out.")
	}
	return g
}

// growth checks that ops have ordinals, and the number of ops asked about.
func (v *validator) growth(ph *Phase, at part) {
	g := ph.Growth
	if g == nil {
		return
	}
	in := at.in("growth")
	if g.To != 0 {
		v.within(in, "to", g.To, 1, maxIterations)
	}
	switch {
	case ph.Closed == nil:
		v.fault(at.where+": growth of a load that is not closed",
			"Write closed { … }: an op's time is its cost only if the next op waits for it. In an open load, ops wait for each other, too.", in.path)
	case ph.Closed.Trace != nil:
		v.fault(at.where+": growth of a trace", "Leave growth out: whose turn it is in a trace is decided as it goes.", in.path)
	}
}

// elements returns the most elements that a growing field of the dataset's records gets: one per put of the key in a step. It is 0 if the
// number of a step's puts is not bounded.
func (p *Plan) elements(d *Dataset) (most int64) {
	for _, ph := range p.Phases {
		if ph.Dataset != d.Name || !ph.puts() {
			continue
		}
		n := int64(1)
		if c := ph.Closed; c == nil && ph.Populate == nil || c != nil && c.Iterations == 0 {
			return 0
		} else if c != nil {
			n = multiply(c.Iterations, int64(ph.putsEach()))
		}
		most = max(most, n)
	}
	return max(most, 1) // 1: the records of a setup
}

// puts reports whether the load stores anything.
func (ph *Phase) puts() bool { return slices.ContainsFunc(ph.Ops, Weight.stores) }

// stores reports whether an op may store a value. The plan's own may.
func (w Weight) stores() bool {
	verb, known := everyStores(w.Op)
	return !known || verb.Stores()
}

// putsEach returns the most values that one iteration of a session stores.
func (ph *Phase) putsEach() int {
	most := 1
	for _, s := range ph.Scenarios {
		n := 0
		for _, step := range s.Steps {
			if (Weight{Op: step.Op}).stores() {
				n += step.Repeat()
			}
		}
		most = max(most, n)
	}
	return most
}

// grown checks a phase whose dataset has growing records. A session counts the puts of its key, so it must have exactly one.
func (v *validator) grown(ph *Phase, d *Dataset, at part) {
	if d.Values.Elements == 0 {
		return
	}
	path := "dataset." + d.Name
	switch own := d.Keys.PerSession() || ph.Sessions() == 1; {
	case d.Keys.Count != 1 || !own:
		v.fault(fmt.Sprintf("%s: a record that grows, and not one key for each session", at.where),
			`Write keys { count = 1 }, with scope = "session" where there are several sessions: a record grows with each put of its key, which one session counts.`,
			path+".keys.count", path+".keys", at.path)
	case ph.Trace() != nil:
		v.fault(at.where+": a trace of records that grow", "Leave grow out of the record's types.", path+".values.record", at.path)
	case ph.puts() && ph.Closed != nil && (ph.Closed.Iterations == 0 || multiply(ph.Closed.Iterations, int64(ph.putsEach())) > d.Values.Elements):
		v.fault(fmt.Sprintf("%s: more puts than the %d elements that records grow to", at.where, d.Values.Elements), "Write iterations.", at.path+".closed", at.path)
	case ph.puts() && ph.Closed == nil && ph.Populate == nil:
		v.fault(at.where+": a record that grows in a load that is not closed", "Write closed { iterations = … }: then it is known how large records get.", at.path)
	}
}
