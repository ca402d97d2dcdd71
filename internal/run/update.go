package run

import (
	"time"

	"github.com/loadgen/loadgen/internal/worker"
)

// Update says how far a step has got. Rates and quantiles are those of the last interval.
type Update struct {
	Phase    string
	Kind     worker.StepKind
	Level    int // of a phase that has several, from 1; 0: it has not
	Levels   int // how many it has; 0: not known
	Elapsed  time.Duration
	Expected time.Duration // 0: not known
	Offered  float64       // ops per second that the schedule wants, as many as scenarios have when none fails; 0 in a closed phase and after the schedule's end
	Achieved float64       // ops ended per second
	P50, P99 time.Duration // response of all that ended; 0 when none did, and where that op failed
	Done     uint64        // ops ended so far
	Total    uint64        // 0: not known
	Bad      uint64        // of Done
	Final    bool
	Awaited  []string // workers from which nothing has come of the last interval: its figures are those of the others
	Doing    string   // what goes on before the load or after it, and takes long, in words; Elapsed is of that then, and there are no figures
	Verdict  Verdict  // of the run as it stands, without reasons; the phase under way has not been judged
}
