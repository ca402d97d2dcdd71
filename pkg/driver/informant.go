package driver

// Figure is a number that servers report about themselves.
type Figure struct {
	Name    string // a letter or _, then letters, digits and _
	Unit    string // "bytes", "s", "us"; "" for a plain number
	Counter bool   // it never falls until the server ends
	Sparse  bool   // servers omit it while it is 0
}

// Informant is an optional interface of a [Wire] or a [Dialer] whose servers report figures about themselves on request, on a connection that carries
// no load. A Wire's connection begins like all of its connections.
type Informant interface {
	Driver
	// Figures lists the figures to observe if a plan names none.
	Figures() []Figure
	// Describe returns what is known about the figure of that name, which may be any string.
	Describe(name string) Figure
	// AppendQuestion appends a request for all figures of the link's server. It fails if a secret cannot be looked up.
	AppendQuestion(dst []byte, link Link) ([]byte, error)
	// ParseFigures reads the answer from the front of b. It returns the figures' texts by name and the number of bytes it took, 0 if the answer is
	// incomplete. An error means that the server refuses, or that the connection is of no further use.
	ParseFigures(b []byte) (figures map[string]string, n int, err error)
}
