package run

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Worker is one worker of a run.
type Worker struct {
	Name     string `json:"name"`
	Host     string `json:"host"`     // "" for the coordinator's own process
	Loadgen  string `json:"loadgen"`  // version of its program
	Sessions int    `json:"sessions"` // the most in any phase
	Replaces string `json:"replaces"` // the lost worker whose sessions it took over, or ""
	Since    string `json:"since"`    // the first phase it took part in; "" for the run's first

	Failed string `json:"failed"` // the failure that it reported, which ended the run, or ""

	ClockOffsetSeconds      float64 `json:"clock_offset_seconds"`      // its monotonic clock minus the coordinator's, as fixed for the run
	ClockUncertaintySeconds float64 `json:"clock_uncertainty_seconds"` // possible error of the offset at the end of its last step; 0 in the coordinator's own process
	CPUSeconds              float64 `json:"cpu_seconds"`               // user + system of its process, over all steps that it finished
	measure.Spent
	MaxRSSBytes int64 `json:"max_rss_bytes"` // of its process
}

// AddSpent adds what the worker's process used for another step.
func (w *Worker) AddSpent(g *measure.Generator) {
	w.CPUSeconds += g.CPUSeconds
	w.Add(&g.Spent)
	w.ElapsedSeconds += g.ElapsedSeconds
	w.MaxRSSBytes = max(w.MaxRSSBytes, g.MaxRSSBytes)
}

// FailedWorkers returns how many workers reported a failure.
func (r *Run) FailedWorkers() (n int) {
	for i := range r.Fleet {
		if r.Fleet[i].Failed != "" {
			n++
		}
	}
	return n
}

// LossOf returns the loss of the worker at a place in the fleet, or nil if it was not lost. A name may occur twice: its second worker joined after
// the first was lost.
func (r *Run) LossOf(place int) *worker.Loss {
	nth := 0
	for _, w := range r.Fleet[:place] {
		if w.Name == r.Fleet[place].Name {
			nth++
		}
	}
	for i := range r.Losses {
		if r.Losses[i].Worker != r.Fleet[place].Name {
			continue
		}
		if nth == 0 {
			return &r.Losses[i]
		}
		nth--
	}
	return nil
}
