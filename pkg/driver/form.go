package driver

import "slices"

// maxOwn is how many names of a plan's own there are verbs for: of ops that store nothing, and as many of those that store.
const maxOwn = 16

// Form is an op as a plan words it.
type Form struct {
	Verb  Verb   // Get, Put or Delete, which it words anew, or one of the plan's own
	Name  string // as the plan has it
	Words any    // of NewForm's type
}

// Words are the names of the verbs of a plan: those that every store has, and those of the plan's own. The zero value has none of these.
type Words struct {
	own [2][]string // that store nothing, and that store; each in order
}

// NewWords returns the words of a plan with names of its own; for each it says whether such an op stores a value. Names beyond [Words.Most] may be left out.
func NewWords(own map[string]bool) Words {
	var w Words
	for name, stores := range own {
		if slices.Contains(verbNames[:], name) {
			continue
		}
		kind := 0
		if stores {
			kind = 1
		}
		w.own[kind] = append(w.own[kind], name)
	}
	for i, names := range w.own {
		slices.Sort(names)
		w.own[i] = names[:min(len(names), maxOwn)]
	}
	return w
}

// Verb returns the verb with a name.
func (w Words) Verb(name string) (Verb, bool) {
	for i, names := range w.own {
		if at, ok := slices.BinarySearch(names, name); ok {
			return Verb(firstOwn + i*maxOwn + at), true
		}
	}
	if i := slices.Index(verbNames[:], name); i >= 0 {
		return Verb(i), true
	}
	return 0, false
}

// Name returns a verb's name; "" where the plan has none such.
func (w Words) Name(v Verb) string {
	if v < firstOwn {
		return v.String()
	}
	i := int(v-firstOwn) / maxOwn
	if at := int(v-firstOwn) % maxOwn; i < len(w.own) && at < len(w.own[i]) {
		return w.own[i][at]
	}
	return ""
}

// Most returns how many names of its own a plan may have.
func (Words) Most() int { return maxOwn }

// Own returns the names of the plan's own, in order.
func (w Words) Own() []string {
	all := slices.Concat(w.own[0], w.own[1])
	slices.Sort(all)
	return all
}
