package plan

import (
	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Vars holds the sources of variables' values. The variant and flags take precedence, and may not set the same variable. Then come files, the
// environment and the variable's default. A string variable takes a flag's or the environment's text verbatim; others parse it as an HCL
// literal.
type Vars struct {
	Flags   []string          // NAME=TEXT each; if a name repeats, the last one wins
	Files   []dialect.VarFile // if several have a name, the last one wins
	Environ []string          // KEY=TEXT each, as from os.Environ; LOADGEN_VAR_NAME sets NAME
	Variant string            // name of a variant of the plan's experiment; "" for none

	// Trace reads a file of ops in one of the forms and says what it holds; timed says whether its times matter. If nil, traces are not read.
	Trace func(file, form string, timed bool) (TraceFacts, error)

	// Keys reads a file's keys in one of the forms, or its rows in the form "rows", and says how many there are. If nil, one is assumed.
	Keys func(file, form, field string) (EntryFacts, error)

	// Values reads a file's values in one of the forms and says how many there are; encoding is "text" or "base64". If nil, one empty value is
	// assumed.
	Values func(file, form, field, encoding string) (EntryFacts, error)

	// Content reads a file of at most MostContent, which becomes part of the plan. If nil, it is empty.
	Content func(file string) ([]byte, error)
}

// MostContent is the most bytes of a file that is part of a plan.
const MostContent = 1 << 20
