package run

// Summary identifies a run or an experiment in one line, with its verdict. Its JSON is a part of a [Run]'s.
type Summary struct {
	Header
	Seconds  float64 `json:"seconds"`
	Verdict  Verdict `json:"verdict"`
	ExitCode int     `json:"exit_code"`

	// Unverified says why an imported result could not be verified; "" if it was, or if it was made here.
	Unverified string `json:"-"`

	// Imported says that it came in a pack.
	Imported bool `json:"-"`

	// Runs is how many runs an experiment has had; 0 for a run.
	Runs int `json:"-"`

	// Unfinished says why the run has no result, or "" if it has one. An unfinished run has an ID, and Plan and StartedAt as far as they could be
	// read.
	Unfinished string `json:"-"`
}
