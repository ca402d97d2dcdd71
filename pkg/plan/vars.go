package plan

import (
	"github.com/loadgen/loadgen/pkg/plan/file"
)

// Vars is where variables get their values from: a variant before flags, flags before the file, the file before the environment, the environment before the
// variable's default. A string variable takes a flag's or the environment's text verbatim; others take it as an HCL literal.
type Vars struct {
	Flags    []string // NAME=TEXT each; the last one with a name counts
	File     []byte   // attributes, NAME = literal; nil for none
	FileName string   // stands in diagnostics about File
	Environ  []string // KEY=TEXT each, as os.Environ gives them; LOADGEN_VAR_NAME counts
	Variant  string   // of the plan's experiment, whose values come before all others; "" for none

	// Trace reads a file of ops in one of the forms, whose times matter or not, and says what it holds. nil: traces are taken for what the plan says of them.
	Trace func(file, form string, timed bool) (file.TraceFacts, error)

	// Keys reads the keys of a file in one of the forms and says how many they are. nil: they are taken for one.
	Keys func(file, form, field string) (file.EntryFacts, error)

	// Values reads the values of a file likewise; encoding is "text" or "base64". nil: they are taken for one that is empty.
	Values func(file, form, field, encoding string) (file.EntryFacts, error)
}
