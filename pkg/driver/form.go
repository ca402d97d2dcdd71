package driver

import "slices"

// MaxOwn is how many names of ops of its own a plan may have.
const MaxOwn = 16

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

// NewWords returns the words of a plan with names of its own; for each it says whether such an op stores a value. It has those that are beyond
// [MaxOwn] not.
func NewWords(own map[string]bool) Words {
	var w Words
	for name, stores := range own {
		if _, known := ParseVerb(name); known {
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
		w.own[i] = names[:min(len(names), MaxOwn)]
	}
	return w
}

// Verb returns the verb with a name.
func (w Words) Verb(name string) (Verb, bool) {
	for i, names := range w.own {
		if at, ok := slices.BinarySearch(names, name); ok {
			return Verb(firstOwn + i*MaxOwn + at), true
		}
	}
	return ParseVerb(name)
}

// Name returns a verb's name; "" where the plan has none such.
func (w Words) Name(v Verb) string {
	if v < firstOwn {
		return v.String()
	}
	i := int(v-firstOwn) / MaxOwn
	if at := int(v-firstOwn) % MaxOwn; i < len(w.own) && at < len(w.own[i]) {
		return w.own[i][at]
	}
	return ""
}

// Own returns the names of the plan's own, in order.
func (w Words) Own() []string {
	all := slices.Concat(w.own[0], w.own[1])
	slices.Sort(all)
	return all
}
