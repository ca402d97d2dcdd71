package plan

import "time"

// TraceFacts describes the content of a trace.
type TraceFacts struct {
	SHA256       string
	Length       int64 // of the file, in bytes
	Lines        int64
	Span         time.Duration
	Verbs        []int64 // lines by driver.Verb
	Ops, LeftOut map[string]int64
	Commands     map[string]int64 // what whole requests ask for; nil if that is unknown
}
