package worker

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// Loss describes a lost worker. Times are seconds on the run clock. As an error, it says that the worker can no longer be reached and takes no
// further part in the run. It then holds the worker's name, the reason, and when its load had ended at the latest; the keeper of the worker's
// snapshots fills in the rest.
type Loss struct {
	Worker        string  `json:"worker"`
	Why           string  `json:"why"`
	Phase         string  `json:"phase"`          // the phase in progress; "" if none had begun
	Seq           uint64  `json:"seq"`            // number of its last kept snapshot; 0 if there is none of this phase's step
	KnownSeconds  float64 `json:"known_seconds"`  // the worker's counts are known up to here
	LoadedSeconds float64 `json:"loaded_seconds"` // when its load had ended at the latest, because its lease was over
	UnseenOps     uint64  `json:"unseen_ops"`     // ops that it may have sent in between: a bound or an estimate

	UnseenEstimated bool `json:"unseen_estimated"` // UnseenOps is an estimate, because the plan sets no bound

	ReplacedBy   string `json:"replaced_by"`   // the worker that took over its sessions, or ""
	ReplacedFrom string `json:"replaced_from"` // first phase of that worker
}

func (l *Loss) Error() string {
	if l.ReplacedBy == "" {
		return l.text()
	}
	return fmt.Sprintf("%s; worker %s took its sessions over from phase %s on", l.text(), l.ReplacedBy, l.ReplacedFrom)
}

func (l *Loss) text() string {
	if l.Phase == "" {
		return fmt.Sprintf("worker %s was lost: %s", l.Worker, l.Why)
	}
	text := fmt.Sprintf("worker %s was lost in phase %s: %s; ", l.Worker, l.Phase, l.Why)
	if l.Seq == 0 {
		text += "no snapshot of its part of that step was kept"
	} else {
		text += fmt.Sprintf("its last snapshot is number %d, up to %s of the run", l.Seq, quantity.Duration(l.KnownSeconds))
	}
	unseen := l.Unseen()
	if unseen == "" {
		return text + ", and no op after it is missing"
	}
	return text + fmt.Sprintf("; %s that it may have sent after that, until %s, are not in the figures", unseen, quantity.Duration(l.LoadedSeconds))
}

// Brief says when the worker was lost and what may be missing, but not why it was lost.
func (l *Loss) Brief() string {
	if l.ReplacedBy == "" {
		return l.missing()
	}
	return l.missing() + "; from phase " + l.ReplacedFrom + " on, " + l.ReplacedBy + " had its sessions"
}

func (l *Loss) missing() string {
	if l.Phase == "" {
		return "LOST before the first phase: it sent no load"
	}
	text := "LOST in phase " + l.Phase + ": known up to " + quantity.Duration(l.KnownSeconds)
	unseen := l.Unseen()
	if unseen == "" {
		return text + ", nothing is missing"
	}
	return text + ", " + unseen + " unseen until " + quantity.Duration(l.LoadedSeconds)
}

// Unseen says in words how many ops are missing from the figures; "" if none.
func (l *Loss) Unseen() string {
	switch ops := quantity.Count(l.UnseenOps, "op"); {
	case l.UnseenEstimated:
		return "an estimated " + ops
	case l.UnseenOps > 0:
		return "at most " + ops
	}
	return ""
}

// CheckValid returns an error if the account of the unseen ops is impossible.
func (l *Loss) CheckValid() error {
	switch missing := l.Unseen() != ""; {
	case l.LoadedSeconds < l.KnownSeconds:
		return fmt.Errorf("worker %s is known up to %v s, and had ended by %v s", l.Worker, l.KnownSeconds, l.LoadedSeconds)
	case missing && (l.Phase == "" || l.LoadedSeconds == l.KnownSeconds):
		return fmt.Errorf("worker %s may have sent %s when it had no load to send", l.Worker, l.Unseen())
	}
	return nil
}
