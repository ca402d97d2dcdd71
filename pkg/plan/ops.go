package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// Op is an op of a target whose requests the plan words itself: get, put or delete in another way than the driver's own, or one with a name of
// the plan's.
type Op struct {
	Name   string `json:"name"`
	Stores bool   `json:"stores"` // its requests have a value, or a part of one
	Form   any    `json:"form"`   // what the driver's NewForm returned, filled
}

// Words returns the names of the verbs in the plan.
func (p *Plan) Words() driver.Words {
	own := map[string]bool{}
	for _, t := range p.Targets {
		for _, o := range t.Ops {
			own[o.Name] = own[o.Name] || o.Stores
		}
	}
	return driver.NewWords(own)
}

// Forms returns the ops that the plan words itself on the target, with the verbs that words has for them.
func (t *Target) Forms(words driver.Words) []driver.Form {
	var forms []driver.Form
	for _, o := range t.Ops {
		if verb, ok := words.Verb(o.Name); ok {
			forms = append(forms, driver.Form{Verb: verb, Name: o.Name, Words: o.Form})
		}
	}
	return forms
}

// Op returns the op with a name that the plan words itself on the target; nil for none.
func (t *Target) Op(name string) *Op {
	if i := slices.IndexFunc(t.Ops, func(o *Op) bool { return o.Name == name }); i >= 0 {
		return t.Ops[i]
	}
	return nil
}

// reworded are the ops of every store that a plan may word anew: the others are of logs.
var reworded = []driver.Verb{driver.Get, driver.Put, driver.Delete}

// compareOps orders the ops of a mix: those of every store by their verbs, then those of the plan's own by name.
func compareOps(a, b string) int {
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// everyStores returns the verb that every store has under a name.
func everyStores(name string) (driver.Verb, bool) { return driver.Words{}.Verb(name) }

// place is where an op stands among those of every store; those of the plan's own stand behind them all.
func place(op string) int {
	v, ok := everyStores(op)
	if !ok {
		return driver.NumVerbs
	}
	return int(v)
}

// opNames are the ops that a mix may have: those of every store, and those that targets word.
func opNames(targets []*Target) []string {
	var names []string
	for v := driver.Verb(0); !v.Own(); v++ {
		names = append(names, v.String())
	}
	var own []string
	for _, t := range targets {
		for _, o := range t.Ops {
			if _, known := everyStores(o.Name); !known {
				own = append(own, o.Name)
			}
		}
	}
	slices.Sort(own)
	return append(names, slices.Compact(own)...)
}

// ops reads the op blocks of a target.
func (b *block) ops(t *Target, d driver.Driver) {
	former, ok := d.(form.Former)
	for _, in := range b.labelled("op", true) {
		o := &Op{Name: in.label}
		t.Ops = append(t.Ops, o)
		if !ok {
			continue // reported by the check
		}
		o.Form = former.NewForm()
		in.driverBody(o.Form, nil, nil)
		if !b.r.isWrong(in.Path + ".config") {
			if w, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form}); err == nil {
				o.Stores = w.Stores
			}
		}
	}
}

// verbFor is the verb that a form is checked with: that of its own name is told by the plan as a whole.
func verbFor(name string) driver.Verb {
	v, _ := driver.NewWords(map[string]bool{name: false}).Verb(name)
	return v
}

// ops checks the ops that a target words itself.
func (v *validator) ops(t *Target, d driver.Driver, at part) {
	former, ok := d.(form.Former)
	if !ok && len(t.Ops) > 0 {
		v.fault(fmt.Sprintf("%s: driver %q has no words of its own for what it asks", at.where, t.Driver), "Leave op out.", at.path+".op."+t.Ops[0].Name, at.path)
		return
	}
	if len(t.Ops) > 0 && t.Replication != nil {
		v.fault(at.where+": op and replication", "Leave one of them out: a quorum is of gets, puts and deletes as the driver has them.", at.path+".op."+t.Ops[0].Name, at.path)
	}
	seen := map[string]bool{}
	for _, o := range t.Ops {
		in := part{at.path + ".op." + o.Name, at.where + ", op " + lang.Quote(o.Name)}
		verb, store := everyStores(o.Name)
		switch {
		case !namePattern.MatchString(o.Name):
			v.fault(in.where+": its name", writeName, in.path)
		case seen[o.Name]:
			v.fault(in.where+": a second of that name", "Write it once: one target asks for it in one way.", in.path)
		case store && !slices.Contains(reworded, verb):
			v.fault(fmt.Sprintf("%s: %s is for logs", in.where, o.Name), "Write get, put, delete or a name of your own.", in.path)
		case reflect.TypeOf(o.Form) != reflect.TypeOf(former.NewForm()):
			v.fault(fmt.Sprintf("%s: not a form of driver %q", in.where, t.Driver), "Write request { … } as the driver has it.", in.path)
		default:
			v.form(t, former, o, in)
		}
		seen[o.Name] = true
	}
}

// form checks what the driver says of one.
func (v *validator) form(t *Target, former form.Former, o *Op, at part) {
	w, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form})
	for _, err := range split(err) {
		attribute, _, _ := strings.Cut(err.Error(), " ")
		v.fault(at.where+": "+err.Error(), "", at.path+".config."+strings.TrimRight(attribute, ":[]0123456789"), at.path)
	}
	if err != nil {
		return
	}
	if w.Stores != o.Stores {
		v.fault(fmt.Sprintf("%s: stores = %t of a form that says otherwise", at.where, o.Stores), "Write what the form does.", at.path)
	}
	verb, _ := everyStores(o.Name)
	switch store := !verbFor(o.Name).Own(); {
	case store && w.Stores && !verb.Stores():
		v.fault(fmt.Sprintf("%s: a %s with a value", at.where, o.Name), "Leave {value} and {field.NAME} out, or give the op a name of its own.", at.path)
	case store && !w.Keyed:
		v.fault(fmt.Sprintf("%s: a %s without {key}", at.where, o.Name), "Write {key} where its key is to stand, or give the op a name of its own.", at.path)
	case !w.Keyed && clustered(t, former):
		v.fault(at.where+": no {key}, on a cluster", "Write {key} in the argument that is the command's key: it says which node is asked.", at.path)
	}
}

// own checks how many names of its own the plan has.
func (v *validator) own() {
	var own []string
	for _, t := range v.plan.Targets {
		for _, o := range t.Ops {
			if _, known := everyStores(o.Name); !known && !slices.Contains(own, o.Name) {
				own = append(own, o.Name)
			}
		}
	}
	if most := (driver.Words{}).Most(); len(own) > most {
		v.fault(fmt.Sprintf("the plan has %d names of ops of its own: %s", len(own), lang.Listed(own)),
			fmt.Sprintf("Write at most %d; targets may share a name.", most), "plan")
	}
}

// formed checks that the dataset of a phase has what the forms of its ops take.
func (v *validator) formed(ph *Phase, t *Target, d *Dataset, at part) {
	former, ok := driverNamed(v.drivers, t.Driver).(form.Former)
	if !ok {
		return
	}
	for _, op := range ph.opsOn(t, d) {
		o := t.Op(op)
		if o != nil && o.Stores && d.Values.TTL > 0 {
			v.fault(fmt.Sprintf("%s: op %s, which target %q words itself, with values that have a ttl", at.where, lang.Quote(o.Name), t.Name),
				"Leave ttl out of the values, and write in the op how its value ends.", "dataset."+d.Name+".values.ttl", at.path)
		}
		if o == nil || reflect.TypeOf(o.Form) != reflect.TypeOf(former.NewForm()) {
			continue
		}
		wording, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form})
		if err != nil {
			continue // reported
		}
		for _, field := range wording.Fields {
			if _, has := d.Values.Record[field]; !has {
				v.noField(t, d, o, field, at)
			}
		}
	}
}

// noField reports a field that the dataset of a phase has not.
func (v *validator) noField(t *Target, d *Dataset, o *Op, field string, at part) {
	var names []string
	for name := range d.Values.Record {
		names = append(names, name)
	}
	slices.Sort(names)
	write := fmt.Sprintf("Write record = { %s = \"lorem(4)\" } in the values of dataset %q, or leave the placeholder out.", field, d.Name)
	if len(names) > 0 {
		write = lang.Instead(field, names, "{field.%s}")
	}
	v.fault(fmt.Sprintf("%s: op %s takes {field.%s}, which dataset %q does not have", at.where, lang.Quote(o.Name), field, d.Name), write,
		"target."+t.Name+".op."+o.Name, at.path)
}

// shownOp is an op that a target words itself, as people read it.
type shownOp struct {
	Target, Name, Text string
}

// Show returns the ops that targets word themselves as they will be sent, with a key and a value such as those of the first phase that has them.
func (p *Plan) Show(drivers []driver.Driver) []shownOp {
	var all []shownOp
	words := p.Words()
	for _, t := range p.Targets {
		former, ok := driverNamed(drivers, t.Driver).(form.Former)
		if !ok {
			continue
		}
		for _, f := range t.Forms(words) {
			all = append(all, shownOp{t.Name, f.Name, former.ShowForm(t.Config, f, p.sample(t, f), "RUN")})
		}
	}
	return all
}

// sample is a request such as a form is used for.
func (p *Plan) sample(t *Target, f driver.Form) *driver.Request {
	req := &driver.Request{Verb: f.Verb, Key: []byte("KEY"), Value: &driver.Value{Size: 16}}
	for _, ph := range p.Phases {
		d := p.Dataset(ph.Dataset)
		used := slices.ContainsFunc(slices.Concat(ph.Ops, ph.Setup), func(w Weight) bool { return w.Op == f.Name })
		if ph.Target != t.Name || !used || d == nil {
			continue
		}
		if d.Keys.File == nil {
			req.Key = fmt.Appendf(nil, d.Keys.Format, 0)
		}
		value, err := d.Values.Value()
		if err != nil {
			return req
		}
		value.Checked = false // its header is no text
		if value.Maker != nil {
			value.Size = len(value.Maker.Append(nil, value.Seed))
		}
		req.Value = &value
		return req
	}
	return req
}
