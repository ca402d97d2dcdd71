package driver

import "slices"

// maxOwn is the most ops that store nothing, and the most that store a value, that a plan may name itself.
const maxOwn = 16

// Form is an op in the plan's own words.
type Form struct {
	Verb  Verb   // Get, Put or Delete with requests of the plan's own, or one of the plan's own verbs
	Name  string // as in the plan
	Words any    // of NewForm's type
}

// Words maps the verbs of a plan to their names: those of every store, and the plan's own. The zero value has none of a plan's own.
type Words struct {
	own [2][]string // those that store nothing, then those that store; each sorted
}

// NewWords returns the words of a plan with its own names; the map says whether each such op stores a value. Names beyond [Words.Most] may be
// dropped.
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

// Name returns a verb's name; "" if the plan does not have the verb.
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
