package judge

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Shortfall says in what a step that must succeed whole (setup, populate, clear) fell short: it is "" when as many ops as the plan has, 0 for those that were due, were done, on all
// of the endpoints that hold a key, copies in number. A part of them may never have been due, because its worker was lost. A clear may miss: the key is
// not there afterwards, which is what was asked for.
func Shortfall(kind worker.StepKind, planned int64, copies int, t *measure.Totals) string {
	short := func(done, due uint64, what, ends string) string {
		return fmt.Sprintf("%s: %s of %s %s%s%s", kind, quantity.Number(float64(done)), quantity.Number(float64(due)), what, ends, quote(errorTexts(&t.Errors)))
	}
	begun := false
	for v, o := range t.Ops {
		if o == nil {
			continue
		}
		begun = true
		verb, done, due := driver.Verb(v), o.Outcomes[driver.OK], max(o.Due, uint64(planned)) // these steps have one verb
		if kind == worker.Clear {
			done += o.Outcomes[driver.Miss]
		}
		if done != due {
			return short(done, due, verb.String()+" ops were done", ends(kind, o, due))
		}
		if copies == 1 {
			continue
		}
		var everywhere uint64
		if len(o.Acks) >= copies {
			everywhere = o.Acks[copies-1].Count()
		}
		if everywhere != due {
			return short(everywhere, due, fmt.Sprintf("%s ops were done on all %d endpoints of their key", verb, copies), "")
		}
	}
	if !begun && planned > 0 {
		return short(0, uint64(planned), "ops were done", "")
	}
	return ""
}

// ends lists how ops of such a step ended that were not done.
func ends(kind worker.StepKind, o *measure.Op, due uint64) string {
	misses := o.Outcomes[driver.Miss]
	if kind == worker.Clear {
		misses = 0
	}
	said := list(named{"timed out", o.Outcomes[driver.Timeout]}, named{"ended in an error", o.Outcomes[driver.Error]}, named{"missed their quorum", o.Outcomes[driver.QuorumFailed]},
		named{"were refused as conflicts", o.Outcomes[driver.Conflict]}, named{"missed", misses}, named{"were never begun", due - o.Due})
	if said == "" {
		return ""
	}
	return ": " + said
}
