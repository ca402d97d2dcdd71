package run

// Probe is one look at what a plan observes. Its JSON is a line of a run directory's observations.
type Probe struct {
	Phase   string             `json:"phase"`
	Observe string             `json:"observe"` // the observation's name
	When    string             `json:"when"`    // "before", "during" or "after" the load
	At      float64            `json:"at"`      // when the figures were there, in seconds on the run clock
	Seconds float64            `json:"seconds"` // that it took
	Value   map[string]float64 `json:"value"`   // by field
	Missing map[string]string  `json:"missing"` // why a field has no value; under "" why none has
}

// Observed is one field of an observation over a phase. A number that is not to be had is null.
type Observed struct {
	Unit    string   `json:"unit"`    // "bytes", "s", "us"; "" for a plain number
	Counter bool     `json:"counter"` // it only grows
	Before  *float64 `json:"before"`  // when the load was about to begin
	After   *float64 `json:"after"`   // when it had ended
	Delta   *float64 `json:"delta"`   // after − before
	Rate    *float64 `json:"rate"`    // delta by the seconds between the two
	Last    *float64 `json:"last"`    // of all probes that brought it: the last, and so on
	Min     *float64 `json:"min"`
	Max     *float64 `json:"max"`
	Mean    *float64 `json:"mean"`
}

// Probes is how an observation was made in a phase.
type Probes struct {
	Kind       string      `json:"kind"`        // "server", "process", "directory", "prometheus" or "hook"
	Of         string      `json:"of"`          // what was looked at, in words
	Taken      int         `json:"taken"`       // probes that ended
	Failed     int         `json:"failed"`      // of them, that brought no figure at all
	Skipped    int         `json:"skipped"`     // that were due while the one before was under way
	Seconds    float64     `json:"seconds"`     // that all of them took
	MaxSeconds float64     `json:"max_seconds"` // that the longest took
	Errors     []ErrorText `json:"errors"`      // why figures are missing, most frequent first
	Series     []ProbeRow  `json:"series"`
}

// ProbeRow is what one probe brought.
type ProbeRow struct {
	T     float64             `json:"t"`     // seconds since the phase's origin; before the load less than 0
	Value map[string]*float64 `json:"value"` // by field
}
