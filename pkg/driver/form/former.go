package form

import "github.com/loadgen/loadgen/pkg/driver"

// Former is a driver whose requests a plan may word itself, in blocks of a target: op "NAME" { request { … } expect { … } }.
type Former interface {
	driver.Driver
	// NewForm returns a pointer to a new struct with hcl and json tags for what stands in such a block: the blocks request, and expect where
	// replies may be read in several ways. It holds the defaults.
	NewForm() any
	// CheckForm compiles a form of a target with the config. Its errors, which may be joined, begin with the name of the attribute that is wrong
	// and say what to write instead.
	CheckForm(config any, f driver.Form) (Wording, error)
	// ShowForm returns what a request of a form that CheckForm took is as it will be sent, for people: on one line or few, escaped, with what is
	// long cut. The sample has a key, and a value if the form stores.
	ShowForm(config any, f driver.Form, sample *driver.Request, run string) string
}

// Wording is what is known of a form before it is used.
type Wording struct {
	Stores   bool             // its requests have a value, or a part of one
	Keyed    bool             // its requests have the key
	Outcomes []driver.Outcome // what it can end in beside Timeout and Error
	Fields   []string         // of the dataset's record that it takes
	Requests bool             // its keys are whole requests, of a file in the form "vegeta"
}

// Take adds what a template of the form takes.
func (w *Wording) Take(t Template) {
	w.Stores = w.Stores || t.Stores()
	w.Keyed = w.Keyed || t.Count(Key) > 0
	w.Fields = t.Fields(w.Fields)
}

// Fielder is what a [driver.Maker] is, too, whose fillings are records.
type Fielder interface {
	// AppendField appends one field of the filling for a seed, as plain text, and nothing where there is no such field. It allocates nothing
	// but room in dst.
	AppendField(dst []byte, seed uint64, name string) []byte
}
