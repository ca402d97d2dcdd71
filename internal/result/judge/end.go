package judge

import (
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// ended says why the load ended.
func (m *Measured) ended(ph *plan.Phase, planned uint64) run.End {
	c := ph.Closed
	switch {
	case m.StoppedOn != "":
		return run.EndErrors
	case m.Aborted:
		return run.EndStopped
	case len(m.Losses) > 0:
		return run.EndLost
	case slices.ContainsFunc(m.Logs, hasFailed):
		return run.EndLog
	case ph.Populate != nil || ph.Clear != nil || ph.Verify != nil:
		return run.EndKeys
	case ph.Search != nil:
		return run.EndSearch
	case c == nil && ph.Trace() != nil:
		return run.EndTrace
	case c == nil:
		return run.EndSchedule
	case c.Duration > 0 && (planned == 0 || m.turns(ph) < planned):
		return run.EndDuration
	case c.Iterations > 0:
		return run.EndIterations
	case c.Trace != nil:
		return run.EndTrace
	}
	return run.EndKeys
}

// turns returns how many ops were due, or how many scenarios if the phase has any.
func (m *Measured) turns(ph *plan.Phase) (n uint64) {
	for _, o := range slots(ph, m.Load) {
		n += o.Due
	}
	return n
}

// planned returns how many turns all sessions of a closed load have; 0 if only time or a trace limits them.
func planned(p *plan.Plan, ph *plan.Phase) uint64 {
	c, keys := ph.Closed, p.Dataset(ph.Dataset).Keys
	if c == nil || c.Trace != nil {
		return 0
	}
	sessions := uint64(c.Sessions)
	switch walks := keys.InOrder(); {
	case c.Iterations > 0: // a valid plan's sequence has at least as many keys
		return sessions * uint64(c.Iterations)
	case walks && keys.PerSession():
		return sessions * uint64(keys.Count)
	case walks:
		return uint64(keys.Count)
	}
	return 0
}

// Happening is what the coordinator knows of an event that it carried out itself.
type Happening struct {
	At     time.Duration `json:"at"` // when it happened, on the run clock
	Took   time.Duration `json:"took"`
	Undone time.Duration `json:"undone,omitempty"` // when it was undone, on the run clock; 0 if it was not
	Failed string        `json:"failed,omitempty"` // why it did not happen, or only in part
}

// happened returns what the coordinator recorded, or the workers counted, of an event; nil if it has not happened.
func (m *Measured) happened(i int, t *measure.Totals) *Happening {
	if h := m.Happened[i]; h != nil {
		return h
	}
	if i < len(t.Events) && t.Events[i].Times > 0 {
		e := t.Events[i]
		return &Happening{At: time.Duration(e.First), Took: time.Duration(e.Last - e.First)}
	}
	return nil
}
