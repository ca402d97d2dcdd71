package run

// StepKind says what a step is for.
type StepKind string

const (
	Setup    StepKind = "setup"    // untimed puts of a phase's session pools
	Populate StepKind = "populate" // the shared key range once
	Clear    StepKind = "clear"    // deletes
	Load     StepKind = "load"     // the measured load
)
