package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// Op is an op of a target whose requests the plan defines: get, put or delete in place of the driver's own, or an op with a name of the
// plan's choosing.
type Op struct {
	Name   string `json:"name"`
	Stores bool   `json:"stores"`           // its requests carry a value, or part of one
	Form   any    `json:"form"`             // the value that the driver's NewForm returned, filled
	Repeat *bool  `json:"repeat,omitempty"` // whether it may be carried out twice; nil if the plan does not say

	form.Wording `json:"-"` // follows from Form
}

// Words returns the names of the verbs in the plan.
func (p *Plan) Words() driver.Words {
	own := map[string]bool{}
	if p.chains() {
		own[ChainOp] = false
	}
	for _, t := range p.Targets {
		for _, o := range t.Ops {
			own[o.Name] = own[o.Name] || o.Stores
		}
	}
	return driver.NewWords(own)
}

// Checks returns the names of the checks of the replies to a phase's op, in the order in which they are counted.
func (p *Plan) Checks(ph *Phase, op string) []string {
	for _, name := range ph.Targets() {
		if t := p.Target(name); t != nil && t.Op(op) != nil {
			return t.Op(op).Checks
		}
	}
	return nil
}

// Forms returns the target's ops that the plan defines, with their verbs in words.
func (t *Target) Forms(words driver.Words) []driver.Form {
	var forms []driver.Form
	for _, o := range t.Ops {
		if verb, ok := words.Verb(o.Name); ok {
			forms = append(forms, driver.Form{Verb: verb, Name: o.Name, Words: o.Form})
		}
	}
	return forms
}

// Op returns the target's op of that name that the plan defines, or nil.
func (t *Target) Op(name string) *Op {
	return first(t.Ops, func(o *Op) bool { return o.Name == name })
}

// reworded are the built-in ops that a plan may redefine: the others are for logs.
var reworded = []driver.Verb{driver.Get, driver.Put, driver.Delete}

// compareOps orders the ops of a mix: built-in ones by verb, then the plan's own by name.
func compareOps(a, b string) int {
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// everyStores returns the built-in verb with a name.
func everyStores(name string) (driver.Verb, bool) { return driver.Words{}.Verb(name) }

// place returns an op's position among the built-in ones. The plan's own come after all of them.
func place(op string) int {
	v, ok := everyStores(op)
	if !ok {
		return driver.NumVerbs
	}
	return int(v)
}

// opNames lists the ops that a mix may have: the built-in ones and those that targets define.
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
			continue // the check reports it
		}
		o.Form = former.NewForm()
		in.driverBody(o.Form, []string{"repeat"}, nil)
		if in.Has("repeat") {
			o.Repeat = new(bool)
			in.Flag("repeat", o.Repeat)
		}
		if w, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form}); err == nil { // else the check reports it
			o.Stores = w.Stores
		}
	}
}

// verbFor returns a verb to check a form with. The real verb of the plan's own op depends on the whole plan.
func verbFor(name string) driver.Verb {
	v, _ := driver.NewWords(map[string]bool{name: false}).Verb(name)
	return v
}

// ops checks the ops that a target defines.
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
		in := part{at.path + ".op." + o.Name, at.where + ", op " + dialect.Quote(o.Name)}
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

// form checks an op's form with the driver.
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
	o.Wording = w
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

// own checks the number of op names that the plan itself introduces.
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
		v.fault(fmt.Sprintf("the plan has %d names of ops of its own: %s", len(own), dialect.Listed(own)),
			fmt.Sprintf("Write at most %d; targets may share a name.", most), "plan")
	}
}

// formed checks that a phase's dataset has the fields that its ops' forms use.
func (v *validator) formed(ph *Phase, t *Target, d *Dataset, at part) {
	former, ok := driverNamed(v.drivers, t.Driver).(form.Former)
	if !ok {
		return
	}
	for _, op := range ph.opsOn(t, d) {
		o := t.Op(op)
		if o != nil && o.Stores && d.Values.TTL > 0 {
			v.fault(fmt.Sprintf("%s: op %s, which target %q words itself, with values that have a ttl", at.where, dialect.Quote(o.Name), t.Name),
				"Leave ttl out of the values, and write in the op how its value ends.", "dataset."+d.Name+".values.ttl", at.path)
		}
		if o == nil || reflect.TypeOf(o.Form) != reflect.TypeOf(former.NewForm()) {
			continue
		}
		wording, err := former.CheckForm(t.Config, driver.Form{Name: o.Name, Verb: verbFor(o.Name), Words: o.Form})
		if err != nil {
			continue // already reported
		}
		for i, field := range wording.Fields {
			if _, has := d.Values.Record[field]; !has && !slices.Contains(wording.Fields[:i], field) {
				v.noField(t, d, o, field, at)
			}
		}
	}
}

// noField reports a field that the phase's dataset lacks.
func (v *validator) noField(t *Target, d *Dataset, o *Op, field string, at part) {
	names := slices.Sorted(maps.Keys(d.Values.Record))
	write := fmt.Sprintf("Write record = { %s = \"lorem(4)\" } in the values of dataset %q, or leave the placeholder out.", field, d.Name)
	if len(names) > 0 {
		write = dialect.Instead(field, names, "{field.%s}")
	}
	v.fault(fmt.Sprintf("%s: op %s takes {field.%s}, which dataset %q does not have", at.where, dialect.Quote(o.Name), field, d.Name), write,
		"target."+t.Name+".op."+o.Name, at.path)
}

// shownOp is an op that a target defines, in readable form.
type shownOp struct {
	Target, Name, Text string
}

// Show returns the ops that targets define as they will be sent, with a sample key and value from the first phase that uses each.
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

// sample returns a sample request for a form.
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
		value.Checked = false // a checked value's header is not text
		if value.Maker != nil {
			value.Size = len(value.Maker.Append(nil, value.Seed))
		}
		req.Value = &value
		return req
	}
	return req
}
