package worker

import (
	"errors"
	"fmt"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Log is what a phase did to log files, and whether what it wrote is really there.
type Log struct {
	localfile.Log

	EntryBytes     int      `json:"entry_bytes"`
	BytesPerSecond *float64 `json:"bytes_per_second"` // of entries, while all sessions were working, and of AtRisk's last sync
	Bound          string   `json:"bound"`            // the phase that the plan names as this one's bound; "": none
	BoundShare     *float64 `json:"bound_share"`      // BytesPerSecond as a share of the bound's
	ForcesPerOp    *float64 `json:"forces_per_op"`    // of ops that changed something and ended ok

	EntriesPerSync *float64 `json:"entries_per_sync"` // on average, with group commit

	Threads []measure.Thread `json:"threads"` // by session, of all workers

	Proof    *localfile.Proof `json:"proof"`    // by a process that did not write the entries
	Unproven string           `json:"unproven"` // why there is no proof
}

// CheckValid returns an error if a worker's account is impossible.
func (l *Log) CheckValid() error {
	if l.Files < 0 || l.FileBytes < 0 || l.EntryBytes < 0 {
		return fmt.Errorf("log files: %d of %d bytes, entries of %d", l.Files, l.FileBytes, l.EntryBytes)
	}
	for _, t := range l.Threads {
		if t.Session < 0 || t.Sessions < 1 || min(t.CPU, t.CPUAtEnd, t.Node, t.NodeAtEnd) < -1 {
			return fmt.Errorf("log files: a thread with %d sessions from %d on, on CPUs %d and %d", t.Sessions, t.Session, t.CPU, t.CPUAtEnd)
		}
	}
	if p := l.Proof; p != nil && p.Verified > p.Acknowledged {
		return errors.New("log files: more entries were verified than acknowledged")
	}
	return nil
}
