// Package exit has the codes that the command ends with, for scripts. docs/result.md explains those of a run.
package exit

// Codes, of a run the first that applies in this order: Failed, Aborted, Degraded, Invalid, Assert.
const (
	OK       = 0
	Assert   = 1 // an assert does not hold, or something is not as it was to be
	Usage    = 2 // wrong usage, or an invalid plan: nothing was run
	Degraded = 3
	Invalid  = 4
	Aborted  = 5
	Failed   = 6 // something could not be carried out
)
