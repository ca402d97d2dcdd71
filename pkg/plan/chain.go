package plan

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// ChainOp is the op of a phase with chains: gets of a chain's keys in order to the first that is not there. Puts of that key and the rest follow.
const ChainOp = "chain"

const (
	mooncakeForm = "mooncake" // of a trace of chains
	maxAhead     = 128
)

// Chain says what the chains of a trace are, and how they are carried out.
type Chain struct {
	Ahead    int   `json:"ahead"`              // most gets of a chain that are under way, or puts
	Spread   bool  `json:"spread,omitempty"`   // those of the same time are due between it and the next
	Keys     int64 `json:"keys,omitempty"`     // of all chains together; 0 if unknown, as the others
	Longest  int   `json:"longest,omitempty"`  // keys of the longest chain
	Below    int64 `json:"below,omitempty"`    // the numbers of all keys are lower
	Together int64 `json:"together,omitempty"` // most chains that have the same time
}

// Chain returns how the phase carries out chains; nil if it has none.
func (ph *Phase) Chain() *Chain {
	if t := ph.Trace(); t != nil {
		return t.Chain
	}
	return nil
}

// Ahead returns how many gets of a chain of the phase are under way at most; 0 if it has none.
func (ph *Phase) Ahead() int {
	if c := ph.Chain(); c != nil {
		return c.Ahead
	}
	return 0
}

// chain reads how the chains of a trace are carried out; nil if the plan does not say.
func (b *block) chain() *Chain {
	in := b.inner("chain")
	if in == nil {
		return nil
	}
	c := &Chain{Ahead: 8}
	in.Expect([]string{"ahead", "spread"}, nil)
	dialect.Integer(in.Block, "ahead", &c.Ahead)
	in.Flag("spread", &c.Spread)
	return c
}

// withoutTrace refuses chains in a load that replays no trace.
func (b *block) withoutTrace() {
	if in := b.inner("chain"); in != nil {
		b.r.Fault(in.At, in.Where+": no trace beside it", `Write trace { file = "trace.jsonl", form = "mooncake" } there: its lines are the chains.`)
	}
}

// chain checks the chains of a phase, if it has any.
func (v *validator) chain(ph *Phase, at part) {
	t, c := ph.Trace(), ph.Chain()
	at = at.in(ph.model())
	switch {
	case t == nil || c == nil && t.Form != mooncakeForm:
		return
	case c == nil:
		v.fault(at.where+`: a trace of form "mooncake" without a chain`, "Write chain { ahead = 8 } beside it: that many gets of a chain are under way.", at.path+".trace", at.path)
		return
	case t.Form != mooncakeForm:
		v.fault(fmt.Sprintf("%s: chain beside a trace of form %s", at.where, dialect.Quote(t.Form)), `Leave chain out, or write form = "mooncake": its lines are chains.`, at.path+".chain", at.path)
		return
	}
	path := at.path + ".chain"
	v.within(at.in("chain"), "ahead", int64(c.Ahead), 1, maxAhead)
	if n := c.Ahead * ph.Pipeline(); n > maxPipeline {
		v.fault(fmt.Sprintf("%s: ahead = %d of each of pipeline = %d chains", at.where, c.Ahead, ph.Pipeline()), fmt.Sprintf("Write less: a connection takes %d requests.", maxPipeline), path+".ahead")
	}
	if c.Spread && (ph.Open == nil || t.Even) {
		v.fault(at.where+": spread, and no times of a trace", "Leave spread out: it is for open { trace { … } } without a rate.", path+".spread")
	}
	if min(c.Keys, int64(c.Longest), c.Below, c.Together) < 0 {
		v.fault(at.where+": impossible attributes of chains", "Check the plan's text again.", path)
	}
	for _, target := range v.plan.Targets {
		if target.Op(ChainOp) != nil {
			v.fault(fmt.Sprintf("target %q: op %s, and phase %q has chains, whose op has that name", target.Name, dialect.Quote(ChainOp), ph.Name), "Give the op another name.", "target."+target.Name+".op."+ChainOp)
		}
	}
	if target := v.plan.Target(ph.Target); target != nil {
		d := driverNamed(v.drivers, target.Driver)
		_, wire := d.(driver.Wire)
		switch {
		case d == nil:
		case !wire || d.Outcomes(driver.Get) == nil || d.Outcomes(driver.Put) == nil || target.Op(driver.Get.String()) != nil || target.Op(driver.Put.String()) != nil:
			v.fault(fmt.Sprintf("%s: chain on target %q", at.where, target.Name), "Write a store whose driver has its own get and put, and connections that take several requests, such as redis.", path, "target."+target.Name)
		case target.Replication != nil || target.Retry != nil || clustered(target, d):
			v.fault(fmt.Sprintf("%s: chain on target %q, which has replication, retry or a cluster", at.where, target.Name), "Write a target without: a chain is over at the first key that is not there, and asks for no key twice.", path, "target."+target.Name)
		}
	}
	if data := v.plan.Dataset(ph.Dataset); data != nil {
		switch {
		case data.Keys.PerSession() || data.Keys.File != nil:
			v.fault(fmt.Sprintf("%s: chain with the keys of dataset %q", at.where, data.Name), "Write keys { count = 1M }, which all sessions share: the trace numbers them from 0.", path, "dataset."+data.Name+".keys")
		case c.Below > data.Keys.Count:
			v.fault(fmt.Sprintf("%s: the trace's keys go up to number %d, and dataset %q has %d", at.where, c.Below-1, data.Name, data.Keys.Count),
				fmt.Sprintf("Write keys { count = %d } or more.", c.Below), "dataset."+data.Name+".keys.count", path)
		}
	}
}

// chains reports whether any phase has chains.
func (p *Plan) chains() bool {
	return slices.ContainsFunc(p.Phases, func(ph *Phase) bool { return ph.Chain() != nil })
}
