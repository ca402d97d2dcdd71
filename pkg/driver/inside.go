package driver

// Inside is the driver of targets that are inside loadgen's event loops: the caches that read through to a source. It has no transport and no
// protocol. A plan does not name it, but writes source in the target.
type Inside struct{}

// Name returns "cache".
func (Inside) Name() string { return "cache" }

// NewConfig returns a pointer to an empty struct: caches are described by the plan's own arguments.
func (Inside) NewConfig() any { return new(struct{}) }

// Outcomes lists what requests can end in.
func (Inside) Outcomes(v Verb) []Outcome { return outcomes[v] }

var outcomes = map[Verb][]Outcome{Get: {OK, Miss}, Delete: {OK, Miss}, Put: {OK, Conflict}}
