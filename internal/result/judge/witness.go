package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// invariant is one row of the table of what must hold between two counts that come about independently. docs/truth.md shows the table.
type invariant struct {
	code   reason.Code
	holds  string                // what must hold
	silent string                // when it says nothing
	always bool                  // also for steps that are not timed, and loads whose setup fell short
	whole  bool                  // of the phase as a whole, not of each of its levels
	broken func(*phase) []breach // none if it holds, or is silent
}

// breach is a disagreement of two counts. If it is valid, it is only a note.
type breach struct {
	validity run.Validity
	touches  []string
	text     string
}

// breached makes the result of an invariant that is broken once.
func breached(v run.Validity, touches []string, format string, args ...any) []breach {
	return []breach{{v, touches, fmt.Sprintf(format, args...)}}
}

// invariants is the table, the most important first. To add a row is to add an entry.
func invariants() []invariant {
	return []invariant{
		{
			reason.Ledgers, "the counts of ops and of requests, by how they ended, add up to those that began",
			"", true, false, (*phase).unbalanced,
		},
		{
			reason.ForeignValues, "every value that was read is one that loadgen wrote",
			"values are not checked", false, false, (*phase).foreign,
		},
		{
			reason.LostWrites, "a `verify` finds every write that was acknowledged",
			"it says `expect_lost = true`", true, false, (*phase).lostWrites,
		},
		{
			reason.CacheAway, "the cache answers every get that reads through it",
			"the cache is loadgen's own", false, false, (*phase).cacheAway,
		},
		{
			reason.CountsDisagree, "a cache's loads are no more than the gets that were sent to its source",
			"the phase has several caches, or batches", false, false, (*phase).loadsUnsent,
		},
		{
			reason.AllMissed, "some of 100 answered reads find what they ask for",
			"the phase has `on_miss`; with `expect_hits = 0` it is only a note", false, false, (*phase).allMissed,
		},
		{
			reason.WrongValues, "no value that was read names another key",
			"values name no key: byte fills, records, files, text below 16 bytes, checked values below 28", true, false, (*phase).misplaced,
		},
		{
			reason.AnotherRun, "no value that was read is another run's",
			"values are not checked or are below 28 bytes; this run has not put to the dataset; it put some of the keys only, and the value is older than this run", true, false, (*phase).anotherRun,
		},
		{
			reason.UnaskedBytes, "servers send nothing that no request asked for, up to 50 to 250 ms after the load",
			"after the load, if the servers are loadgen's own; before its end, of web servers over TLS", true, false, (*phase).unasked,
		},
		{
			reason.HitRatio, "the share of gets that hit is `hit_ratio`, by five standard deviations",
			"the phase has no `hit_ratio`", false, false, (*phase).missedMore,
		},
		{
			reason.WrongValues, "gets are answered with no less than the dataset's smallest values", "loadgen's own cache answers; it is only a note if the plan did not populate the dataset",
			false, false, (*phase).tooShort,
		},
		{
			reason.CountsDisagree, "each op is due as often as its share of `ops` says, by five standard deviations", "ops cause others, or a trace or scenarios say which is next",
			false, false, (*phase).sharesApart,
		},
		{
			reason.CountsDisagree, "servers count each request that was answered, and no more reads of absent keys than missed",
			"they refuse to say, began to count anew, lost connections, copy another server, or carry out commands that read several keys", true, true, (*phase).fewerCounted,
		},
		{
			reason.OthersBeside, "servers count no request that was not sent to them", "as above", true, true, (*phase).othersCounted,
		},
	}
}

// judgeWitnesses goes through the table: the rows of a phase as a whole, or the others.
func (p *phase) judgeWitnesses(d *doubts, whole bool) {
	for _, row := range invariants() {
		if row.whole != whole || !row.always && !p.timed() {
			continue
		}
		for _, b := range row.broken(p) {
			if b.validity == run.Valid {
				p.Notes = append(p.Notes, b.text)
				continue
			}
			d.add(row.code, b.validity, b.touches, "%s", b.text)
		}
	}
}

// unbalanced finds ops and requests that went missing.
func (p *phase) unbalanced() (all []breach) {
	c, touches := p.counts, append(p.all(), "requests", "setup")
	balance := func(of string, t *measure.Totals) {
		if err := t.CheckValid(); err != nil {
			all = append(all, breached(run.Invalid, touches, "the ledgers of %s do not balance: %s", of, strings.ReplaceAll(err.Error(), "\n", "; "))...)
		}
	}
	balance("the "+string(p.Kind), c.Load)
	if c.Setup != nil {
		balance("the setup", c.Setup)
	}
	if err := p.CheckRequests(); err != nil {
		all = append(all, breached(run.Invalid, touches, "%v", err)...)
	}
	return all
}

// foreign finds values that loadgen did not write.
func (p *phase) foreign() []breach {
	if p.Foreign == 0 {
		return nil
	}
	return breached(run.Suspect, p.each(latencyFigures, []string{"hit_ratio"}), "%s read were not written by loadgen", quantity.Count(p.Foreign, "value"))
}

// lostWrites finds acknowledged writes that are not there.
func (p *phase) lostWrites() []breach {
	v, ph := p.Verify, p.counts.phase
	if v == nil || v.Lost == 0 || ph.ExpectLost {
		return nil
	}
	where := ""
	if len(v.Examples) > 0 {
		one := &v.Examples[0]
		where = fmt.Sprintf(", one of them acknowledged after %s of phase %s", quantity.Duration(one.AckedSeconds), one.Phase)
		if one.Event != "" {
			where += ", near event " + one.Event
		}
	}
	away := 0.0
	for _, before := range p.counts.Earlier {
		away += before.Away
	}
	if away > 0 {
		where += fmt.Sprintf("; connections were away for %s before", quantity.Duration(away))
	}
	return breached(run.Invalid, []string{"verify"}, "%s of %s acknowledged writes are lost%s: if losses are what you look for, say verify { expect_lost = true }",
		quantity.Thousands(v.Lost), quantity.Thousands(v.Keys), where)
}

// invalidAway is the share of gets that a cache may leave unanswered before its figures are those of another system.
const invalidAway = 0.01

// cacheAway finds gets that went to the source because the cache was not there.
func (p *phase) cacheAway() []breach {
	c := p.Cache
	if c == nil || c.Unavailable == 0 {
		return nil
	}
	all, v := c.Gets+c.Unavailable, run.Suspect
	if float64(c.Unavailable) > invalidAway*float64(all) {
		v = run.Invalid
	}
	return breached(v, append(p.each(rateFigures(), latencyFigures), "cache"), "the cache did not answer %s of %s: the source did, and the figures are in part those of a load without the cache",
		quantity.Thousands(c.Unavailable), quantity.Count(all, "get"))
}

// disagreeApart is the share by which two counts of the same thing may differ, as at the moment a connection is lost.
const disagreeApart = 0.01

// loadsUnsent finds loads of a cache that never asked its source.
func (p *phase) loadsUnsent() []breach {
	ph, of := p.counts.phase, ""
	for _, t := range p.targets() {
		if source := p.counts.plan.Target(t.Name).Source; source != "" {
			if of != "" {
				return nil
			}
			of = source
		}
	}
	if p.Cache == nil || of == "" || ph.Batch > 1 {
		return nil
	}
	sent := uint64(0)
	for i := range p.Requests {
		if r := &p.Requests[i]; r.Target == of && r.Verb == driver.Get.String() {
			sent += r.Sent
		}
	}
	if sent == 0 || float64(p.Cache.Loads) <= (1+disagreeApart)*float64(sent) {
		return nil
	}
	return breached(run.Suspect, append(p.each(rateFigures(), latencyFigures), "cache"), "cache.loads is %s, but %s was sent %s: the others did not reach it",
		quantity.Thousands(p.Cache.Loads), of, quantity.Count(sent, "get"))
}

// fewReads is how many reads may all miss by chance, or because a load only tries something.
const fewReads = 100

// allMissed finds reads that never found what they asked for: the speed of such answers says nothing about others.
func (p *phase) allMissed() []breach {
	ph, misses := p.counts.phase, uint64(0)
	if ph.OnMiss != "" || ph.HitRatio != nil && *ph.HitRatio == 0 {
		return nil
	}
	var names, touches []string
	for _, o := range p.parts() {
		if !p.reads(o) || o.OK+o.Miss == 0 {
			continue
		}
		if o.OK > 0 {
			return nil
		}
		misses += o.Miss
		names, touches = append(names, o.name), append(touches, o.at)
	}
	what := fmt.Sprintf("%s: all %s missed", strings.Join(names, ", "), quantity.Count(misses, "read"))
	switch {
	case misses == 0:
		return nil
	case ph.ExpectHits != nil && *ph.ExpectHits == 0:
		return breached(run.Valid, nil, "%s, as expect_hits = 0 says", what)
	case misses < fewReads:
		return breached(run.Valid, nil, "%s: if the keys should be there, put them first, by a setup or a phase with populate {}", what)
	}
	return breached(run.Invalid, touches, "%s: this is the speed of keys that are not there: put them first, by a setup or a phase with populate {}, or say expect_hits = 0", what)
}

// reads says whether an op only reads, or may.
func (p *phase) reads(o part) bool {
	if !o.verb.Own() {
		return o.verb == driver.Get
	}
	return o.Miss > 0 && slices.ContainsFunc(p.targets(), func(t run.Target) bool {
		form := p.counts.plan.Target(t.Name).Op(p.words.Name(o.verb))
		return form != nil && !form.Stores
	})
}

// misplaced finds values of other keys.
func (p *phase) misplaced() []breach {
	if p.Misplaced == 0 {
		return nil
	}
	validity, gets := run.Suspect, uint64(0)
	if o := p.counts.Load.Ops[driver.Get]; o != nil {
		gets = o.Outcomes[driver.OK]
	}
	if float64(p.Misplaced) > p.counts.phase.MaxBad*float64(gets) {
		validity = run.Invalid
	}
	return breached(validity, p.each(latencyFigures, []string{"hit_ratio"}), "%s read belong to other keys: answers are mixed up, and times may be those of other requests",
		quantity.Count(p.Misplaced, "value"))
}

// anotherRun finds values of other runs where this one has put.
func (p *phase) anotherRun() []breach {
	if p.AnotherRun == 0 {
		return nil
	}
	return breached(run.Suspect, p.each(latencyFigures, []string{"hit_ratio"}), "%s read were written by another run, where this one puts: two load the same keys, or writes were lost and older ones are back",
		quantity.Count(p.AnotherRun, "value"))
}

// unasked finds answers to no request.
func (p *phase) unasked() (all []breach) {
	if n := p.Generator.Unasked.Alone; n > 0 {
		all = breached(run.Invalid, p.all(), "%s brought bytes that no request had asked for, after all its answers: they may be mixed up, and times be those of other requests",
			quantity.Count(n, "connection"))
	}
	if n := p.Generator.Unasked.Behind; n > 0 {
		all = append(all, breached(run.Suspect, p.all(), "no request had asked for the bytes behind %s: these count, and their connections were closed", quantity.Count(n, "whole answer"))...)
	}
	return all
}

// missedMore compares the hits with hit_ratio, the share of gets for keys of the dataset. By chance alone they differ by five standard deviations once
// in two million phases.
func (p *phase) missedMore() []breach {
	ph := p.counts.phase
	o := p.Op[driver.Get.String()]
	if ph.HitRatio == nil || o == nil || o.HitRatio == nil {
		return nil
	}
	asked, answered := *ph.HitRatio, float64(o.OK+o.Miss)
	if off := math.Abs(*o.HitRatio - asked); off <= 5*math.Sqrt(asked*(1-asked)/answered)+1/answered && (asked < 1 || off == 0) {
		return nil
	}
	return breached(run.Suspect, []string{"op.get"}, "get: %s were hits, but hit_ratio is %s, and chance does not explain the difference: check that all keys were put before, and that none was evicted or put by others",
		quantity.Percent(*o.HitRatio), quantity.Percent(asked))
}

// tooShort finds gets that cannot have read the dataset's values, since these are longer than what came.
func (p *phase) tooShort() []breach {
	ph, get := p.counts.phase, p.Op[driver.Get.String()]
	if get == nil || get.BytesIn == 0 || get.Keys.OK == 0 || p.Cache != nil || len(ph.Scenarios) > 0 || p.counts.plan.Target(ph.Target).Op(driver.Get.String()) != nil {
		return nil
	}
	least := p.counts.plan.Dataset(ph.Dataset).Values.LeastSize()
	if uint64(get.BytesIn) >= uint64(least)*get.Keys.OK {
		return nil
	}
	v := run.Valid
	if slices.ContainsFunc(p.counts.plan.Phases, func(other *plan.Phase) bool {
		return other.Populate != nil && other.Target == ph.Target && other.Dataset == ph.Dataset
	}) {
		v = run.Suspect
	}
	return breached(v, []string{"op.get"}, "gets were answered with %s on average, protocol included, but the dataset's values have at least %s: these are other values",
		quantity.Bytes(int64(uint64(get.BytesIn)/get.Keys.OK)), quantity.Bytes(int64(least)))
}

// sharesApart finds ops that were due more or less often than they should have been. By chance alone, one share in two million differs so far.
func (p *phase) sharesApart() []breach {
	ph, due, weights := p.counts.phase, 0.0, 0.0
	if len(ph.Scenarios) > 0 || len(ph.Behind) > 0 || ph.OnMiss != "" || p.Trace != nil {
		return nil
	}
	for _, w := range ph.Ops {
		if o := p.Op[w.Op]; o != nil {
			due, weights = due+float64(o.Due), weights+float64(w.Weight)
		}
	}
	for _, w := range ph.Ops {
		o, share := p.Op[w.Op], float64(w.Weight)/weights
		if o != nil && math.Abs(float64(o.Due)-share*due) > 5*math.Sqrt(due*share*(1-share))+1 {
			return breached(run.Suspect, p.all(), "%s was due %s of %s times, but its share of ops is %s", w.Op, quantity.Thousands(o.Due), quantity.Thousands(uint64(due)), quantity.Percent(share))
		}
	}
	return nil
}

// fewerCounted finds requests that were answered although no server counted them, and reads of keys that servers say are not there.
func (p *phase) fewerCounted() (all []breach) {
	for _, r := range p.recounts {
		for _, c := range r.calls {
			if missed := float64(c.Answered) - float64(c.Counted); missed > disagreeApart*float64(c.Answered) && !r.lost {
				all = append(all, breached(run.Suspect, p.all(), "%s %s were answered, but %s counted %s: something else answered the others",
					quantity.Thousands(c.Answered), c.Command, r.driver, quantity.Thousands(c.Counted))...)
			}
		}
		more := float64(r.absent) - float64(r.misses+r.together+r.late)
		if more <= disagreeApart*float64(r.reads) || r.reads < fewReads || r.lost {
			continue
		}
		text := fmt.Sprintf("%s of %s %s asked for absent keys, says the server", quantity.Thousands(min(r.absent-r.misses, r.reads)), quantity.Thousands(r.reads), strings.Join(r.readers, " and "))
		if ph := p.counts.phase; ph.ExpectHits != nil && *ph.ExpectHits == 0 {
			all = append(all, breached(run.Valid, nil, "%s", text)...)
			continue
		}
		all = append(all, breached(run.Suspect, r.touches, "%s: put them first, by a setup or a phase with populate {}, or say expect_hits = 0", text)...)
	}
	return all
}

// othersCounted finds requests that others sent.
func (p *phase) othersCounted() (all []breach) {
	for _, r := range p.recounts {
		for _, c := range r.calls {
			if more := float64(c.Counted) - float64(c.Sent+r.late); more > disagreeApart*float64(c.Sent) && !r.lost {
				all = append(all, breached(run.Suspect, p.all(), "others used the servers: %s counted %s %s, and loadgen sent %s",
					r.driver, quantity.Thousands(c.Counted), c.Command, quantity.Thousands(c.Sent))...)
			}
		}
	}
	return all
}
