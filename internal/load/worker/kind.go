package worker

// StepKind says what a step is for.
type StepKind string

const (
	Setup    StepKind = "setup"    // untimed puts into a phase's session pools
	Populate StepKind = "populate" // puts of the shared key range, once
	Clear    StepKind = "clear"    // deletes
	Verify   StepKind = "verify"   // gets of the keys that earlier phases have put
	Load     StepKind = "load"     // the measured load
)

// Timed says whether the ops of such a step are measured.
func (k StepKind) Timed() bool { return k == Load }
