package measure

import (
	"errors"
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// CheckValid compares independent counts. Both ledgers must balance for every verb, and for every endpoint and verb. Every op that ended must have a
// lag, a service time and a response time in its class, an end in its outcome's bins and, if it ended badly, a cause. The span must be in order.
// Stale gets and lost keys must be among those that were read. The error names everything that is wrong, by verb or by endpoint and verb, with both
// sides.
//
// It holds for a step and for every part of one. The caller must check that nothing is in flight at the end of a step.
func (t *Totals) CheckValid() error {
	var errs []error
	for v, o := range t.Ops {
		l := o.Ledger()
		if err := l.check(driver.Verb(v)); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, checkRequests(t.Requests)...)
	for v, o := range t.Ops {
		if o == nil {
			continue
		}
		if err := o.check(driver.Verb(v)); err != nil {
			errs = append(errs, err)
		}
		for i, stage := range o.Steps {
			if err := errors.Join(stage.ledger.check(driver.Verb(v)), stage.check(driver.Verb(v))); err != nil {
				errs = append(errs, fmt.Errorf("stage %d: %w", i+1, err))
			}
		}
	}
	for i, o := range t.Scenarios {
		at := place{scenario: i}
		errs = append(errs, o.ledger.check(at), o.check(at))
		for j, step := range o.Steps {
			at := place{i, j + 1}
			errs = append(errs, step.ledger.check(at), step.check(at))
		}
	}
	if len(t.Requests)%driver.NumVerbs != 0 {
		errs = append(errs, fmt.Errorf("%d request ledgers, want a multiple of %d", len(t.Requests), driver.NumVerbs))
	}
	if (t.Stalls == 0) != (t.MaxStall == 0) || t.MaxStall < 0 {
		errs = append(errs, fmt.Errorf("%d stalls, but the longest is %d ns", t.Stalls, t.MaxStall))
	}
	for _, err := range [...]error{t.Span.check(), t.Versions.check(), t.Links.check()} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// place names a scenario of a phase or, if step is not 0, one of its steps. Its text is made only on an error, since a coordinator checks every place
// every second.
type place struct{ scenario, step int }

func (p place) String() string {
	if p.step == 0 {
		return scenarioName(p.scenario)
	}
	return fmt.Sprintf("%s, step %d", scenarioName(p.scenario), p.step)
}

// check compares the latencies and bins of an op with its outcomes.
func (o *Op) check(name fmt.Stringer) error {
	var errs []error
	same := func(what string, got uint64, of string, want uint64) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s: %s %d, but %s %d", name, what, got, of, want))
		}
	}
	inBins := func(of string, bins *[driver.NumOutcomes]*Bins, outcomes *[driver.NumOutcomes]uint64) {
		for i, n := range outcomes {
			switch out, total := driver.Outcome(i), bins[i].Total(); {
			case out == driver.Shed && total != 0: // an op that never starts has no end
				same("ends"+of+" that were shed in bins", total, "want", 0)
			case out != driver.Shed && total != n:
				same("ends"+of+" in bins", total, out.String(), n)
			}
		}
	}
	inBins("", &o.Bins, &o.Outcomes)
	inBins(" by turn", &o.Turns, &o.Outcomes)
	var classes [NumClasses]uint64
	for i, n := range o.Outcomes {
		if out := driver.Outcome(i); out != driver.Shed {
			classes[classOf(out)] += n
		}
	}
	var causes, ended uint64
	for _, n := range o.Causes {
		causes += n
	}
	for i, n := range classes {
		ended += n
		name := Class(i).String()
		same("service times", o.Service[i].Count(), name, n)
		same("response times", o.Response[i].Count(), name, n)
	}
	var sorted uint64
	for i := range o.Kinds {
		same(fmt.Sprintf("service times of kind %d", i+1), o.Kinds[i].Service.Count(), "response times", o.Kinds[i].Response.Count())
		sorted += o.Kinds[i].Response.Count()
	}
	if sorted > ended {
		errs = append(errs, fmt.Errorf("%s: %d are of a kind, but %d ended", name, sorted, ended))
	}
	if o.Split != nil {
		same("parts of service times before a sync", o.Split.Write.Count(), "parts in one", o.Split.Sync.Count())
		if n := o.Split.Sync.Count(); n > classes[ClassOK] {
			errs = append(errs, fmt.Errorf("%s: %d waited for a sync, but %d ended ok", name, n, classes[ClassOK]))
		}
	}
	if err := o.Keys.check(name); err != nil {
		errs = append(errs, fmt.Errorf("keys of %w", err))
	}
	inBins(" of keys", &o.Keys.Bins, &o.Keys.Outcomes)
	inBins(" of keys by turn", &o.Keys.Turns, &o.Keys.Outcomes)
	if n := o.Growth.Ended(); n > 0 {
		same("ends by ordinal", n, "ended", ended)
	}
	same("causes", causes, ClassBad.String(), classes[ClassBad])
	same("lags", o.Lag.Count(), "ended", ended)
	return errors.Join(errs...)
}

func (s *Span) check() error {
	if s.Sessions == 0 {
		if *s != (Span{}) {
			return fmt.Errorf("a span of no session from %d to %d", s.First, s.Last)
		}
		return nil
	}
	if s.First > min(s.LastFirst, s.FirstLast) || s.Last < max(s.LastFirst, s.FirstLast) {
		return fmt.Errorf("first starts %d to %d do not go with last ends %d to %d of %d sessions",
			s.First, s.LastFirst, s.FirstLast, s.Last, s.Sessions)
	}
	if s.FirstOut < s.First || s.FirstOut > s.FirstLast {
		return fmt.Errorf("the earliest last start of %d sessions is at %d, outside of %d to %d", s.Sessions, s.FirstOut, s.First, s.FirstLast)
	}
	if s.Losers > s.Sessions || s.Losers == 0 && s.LostFrom != 0 {
		return fmt.Errorf("%d of %d sessions lost time, from %d on", s.Losers, s.Sessions, s.LostFrom)
	}
	return nil
}
