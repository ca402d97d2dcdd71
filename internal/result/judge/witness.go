package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// invariant is one row of the table of what must hold between two counts that come about independently. docs/truth.md shows the table.
type invariant struct {
	code   reason.Code
	holds  string                // what must hold
	silent string                // when it says nothing
	always bool                  // also for steps that are not timed, and loads whose setup fell short
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
			"", true, (*phase).unbalanced,
		},
		{
			reason.ForeignValues, "every value that was read is one that loadgen wrote",
			"values are not checked", false, (*phase).foreign,
		},
		{
			reason.HitRatio, "the share of gets that hit is `hit_ratio`, by five standard deviations",
			"the phase has no `hit_ratio`", false, (*phase).missedMore,
		},
	}
}

// judgeWitnesses goes through the table.
func (p *phase) judgeWitnesses(d *doubts) {
	for _, row := range invariants() {
		if !row.always && !p.timed() {
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
