package run

// Summary is a run or an experiment in a line: those fields that tell it from others. Its JSON is a part of a [Run]'s.
type Summary struct {
	Header
	Seconds  float64 `json:"seconds"`
	Verdict  Verdict `json:"verdict"`
	ExitCode int     `json:"exit_code"`

	// Runs is how many runs an experiment has had; 0 for a run.
	Runs int `json:"-"`

	// Unfinished says why the run has no result; it is "" when it has one. Of an unfinished run ID is known, and Plan and
	// StartedAt as far as they could be read.
	Unfinished string `json:"-"`
}
