// Package exit holds the command's exit codes, for scripts. docs/result.md explains those of a run.
package exit

// Exit codes. A run gets the first that applies, in this order: Failed, Aborted, Degraded, Invalid, Assert, Undecided. A gate's are in another order
// ([run.Experiment.Decide]).
const (
	OK        = 0
	Assert    = 1 // an assert does not hold, or something is not as expected
	Usage     = 2 // wrong usage, or an invalid plan: nothing was run
	Degraded  = 3
	Invalid   = 4
	Aborted   = 5
	Failed    = 6 // something could not be done
	Undecided = 7 // it cannot be told
)
