package form

import "github.com/loadgen/loadgen/pkg/driver"

// Former is a driver whose requests a plan may word itself, in blocks of a target: op "NAME" { request { … } expect { … } }.
type Former interface {
	driver.Driver
	// NewForm returns a pointer to a new struct with hcl and json tags for the contents of such a block: request, and expect if replies can be read in
	// several ways. It holds the defaults.
	NewForm() any
	// CheckForm compiles a form of a target with the config. Its errors, which may be joined, begin with the name of the wrong attribute and say what
	// to write instead.
	CheckForm(config any, f driver.Form) (Wording, error)
	// ShowForm shows a request of a form that CheckForm accepted as it will be sent, for people: on one or a few lines, escaped, with long parts cut.
	// The sample has a key, and a value if the form stores.
	ShowForm(config any, f driver.Form, sample *driver.Request, run string) string
}

// Wording holds the facts about a form that are known before it is used.
type Wording struct {
	Stores   bool             // its requests contain a value, or a part of one
	Keyed    bool             // its requests contain the key
	Outcomes []driver.Outcome // outcomes that it can have besides Timeout and Error
	Fields   []string         // fields of the dataset's record that it uses
	Requests bool             // its keys are whole requests, from a file in the form "vegeta"
	Reads    bool             // it only reads
	Notes    []string         // what it takes from its scenario: row.NAME and captured.NAME
	Captures []string         // what it captures, by name
	Checks   []string         // checks of replies, each once, by name; at most driver.MaxChecks
	Command  string           // the first word of its requests, in capitals: a command, a statement, a method; "" if only their file tells
}

// Take adds what a template of the form uses.
func (w *Wording) Take(t Template) {
	w.Stores = w.Stores || t.Stores()
	w.Keyed = w.Keyed || t.Count(Key) > 0
	w.Fields = t.Names(w.Fields, Field)
	w.Notes = t.Names(w.Notes, Noted)
}

// Fielder is an optional interface of a [driver.Maker] whose fillings are records.
type Fielder interface {
	// AppendField appends one field of the filling for a seed, as plain text, or nothing if there is no such field. It allocates only to grow dst.
	AppendField(dst []byte, seed uint64, name string) []byte
}
