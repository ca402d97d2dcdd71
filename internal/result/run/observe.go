package run

// Probe is one reading of an observation. Its JSON is a line of a run directory's observations.
type Probe struct {
	Phase   string             `json:"phase"`
	Observe string             `json:"observe"`           // the observation's name
	When    string             `json:"when"`              // "before", "during" or "after" the load
	At      float64            `json:"at"`                // when the figures arrived, in seconds on the run clock
	Seconds float64            `json:"seconds"`           // how long it took
	Value   map[string]float64 `json:"value"`             // by field
	Missing map[string]string  `json:"missing"`           // why a field has no value; under "", why nothing could be read
	Skipped int                `json:"skipped,omitempty"` // probes that were due since the one before and were not made
	Is      map[string]string  `json:"is,omitempty"`      // what identifies the server that was asked for its counts
	Dialed  uint64             `json:"dialed,omitempty"`  // connections that were made to ask it so far
}

// Counted says what the servers of a target counted of a phase's requests.
type Counted struct {
	Target string      `json:"target"`
	Said   string      `json:"said"` // in words
	Calls  []Commanded `json:"calls"`
}

// Commanded holds two counts of one command's requests: loadgen's and the servers'.
type Commanded struct {
	Command  string `json:"command"`
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Counted  uint64 `json:"counted"`
	Own      uint64 `json:"own,omitempty"` // beside Counted: connections of loadgen's own, with which it asked the servers
}

// Observed is one field of an observation over a phase. An unavailable number is null.
type Observed struct {
	Unit    string   `json:"unit"`    // "bytes", "s", "us"; "" for a plain number
	Counter bool     `json:"counter"` // it never falls
	Before  *float64 `json:"before"`  // just before the load
	After   *float64 `json:"after"`   // after the load
	Delta   *float64 `json:"delta"`   // after − before
	Rate    *float64 `json:"rate"`    // delta divided by the seconds between the two
	Last    *float64 `json:"last"`    // the last value; this and the following are over all probes that returned it
	Min     *float64 `json:"min"`
	Max     *float64 `json:"max"`
	Mean    *float64 `json:"mean"`

	// For the memory of a store that a populate fills; absent elsewhere.
	PerItem     *float64 `json:"per_item,omitempty"`      // bytes per item: the slope
	PerItemCI95 *float64 `json:"per_item_ci95,omitempty"` // half of its 95 % interval
	Fixed       *float64 `json:"fixed,omitempty"`         // bytes without any item
	KeyTable    *float64 `json:"key_table,omitempty"`     // bytes of Redis' table of keys at the end, which neither of those includes
}

// Probes says how an observation was made in a phase.
type Probes struct {
	Kind       string      `json:"kind"`        // "server", "process", "directory", "prometheus" or "hook"
	Of         string      `json:"of"`          // what was observed, in words
	Taken      int         `json:"taken"`       // probes that ended
	Failed     int         `json:"failed"`      // those of them that could read nothing
	Skipped    int         `json:"skipped"`     // probes that were due while an earlier one was in progress
	Seconds    float64     `json:"seconds"`     // total time of all probes
	MaxSeconds float64     `json:"max_seconds"` // time of the longest probe
	Errors     []ErrorText `json:"errors"`      // why figures are missing, most frequent first
	Series     []ProbeRow  `json:"series"`
}

// ProbeRow is the answer of one probe.
type ProbeRow struct {
	T     float64             `json:"t"`     // seconds since the phase's origin; negative before the load
	Value map[string]*float64 `json:"value"` // by field
}
