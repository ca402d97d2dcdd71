package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// oneWriter is the Writers of keys that only one session puts.
const oneWriter = "one"

// maxFollowed bounds the keys whose acknowledged versions workers keep, at 32 bytes each.
const maxFollowed = 4_000_000

// maxRead bounds keys × sessions where staleness is measured, at 8 bytes each.
const maxRead = 16_000_000

// OneWriter reports whether only one session puts each key: with S sessions, session s puts the keys whose number modulo S is s.
func (k *Keys) OneWriter() bool { return k.Writers == oneWriter }

// Holder returns the target whose servers hold the values that a phase puts: its own or, if that reads through a cache, the source.
func (p *Plan) Holder(ph *Phase) string {
	if t := p.Target(ph.Target); t != nil && t.Source != "" {
		return t.Source
	}
	return ph.Target
}

// Follows reports whether workers keep the acknowledged versions of the keys that a phase puts or deletes, because it or a later phase compares them
// with what is read.
func (p *Plan) Follows(ph *Phase) bool { return p.follower(ph) != nil }

// follower returns the phase that compares what a phase, possibly itself, writes with what is read; nil if there is none.
func (p *Plan) follower(ph *Phase) *Phase {
	i := slices.Index(p.Phases, ph)
	if i < 0 || !ph.compares() && !ph.writes() {
		return nil
	}
	for _, later := range p.Phases[i:] {
		if later.compares() && later.Dataset == ph.Dataset && p.Holder(later) == p.Holder(ph) {
			return later
		}
	}
	return nil
}

// compares reports whether a phase compares what it reads with what was acknowledged.
func (ph *Phase) compares() bool { return ph.Verify != nil || ph.Staleness }

// writes reports whether a phase puts or deletes keys other than to clear them.
func (ph *Phase) writes() bool {
	return ph.Clear == nil && weightOf(ph.Ops, driver.Put)+weightOf(ph.Ops, driver.Delete) > 0
}

// firstFollowed returns the first phase that writes the keys that a phase writes.
func (p *Plan) firstFollowed(ph *Phase) *Phase {
	for _, first := range p.Phases {
		if first.writes() && first.Dataset == ph.Dataset && p.Holder(first) == p.Holder(ph) {
			return first
		}
	}
	return ph
}

// defaultSessions gives a verify as many sessions as the phases that it verifies have. A populate among these that sets none gets as many as the
// others have.
func (p *Plan) defaultSessions(places map[string]hcl.Range) {
	for _, ph := range p.Phases {
		if !ph.compares() {
			continue
		}
		var silent []*Phase
		n := 0
		for _, other := range p.Phases {
			if other == ph && ph.Verify != nil || p.follower(other) != ph {
				continue
			}
			if _, written := places["phase."+other.Name+".populate.sessions"]; other.Populate != nil && !written {
				silent = append(silent, other)
			} else if n == 0 {
				n = other.Sessions()
			}
		}
		for _, other := range silent {
			other.Populate.Sessions = cmp.Or(n, other.Populate.Sessions)
		}
		if ph.Verify != nil {
			ph.Verify.Sessions = max(1, p.firstFollowed(ph).Sessions())
		}
	}
}

// writers checks keys that only one session puts.
func (v *validator) writers(at part, k *Keys) {
	if k.Writers == "" {
		return
	}
	path := at.path + ".writers"
	v.oneOf(at, "writers", k.Writers, oneWriter)
	switch {
	case k.PerSession():
		v.fault(at.where+`: writers = "one" in session pools`, `Leave writers out, or write scope = "shared": only its own session puts the keys of a pool.`, path, at.path+".scope")
	case k.Pick == latestPick:
		v.fault(at.where+`: writers = "one", and the latest keys`, `Write pick = "uniform", or another that draws from a fixed number of keys.`, path, at.path+".pick")
	}
}

// single checks that each key of a phase can have a single writer.
func (v *validator) single(ph *Phase, d *Dataset, at part) {
	pools := d.Keys.PerSession() && v.plan.Follows(ph)
	if !d.Keys.OneWriter() && !pools || ph.Clear != nil || ph.Verify != nil { // a verify has the sessions of another phase
		return
	}
	writers := "dataset." + d.Name + ".keys.writers"
	of := fmt.Sprintf(`%s: a single writer for each key of dataset %s`, at.where, dialect.Quote(d.Name))
	switch {
	case !pools && int64(ph.Sessions()) > d.Keys.Count && ph.Sessions() <= maxSessions:
		v.fault(fmt.Sprintf("%s, and %d sessions for %d keys", of, ph.Sessions(), d.Keys.Count), "Write fewer sessions, or more keys: each session puts keys of its own.",
			at.path+"."+ph.model()+".sessions", at.path, "dataset."+d.Name+".keys.count", writers)
	case len(ph.Scenarios) > 0:
		v.fault(of+", and scenarios", "Write ops = { get = 9, put = 1 }, or another mix, instead of scenarios, or leave writers out.", at.path, writers)
	case ph.Trace() != nil:
		v.fault(of+", and a trace", "Leave writers out: a trace says itself who puts what.", at.path, writers)
	case ph.OnMiss != "":
		v.fault(of+", and on_miss", "Leave one of them out: with on_miss, every session puts what it does not find.", at.path+".on_miss", writers)
	}
}

// follow checks a phase whose writes are followed: a value that is read later must identify its write.
func (v *validator) follow(ph *Phase, d *Dataset, t *Target, at part) {
	by := v.plan.follower(ph)
	if by == nil {
		return
	}
	why := fmt.Sprintf("phase %s compares what is read with what was put", dialect.Quote(by.Name))
	if by == ph {
		why = "it compares what is read with what was put"
	}
	fault := func(what, write string, about ...string) {
		v.fault(fmt.Sprintf("%s: %s, and %s", at.where, what, why), write, append(about, at.path)...)
	}
	if by == ph {
		v.followed(ph, d, fault)
	}
	if first := v.plan.firstFollowed(ph); first.Sessions() != ph.Sessions() {
		fault(fmt.Sprintf("%d sessions where phase %s has %d", ph.Sessions(), dialect.Quote(first.Name), first.Sessions()),
			fmt.Sprintf("Write sessions = %d in both, or another number: a key has the same writer in all phases.", first.Sessions()), at.path+"."+ph.model()+".sessions")
	}
	v.staleness(ph, d, fault, at)
	if ph.Batch > 1 {
		fault(fmt.Sprintf("ops of %d keys", ph.Batch), "Leave batch out.", at.path+".batch")
	}
	for _, w := range ph.Ops {
		if verb, store := everyStores(w.Op); !store || verb != driver.Get && verb != driver.Put && verb != driver.Delete || t.Op(w.Op) != nil {
			fault("op "+dialect.Quote(w.Op), "Write ops with get, put and delete alone, which the driver has, not the plan.", at.path+".ops")
		}
	}
	v.ordered(ph, t, fault, at)
}

// staleness checks a phase that measures it.
func (v *validator) staleness(ph *Phase, d *Dataset, fault func(what, write string, about ...string), at part) {
	path := at.path + ".staleness"
	switch all := multiply(d.Keys.Count, int64(ph.Sessions())); {
	case !ph.Staleness:
	case ph.Levels() == 0 || ph.Search != nil || weightOf(ph.Ops, driver.Get) == 0:
		v.fault(at.where+": staleness without gets, or of a search", "Leave staleness out, or write closed, open or stages with ops that have get.", path, at.path+".ops")
	case all > maxRead:
		fault(fmt.Sprintf("%d keys with %d sessions", d.Keys.Count, ph.Sessions()),
			fmt.Sprintf("Write fewer: workers keep what each session has read of each key, and keys × sessions may be %d at most.", maxRead), "dataset."+d.Name+".keys.count", path)
	}
}

// followed checks a dataset whose writes are followed.
func (v *validator) followed(ph *Phase, d *Dataset, fault func(what, write string, about ...string)) {
	data := "dataset." + d.Name
	pools := ph.Staleness && d.Keys.PerSession()
	if !d.Keys.OneWriter() && !pools {
		fault("several sessions put a key of dataset "+dialect.Quote(d.Name), `Write writers = "one" in its keys, with scope = "shared": then the order of a key's puts is known.`, data+".keys.writers", data+".keys")
	}
	if !d.Values.Checked {
		fault("values of dataset "+dialect.Quote(d.Name)+" are not checked", "Write checked = true in its values: checked values hold the versions.", data+".values.checked", data+".values")
	}
	if d.Values.TTL > 0 {
		fault(fmt.Sprintf("values have a ttl of %s", d.Values.TTL), "Leave ttl out: a value that has expired is not lost.", data+".values.ttl")
	}
	all := d.Keys.Count
	if pools {
		all = multiply(all, int64(ph.Sessions()))
	}
	if all > maxFollowed {
		fault(fmt.Sprintf("dataset %s has %d keys", dialect.Quote(d.Name), all),
			fmt.Sprintf("Write count = %d or fewer: workers keep 32 bytes for each.", maxFollowed), data+".keys.count")
	}
}

// ordered checks that a target keeps values and that a session's puts of one key reach it in the order in which they were made.
func (v *validator) ordered(ph *Phase, t *Target, fault func(what, write string, about ...string), at part) {
	holder := v.plan.Target(v.plan.Holder(ph))
	if holder == nil {
		return
	}
	d := driverNamed(v.drivers, holder.Driver)
	if _, timed := d.(driver.Timed); timed || holder.Executor == Thread {
		fault(fmt.Sprintf("target %s does not give back values", dialect.Quote(holder.Name)), "Write a target of another driver, such as redis.", at.path+".target")
		return
	}
	if ph.Verify != nil {
		if first := v.plan.firstFollowed(ph); first == ph || slices.Index(v.plan.Phases, first) > slices.Index(v.plan.Phases, ph) {
			v.fault(fmt.Sprintf("%s: no phase before it puts keys of dataset %s on target %s", at.where, dialect.Quote(ph.Dataset), dialect.Quote(ph.Target)),
				"Write it after the phases whose puts it is to find, with their dataset and target.", at.path+".verify", at.path)
		}
		if t.Source != "" {
			fault("target "+dialect.Quote(t.Name)+" may answer from its cache", "Write target = target."+t.Source+": the source has what was put.", at.path+".target")
		}
		return
	}
	_, dials := d.(driver.Dialer)
	why := "over several connections"
	if holder.Retry != nil {
		why = "that may be tried again"
	}
	if apart := dials || clustered(holder, d) || holder.Retry != nil; apart && ph.Pipeline() > 1 {
		fault(fmt.Sprintf("a session has %d ops in flight %s", ph.Pipeline(), why),
			"Write pipeline = 1: otherwise puts of one key may overtake each other.", at.path+"."+ph.model()+".pipeline", at.path+"."+ph.model())
	}
}
