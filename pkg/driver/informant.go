package driver

// Figure is a figure that servers tell about themselves.
type Figure struct {
	Name    string // a letter or _, then letters, digits and _
	Unit    string // "bytes", "s", "us"; "" for a plain number
	Counter bool   // it only grows, until the server ends
	Sparse  bool   // servers leave it out while it is 0
}

// Informant is what a [Wire] or a [Dialer] is, too, whose servers tell figures about themselves when they are asked, on a connection that carries no
// load. That of a Wire begins as all of its connections do.
type Informant interface {
	Driver
	// Figures lists those that are observed when a plan names none.
	Figures() []Figure
	// Describe says what is known of a figure by its name, which may be any.
	Describe(name string) Figure
	// AppendQuestion appends what asks the link's server for all its figures. It fails when a secret is not to be had.
	AppendQuestion(dst []byte, link Link) ([]byte, error)
	// ParseFigures reads the answer from the front of b. It returns the figures' texts by name and the bytes it took, 0 when the answer is not
	// complete yet. An error means that the server will not tell, or that the connection is of no further use.
	ParseFigures(b []byte) (figures map[string]string, n int, err error)
}
