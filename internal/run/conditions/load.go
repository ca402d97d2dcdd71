package conditions

// Model is how ops of a load become due.
type Model string

const (
	Closed Model = "closed" // when the op before has ended; so are those of a populate and of a clear
	Open   Model = "open"   // by a schedule
	Stages Model = "stages" // by several, one after another
	Search Model = "search" // by those that a search tries
)

// End is why the measured step of a phase was over.
type End string

const (
	EndIterations End = "iterations" // each session had done its own
	EndKeys       End = "keys"       // each key had its turn
	EndTrace      End = "trace"      // so had each line of it
	EndDuration   End = "duration"   // a closed load's time was up
	EndSchedule   End = "schedule"   // so was an open one's
	EndSearch     End = "search"     // no more rates were tried
	EndErrors     End = "errors"     // more ops failed than the plan puts up with
	EndStopped    End = "stopped"    // by the user, or with the run
	EndLost       End = "lost"       // with a worker
	EndLog        End = "log"        // with a log that failed
)

// Load is the load that was asked for. A field that the model does not have is 0 or "".
// Of stages it is all of them together, of a search what its levels have in common.
type Load struct {
	Sessions        int     `json:"sessions"`
	Pipeline        int     `json:"pipeline"`
	Batch           int     `json:"batch"`      // keys of an op
	Iterations      int64   `json:"iterations"` // of each session; 0: not bounded by them
	DurationSeconds float64 `json:"duration_seconds"`
	RampSeconds     float64 `json:"ramp_seconds"`
	ThinkSeconds    float64 `json:"think_seconds"`
	Rate            float64 `json:"rate"` // arrivals per second
	Arrivals        string  `json:"arrivals"`
	InFlight        int     `json:"in_flight"`
	OnFull          string  `json:"on_full"`
	HitRatio        float64 `json:"hit_ratio"` // share of gets that ask for keys of the dataset, where the plan has one; else 0
}

// Trace is the trace that a phase has replayed.
type Trace struct {
	File    string       `json:"file"`
	Form    string       `json:"form"`
	SHA256  string       `json:"sha256"`
	Speed   float64      `json:"speed"` // how many times as fast as it was; of even distances, and of a closed load, 0
	Lines   int64        `json:"lines"` // that are ops
	Ops     []TraceCount `json:"ops"`   // lines by what the trace calls the op
	LeftOut []TraceCount `json:"left_out"`
}

// TraceCount is how many lines of a trace have an op.
type TraceCount struct {
	Op    string `json:"op"`
	Lines int64  `json:"lines"`
}
