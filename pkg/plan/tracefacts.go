package plan

import "time"

// TraceFacts are what a trace was found to hold.
type TraceFacts struct {
	SHA256       string
	Length       int64 // of the file, in bytes
	Lines        int64
	Span         time.Duration
	Verbs        []int64 // lines by driver.Verb
	Ops, LeftOut map[string]int64
}
