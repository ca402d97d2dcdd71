package judge

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Shortfall says how a step that must succeed completely (setup, populate, clear) fell short. It returns "" if as many ops as planned were done on
// each of the copies endpoints that hold a key. planned = 0 stands for the number of ops that were due, which is too low if a worker was lost. A
// clear may miss: the key is then absent, as it should be.
func Shortfall(kind worker.StepKind, words driver.Words, planned int64, copies int, t *measure.Totals) string {
	short := func(done, due uint64, what, ends string) string {
		return fmt.Sprintf("%s: %s of %s %s%s%s", kind, quantity.Number(float64(done)), quantity.Number(float64(due)), what, ends, quote(errorTexts(&t.Errors)))
	}
	if kind == worker.Verify { // keys that it does not read are counted
		return ""
	}
	begun := false
	for v, o := range t.Ops {
		if o == nil {
			continue
		}
		begun = true
		verb, done, due := words.Name(driver.Verb(v)), o.Outcomes[driver.OK], max(o.Due, uint64(planned)) // these steps have one verb
		if kind == worker.Clear {
			done += o.Outcomes[driver.Miss]
		}
		if done != due {
			return short(done, due, verb+" ops were done", ends(kind, o, due))
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

// ends lists how the ops of such a step that did not succeed ended.
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

// judgeVerify doubts a verify that could not read all keys.
func (p *phase) judgeVerify(d *doubts) {
	if v := p.Verify; v != nil && v.Unread > 0 {
		d.add(reason.SetupFailed, run.Invalid, []string{"verify", "op"}, "%s of %s could not be read%s", quantity.Thousands(v.Unread), quantity.Count(v.Keys, "key"), quote(errorTexts(&p.counts.Load.Errors)))
	}
}
