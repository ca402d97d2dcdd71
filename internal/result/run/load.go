package run

// Model is how a load's ops become due.
type Model string

const (
	ModelClosed Model = "closed" // when the slot's previous op has ended; also for a populate or a clear
	ModelOpen   Model = "open"   // by a schedule
	ModelStages Model = "stages" // by several schedules, one after another
	ModelSearch Model = "search" // by the rates that a search tries
)

// End is why the measured step of a phase ended.
type End string

const (
	EndIterations End = "iterations" // each session had done its own number
	EndKeys       End = "keys"       // every key had been used
	EndTrace      End = "trace"      // every line of the trace had been used
	EndDuration   End = "duration"   // a closed load's duration was over
	EndSchedule   End = "schedule"   // an open load's duration was over
	EndSearch     End = "search"     // there was no further rate to try
	EndErrors     End = "errors"     // more ops failed than the plan allows
	EndStopped    End = "stopped"    // by the user, or with the run
	EndLost       End = "lost"       // a worker was lost
	EndLog        End = "log"        // a log failed
)

// Load is the load that the plan asked for. A field that the model does not have is 0 or "". For stages it covers all of them together; for a search,
// it holds what its levels have in common.
type Load struct {
	Sessions        int     `json:"sessions"`
	Pipeline        int     `json:"pipeline"`
	Batch           int     `json:"batch"`      // keys per op
	Iterations      int64   `json:"iterations"` // of each session; 0 for no limit
	DurationSeconds float64 `json:"duration_seconds"`
	RampSeconds     float64 `json:"ramp_seconds"`
	ThinkSeconds    float64 `json:"think_seconds"`
	Rate            float64 `json:"rate"` // arrivals per second
	Arrivals        string  `json:"arrivals"`
	InFlight        int     `json:"in_flight"`
	OnFull          string  `json:"on_full"`
	HitRatio        float64 `json:"hit_ratio"`         // share of gets for keys of the dataset, if the plan sets it; otherwise 0
	OnMiss          string  `json:"on_miss,omitempty"` // what follows a get that misses: put; absent if nothing does
}

// Trace is the trace that a phase replayed.
type Trace struct {
	File    string       `json:"file"`
	Form    string       `json:"form"`
	SHA256  string       `json:"sha256"`
	Speed   float64      `json:"speed"` // multiple of the original speed; 0 if evenly spaced or closed
	Lines   int64        `json:"lines"` // lines that are ops
	Ops     []TraceCount `json:"ops"`   // lines by the trace's name of the op
	LeftOut []TraceCount `json:"left_out"`
}

// TraceCount says how many lines of a trace have an op.
type TraceCount struct {
	Op    string `json:"op"`
	Lines int64  `json:"lines"`
}
