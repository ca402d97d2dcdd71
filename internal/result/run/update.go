package run

import (
	"time"

	"github.com/loadgen/loadgen/internal/load/worker"
)

// Update says how far a step has got. Rates and quantiles are those of the last interval.
type Update struct {
	Phase    string
	Kind     worker.StepKind
	Level    int // number of the level in a phase with several, from 1; else 0
	Levels   int // how many levels; 0 if unknown
	Elapsed  time.Duration
	Expected time.Duration // 0 if unknown
	Offered  float64       // ops per second of the schedule, assuming that no scenario fails; 0 in a closed phase and after the schedule's end
	Achieved float64       // ops ended per second
	P50, P99 time.Duration // response time of all ops that ended; 0 if none did, or if it falls on a failed op
	Done     uint64        // ops ended so far
	Total    uint64        // 0 if unknown
	Bad      uint64        // of Done
	Final    bool
	Awaited  []string // workers that have not reported the last interval, so that the figures are those of the others
	Doing    string   // a lengthy activity before or after the load, in words; Elapsed is then its time, and there are no figures
	Search   *Seeking // progress of a search; nil in other phases
	Verdict  Verdict  // of the run so far, without reasons or the phase in progress
}

// Seeking says how far a search has got.
type Seeking struct {
	Rate        float64       // the median of what is known of the largest rate that holds, 0 if nothing is
	Low, High   float64       // the central 95 %; High is +Inf if the generator bounds it
	Spent, Left time.Duration // of its budget
}
