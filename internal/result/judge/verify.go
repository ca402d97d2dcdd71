package judge

import (
	"math"
	"strconv"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// nearEvent is how many seconds before an event, and after its end, a write still counts as near it.
const nearEvent = 5

// verify copies what the verify step found of acknowledged writes.
func (p *phase) verify(ph *plan.Phase, m *Measured) {
	if ph.Verify == nil {
		return
	}
	p.Verify = &run.Verify{Examples: []run.LostWrite{}}
	if m.Load.Versions == nil {
		return
	}
	f := &m.Load.Versions.Verified
	v := p.Verify
	v.Keys, v.Lost, v.Missing, v.Older, v.Newer, v.Unread = f.Keys, f.Missing+f.Older, f.Missing, f.Older, f.Newer, f.Unread
	for i := range f.Lost {
		l := &f.Lost[i]
		key := strconv.Quote(string(l.Key))
		one := run.LostWrite{Key: key[1 : len(key)-1]}
		if l.Found > 0 {
			one.OlderSeconds = number(float64(l.Version-l.Found) / 1e9)
		} else {
			p.null("verify.examples", reason.NotApplicable, "the key is missing")
		}
		at := seconds(l.At)
		for _, before := range m.Earlier {
			if before.Origin <= at {
				one.Phase, one.AckedSeconds, one.Event = before.Name, at-before.Origin, near(before.Events, at-before.Origin)
			}
		}
		v.Examples = append(v.Examples, one)
	}
}

// near returns the event closest to a time, both in seconds since the phase's origin; "" if none is near.
func near(events map[string]*run.Event, at float64) (name string) {
	least := math.Inf(1)
	for n, e := range events {
		if e.HappenedSeconds == nil {
			continue
		}
		from, to := *e.HappenedSeconds, *e.HappenedSeconds+e.TookSeconds
		if e.UndoneSeconds != nil {
			to = *e.UndoneSeconds
		}
		apart := math.Abs(at - from)
		if at < from-nearEvent || at > to+nearEvent || apart > least || apart == least && n > name {
			continue
		}
		name, least = n, apart
	}
	return name
}
