package driver

// Bag holds what a scenario remembers from op to op: the fields of its row, captures and cookies. Names occur once.
type Bag []Noted

// Noted is a text in a Bag.
type Noted struct {
	Name   string // row.NAME or captured.NAME, as in a template; of a cookie cookie.NAME
	Target int    // of a cookie: the request's, whose server set it; otherwise 0
	Text   string
}

// Get returns the text of that name that belongs to no target; "" if there is none.
func (b Bag) Get(name string) string {
	for i := range b {
		if b[i].Name == name && b[i].Target == 0 {
			return b[i].Text
		}
	}
	return ""
}

// Put notes a text in place of the one with its name.
func (b *Bag) Put(n Noted) {
	for i := range *b {
		if old := &(*b)[i]; old.Name == n.Name && old.Target == n.Target {
			old.Text = n.Text
			return
		}
	}
	*b = append(*b, n)
}

// Findings are what a form looked for in a reply.
type Findings struct {
	Failed int // the check that failed, by its place in the form.Wording's Checks, from 1; 0 if none did
	Hops   int // redirects that were followed
	Bag    Bag // captures and cookies, for the op's scenario
}

// MaxChecks is the most checks of a form.
const MaxChecks = 32
